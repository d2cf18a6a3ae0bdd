"""The Dyad reader: databases of every age, odd values, damage, and what it must never touch."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.domain.records import SkippedRecord, SourceChat, SourceMessage
from recall_app.service import open_store
from recall_app.sources.dyad import DyadReader, data_folder
from recall_app.sources.reader import SourceNote, SourceSize, StreamItem
from tests.sources.dyad_builder import (
    SECRET,
    START,
    TRANSCRIPT,
    Age,
    DyadDatabase,
    dyad,
    fill,
    live,
    reopened,
    snapshot,
)

Build = Callable[[DyadDatabase], object]


def read(path: Path) -> list[StreamItem]:
    return list(DyadReader().read(path))


def chats(items: list[StreamItem]) -> list[SourceChat]:
    return [item for item in items if isinstance(item, SourceChat)]


def messages(items: list[StreamItem]) -> list[SourceMessage]:
    return [item for item in items if isinstance(item, SourceMessage)]


def skipped(items: list[StreamItem]) -> dict[str, str]:
    return {item.place: item.reason for item in items if isinstance(item, SkippedRecord)}


def notes(items: list[StreamItem]) -> list[str]:
    return [item.text for item in items if isinstance(item, SourceNote)]


def built(path: Path, build: Build, age: Age = Age.TODAY) -> list[StreamItem]:
    with dyad(path, age) as database:
        build(database)
    return read(path)


@pytest.mark.parametrize("age", list(Age))
def test_every_age_is_read(tmp_path: Path, age: Age) -> None:
    def build(database: DyadDatabase) -> None:
        app = database.app("shop", path="shop-folder")
        chat = database.chat(app, "Login", created_at=START + 1, chat_mode="ask", is_favorite=1)
        database.message(chat, "How?", created_at=START + 2)
        database.message(chat, "So.", role="assistant", created_at=START + 3, model="a-model", is_compaction_summary=1)

    items = built(tmp_path / "sqlite.db", build, age)
    (chat,) = chats(items)
    assert (chat.source_key, chat.title, chat.created_at) == ("1", "Login", (START + 1) * 1000)
    assert (chat.app.source_key, chat.app.name, chat.app.path, chat.app.created_at) == (
        "1",
        "shop",
        "shop-folder",
        START * 1000,
    )
    today = age is Age.TODAY
    assert (chat.mode, chat.is_favorite) == (("ask", True) if today else (None, False))
    model = None if age is Age.FIRST else "a-model"
    assert messages(items) == [
        SourceMessage("1", "user", "How?", (START + 2) * 1000),
        SourceMessage("2", "assistant", "So.", (START + 3) * 1000, model=model, is_compaction_summary=today),
    ]
    assert SourceSize(2) in items
    assert skipped(items) == {}


def test_secrets_and_transcripts_are_never_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sqlite.db"
    with dyad(path) as database:
        fill(database)
    columns_read: set[tuple[str, str]] = set()

    def note(action: int, table: str | None, column: str | None, *_: object) -> int:
        if action == apsw.SQLITE_READ:
            columns_read.add((str(table), str(column)))
        return apsw.SQLITE_OK

    def watch(connection: apsw.Connection) -> None:
        connection.authorizer = note

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, watch])
    items = read(path)
    assert SECRET not in repr(items)
    assert TRANSCRIPT not in repr(items)
    assert {column for table, column in columns_read if table == "apps"} <= {"id", "name", "path", "created_at"}
    assert ("messages", "content") in columns_read
    assert ("messages", "ai_messages_json") not in columns_read


def test_a_chat_comes_in_the_order_of_time_then_id(tmp_path: Path) -> None:
    def build(database: DyadDatabase) -> None:
        chat, other = (database.chat(database.app()) for _ in range(2))
        database.message(chat, "first", created_at=START)
        database.message(other, "elsewhere", created_at=START)
        database.message(chat, "same second", role="assistant", created_at=START)
        database.message(chat, "question", created_at=START + 50)
        database.message(chat, "summary", role="assistant", created_at=START + 49, is_compaction_summary=1)
        database.message(chat, "answer", role="assistant", created_at=START + 60)

    items = built(tmp_path / "sqlite.db", build)
    said = [item.content for item in messages(items)]
    assert said == ["first", "same second", "summary", "question", "answer", "elsewhere"]
    places = [item.source_key if isinstance(item, SourceChat) else "" for item in items]
    assert places.index("2") == len(items) - 2


@pytest.mark.parametrize(
    ("stored", "milliseconds"),
    [
        (START, START * 1000),
        (START * 1000, START * 1000),
        (START + 0.5, START * 1000 + 500),
        (None, (START + 7) * 1000),
        ("yesterday", (START + 7) * 1000),
        (b"\xff", (START + 7) * 1000),
        (-5, (START + 7) * 1000),
        (2**62, (START + 7) * 1000),
        (1e300, (START + 7) * 1000),
    ],
)
def test_odd_times_take_the_neighbours(tmp_path: Path, stored: object, milliseconds: int) -> None:
    def build(database: DyadDatabase) -> None:
        chat = database.chat(database.app())
        database.message(chat, "before", created_at=START + 7)
        database.message(chat, "odd", created_at=stored)

    by_text = {item.content: item.created_at for item in messages(built(tmp_path / "sqlite.db", build))}
    assert by_text == {"before": (START + 7) * 1000, "odd": milliseconds}


def test_a_first_message_without_a_time_takes_the_chats(tmp_path: Path) -> None:
    def build(database: DyadDatabase) -> None:
        database.message(database.chat(database.app(), created_at=START + 3), "odd", created_at=None)

    assert [item.created_at for item in messages(built(tmp_path / "sqlite.db", build))] == [(START + 3) * 1000]


def test_what_can_be_no_message_is_skipped_and_told_without_its_text(tmp_path: Path) -> None:
    def build(database: DyadDatabase) -> None:
        chat = database.chat(database.app())
        database.message(chat, "top secret", role="system")
        database.message(chat, "top secret", role=b"\xff\xfe")
        database.message(chat, None)
        database.message(chat, b"\x89PNG\xff")
        database.message(chat, "fine")

    items = built(tmp_path / "sqlite.db", build)
    assert [item.content for item in messages(items)] == ["fine"]
    assert skipped(items) == {
        "message 1": "its role is neither user nor assistant",
        "message 2": "its role is neither user nor assistant",
        "message 3": "it has no content",
        "message 4": "its content is not text",
    }


def test_odd_text_becomes_storable(tmp_path: Path) -> None:
    def build(database: DyadDatabase) -> None:
        chat = database.chat(database.app())
        database.message(chat, b"a blob of text \xe2\x9c\x93")
        database.message(chat, "nul \0 inside")
        database.message(chat, 42)
        database.message(chat, "")
        database.execute("INSERT INTO messages (chat_id, role, content) VALUES (1, 'user', CAST(x'61ff62' AS TEXT))")
        database.execute("INSERT INTO messages (chat_id, role, content) VALUES (1, 'user', CAST(x'eda08021' AS TEXT))")
        database.execute("UPDATE messages SET created_at = ?", (START,))

    items = built(tmp_path / "sqlite.db", build)
    said = [item.content for item in messages(items)]
    assert said == ["a blob of text ✓", "nul \0 inside", "42", "", "a\ufffdb", "\ufffd!"]
    assert skipped(items) == {}


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_comes_through(tmp_path_factory: pytest.TempPathFactory, content: str, title: str) -> None:
    def build(database: DyadDatabase) -> None:
        database.message(database.chat(database.app(), title), content)

    items = built(tmp_path_factory.mktemp("any") / "sqlite.db", build)
    assert [item.content for item in messages(items)] == [content]
    (chat,) = chats(items)
    assert chat.title is None or "\n" not in chat.title


@pytest.mark.parametrize(
    ("title", "prompt", "shown"),
    [
        ("Login\n page ", "x", "Login page"),
        (None, "Fix the\nlogin page", "Fix the login page"),
        ("", "word " * 100, " ".join(["word"] * 15) + " word…"),
        (None, "   ", None),
        (b"\xff", "Fix it", "\ufffd"),
    ],
)
def test_the_title_is_one_line_or_the_first_prompt(
    tmp_path: Path, title: object, prompt: str, shown: str | None
) -> None:
    def build(database: DyadDatabase) -> None:
        chat = database.chat(database.app(), title)
        database.message(chat, "welcome", role="assistant")
        database.message(chat, prompt)

    items = built(tmp_path / "sqlite.db", build)
    assert [chat.title for chat in chats(items)] == [shown]
    assert len(messages(items)) == 2


def test_chats_without_app_and_messages_without_chat(tmp_path: Path) -> None:
    def build(database: DyadDatabase) -> None:
        database.execute("PRAGMA foreign_keys = OFF")
        database.message(database.chat(77), "kept")
        for chat_id in (0, 5, 5, 9):
            database.message(chat_id, "nowhere")
        database.chat(database.app("later"), "empty")

    items = built(tmp_path / "sqlite.db", build)
    assert [(chat.app.source_key, chat.app.name) for chat in chats(items)] == [
        ("missing 77", "Dyad app 77"),
        ("1", "later"),
    ]
    assert [item.content for item in messages(items)] == ["kept"]
    assert skipped(items) == {
        "chat 0": "it has no record of its own; messages left out: 1",
        "chat 5": "it has no record of its own; messages left out: 2",
        "chat 9": "it has no record of its own; messages left out: 1",
    }


def leaf_pages(path: Path, table: str) -> list[int]:
    with apsw.Connection(str(path)) as connection:
        rows = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", (table,)
        )
        pages = [int(page) for (page,) in rows]
    connection.close()
    return pages


def spoil(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


@pytest.mark.parametrize("which", [0, 5, -1])
def test_a_damaged_page_costs_only_what_is_on_it(tmp_path: Path, which: int) -> None:
    path = tmp_path / "sqlite.db"
    with dyad(path) as database:
        fill(database, chats=4, messages=200)
    whole = {item.source_key for item in messages(read(path))}
    pages = leaf_pages(path, "messages")
    assert len(pages) > 10
    spoil(path, pages[which])
    items = read(path)
    left = {item.source_key for item in messages(items)}
    assert len(whole) * (1 - 2 / len(pages)) < len(left) < len(whole)
    assert left < whole
    assert any(reason == "damaged pages, rows lost" for reason in skipped(items).values())


def test_damaged_chats_and_apps_leave_the_others(tmp_path: Path) -> None:
    path = tmp_path / "sqlite.db"
    with dyad(path) as database:
        fill(database, chats=400, messages=1)
    spoil(path, leaf_pages(path, "chats")[1])
    items = read(path)
    assert 200 < len(chats(items)) < 400
    assert len(messages(items)) == len(chats(items))
    lost = [place for place, reason in skipped(items).items() if reason.startswith("it has no record of its own")]
    assert len(lost) == 400 - len(chats(items))


def test_a_truncated_file_gives_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "sqlite.db"
    with dyad(path) as database:
        fill(database, chats=4, messages=200)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 3 // 4 // 4096 * 4096)
    items = read(path)
    assert 0 < len(messages(items)) < 800
    assert skipped(items)


def test_another_programs_database_is_refused_by_name_of_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    with pytest.raises(RecallError) as raised:
        read(path)
    assert raised.value.kind is ErrorKind.SOURCE
    assert raised.value.message == f"{path} is not a Dyad history: it has no table “messages”."
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, chat_id, role)")
    with pytest.raises(RecallError, match="its table “messages” has no column “content”"):
        read(path)
    connection.execute("ALTER TABLE messages ADD COLUMN content")
    with pytest.raises(RecallError, match="it has no table “chats”"):
        read(path)
    assert not DyadReader().detect(path)
    connection.execute("CREATE TABLE chats (id INTEGER PRIMARY KEY, app_id)")
    connection.close()
    assert read(path) == [SourceSize(0)]
    assert DyadReader().detect(path)


def test_a_folder_is_looked_into(tmp_path: Path) -> None:
    with pytest.raises(RecallError, match=r"is a folder without Dyad's “sqlite\.db”"):
        read(tmp_path)
    assert not DyadReader().detect(tmp_path)
    assert not DyadReader().detect(tmp_path / "nowhere")
    with dyad(tmp_path / "sqlite.db") as database:
        fill(database)
    assert DyadReader().detect(tmp_path)
    assert messages(read(tmp_path)) == messages(read(tmp_path / "sqlite.db"))


def test_it_finds_dyads_database_and_backups() -> None:
    assert DyadReader().discover() == []
    folder = data_folder()
    assert folder.is_relative_to(Path(os.environ["HOME"]))
    places = [folder / "sqlite.db", folder / "backups" / "a" / "sqlite.db", folder / "backups" / "b" / "sqlite.db"]
    for path in reversed(places):
        with dyad(path) as database:
            fill(database)
    (folder / "backups" / "empty").mkdir()
    assert DyadReader().discover() == places


def test_a_copy_without_its_log_is_told_and_dyads_own_database_is_not(tmp_path: Path) -> None:
    own = data_folder() / "sqlite.db"
    with dyad(own) as database:
        fill(database)
    assert notes(read(own)) == []
    copy = tmp_path / "sqlite.db"
    shutil.copyfile(own, copy)
    (note,) = notes(read(copy))
    assert "has no “sqlite.db-wal”" in note
    with live(copy) as writer:
        writer.execute("UPDATE chats SET title = 'x'")
        assert notes(read(copy)) == []
    with dyad(tmp_path / "old.db", journal="delete") as database:
        fill(database)
    assert notes(read(tmp_path / "old.db")) == []


def test_reading_stops_when_it_is_closed_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sqlite.db"
    with dyad(path) as database:
        fill(database)
    before = snapshot(tmp_path)
    items = DyadReader().read(path)
    next(items)
    items.close()
    assert snapshot(tmp_path) == before
    with reopened(path) as database:
        database.message(1, "not locked")


def test_a_file_of_recalls_own_is_refused(tmp_path: Path) -> None:
    """Its chats would come in twice, private ones without their mark."""
    path = tmp_path / "recall.db"
    with open_store(path) as store:
        store.service.create_app("Shop")
    assert not DyadReader().detect(path)
    with pytest.raises(RecallError, match="Recall's own") as refused:
        read(path)
    assert refused.value.kind is ErrorKind.SOURCE
