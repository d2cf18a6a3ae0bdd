"""How much of the history the index holds: for the person, and for an agent that searches."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from recall_app.domain.consulting import Viewer
from recall_app.domain.records import IndexStatus
from recall_app.service import open_store
from recall_app.store import search_index
from tests.building import Builder


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Builder]:
    with open_store(tmp_path / "recall.db") as store:
        store.index()
        yield Builder(store)


def pending(built: Builder, app_id: int | None = None) -> int:
    return built.service.coverage(app_id).pending


def test_an_empty_store_is_ready(built: Builder) -> None:
    coverage = built.service.coverage()
    assert (coverage.total, coverage.pending, coverage.failed, coverage.status) == (0, 0, 0, IndexStatus.READY)


def test_dirty_messages_and_those_of_dirty_chats_count_once(built: Builder) -> None:
    chat = built.add_chat("title", "one", "two", "three")
    built.add_chat("other", "four")
    assert pending(built) == 4
    built.index()
    built.service.rename_chat(chat.id, "new title")
    assert pending(built) == 3
    built.service.update_message(chat.messages[0], "one, changed")
    built.say(chat, "five")
    assert pending(built) == 4
    assert built.service.coverage().status is IndexStatus.INDEXING
    built.index()
    assert pending(built) == 0
    assert built.service.coverage().total == 5


def test_a_chat_is_counted_rightly_while_its_mark_is_spread(built: Builder) -> None:
    chat = built.add_chat("title", *["text"] * 10)
    built.index()
    built.service.rename_chat(chat.id, "new title")
    built.store.writer.run(lambda connection: search_index.expand_dirty_chats(connection, 4))
    assert pending(built) == 10
    # Somebody else has done those four already.
    built.execute("DELETE FROM chat_search_dirty_messages")
    assert pending(built) == 6


def test_apps_are_counted_apart(built: Builder) -> None:
    other = built.add_app("Other")
    mine = built.add_chat("title", "one", "two")
    theirs = built.add_chat("title", "three", app=other)
    assert (pending(built), pending(built, built.app), pending(built, other)) == (3, 2, 1)
    built.index()
    built.service.rename_chat(mine.id, "renamed")
    built.service.rename_chat(theirs.id, "renamed")
    assert (pending(built), pending(built, built.app), pending(built, other)) == (3, 2, 1)
    built.service.move_chat(mine.id, other)
    assert (pending(built, built.app), pending(built, other)) == (0, 3)
    assert built.service.coverage(other).total == 3


def agent_pending(built: Builder, chat_id: int | None) -> int | None:
    result = built.search("anything", viewer=Viewer(built.app, chat_id))
    assert (result.index_status == "ready") == (result.pending_messages is None)
    return result.pending_messages


def test_an_agent_is_told_of_the_chats_it_searches_only(built: Builder) -> None:
    other = built.add_app("Other")
    current = built.add_chat("current", "one")
    private = built.add_chat("private", "two", "three")
    deleted = built.add_chat("deleted", "four", "five", "six")
    plain = built.add_chat("plain", "seven")
    built.add_chat("elsewhere", "eight", app=other)
    built.service.set_private(private.id, True)
    built.service.delete_chat(deleted.id)
    assert agent_pending(built, current.id) == 1
    assert agent_pending(built, None) == 2
    assert agent_pending(built, plain.id) == 1
    built.index()
    assert agent_pending(built, current.id) is None
    for chat in (current, private):
        built.service.rename_chat(chat.id, "renamed")
    assert agent_pending(built, current.id) is None
    built.service.rename_chat(plain.id, "renamed")
    assert agent_pending(built, current.id) == 1
    built.service.restore_chat(deleted.id)
    built.service.rename_chat(deleted.id, "renamed")
    assert agent_pending(built, current.id) == 4
