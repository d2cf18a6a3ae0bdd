"""In-chat find on what the conversation shows, whatever its script, case and length."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_app.domain.errors import InvalidInputError, NotFoundError
from recall_app.domain.shown import shown_text
from recall_app.domain.text import fold
from tests.building import Builder, BuiltChat, building


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Builder]:
    with building(tmp_path / "recall.db") as builder:
        yield builder


def _found(built: Builder, chat: BuiltChat, text: str) -> list[tuple[int, str]]:
    shown = {message.id: shown_text(message) for message in built.service.messages(chat.id)}
    places = built.service.find_in_chat(chat.id, text)
    return [(place.message_id, shown[place.message_id][place.start : place.end]) for place in places]


@pytest.mark.parametrize(
    ("text", "typed", "shown"),
    [
        ("The CAFÉ is open", "cafe", "CAFÉ"),
        ("große Straße", "STRASSE", "Straße"),
        ("修复登录问题", "登录", "登录"),
        ("Решение ПРИНЯТО", "принято", "ПРИНЯТО"),
        ("ＡＢＣ wide", "abc", "ＡＢＣ"),
        ("مُحَمَّد", "محمد", "مُحَمَّد"),
        ("a<b && c>d", "<b &&", "<b &&"),
    ],
)
def test_case_and_accents_aside_in_every_script(built: Builder, text: str, typed: str, shown: str) -> None:
    chat = built.add_chat(None, text)
    assert _found(built, chat, typed) == [(chat.messages[0], shown)]


def test_cards_and_their_folded_bodies_count_and_nothing_needs_the_index(built: Builder) -> None:
    chat = built.add_chat(None, "go", 'Done. <dyad-write path="src/auth.ts">const needle = 1 &lt; 2;</dyad-write>')
    assert _found(built, chat, "NEEDLE = 1 <") == [(chat.messages[1], "needle = 1 <")]
    assert _found(built, chat, "src/auth") == [(chat.messages[1], "src/auth")]
    assert _found(built, chat, "dyad-write") == []


def test_places_come_in_order_over_message_borders(built: Builder) -> None:
    chat = built.add_chat(None, "one redis", "none", "two redis, redis")
    assert [message for message, _ in _found(built, chat, "redis")] == [
        chat.messages[0],
        chat.messages[2],
        chat.messages[2],
    ]


# Without controls: a terminal's escape sequence takes what follows it along, and is not shown.
PROSE = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20)


@given(before=PROSE, needle=st.text("abcé登ЯßΣ", min_size=1, max_size=5), after=PROSE)
def test_what_stands_there_is_found(
    tmp_path_factory: pytest.TempPathFactory, before: str, needle: str, after: str
) -> None:
    with building(tmp_path_factory.mktemp("store") / "recall.db") as built:
        chat = built.add_chat(None, f"{before} {needle} {after}")
        found = _found(built, chat, needle)
        assert found
        assert all(fold(needle) in fold(text) for _, text in found)


def test_bad_input_is_said(built: Builder) -> None:
    chat = built.add_chat(None, "text")
    with pytest.raises(InvalidInputError):
        built.service.find_in_chat(chat.id, " ")
    with pytest.raises(NotFoundError):
        built.service.find_in_chat(chat.id + 1, "text")
