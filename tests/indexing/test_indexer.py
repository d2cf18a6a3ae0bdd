"""From a change of the source tables to the right documents, whatever happens in between."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import pytest

from recall_app.domain.projection import CHAT_SEARCH_PROJECTION_VERSION
from recall_app.indexing import indexer
from recall_app.indexing.indexer import ChatSearchIndexer, IndexProgress
from recall_app.service import open_store
from recall_app.store import search_index
from recall_app.store.connection import open_writer
from tests.building import Builder
from tests.checking import (
    assert_current,
    assert_whole,
    before_next_transaction,
    documents,
    is_secure,
    projected,
    queued,
)


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Builder]:
    with open_store(tmp_path / "recall.db") as store:
        store.index()
        yield Builder(store)


def connection_of(built: Builder) -> apsw.Connection:
    return built.store.writer.connection


# --- what marks, and what it comes to ---------------------------------------------------------------------------------


def test_new_messages_get_their_documents(built: Builder) -> None:
    chat = built.add_chat("Database choice", "Which one?", "We take <think>secret</think>SQLite in useChatStore.ts")
    built.add_chat(None, "")
    assert len(queued(connection_of(built))) == 3
    assert built.store.index() == 3
    assert_current(connection_of(built))
    title, body, forms, *_ = documents(connection_of(built))[chat.messages[1]]
    assert title == "Database choice"
    assert "take" in body
    assert "secret" not in body
    assert "usechatstore" in forms


def test_an_empty_projection_still_has_its_title(built: Builder) -> None:
    built.add_chat("Zebra plan", "", "<think>nothing else</think>")
    built.index()
    assert [(document[0], document[1]) for document in documents(connection_of(built)).values()] == [
        ("Zebra plan", "")
    ] * 2
    assert len(built.found("zebra")) == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("content", "Okapis"),
        ("role", "assistant"),
        ("is_compaction_summary", 1),
        ("created_at", 77),
        ("chat_id", 2),
    ],
)
def test_an_update_of_a_projected_column_marks_the_message(built: Builder, column: str, value: object) -> None:
    chat = built.add_chat("First", "Zebras <think>x</think>", "Lions")
    built.add_chat("Second", "Tigers")
    built.index()
    built.execute(f"UPDATE messages SET {column} = ? WHERE id = ?", value, chat.messages[0])
    assert queued(connection_of(built)) == {chat.messages[0]}
    built.index()
    assert_current(connection_of(built))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE messages SET model = 'other'",
        "UPDATE messages SET branch = 'other'",
        "UPDATE messages SET ai_messages_json = '[]'",
        "UPDATE messages SET source_key = NULL",
        "UPDATE chats SET is_private = 1, is_favorite = 1, mode = 'ask', model = 'other', last_read_at = 5",
        "UPDATE chats SET title = title, app_id = app_id",
        "UPDATE chats SET deleted_at = 5",
        "UPDATE apps SET name = 'other'",
    ],
)
def test_other_columns_mark_nothing(built: Builder, change: str) -> None:
    built.add_chat("First", "Zebras", "Lions")
    built.index()
    built.execute(change)
    assert queued(connection_of(built)) == set()
    assert not search_index.has_dirty_chats(connection_of(built))


def test_a_new_title_is_in_every_message_s_document(built: Builder) -> None:
    chat = built.add_chat("Old", "Zebras", "Lions")
    built.index()
    for title in ("New", None, "useChatStore"):
        built.service.rename_chat(chat.id, title)
        built.index()
        assert_current(connection_of(built))


def test_renaming_many_chats_at_once_leaves_none_behind(built: Builder) -> None:
    """Chats without a message among them must not look like the end of the queue."""
    chats = built.add_chats([(f"chat {number}", [f"text {number}"] if number % 3 == 0 else []) for number in range(20)])
    built.index()
    for chat in chats:
        built.service.rename_chat(chat.id, f"renamed {chat.id}")
    built.store.indexer.drain()
    assert not search_index.has_dirty_chats(connection_of(built))
    assert_current(connection_of(built))


def test_a_chat_moved_to_another_app_is_found_there(built: Builder) -> None:
    other = built.add_app("Other")
    chat = built.add_chat("Zebras", "stripes")
    built.index()
    built.service.move_chat(chat.id, other)
    built.index()
    assert_current(connection_of(built))
    assert built.found("zebras") == []


def test_deletes_take_documents_and_marks_along(built: Builder) -> None:
    chats = built.add_chats([(f"chat {number}", ["one", "two", "three"]) for number in range(6)])
    other = built.add_app("Other")
    built.add_chat("there", "four", app=other)
    built.index()
    for number in (0, 2, 4):
        built.say(chats[number], "not indexed yet")
        built.service.rename_chat(chats[number].id, "renamed")
    built.execute("DELETE FROM messages WHERE id = ?", chats[1].messages[1])
    built.execute("DELETE FROM chats WHERE id IN (?, ?)", chats[2].id, chats[3].id)
    built.execute("DELETE FROM apps WHERE id = ?", other)
    assert set(documents(connection_of(built))) <= set(projected(connection_of(built)))
    built.index()
    assert_current(connection_of(built))
    built.execute("DELETE FROM apps")
    for table in ("chat_search_fts", "chat_search_dirty_messages", "chat_search_dirty_chats", "consultations"):
        assert connection_of(built).execute(f"SELECT count(*) FROM {table}").get == 0, table
    assert_whole(connection_of(built))


# --- marks that come in between ---------------------------------------------------------------------------------------


def interrupted(built: Builder, meanwhile: Callable[[apsw.Connection], object], path: Path) -> None:
    """One batch; after it has read its messages and before it writes, ``meanwhile`` runs as another process would."""
    with closing(open_writer(path)) as other, closing(open_writer(path)) as own:
        with before_next_transaction(own, lambda: meanwhile(other)):
            ChatSearchIndexer(own).run_batch(settled=False)
    built.store.indexer.drain()
    assert_current(connection_of(built))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE messages SET content = 'second version' WHERE id = 1",
        "UPDATE chats SET title = 'second title'",
        "UPDATE chats SET app_id = 2",
        "DELETE FROM messages WHERE id = 1",
        "DELETE FROM chats",
        "INSERT INTO messages (chat_id, role, content, created_at) VALUES (1, 'user', 'more', 5)",
    ],
)
def test_a_mark_made_while_its_message_is_indexed_survives(built: Builder, tmp_path: Path, change: str) -> None:
    built.add_app("Other")
    built.add_chat("first title", "first version", "an answer")
    interrupted(built, lambda other: other.execute(change), tmp_path / "recall.db")


def test_a_mark_survives_even_if_another_process_had_cleared_the_one_that_was_seen(
    built: Builder, tmp_path: Path
) -> None:
    """The queue of that message is empty in between, so that a mere count of its marks would begin anew."""
    built.add_chat("title", "first version")

    def meanwhile(other: apsw.Connection) -> None:
        ChatSearchIndexer(other).drain()
        other.execute("UPDATE messages SET content = 'second version'")

    interrupted(built, meanwhile, tmp_path / "recall.db")


def test_two_processes_may_drain_at_once(built: Builder, tmp_path: Path) -> None:
    built.add_chats([(f"chat {number}", [f"zebra {number}"] * 40) for number in range(10)])
    interrupted(built, lambda other: ChatSearchIndexer(other).run_batch(settled=False), tmp_path / "recall.db")


# --- batches ----------------------------------------------------------------------------------------------------------


def long_history(built: Builder, chats: int = 12) -> None:
    words = random.Random(4)
    text = [" ".join(words.choices(["zebra", "okapi", "lion", "useChatStore", "数据库"], k=150)) for _ in range(20)]
    built.add_chats([(f"chat {number}", text) for number in range(chats)])


def test_a_drain_stopped_after_any_batch_goes_on_later(built: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "PREPARE_SECONDS", 0.0)  # a message a batch, however fast the machine is
    long_history(built)
    stops = 0
    while True:
        batches = iter((False, True))
        built.store.indexer.drain(cancelled=partial(next, batches))
        left = queued(connection_of(built))
        done = documents(connection_of(built))
        assert set(done) | left == set(projected(connection_of(built)))
        if not left:
            break
        stops += 1
    assert stops > 1
    built.store.indexer.drain()
    assert_current(connection_of(built))


def test_a_cancelled_drain_does_nothing(built: Builder) -> None:
    built.add_chat("title", "text")
    assert built.store.indexer.drain(cancelled=lambda: True) == 0
    assert len(queued(connection_of(built))) == 1


def test_progress_ends_with_everything_done(built: Builder) -> None:
    long_history(built)
    reports: list[IndexProgress] = []
    assert built.store.index(progress=reports.append) == 240
    assert reports[-1].done == 240
    assert reports[-1].pending == 0
    assert reports[-1].rate > 0
    assert [report.done for report in reports] == sorted(report.done for report in reports)
    assert all(report.done + report.pending == 240 for report in reports)


def test_a_change_of_the_projection_rebuilds_everything(built: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    built.add_chat("title", "We said zebra")
    built.add_chat("empty")
    built.index()
    built.execute("UPDATE chat_search_fts SET body = 'as an older projection had it'")
    built.store.indexer.start()
    assert queued(connection_of(built)) == set()
    monkeypatch.setattr(indexer, "CHAT_SEARCH_PROJECTION_VERSION", CHAT_SEARCH_PROJECTION_VERSION + 1)
    built.store.indexer.start()
    assert built.service.coverage().pending == 1
    built.store.indexer.drain()
    assert_current(connection_of(built))
    built.store.indexer.start()
    assert built.service.coverage().pending == 0


def test_a_rebuild_of_much_is_as_thorough_as_one_of_little(built: Builder) -> None:
    """Above a thousand messages the index is merged afterwards instead of being cleaned word by word."""
    built.add_chats([(f"chat {number}", [f"zebra {number}", "okapi"] * 30) for number in range(20)])
    built.index()
    old = connection_of(built).execute("SELECT id, content FROM messages").fetchall()
    built.execute("UPDATE messages SET content = replace(content, 'zebra', 'giraffe')")
    modes = set()
    while built.store.indexer.run_batch(settled=False):
        modes.add(is_secure(connection_of(built)))
        assert_whole(connection_of(built))
    assert False in modes
    assert len(old) == 1_200
    assert_current(connection_of(built))
    assert built.found("zebra") == []
    index = connection_of(built).execute("SELECT group_concat(hex(block), '') FROM chat_search_fts_data").get
    assert b"giraff".hex().upper() in index
    assert b"zebra".hex().upper() not in index


def test_deletes_during_such_a_rebuild_are_thorough_too(built: Builder) -> None:
    chats = built.add_chats([(f"chat {number}", [f"zebra{number}", "okapi"] * 30) for number in range(20)])
    built.index()
    built.execute("UPDATE messages SET content = content || ' again'")
    batches = 0
    while built.store.indexer.run_batch(settled=False):
        if not is_secure(connection_of(built)) and batches < 5:
            built.execute("DELETE FROM chats WHERE id = ?", chats[batches].id)
            built.execute("UPDATE messages SET content = 'changed' WHERE chat_id = ?", chats[19 - batches].id)
            batches += 1
    assert batches > 0
    assert_current(connection_of(built))


# --- settling ---------------------------------------------------------------------------------------------------------


def test_what_is_still_being_streamed_settles_first(built: Builder) -> None:
    now = time.time()
    clock = [now]
    settling = ChatSearchIndexer(connection_of(built), clock=lambda: clock[0])
    settling.start()
    built.add_chat("title", "text")
    assert settling.run_batch() == 0
    clock[0] = now + 0.3
    assert settling.run_batch() == 0
    clock[0] = time.time() + 0.6
    assert settling.run_batch() == 1
    assert_current(connection_of(built))


def test_each_change_begins_the_settling_anew(built: Builder) -> None:
    chat = built.add_chat("title", "text")
    built.execute("UPDATE chat_search_dirty_messages SET marked_at = marked_at - 10000")
    built.execute("UPDATE messages SET content = 'text, and more' WHERE id = ?", chat.messages[0])
    built.store.indexer.start()
    assert built.store.indexer.run_batch() == 0
    assert built.store.indexer.run_batch(settled=False) == 1


def test_what_is_settled_does_not_wait_for_what_is_not(built: Builder) -> None:
    chat = built.add_chat("title", "old", "streaming")
    built.store.indexer.start()
    built.execute("UPDATE chat_search_dirty_messages SET marked_at = 5 WHERE message_id = ?", chat.messages[0])
    assert built.store.indexer.run_batch() == 1
    assert queued(connection_of(built)) == {chat.messages[1]}


def test_a_clock_that_was_set_back_holds_nothing_up(built: Builder) -> None:
    built.add_chat("title", "text")
    yesterday = ChatSearchIndexer(connection_of(built), clock=lambda: time.time() - 86_400)
    yesterday.start()
    yesterday.run_batch()
    assert_current(connection_of(built))


# --- failures ---------------------------------------------------------------------------------------------------------


def break_message(built: Builder, message_id: int) -> None:
    """Bytes that are no UTF-8, as only another program can put them there: nobody can project that."""
    built.execute("UPDATE messages SET content = CAST(x'7a656272ff61' AS TEXT) WHERE id = ?", message_id)


def test_a_message_that_cannot_be_projected_is_listed_and_blocks_nothing(built: Builder) -> None:
    chat = built.add_chat("title", "zebra one", "zebra two", "zebra three")
    built.index()
    break_message(built, chat.messages[0])
    built.say(chat, "zebra four")
    built.index()
    (failed,) = built.service.failed_messages()
    assert (failed.message_id, failed.chat_id, failed.error_class) == (chat.messages[0], chat.id, "UnicodeDecodeError")
    assert abs(failed.failed_at - time.time() * 1000) < 600_000
    assert queued(connection_of(built)) == set()
    assert set(documents(connection_of(built))) == {*chat.messages[1:], chat.messages[-1] + 1}
    coverage = built.service.coverage(built.app)
    assert (coverage.total, coverage.pending, coverage.failed) == (4, 0, 1)
    built.store.index()
    assert [each.message_id for each in built.service.failed_messages()] == [chat.messages[0]]


def test_a_failed_message_comes_back_when_it_is_edited(built: Builder) -> None:
    chat = built.add_chat("title", "zebra one", "zebra two")
    break_message(built, chat.messages[1])
    built.index()
    built.service.update_message(chat.messages[1], "zebra mended")
    coverage = built.service.coverage()
    assert (coverage.pending, coverage.failed) == (1, 0)
    built.index()
    assert built.service.failed_messages() == []
    assert_current(connection_of(built))


def test_a_failed_message_is_tried_again_with_a_new_title_and_at_a_rebuild(built: Builder) -> None:
    chat = built.add_chat("title", "zebra one")
    built.execute("UPDATE chats SET title = CAST(x'ff' AS TEXT)")
    built.index()
    assert len(built.service.failed_messages(built.app)) == 1
    built.service.rename_chat(chat.id, "sound")
    built.index()
    assert_current(connection_of(built))
    break_message(built, chat.messages[0])
    built.index()
    assert built.store.index(rebuild=True) == 1
    assert len(built.service.failed_messages()) == 1


def test_a_deleted_message_does_not_stay_listed(built: Builder) -> None:
    chat = built.add_chat("title", "zebra one")
    break_message(built, chat.messages[0])
    built.index()
    built.execute("DELETE FROM messages")
    assert built.service.failed_messages() == []
    assert connection_of(built).execute("SELECT count(*) FROM chat_search_failures").get == 0


# --- repair -----------------------------------------------------------------------------------------------------------


def test_lost_marks_and_orphaned_documents_are_mended_at_start(built: Builder) -> None:
    built.add_chat("title", "one", "two", "three")
    built.index()
    connection = connection_of(built)
    built.execute("DELETE FROM chat_search_fts WHERE rowid = 2")
    built.execute("INSERT INTO chat_search_fts (rowid, title, body, forms, scope) VALUES (99, 'zebra', '', '', 'app1')")
    built.index()
    assert_current(connection)


def test_a_rebuild_brings_everything_back(built: Builder) -> None:
    long_history(built, 3)
    built.index()
    built.execute("DELETE FROM chat_search_fts")
    assert built.store.index(rebuild=True) == 60
    assert_current(connection_of(built))
