"""Other programs' databases are read in every state they can be found in, and nothing is left in or beside them."""

import os
from pathlib import Path

import apsw
import pytest

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.store.foreign import open_foreign
from tests.sources.dyad_builder import dyad, fill, live, snapshot

COUNT = "SELECT count(*) FROM messages"
HOSTILE_NAMES = ["a?b.db", "a#b.db", "100%25.db", "with space & more.db", "登录 é.db", "file:x.db", "a?mode=rwc.db"]


def count(path: Path) -> object:
    with open_foreign(path) as database:
        return next(iter(database.rows(COUNT)))[0]


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    """A WAL database that nobody has open: 24 messages, no -wal."""
    path = tmp_path / "dyad" / "sqlite.db"
    with dyad(path) as database:
        fill(database)
    assert [file.name for file in path.parent.iterdir()] == ["sqlite.db"]
    return path


def add_message(number: int) -> str:
    return f"INSERT INTO messages (chat_id, role, content, created_at) VALUES (1, 'user', 'late {number}', 1800000000)"


def test_an_idle_database_stays_alone(idle: Path) -> None:
    before = snapshot(idle.parent)
    assert count(idle) == 24
    assert snapshot(idle.parent) == before


def test_rows_that_stand_only_in_the_log_are_read_while_another_process_writes(idle: Path) -> None:
    with live(idle) as writer:
        writer.execute(add_message(1))
        before = snapshot(idle.parent)
        assert set(before) == {"sqlite.db", "sqlite.db-shm", "sqlite.db-wal"}
        with open_foreign(idle) as database:
            assert list(database.rows(COUNT)) == [(25,)]
            writer.execute(add_message(2))
            assert list(database.rows(COUNT)) == [(25,)], "one read transaction sees one state"
        assert count(idle) == 26
        after = snapshot(idle.parent)
    assert set(after) == set(before)
    assert after["sqlite.db"] == before["sqlite.db"]


@pytest.mark.parametrize("has_shared_memory", [True, False])
def test_a_log_left_by_a_crash_is_read_and_left(idle: Path, has_shared_memory: bool) -> None:
    with live(idle) as writer:
        writer.execute(add_message(1))
        writer.kill()
    if not has_shared_memory:
        idle.with_name("sqlite.db-shm").unlink()
    before = snapshot(idle.parent)
    assert count(idle) == 25
    assert snapshot(idle.parent) == before


def test_an_emptied_log_is_read_and_left(idle: Path) -> None:
    with live(idle) as writer:
        writer.execute(add_message(1))
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = snapshot(idle.parent)
        assert count(idle) == 25
        assert snapshot(idle.parent) == before
    idle.with_name("sqlite.db-shm").unlink()
    before = snapshot(idle.parent)
    assert count(idle) == 25
    assert snapshot(idle.parent) == before


def test_a_missing_log_is_told(idle: Path) -> None:
    with open_foreign(idle) as database:
        assert database.is_wal_missing
    with live(idle) as writer:
        writer.execute(add_message(1))
        with open_foreign(idle) as database:
            assert not database.is_wal_missing


def test_a_journalled_database_is_read_and_left(tmp_path: Path) -> None:
    path = tmp_path / "sqlite.db"
    with dyad(path, journal="delete") as database:
        fill(database)
        before = snapshot(tmp_path)
        with open_foreign(path) as foreign:
            assert list(foreign.rows(COUNT)) == [(24,)]
            assert not foreign.is_wal_missing
        assert snapshot(tmp_path) == before
        database.message(1, "late")
    assert count(path) == 25


def test_a_transaction_cut_off_by_a_crash_is_undone_in_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "sqlite.db"
    with dyad(path, journal="delete") as database:
        fill(database, messages=200)
    with live(path) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE messages SET content = 'half done'")
        writer.kill()
    before = snapshot(tmp_path)
    assert set(before) == {"sqlite.db", "sqlite.db-journal"}
    with open_foreign(path) as foreign:
        assert list(foreign.rows("SELECT count(*) FROM messages WHERE content = 'half done'")) == [(0,)]
    assert snapshot(tmp_path) == before


def test_a_change_that_could_not_be_shielded_is_told(idle: Path) -> None:
    def write_while_reading() -> None:
        with open_foreign(idle), live(idle) as writer:
            writer.execute(add_message(1))

    with pytest.raises(RecallError, match="was changed while it was read") as raised:
        write_while_reading()
    assert raised.value.kind is ErrorKind.SOURCE


def test_the_log_of_a_linked_database_is_found(idle: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(idle)
    with live(idle) as writer:
        writer.execute(add_message(1))
        assert count(link) == 25


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_file_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with dyad(path) as database:
        fill(database)
        with open_foreign(path) as foreign:
            assert list(foreign.rows(COUNT)) == [(24,)]
    assert count(path) == 24
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_it_cannot_be_written(idle: Path) -> None:
    with open_foreign(idle) as database:
        with pytest.raises(RecallError):
            list(database.rows("DELETE FROM messages"))


def test_columns_are_those_of_tables_only(idle: Path) -> None:
    with apsw.Connection(str(idle)) as connection:
        connection.execute("CREATE VIEW secrets AS SELECT cookie_secret FROM apps")
    connection.close()
    with open_foreign(idle) as database:
        assert database.columns("chats") == {"id", "app_id", "title", "created_at", "initial_commit_hash"} | {
            "chat_mode",
            "is_favorite",
        }
        assert database.columns("secrets") == frozenset()
        assert database.columns("nowhere") == frozenset()


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_text_is_decoded_in_the_databases_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    connection.execute("CREATE TABLE t (x TEXT)")
    connection.execute("INSERT INTO t VALUES (?)", ("登录 🚀\0é",))
    connection.close()
    with open_foreign(path) as database:
        ((blob,),) = database.rows("SELECT CAST(x AS BLOB) FROM t")
        assert isinstance(blob, bytes)
        assert database.decode(blob) == "登录 🚀\0é"


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (b"a\xffb", "a\ufffdb"),
        (b"a\xed\xa0\x80b", "a\ufffdb"),
        (b"\xed\xa0\xbd\xed\xba\x80", "🚀"),
        (b"cut \xe7\x99", "cut \ufffd"),
    ],
)
def test_what_is_no_text_becomes_storable(idle: Path, blob: bytes, text: str) -> None:
    with open_foreign(idle) as database:
        assert database.decode(blob) == text


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "is not a database"),
        (b"SQLite format 3\0", "is not a database"),
        (b"a text file that is longer than the header of a database " * 4, "is not a database"),
        (b"SQLite format 3\0" + b"\xff" * 4096, "is (not a database|damaged)"),
    ],
)
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    with pytest.raises(RecallError, match=line) as raised:
        count(path)
    assert raised.value.kind is ErrorKind.SOURCE
    assert "\n" not in raised.value.message
    assert path.read_bytes() == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    with pytest.raises(RecallError, match="is not a database"):
        count(tmp_path / "pipe.db")


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_an_impossible_name_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecallError, match="can't be read"):
        count(tmp_path / name)


def test_missing_and_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(RecallError, match="does not exist"):
        count(tmp_path / "none.db")
    with pytest.raises(RecallError, match="is a folder"):
        count(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="rights don't bind this user")
def test_no_rights(idle: Path) -> None:
    idle.chmod(0)
    with pytest.raises(RecallError, match="can't be read"):
        count(idle)
