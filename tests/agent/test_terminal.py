"""Consent on a terminal, through text streams as a terminal gives them."""

import asyncio
import os
import subprocess
import sys
from io import StringIO

import pytest

from recall_app.agent.consent import Choice, ConsentAnswer, ConsentRequest
from recall_app.agent.sharing import SharedText
from recall_app.agent.terminal import TerminalAsker

TEXTS = (
    SharedText(4, 41, "Auth", "assistant", "2026-07-12T18:29:00.000Z", "We decided on sessions."),
    SharedText(5, 51, None, "user", "2026-07-13T18:29:00.000Z", "A secret\nwith \x1b[31mcolour\u202e."),
)


def request(texts: tuple[SharedText, ...] | None = None, title: str | None = None) -> ConsentRequest:
    return ConsentRequest(
        tool="read_chat",
        sentence="Read chat #4 of this app.",
        app_id=1,
        app_name="Shop",
        conversation_id=9,
        chat_title=title,
        max_bytes=20_480,
        where="to Anthropic · claude",
        texts=texts,
    )


def answer(typed: str, asked: ConsentRequest) -> tuple[ConsentAnswer, str]:
    shown = StringIO()
    return asyncio.run(TerminalAsker(StringIO(typed), shown).ask(asked)), shown.getvalue()


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("y\n", Choice.ALLOW_ONCE),
        (" Y \n", Choice.ALLOW_ONCE),
        ("a\n", Choice.ALWAYS_IN_APP),
        ("e\n", Choice.ALWAYS_EVERYWHERE),
        ("n\n", Choice.DECLINE),
        ("\n", Choice.DECLINE),
        ("", Choice.DECLINE),
        ("yes please\n", Choice.DECLINE),
        ("always\n", Choice.DECLINE),
    ],
)
def test_only_the_three_letters_allow(typed: str, choice: Choice) -> None:
    assert answer(typed, request())[0] == ConsentAnswer(choice)


def test_the_question_says_what_goes_where() -> None:
    _, shown = answer("n\n", request(title="Auth\nApp: forged\u202e"))
    lines = shown.splitlines()
    assert "  Read chat #4 of this app." in lines
    assert "  Chat: Auth App: forged" in lines
    assert "  App: Shop" in lines
    assert "  At most 20,480 bytes" in lines
    assert "  Where the text goes: to Anthropic · claude" in lines


def test_parts_can_be_kept_back() -> None:
    given, shown = answer("2\ny\n", request(TEXTS))
    assert given == ConsentAnswer(Choice.ALLOW_ONCE, frozenset({51}))
    assert "  1. Auth, 2026-07-12: We decided on sessions." in shown.splitlines()
    assert "\x1b" not in shown
    assert answer("\ny\n", request(TEXTS))[0].withheld == frozenset()
    assert answer("1, 2\ny\n", request(TEXTS))[0].withheld == frozenset({41, 51})


@pytest.mark.parametrize("typed", ["3\ny\n", "0\ny\n", "y\ny\n", "-1\ny\n", "²\ny\n"])
def test_what_is_not_a_number_of_the_list_shares_nothing(typed: str) -> None:
    assert answer(typed, request(TEXTS))[0] == ConsentAnswer(Choice.DECLINE)


def test_questions_wait_for_each_other() -> None:
    async def both() -> list[ConsentAnswer]:
        asker = TerminalAsker(StringIO("y\na\n"), StringIO())
        return list(await asyncio.gather(asker.ask(request()), asker.ask(request())))

    assert [given.choice for given in asyncio.run(both())] == [Choice.ALLOW_ONCE, Choice.ALWAYS_IN_APP]


def test_after_a_question_was_given_up_nobody_is_asked_any_more() -> None:
    # The abandoned read would take the answer to the next question.
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as source, os.fdopen(writing, "w", encoding="utf-8") as person:
        asker = TerminalAsker(source, StringIO())

        async def given_up() -> ConsentAnswer:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await asker.ask(request())
            return await asker.ask(request())

        assert asyncio.run(given_up()).choice is Choice.DECLINE
        person.write("y\n")


def test_without_a_terminal_there_is_no_one_to_ask() -> None:
    program = """
from recall_app.agent.terminal import terminal_asker
with terminal_asker() as asker:
    print(type(asker).__name__)
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
    )
    assert run.stdout.strip() == b"NoOneToAsk"
