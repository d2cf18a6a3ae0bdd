"""A full disk: one line, nothing lost, and all goes on once there is room."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.service import LocalStore, open_store
from tests.building import Builder
from tests.checking import assert_current, documents, queued

TEXT = "zebra useChatStore " * 200


@contextmanager
def full(connection: apsw.Connection, pages: int = 0) -> Iterator[None]:
    """The file may not grow by more than so many pages."""
    room = connection.execute("PRAGMA page_count").get + pages
    connection.execute(f"PRAGMA max_page_count = {room}")
    try:
        yield
    finally:
        connection.execute("PRAGMA max_page_count = 1000000")


def refused(act: Callable[[], object], path: Path) -> None:
    with pytest.raises(RecallError) as caught:
        act()
    assert caught.value.kind is ErrorKind.DISK_FULL
    assert "\n" not in caught.value.message
    assert "disk is full" in caught.value.message
    assert str(path) in caught.value.message
    assert "zebra" not in caught.value.message


def repeatedly(act: Callable[[], object]) -> None:
    for _ in range(1000):
        act()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with open_store(tmp_path / "recall.db") as opened:
        opened.index()
        yield opened


def test_what_was_written_before_the_disk_was_full_stays(store: LocalStore) -> None:
    built = Builder(store)
    chat = built.add_chat("title", TEXT)
    before = store.writer.connection.execute("SELECT count(*) FROM messages").get
    with full(store.writer.connection, 20):
        refused(lambda: repeatedly(lambda: store.service.add_message(chat.id, "user", TEXT)), store.service.path)
    assert not store.writer.connection.in_transaction
    written = store.service.messages(chat.id)
    assert len(written) > before
    assert {message.content for message in written} == {TEXT}
    store.service.add_message(chat.id, "user", TEXT)
    store.index()
    assert_current(store.writer.connection)


def test_a_drain_that_meets_a_full_disk_goes_on_later(store: LocalStore) -> None:
    built = Builder(store)
    built.add_chats([(f"chat {number}", [f"{TEXT} {number}"] * 20) for number in range(10)])
    marked = queued(store.writer.connection)
    with full(store.writer.connection, 40):
        refused(store.indexer.drain, store.service.path)
        assert set(documents(store.writer.connection)) | queued(store.writer.connection) == marked
        assert set(documents(store.writer.connection)).isdisjoint(queued(store.writer.connection))
        assert len(store.service.messages(1)) == 20
    store.index()
    assert_current(store.writer.connection)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such limits")
def test_a_purge_that_meets_a_full_disk_goes_on_later(store: LocalStore, tmp_path: Path) -> None:
    """The whole file is written anew: that needs room."""
    built = Builder(store)
    secret = built.add_chat("quaggatitle", *[f"quaggatext {number}" for number in range(40)])
    built.add_chat("others", *[TEXT] * 200)
    built.index()
    built.service.delete_chat(secret.id)
    built.execute("UPDATE chats SET deleted_at = deleted_at - 11000 WHERE id = ?", secret.id)
    said = run_limited(store.service.path, "pass", bytes_=100_000)
    assert said.count("\n") == 1
    assert "quagga" not in said
    assert built.service.purge_deleted(at_exit=True) == 1
    assert b"quagga" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert_current(store.writer.connection)


def run_limited(path: Path, acts: str, bytes_: int) -> str:
    """Open the store in a process that may not write beyond so many bytes of any file; what it said of that."""
    program = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from recall_app.domain.errors import RecallError
        from recall_app.service import open_store
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
        try:
            with open_store(Path(sys.argv[1])) as store:
                exec(sys.argv[3])
        except RecallError as error:
            print(error.kind, error.message)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), str(bytes_), acts], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such limits")
def test_a_file_that_may_not_grow_is_told_in_one_line(store: LocalStore) -> None:
    chat = Builder(store).add_chat("title", TEXT)
    said = run_limited(
        store.service.path,
        f"while True: store.service.add_message({chat.id}, 'user', 'zebra ' * 3000)",
        bytes_=2_000_000,
    )
    assert said.count("\n") == 1
    assert said.split()[0] in {ErrorKind.DISK_FULL, ErrorKind.STORE}
    assert "zebra" not in said
    assert len(store.service.messages(chat.id)) > 5
    store.index()
    assert_current(store.writer.connection)
