"""How our file is opened, and with what words everything else is refused."""

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.service import open_store
from recall_app.store import migrations
from recall_app.store.connection import open_reader, open_writer
from tests.checking import assert_current


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with one indexed message."""
    path = tmp_path / "data" / "recall.db"
    with open_store(path) as store:
        chat = store.service.create_chat(store.service.create_app("Shop").id, "Database choice")
        store.service.add_message(chat.id, "user", "Zebras use 数据库 in useChatStore.ts")
        store.index()
    return path


def refused(path: Path, kind: ErrorKind, opening: Callable[[Path], apsw.Connection] = open_writer) -> str:
    with pytest.raises(RecallError) as caught:
        opening(path).close()
    assert caught.value.kind is kind
    assert "\n" not in caught.value.message
    assert str(path) in caught.value.message
    return caught.value.message


def snapshot(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# --- ours -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
def test_nobody_else_can_read_folder_and_files(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open_store(tmp_path / "data" / "recall.db") as store:
            store.service.create_app("Shop")
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "data").iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert modes == dict.fromkeys(("recall.db", "recall.db-wal", "recall.db-shm"), 0o600)


def test_the_writer_is_guarded_as_contracts_ask(file: Path) -> None:
    with closing(open_writer(file)) as connection:
        pragmas = {
            name: connection.execute(f"PRAGMA {name}").get
            for name in ("journal_mode", "foreign_keys", "secure_delete", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "secure_delete": 1, "busy_timeout": 10_000}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO apps (name, created_at, updated_at) VALUES ('x', 0, 0)",
        "DELETE FROM messages",
        "UPDATE chats SET title = 'x'",
        "INSERT INTO chat_search_fts (chat_search_fts) VALUES ('optimize')",
        "CREATE TABLE x (y)",
        "PRAGMA user_version = 99",
        "VACUUM",
    ],
)
def test_readers_cannot_write(file: Path, statement: str) -> None:
    with closing(open_reader(file)) as connection:
        connection.execute("PRAGMA query_only = OFF")
        with pytest.raises(apsw.ReadOnlyError):
            connection.execute(statement)


def test_ids_are_never_used_again(file: Path) -> None:
    with open_store(file) as store:
        service = store.service
        app = service.create_app("Second")
        chat = service.create_chat(app.id, "gone")
        message = service.add_message(chat.id, "user", "gone")
        service.delete_chat(chat.id)
        service.purge_deleted(at_exit=True)
        store.writer.run(lambda connection: connection.execute("DELETE FROM apps WHERE id = ?", (app.id,)))
        later = service.create_app("Third")
        chat_later = service.create_chat(later.id)
        assert later.id > app.id
        assert chat_later.id > chat.id
        assert service.add_message(chat_later.id, "user", "new").id > message.id


def test_a_stock_sqlite_reads_searches_and_changes_the_file(file: Path) -> None:
    """No tokenizer or function of ours is needed, neither for MATCH nor for the triggers (contracts §2)."""
    with closing(stock(file)) as connection:
        found = "SELECT rowid FROM chat_search_fts WHERE chat_search_fts MATCH ?"
        for query in ("zebra", '"数\u200b据\u200b库"', "scope:app1 AND {title body forms}:(choices)", "usechatstore"):
            assert connection.execute(found, (query,)).fetchall() == [(1,)], query
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO chat_search_fts (chat_search_fts) VALUES ('integrity-check')")
        connection.execute("UPDATE messages SET content = 'Okapis' WHERE id = 1")
        connection.execute("UPDATE chats SET title = 'Renamed' WHERE id = 1")
        connection.execute(
            "INSERT INTO messages (chat_id, role, content, created_at) VALUES (1, 'user', 'one more', 9)"
        )
    with open_store(file) as store:
        store.index()
        assert_current(store.writer.connection)
    with closing(stock(file)) as connection:
        connection.execute("DELETE FROM chats")
        assert connection.execute("SELECT count(*) FROM chat_search_fts").fetchone() == (0,)


def stock(path: Path) -> sqlite3.Connection | apsw.Connection:
    """Python's own SQLite if it knows secure-delete (3.42), else an apsw connection with nothing registered."""
    if sqlite3.sqlite_version_info >= (3, 42):
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
    plain = apsw.Connection(str(path))
    plain.execute("PRAGMA foreign_keys = ON")
    return plain


def test_several_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from recall_app.service import open_store
        with open_store(Path(sys.argv[1])) as store:
            for number in range(5):
                store.service.create_app(f"app {number}")
        """
    )
    started = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(3)]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    with open_store(path) as store:
        assert len(store.service.apps()) == 15


# --- not ours ---------------------------------------------------------------------------------------------------------


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    path.write_text("Dear diary, " * 500)
    before = snapshot(tmp_path)
    assert "diary" not in refused(path, ErrorKind.DAMAGED)
    refused(path, ErrorKind.DAMAGED, open_reader)
    assert snapshot(tmp_path) == before


def test_a_short_file_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    path.write_bytes(b"SQLite format 3\0")
    refused(path, ErrorKind.DAMAGED)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_another_program_s_database_is_left_alone(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "recall.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}; CREATE TABLE apps (id INTEGER PRIMARY KEY)").fetchall()
    before = snapshot(tmp_path)
    assert "another program" in refused(path, ErrorKind.STORE)
    assert "another program" in refused(path, ErrorKind.STORE, open_reader)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("statement", ["CREATE TABLE notes (x)", "PRAGMA user_version = 7"])
def test_another_program_s_database_is_known_even_if_all_of_it_is_in_its_log(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "recall.db"
    leave_in_log(path, f"PRAGMA journal_mode = WAL; {statement}")
    before = snapshot(tmp_path)
    assert "another program" in refused(path, ErrorKind.STORE)
    assert "another program" in refused(path, ErrorKind.STORE, open_reader)
    assert {name: data for name, data in snapshot(tmp_path).items() if not name.endswith("-shm")} == before


def test_a_newer_file_is_left_alone(file: Path) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("PRAGMA user_version = 4711")
    before = snapshot(file.parent)
    assert list(before) == ["recall.db"]
    assert "update Recall" in refused(file, ErrorKind.NEWER_FILE)
    refused(file, ErrorKind.NEWER_FILE, open_reader)
    assert snapshot(file.parent) == before


def test_a_newer_file_is_known_even_if_that_is_in_its_log_only(file: Path) -> None:
    """A newer Recall that was killed right after its migration."""
    leave_in_log(file, "PRAGMA user_version = 4711")
    before = snapshot(file.parent)
    assert "recall.db-wal" in before
    refused(file, ErrorKind.NEWER_FILE)
    refused(file, ErrorKind.NEWER_FILE, open_reader)
    assert {name: data for name, data in snapshot(file.parent).items() if not name.endswith("-shm")} == before


def leave_in_log(path: Path, statements: str) -> None:
    """Run statements in a process that ends without closing the file; its shared memory goes, as at a power cut."""
    program = "import apsw, os, sys; c = apsw.Connection(sys.argv[1]); c.execute(sys.argv[2]).fetchall(); os._exit(0)"
    subprocess.run([sys.executable, "-c", program, str(path), statements], check=True)
    path.with_name(path.name + "-shm").unlink()


def test_readers_do_not_migrate(file: Path) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.latest() - 1}")
    assert "older Recall" in refused(file, ErrorKind.STORE, open_reader)


def test_readers_need_a_file(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "recall.db", ErrorKind.STORE, open_reader)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("opening", [open_writer, open_reader])
def test_a_folder_is_no_file(tmp_path: Path, opening: Callable[[Path], apsw.Connection]) -> None:
    refused(tmp_path, ErrorKind.STORE, opening)


def test_a_path_under_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    refused(tmp_path / "taken" / "recall.db", ErrorKind.STORE)
    refused(tmp_path / "taken" / "deeper" / "recall.db", ErrorKind.STORE)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_rights_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    refused(tmp_path / "recall.db", ErrorKind.STORE)
    tmp_path.chmod(0o700)


def test_a_file_system_that_takes_nothing_is_refused() -> None:
    """``/proc`` refuses files even to root."""
    if not Path("/proc/self").exists():
        pytest.skip("no /proc here")
    refused(Path("/proc/recall.db"), ErrorKind.STORE)


def test_a_damaged_file_is_said_to_be_damaged(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for start in range(4096, len(data), 4096):
        data[start : start + 100] = b"\xff" * 100
    file.write_bytes(data)

    def use() -> None:
        with open_store(file) as store:
            store.index()
            store.service.apps()

    with pytest.raises(RecallError) as caught:
        use()
    assert caught.value.kind is ErrorKind.DAMAGED
    assert "\n" not in caught.value.message


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """So does what a first start leaves that was cut off before its migration."""
    path = tmp_path / "recall.db"
    path.touch()
    with open_store(path) as store:
        assert store.service.apps() == []
    path.unlink()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with open_store(path) as store:
        assert store.service.apps() == []
