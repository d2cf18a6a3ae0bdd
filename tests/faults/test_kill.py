"""``kill -9`` at any moment loses nothing that was committed, doubles nothing, and brings nothing deleted back."""

import os
import random
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from recall_app.service import open_store
from tests.checking import assert_current
from tests.scale import scaled

ROOT = Path(__file__).parents[2]
LONGEST_SECONDS = 0.6


@dataclass
class Known:
    """What the killed processes have said."""

    added: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Chat and text of each message that was committed."""
    touched: set[int] = field(default_factory=set)
    deleted_chats: set[int] = field(default_factory=set)

    def take(self, lines: list[str]) -> None:
        for line in lines:
            match line.split():
                case ["+", message_id, chat_id, text]:
                    self.added[int(message_id)] = int(chat_id), text
                case ["~", message_id]:
                    self.touched.add(int(message_id))
                case ["-", chat_id]:
                    self.deleted_chats.add(int(chat_id))
                case _:
                    pytest.fail(f"the busy process said: {line}")

    def check(self, rows: dict[int, tuple[int, str]], data: bytes) -> None:
        """``rows`` are chat and content of the messages that are there, ``data`` all bytes of the folder."""
        for message_id, (chat_id, text) in self.added.items():
            if message_id in self.touched:
                continue
            if message_id in rows:
                assert rows[message_id] == (chat_id, f"{text} said in useChatStore")
            else:
                assert chat_id in self.deleted_chats
                assert f"{text} said".encode() not in data


def run_and_kill(path: Path, seed: int, seconds: float) -> list[str]:
    """Let the busy process work for so long once it has started; what it said."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.busy", str(path), str(seed)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        killer = threading.Timer(seconds, process.kill)
        killer.start()
        lines = [line for line in process.stdout if line.endswith("\n")]
        killer.join()
    assert first == "started\n"
    assert process.returncode == -9
    return lines


@pytest.mark.skipif(os.name != "posix", reason="Windows has no kill -9")
@pytest.mark.timeout(scaled(120, 900))
def test_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    moments = random.Random(2024)
    added = 0
    for life in range(scaled(2, 10)):
        folder = tmp_path / str(life)
        known = Known()
        for kill in range(scaled(6, 10)):
            known.take(run_and_kill(folder / "recall.db", 100 * life + kill, moments.uniform(0, LONGEST_SECONDS)))
            rows = restart(folder / "recall.db")
            known.check(rows, b"".join(file.read_bytes() for file in folder.iterdir()))
        added += len(known.added)
    assert added > 50


def restart(path: Path) -> dict[int, tuple[int, str]]:
    """Open the store, drain, check it whole; chat and content of every message."""
    with open_store(path) as store:
        store.index()
        connection = store.writer.connection
        assert_current(connection)
        rows = connection.execute("SELECT id, chat_id, content FROM messages")
        return {id_: (chat_id, content) for id_, chat_id, content in rows}
