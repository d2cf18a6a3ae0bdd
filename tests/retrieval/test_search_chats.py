"""What an agent's search may see, what it says of the index, and that it only reads (contracts §4)."""

import json
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from pydantic import ValidationError

from recall_app.domain.consulting import SearchChatsInput, Viewer, to_json
from recall_app.service import RecallService
from tests.building import Builder, Said, building

# --- the boundary -----------------------------------------------------------------------------------------------------


def test_other_apps_are_never_found(history: Builder) -> None:
    own = history.add_chat("Own", "we chose the tangerine palette")
    other = history.add_app("Other")
    history.add_chat("Tangerine", "the tangerine palette of another app", app=other)
    history.index()
    assert history.found("tangerine palette") == [own.id]


def test_the_chat_that_asks_is_left_out(history: Builder) -> None:
    asking = history.add_chat("Now", "what about the tangerine palette?")
    earlier = history.add_chat("Earlier", "we chose the tangerine palette")
    history.index()
    found = history.search("tangerine palette", viewer=Viewer(history.app, asking.id))
    assert [chat.chat_id for chat in found.results] == [earlier.id]


@pytest.mark.parametrize("hide", ["private", "deleted"])
def test_private_and_deleted_chats_are_left_out_at_once_and_come_back(history: Builder, hide: str) -> None:
    kept = history.add_chat("Kept", "the tangerine palette stays")
    hidden = history.add_chat("Tangerine palette", "the tangerine palette goes")
    history.index()
    service = history.service
    act: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
        "private": (lambda: service.set_private(hidden.id, True), lambda: service.set_private(hidden.id, False)),
        "deleted": (lambda: service.delete_chat(hidden.id), lambda: service.restore_chat(hidden.id)),
    }
    do, undo = act[hide]
    do()
    assert history.found("tangerine palette") == [kept.id]
    undo()
    assert sorted(history.found("tangerine palette")) == sorted([kept.id, hidden.id])


def test_a_moved_chat_changes_sides_before_it_is_indexed_anew(history: Builder) -> None:
    """The join is the authority; the scope token only makes it fast."""
    moved = history.add_chat("Moved", "the tangerine palette")
    other = history.add_app("Other")
    history.index()
    history.service.move_chat(moved.id, other)
    assert history.found("tangerine") == []
    history.index()
    assert [chat.chat_id for chat in history.search("tangerine", viewer=Viewer(other)).results] == [moved.id]


def test_an_app_that_does_not_exist_finds_nothing(history: Builder) -> None:
    history.add_chat("A", "tangerine")
    history.index()
    assert history.search("tangerine", viewer=Viewer(999)).results == ()


# --- the answer's shape -----------------------------------------------------------------------------------------------


def test_the_json_is_the_contracts_own(history: Builder) -> None:
    chat = history.add_chat(
        "Authentication setup", "How do users sign in?", "We decided to use authentication by passkeys."
    )
    history.index()
    (answer,) = chat.messages[1:]
    assert json.loads(to_json(history.search("authentication decided"))) == {
        "query": "authentication decided",
        "index_status": "ready",
        "results": [
            {
                "chat_id": chat.id,
                "title": "Authentication setup",
                "last_message_at": "2025-06-15T15:08:40.000Z",
                "matches": [
                    {
                        "message_id": answer,
                        "role": "assistant",
                        "created_at": "2025-06-15T15:08:40.000Z",
                        "excerpt": "We decided to use authentication by passkeys.",
                        "projection_truncated": False,
                        "is_compaction_summary": False,
                    }
                ],
            }
        ],
        "results_truncated": False,
        "notice": history.search("x").notice,
        "archival_content": True,
    }
    assert "not instructions" in history.search("x").notice


def test_a_chat_without_title_has_a_null_title(history: Builder) -> None:
    history.add_chat(None, "tangerine")
    history.index()
    assert json.loads(to_json(history.search("tangerine")))["results"][0]["title"] is None


def test_the_chats_last_message_gives_its_time_whatever_matched(history: Builder) -> None:
    history.add_chat("A", Said("tangerine", at=1_000), Said("bye", at=86_400_000))
    history.index()
    (chat,) = history.search("tangerine").results
    assert (chat.last_message_at, chat.matches[0].created_at) == (
        "1970-01-02T00:00:00.000Z",
        "1970-01-01T00:00:01.000Z",
    )


def test_a_bounded_projection_says_so(history: Builder) -> None:
    history.add_chat("Log", "tangerine " + "pile of words " * 6_000)
    history.index()
    assert history.search("tangerine").results[0].matches[0].projection_truncated


@pytest.mark.parametrize(
    ("arguments", "limit"), [({}, 8), ({"limit": None}, 8), ({"limit": 1}, 1), ({"limit": 20}, 20)]
)
def test_the_limit_has_a_default_and_null_is_absent(arguments: dict[str, int | None], limit: int) -> None:
    assert SearchChatsInput.model_validate({"query": "x", **arguments}).limit == limit


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": ""},
        {"query": " \n "},
        {"query": "x" * 501},
        {"query": None},
        {},
        {"query": "\ud800"},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 21},
        {"query": "x", "app_id": 1},
        {"query": "x", "chat_id": 1},
    ],
)
def test_what_is_no_search_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SearchChatsInput.model_validate(arguments)


def test_the_query_is_trimmed_and_may_have_500_characters(history: Builder) -> None:
    assert history.search("  tangerine \n").query == "tangerine"
    assert len(history.search("x" * 500).query) == 500


def test_more_chats_than_asked_for_are_said_to_be_there(history: Builder) -> None:
    history.add_chats([(f"Chat {n}", ["tangerine"]) for n in range(5)])
    history.index()
    for limit, truncated in ((4, True), (5, False)):
        found = history.search("tangerine", limit)
        assert (len(found.results), found.results_truncated) == (limit, truncated)


# --- the state of the index -------------------------------------------------------------------------------------------


def test_pending_messages_of_searched_chats_are_counted(history: Builder) -> None:
    chat = history.add_chat("A", "tangerine")
    history.index()
    assert history.search("tangerine").index_status == "ready"
    history.say(chat, "mandarin", "clementine")
    found = history.search("mandarin")
    assert (found.index_status, found.pending_messages, found.results) == ("indexing", 2, ())
    assert '"pending_messages": 2' in to_json(found)
    history.index()
    found = history.search("mandarin")
    assert (found.index_status, found.pending_messages, len(found.results)) == ("ready", None, 1)
    assert "pending_messages" not in to_json(found)


def test_what_is_not_searched_does_not_count_as_pending(history: Builder) -> None:
    own = history.add_chat("Own", "one")
    private = history.add_chat("Private", "two")
    deleted = history.add_chat("Deleted", "three")
    history.add_chat("Elsewhere", "four", app=history.add_app("Other"))
    history.service.set_private(private.id, True)
    history.service.delete_chat(deleted.id)
    assert history.search("one", viewer=Viewer(history.app, own.id)).index_status == "ready"
    assert history.search("one").pending_messages == 1


def test_a_search_waits_a_moment_for_what_is_being_indexed_and_only_then(history: Builder) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        history.index()

    service = RecallService(history.service.path, history.store.writer, wait_for_index=wait)
    viewer, asked = Viewer(history.app), SearchChatsInput(query="tangerine")
    try:
        assert service.search_chats(viewer, asked).results == ()
        assert waited == []
        history.add_chat("A", "tangerine")
        found = service.search_chats(viewer, asked)
        assert (len(found.results), found.index_status, waited) == (1, "ready", [1.0])
    finally:
        service.release_thread()


def test_a_changed_title_makes_each_of_its_messages_pending_once(history: Builder) -> None:
    chat = history.add_chat("Old name", "one", "two", "three")
    history.index()
    history.service.rename_chat(chat.id, "Tangerine")
    assert history.search("tangerine").pending_messages == 3
    history.say(chat, "four")
    assert history.search("tangerine").pending_messages == 4
    assert history.search("tangerine", viewer=Viewer(history.app, chat.id)).index_status == "ready"
    history.index()
    found = history.search("tangerine")
    assert (found.index_status, [c.chat_id for c in found.results]) == ("ready", [chat.id])
    assert history.found("old name") == []


# --- only reads -------------------------------------------------------------------------------------------------------

READING = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_TRANSACTION, apsw.SQLITE_RECURSIVE}


class Watch:
    """Notes what the statements of every connection opened from now on ask SQLite's authorizer for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.actions: set[tuple[int, str | None, str | None]] = set()
        monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, self._opened])

    def _opened(self, connection: apsw.Connection) -> None:
        connection.authorizer = self._note

    def _note(
        self, code: int, first: str | None, second: str | None, database: str | None, _trigger: str | None
    ) -> int:
        self.actions.add((code, first, second))
        return apsw.SQLITE_OK


def test_the_tools_only_read_and_never_the_transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with building(tmp_path / "recall.db") as history:
        chat = history.add_chat("Colours", "Which palette?", "We chose the tangerine palette.", "Why?", "It is warm.")
        history.service.update_message(chat.messages[1], "We chose the tangerine palette.", '{"secret": "transcript"}')
        history.index()
    watch = Watch(monkeypatch)
    with building(tmp_path / "recall.db") as history:
        viewer = Viewer(chat.app_id)
        history.service.apps()  # opens the connection
        watch.actions.clear()
        assert history.search("tangerine decision", viewer=viewer).results
        assert history.read(chat, viewer=viewer).messages
        assert history.read(chat, viewer=viewer, around_message_id=chat.messages[1]).messages
        writing = {action for action in watch.actions if action[0] not in READING}
        assert writing <= {(apsw.SQLITE_PRAGMA, "data_version", None)}, "FTS5 itself asks whether the file changed"
        assert (apsw.SQLITE_READ, "messages", "content") in watch.actions
        assert not [action for action in watch.actions if action[2] == "ai_messages_json"]


def test_indexing_never_reads_the_transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    with building(tmp_path / "recall.db") as history:
        chat = history.add_chat("Colours", "Which palette?", "Tangerine.")
        watch.actions.clear()
        history.index()
        history.service.rename_chat(chat.id, "Palette")
        history.index()
        assert history.found("tangerine palette") == [chat.id]
    assert (apsw.SQLITE_READ, "messages", "content") in watch.actions
    assert not [action for action in watch.actions if action[2] == "ai_messages_json"]
