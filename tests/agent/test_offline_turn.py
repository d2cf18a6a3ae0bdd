"""The built-in assistant in whole turns: what it asks for, what it answers, what it says when it can't."""

import asyncio
import json

import pytest

from recall_app.agent.consent import Choice, ConsentAnswer
from recall_app.agent.modes import Mode
from recall_app.agent.offline_language import PHRASES, Language
from recall_app.agent.turn import TurnResult, run_turn
from recall_app.config.permissions import Permission
from recall_app.domain.cards import CardState, history_cards
from recall_app.domain.records import Decision, Outcome
from tests.agent.worlds import World


def ask(shop: World, question: str, *, chat_id: int | None = None, mode: Mode = Mode.AGENT) -> TurnResult:
    return asyncio.run(
        run_turn(shop.service, shop.gate, app_id=shop.shop, question=question, chat_id=chat_id, mode=mode)
    )


def test_it_quotes_both_decisions_with_sources_newest_first(shop: World) -> None:
    result = ask(shop, "Which database did we decide on?")
    assert result.answer.startswith(PHRASES[Language.ENGLISH].who)
    assert "> We decided to use SQLite as the database, because it is embedded." in result.answer
    assert "> We switched the database to Postgres 16." in result.answer
    database, storage = shop.messages(shop.database_chat)[1], shop.messages(shop.storage_chat)[1]
    assert "> — Database choice · 20" in result.answer
    assert f"message {database.id}" in result.answer
    assert f"message {storage.id}" in result.answer
    assert "ZANZIBAR" not in result.answer


def test_its_calls_are_recorded_as_local_and_shown_as_cards(shop: World) -> None:
    result = ask(shop, "Which database did we decide on?")
    rows = shop.ledger()
    assert rows[0].tool == "search_chats"
    assert {row.tool for row in rows[1:]} == {"read_chat"}
    assert all((row.provider, row.is_local, row.message_id) == ("offline", True, result.message_id) for row in rows)
    cards = history_cards(shop.messages(result.chat_id)[-1].content)
    assert [card.consultation_id for card in cards] == shop.ledger_ids()
    assert all(card.state is CardState.DONE for card in cards)
    consulted = {(entry.chat_id, entry.message_id) for card in cards for entry in card.entries}
    assert consulted == {(one.chat_id, one.message_id) for row in rows for one in row.messages}


@pytest.mark.parametrize(
    ("language", "title", "said", "question"),
    [
        (Language.GERMAN, "Farben", "Wir haben uns für Dunkelblau entschieden.", "Welche Farbe: Dunkelblau oder Grün?"),
        (Language.SPANISH, "Precios", "Decidimos mostrar los precios con IVA.", "¿Cómo mostramos los precios?"),
        (Language.CHINESE, "登录", "我们决定登录时使用短信验证码。", "我们登录用什么验证码？"),
        (Language.JAPANESE, "地図", "地図はベクタータイルに決めました。", "地図は何にしましたか？"),
        (Language.ARABIC, "الخريطة", "قررنا أن تبقى الخريطة كما هي.", "ماذا قررنا عن الخريطة؟"),
    ],
)
def test_it_answers_in_the_questions_language(
    shop: World, language: Language, title: str, said: str, question: str
) -> None:
    chat = shop.service.create_chat(shop.shop, title=title).id
    shop.service.add_message(chat, "assistant", said)
    shop.store.index()
    answer = ask(shop, question).answer
    assert answer.startswith(PHRASES[language].who)
    assert f"> {said}" in answer


def test_when_nothing_is_found_it_tries_once_more(shop: World) -> None:
    chat = shop.service.create_chat(shop.shop, title="سجل").id
    shop.service.add_message(chat, "assistant", "قررنا حفظ فواتير العملاء سنة.")
    shop.store.index()
    result = ask(shop, "الفواتير؟")
    queries = [json.loads(row.arguments_json)["query"] for row in shop.ledger() if row.tool == "search_chats"]
    assert queries == ["الفواتير", "فواتير"]
    assert [row.outcome for row in shop.ledger()][:2] == [Outcome.EMPTY, Outcome.DONE]
    assert "> قررنا حفظ فواتير العملاء سنة." in result.answer


def test_nothing_found_is_said_with_the_words(shop: World) -> None:
    result = ask(shop, "What about the *zeppelin* hangar?")
    phrases = PHRASES[Language.ENGLISH]
    assert result.answer == f"{phrases.who} {phrases.nothing.format('zeppelin hangar')}"
    assert all(call.result is not None for call in result.calls)


def test_a_question_without_a_subject_looks_nothing_up(shop: World) -> None:
    result = ask(shop, "What did we?")
    assert result.calls == ()
    assert PHRASES[Language.ENGLISH].who in result.answer


def test_a_follow_up_is_about_what_was_asked_before(shop: World) -> None:
    first = ask(shop, "Which database did we decide on?")
    second = ask(shop, "And why?", chat_id=first.chat_id)
    assert "> We decided to use SQLite as the database, because it is embedded." in second.answer


def test_asked_twice_it_does_not_quote_itself(shop: World) -> None:
    question = "Which database did we decide on?"
    answers = []
    for _ in range(3):
        answers.append(ask(shop, question).answer)
        shop.store.index()
    assert answers[0] == answers[1] == answers[2]


def test_an_index_that_is_behind_is_said(shop: World) -> None:
    chat = shop.service.create_chat(shop.shop, title="Later").id
    shop.service.add_message(chat, "assistant", "Something newer.")
    answer = ask(shop, "Which database did we decide on?").answer
    assert PHRASES[Language.ENGLISH].indexing.format(1) in answer


def test_never_means_it_has_no_search(shop: World) -> None:
    shop.permit(Permission.NEVER)
    result = ask(shop, "Which database did we decide on?")
    assert result.calls == ()
    assert result.answer == f"{PHRASES[Language.ENGLISH].who} {PHRASES[Language.ENGLISH].no_tools}"
    assert shop.ledger() == []


def test_declined_means_it_looked_nothing_up(shop: World) -> None:
    shop.permit(Permission.ASK)
    result = ask(shop, "Which database did we decide on?")
    assert len(shop.person.asked) == 1
    assert result.answer == f"{PHRASES[Language.ENGLISH].who} {PHRASES[Language.ENGLISH].declined}"
    (card,) = history_cards(shop.messages(result.chat_id)[-1].content)
    assert card.state is CardState.DECLINED


@pytest.mark.parametrize("permission", [Permission.NEVER, Permission.ASK])
def test_without_reading_it_answers_from_excerpts(shop: World, permission: Permission) -> None:
    shop.permit(permission, "read_chat")
    result = ask(shop, "Which database did we decide on?")
    assert PHRASES[Language.ENGLISH].excerpts_only in result.answer
    assert "> We decided to use SQLite as the database" in result.answer


def test_allowed_once_is_asked_for_each_call(shop: World) -> None:
    shop.permit(Permission.ASK)
    shop.person.answers = [ConsentAnswer(Choice.ALLOW_ONCE)]
    result = ask(shop, "Which database did we decide on?")
    assert len(shop.person.asked) == len(result.calls) > 1
    assert {row.decision for row in shop.ledger()} == {Decision.ALLOWED_ONCE}
    assert {request.where for request in shop.person.asked} == {"stays on this computer"}


def test_hostile_history_is_quoted_as_text_and_not_obeyed(shop: World) -> None:
    result = ask(shop, "What is the database password rule?")
    assert all(call.error is None for call in result.calls)
    assert "ZANZIBAR" not in result.answer
    assert "<dyad" not in result.answer
    cards = history_cards(shop.messages(result.chat_id)[-1].content)
    assert [card.consultation_id for card in cards] == shop.ledger_ids()


def test_basic_mode_stays_within_its_budgets(shop: World) -> None:
    result = ask(shop, "Which database did we decide on?", mode=Mode.BASIC)
    assert "> We decided to use SQLite" in result.answer
    assert all(len(call.text.encode()) <= 6 * 1024 for call in result.calls)
