"""Migrations: whole or not at all, each recorded with what it did."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.service import open_store
from recall_app.store import migrations
from recall_app.store.connection import open_writer
from recall_app.store.migrations import Migration
from tests.checking import assert_current, queued


def add_migrations(monkeypatch: pytest.MonkeyPatch, *added: str) -> int:
    """As if this version of Recall brought more migrations; returns the last one's number."""
    known = migrations.all_migrations()
    last = known[-1].number
    new = tuple(Migration(last + at, f"added_{at}", sql) for at, sql in enumerate(added, 1))
    monkeypatch.setattr(migrations, "all_migrations", lambda: known + new)
    return last + len(new)


def schema(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Without SQLite's own statistics, which come and go."""
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name")
    return [(name, sql) for name, sql in rows]


def test_a_fresh_file_has_table_queues_and_triggers(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "recall.db")) as connection:
        kinds = {(kind, name) for kind, name in connection.execute("SELECT type, name FROM sqlite_schema")}
        names = {name for kind, name in kinds if kind == "table"}
        assert {"chat_search_fts", "chat_search_dirty_messages", "chat_search_dirty_chats", "chat_search_meta"} <= names
        assert {"apps", "app_sources", "chats", "messages", "tombstones", "import_state"} <= names
        assert {"consultations", "consulted_messages"} <= names
        triggers = {name for kind, name in kinds if kind == "trigger"}
        assert {"messages_mark_insert", "messages_mark_update", "messages_forget", "chats_mark_update"} <= triggers
        applied = connection.execute("SELECT number, name FROM schema_migrations").fetchall()
        assert applied == [(each.number, each.name) for each in migrations.all_migrations()]
        assert connection.execute("PRAGMA user_version").get == migrations.latest()
        assert connection.execute("PRAGMA application_id").get == migrations.APPLICATION_ID
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(chat_search_fts)")]
        assert columns[:4] == ["title", "body", "forms", "scope"]


def test_the_version_is_in_the_file_itself_not_only_in_its_log(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    with closing(open_writer(path)):
        header = path.read_bytes()[:100]
    assert int.from_bytes(header[60:64], "big") == migrations.latest()


def test_the_migration_marks_messages_that_exist(tmp_path: Path) -> None:
    """The last statements of a migration that builds an index, run over messages that were there before it."""
    sql = migrations.all_migrations()[0].sql
    marking = sql[sql.rindex("INSERT INTO chat_search_dirty_messages") :]
    with open_store(tmp_path / "recall.db") as store:
        connection = store.writer.connection
        chat = store.service.create_chat(store.service.create_app("Shop").id)
        ids = {store.service.add_message(chat.id, "user", text).id for text in ("one", "two")}
        store.index()
        assert queued(connection) == set()
        connection.execute(marking)
        assert queued(connection) == ids
        store.index()
        assert_current(connection)


def test_a_new_migration_is_applied_once_and_keeps_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recall.db"
    with open_store(path) as store:
        store.service.create_app("Shop")
    number = add_migrations(monkeypatch, "ALTER TABLE apps ADD COLUMN colour TEXT")
    for _ in range(2):
        with open_store(path) as store:
            assert [app.name for app in store.service.apps()] == ["Shop"]
            connection = store.writer.connection
            assert connection.execute("SELECT count(*) FROM schema_migrations WHERE number = ?", (number,)).get == 1
            assert connection.execute("PRAGMA user_version").get == number


@pytest.mark.parametrize(
    "broken",
    ["INSERT INTO nowhere VALUES (1)", "UPDATE apps SET name = NULL", "this is no SQL"],
)
def test_a_migration_that_fails_leaves_the_former_version_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "recall.db"
    with open_store(path) as store:
        store.service.create_app("Shop")
        before = schema(store.writer.connection)
    version = migrations.latest()
    with monkeypatch.context() as patch:
        add_migrations(patch, "CREATE TABLE good (x)", f"CREATE TABLE half (x); {broken}")
        with pytest.raises((apsw.Error, RecallError)):
            open_writer(path)
    with closing(apsw.Connection(str(path))) as connection:
        names = {name for name, _ in schema(connection)} - {name for name, _ in before}
        assert names == {"good"}
        assert connection.execute("PRAGMA user_version").get == version + 1
        assert connection.execute("SELECT max(number) FROM schema_migrations").get == version + 1
        assert connection.execute("SELECT name FROM apps").get == "Shop"
    # What the first one of them made belongs to a newer version now.
    with pytest.raises(RecallError) as caught:
        open_writer(path)
    assert caught.value.kind is ErrorKind.NEWER_FILE


def test_the_first_migration_failing_leaves_no_half_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "recall.db"
    first = migrations.all_migrations()[0]
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "all_migrations", lambda: (Migration(1, "broken", first.sql + "; broken"),))
        with pytest.raises(apsw.Error):
            open_writer(path)
    with open_store(path) as store:
        assert store.service.apps() == []
