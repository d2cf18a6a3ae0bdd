"""Another process writes: wait, then say so in words; nothing is half done."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.service import LocalStore, open_store
from recall_app.store import connection as connections
from tests.building import Builder
from tests.checking import assert_current, queued

HOLDER = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE apps SET name = 'never committed'")
print("held", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process is in the middle of a write transaction."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield
        finally:
            process.stdin.close()
            assert process.wait(20) == 0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with open_store(tmp_path / "recall.db") as opened:
        opened.index()
        opened.writer.connection.set_busy_timeout(50)
        yield opened


def refused(act: Callable[[], object], path: Path) -> None:
    with pytest.raises(RecallError) as caught:
        act()
    assert caught.value.kind is ErrorKind.BUSY
    assert "\n" not in caught.value.message
    assert "Another program" in caught.value.message
    assert str(path) in caught.value.message


def test_writing_while_another_process_writes_says_busy(store: LocalStore) -> None:
    built = Builder(store)
    chat = built.add_chat("title", "zebra")
    path = store.service.path
    with held(path):
        refused(lambda: store.service.create_app("Second"), path)
        refused(lambda: store.service.add_message(chat.id, "user", "more"), path)
        refused(lambda: store.service.delete_chat(chat.id), path)
        refused(store.indexer.drain, path)
        refused(store.indexer.rebuild, path)
        assert not store.writer.connection.in_transaction
        # Reading goes on, and sees what is committed.
        assert [app.name for app in store.service.apps()] == ["Shop"]
        assert [message.content for message in store.service.messages(chat.id)] == ["zebra"]
    assert queued(store.writer.connection) == set(chat.messages)
    store.service.create_app("Second")
    store.index()
    assert_current(store.writer.connection)


def test_a_short_wait_is_no_error(store: LocalStore) -> None:
    store.writer.connection.set_busy_timeout(20_000)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store.service.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.stdin.close()
        store.service.create_app("Second")
    assert [app.name for app in store.service.apps()] == ["Second"]


def test_a_store_that_must_be_migrated_while_another_process_writes_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recall.db"
    with open_store(path) as store:
        store.service.create_app("Shop")
        store.writer.connection.execute("PRAGMA user_version = 0")
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 50)
    with held(path):
        refused(lambda: connections.open_writer(path), path)
