"""The command as a program among others: pipes, encodings, signals."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from recall_app.service import open_store
from tests.integration.command_line import start


def test_output_that_can_not_be_encoded_never_crashes(shop: Path) -> None:
    with open_store(shop) as store:
        store.service.rename_chat(2, "登录问题")
    with start("chats", "--app", "Shop", PYTHONIOENCODING="ascii") as program:
        out, err = program.communicate()
    assert (program.returncode, err) == (0, b"")
    assert b"????" in out


def test_json_survives_a_stream_without_unicode(shop: Path) -> None:
    with open_store(shop) as store:
        store.service.rename_chat(2, "登录问题")
    with start("chats", "--app", "Shop", "--json", PYTHONIOENCODING="ascii") as program:
        out, err = program.communicate()
    assert (program.returncode, err) == (0, b"")
    assert "登录问题" in {row["title"] for row in json.loads(out)}


def test_a_reader_that_goes_away_is_no_error(shop: Path) -> None:
    with start("tool", "--batch", "-") as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        call = b'{"tool": "read_chat", "app": 1, "args": {"chat_id": 1}}\n'
        program.stdin.write(call)
        program.stdin.flush()
        program.stdout.readline()
        program.stdout.close()
        program.stdin.write(call)
        program.stdin.close()
        assert program.stderr.read() == b""
        program.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_stops_quietly(shop: Path) -> None:
    with start("tool", "--batch", "-") as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdin.write(b'{"tool": "read_chat", "app": 1, "args": {"chat_id": 1}}\n')
        program.stdin.flush()
        program.stdout.readline()
        program.send_signal(signal.SIGINT)
        assert program.stderr.read() == b"recall: Stopped.\n"
        assert program.wait() == 130


@pytest.mark.skipif(os.name == "nt", reason="arguments are text on Windows")
def test_arguments_that_are_no_text_do_no_harm(shop: Path) -> None:
    with start("chats", "--app", os.fsdecode(b"Sh\xff\xfep")) as program:
        out, err = program.communicate()
    assert (program.returncode, out) == (1, b"")
    assert err.decode() == "recall: There is no such app: “recall apps” lists them.\n"


def test_the_installed_command_is_this_module() -> None:
    with start("--help") as program:
        out, err = program.communicate()
    assert (program.returncode, err) == (0, b"")
    assert b"Usage: recall" in out
