"""The ledger: what was consulted, by whom, in which order, and what is shown of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from recall_app.domain.errors import NotFoundError, RecallError
from recall_app.domain.records import ConsultedMessage, NewConsultation
from recall_app.service import open_store
from tests.building import Builder, BuiltChat


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Builder]:
    with open_store(tmp_path / "recall.db") as store:
        yield Builder(store)


def entry(chat: BuiltChat, *sources: ConsultedMessage, tool: str = "search_chats") -> NewConsultation:
    return NewConsultation(
        at=1_750_000_000_000,
        app_id=chat.app_id,
        chat_id=chat.id,
        message_id=chat.messages[-1],
        tool=tool,
        arguments_json='{"query": "zebra"}',
        decision="allowed once",
        provider="anthropic",
        model="claude-test",
        is_local=False,
        index_status="ready",
        result_count=len(sources),
        bytes=1234,
        truncated=True,
        duration_ms=7,
        outcome="done",
        messages=sources,
    )


def source(chat: BuiltChat, at: int = 0, excerpt: str | None = "an excerpt") -> ConsultedMessage:
    return ConsultedMessage(chat.id, chat.messages[at], excerpt)


def test_a_consultation_is_given_back_as_it_was_recorded(built: Builder) -> None:
    asking, told = built.add_chat("asking", "a", "b"), built.add_chat("told", "c", "d")
    recorded = entry(asking, source(told), source(told, 1, None))
    unasked = replace(
        entry(asking), model=None, is_local=True, index_status=None, message_id=None, truncated=False, outcome="failed"
    )
    ids = [built.service.record_consultation(each) for each in (recorded, unasked)]
    assert [(row.id, row.entry) for row in built.service.consultations()] == [(ids[1], unasked), (ids[0], recorded)]


def test_a_call_without_a_chat_is_recorded(built: Builder) -> None:
    """The person's own, from the command line."""
    built.service.record_consultation(replace(entry(built.add_chat("x", "y")), chat_id=None, message_id=None))
    assert [row.entry.chat_id for row in built.service.consultations()] == [None]


def test_the_newest_come_first_and_can_be_limited_and_filtered(built: Builder) -> None:
    other = built.add_app("Other")
    chats = [built.add_chat("one", "a"), built.add_chat("two", "b"), built.add_chat("three", "c", app=other)]
    ids = [built.service.record_consultation(replace(entry(chats[n % 3]), at=1_000 - n)) for n in range(9)]

    def listed(app_id: int | None = None, chat_id: int | None = None, limit: int = -1) -> list[int]:
        rows = built.service.consultations(app_id=app_id, chat_id=chat_id, limit=limit)
        return [ids.index(row.id) for row in rows]

    assert listed() == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert listed(limit=2) == [8, 7]
    assert listed(app_id=other) == [8, 5, 2]
    assert listed(chat_id=chats[0].id) == [6, 3, 0]
    assert listed(app_id=other, chat_id=chats[0].id) == []


def test_who_consulted_a_message_and_where_it_went(built: Builder) -> None:
    asking, told = built.add_chat("asking", "a"), built.add_chat("told", "c", "d")
    first = built.service.record_consultation(entry(asking, source(told), source(told, 1)))
    second = built.service.record_consultation(entry(asking, source(told, 1)))
    assert [row.id for row in built.service.consultations_of_message(told.messages[1])] == [second, first]
    assert [row.id for row in built.service.consultations_of_message(told.messages[0])] == [first]
    assert built.service.consultations_of_message(asking.messages[0]) == []


def test_a_message_given_twice_in_one_call_counts_once(built: Builder) -> None:
    asking, told = built.add_chat("asking", "a"), built.add_chat("told", "c")
    built.service.record_consultation(entry(asking, source(told), source(told)))
    assert [len(row.entry.messages) for row in built.service.consultations()] == [1]


def test_excerpts_are_hidden_while_their_chat_is_deleted_and_come_back_with_it(built: Builder) -> None:
    asking, told = built.add_chat("asking", "a"), built.add_chat("told", "c")
    built.service.record_consultation(entry(asking, source(told), source(asking)))
    built.service.delete_chat(told.id)
    ((mine, theirs),) = [row.entry.messages for row in built.service.consultations()]
    assert (mine.excerpt, theirs) == ("an excerpt", ConsultedMessage(told.id, told.messages[0], None))
    # What is recorded in these ten seconds is not lost by an undo.
    built.service.record_consultation(entry(asking, source(told)))
    built.service.restore_chat(told.id)
    excerpts = [[each.excerpt for each in row.entry.messages] for row in built.service.consultations()]
    assert excerpts == [["an excerpt"], ["an excerpt", "an excerpt"]]


def test_what_a_deleted_chat_asked_is_hidden_with_it(built: Builder) -> None:
    asking, told = built.add_chat("asking", "a"), built.add_chat("told", "c")
    built.service.record_consultation(entry(asking, source(told)))
    built.service.delete_chat(asking.id)
    assert built.service.consultations() == []
    assert built.service.consultations_of_message(told.messages[0]) == []
    built.service.restore_chat(asking.id)
    assert len(built.service.consultations()) == 1


def test_a_consultation_of_a_chat_that_is_gone_is_refused_in_words(built: Builder) -> None:
    asking = built.add_chat("asking", "a")
    built.service.delete_chat(asking.id)
    built.service.purge_deleted(at_exit=True)
    with pytest.raises(NotFoundError) as caught:
        built.service.record_consultation(entry(asking))
    assert isinstance(caught.value, RecallError)
    assert built.service.consultations() == []


@pytest.mark.parametrize(
    ("app_is_given", "chat_is_given", "left"),
    [(False, False, []), (True, False, [2]), (False, True, [1, 2]), (True, True, [1, 2])],
)
def test_erasing(built: Builder, app_is_given: bool, chat_is_given: bool, left: list[int]) -> None:
    other = built.add_app("Other")
    chats = [built.add_chat("one", "a"), built.add_chat("two", "b"), built.add_chat("three", "c", app=other)]
    ids = [built.service.record_consultation(entry(chat, source(chats[0]))) for chat in chats]
    erased = built.service.erase_ledger(
        app_id=built.app if app_is_given else None, chat_id=chats[0].id if chat_is_given else None
    )
    assert erased == 3 - len(left)
    assert sorted(ids.index(row.id) for row in built.service.consultations()) == left
    orphans = "SELECT count(*) FROM consulted_messages WHERE consultation_id NOT IN (SELECT id FROM consultations)"
    assert built.store.writer.connection.execute(orphans).get == 0
    # An erased number is not given again: a card could take it for its own.
    assert built.service.record_consultation(entry(chats[0])) > max(ids)


def test_a_card_is_genuine_for_its_own_message_only(built: Builder) -> None:
    asking = built.add_chat("asking", "a", "b")
    number = built.service.record_consultation(entry(asking))
    assert built.service.is_genuine_card(number, asking.messages[1])
    assert not built.service.is_genuine_card(number, asking.messages[0])
    assert not built.service.is_genuine_card(number + 1, asking.messages[1])
