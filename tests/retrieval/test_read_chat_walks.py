"""Walking a chat by its own continuations: every message once, every character once (contracts §5)."""

import re
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_app.domain.consulting import BASIC_BUDGET, FULL_BUDGET, MESSAGE_CHARACTERS, Budget, to_json
from recall_app.domain.projection import ChatSearchProjectionInput, project_chat_message_for_reading
from recall_app.domain.text import BIDI_CONTROLS
from tests.building import Builder, BuiltChat, building

ALPHABETS = ["x", "word ", "字", "𝕏", '"\\', "👨‍👩‍👧 ", "q\u0301", "\u202ea\n", "ก็", "\n"]
BIDI = re.compile(f"[{BIDI_CONTROLS}]")
BUDGETS = {"full": FULL_BUDGET, "basic": BASIC_BUDGET}

texts = st.builds(
    lambda number, alphabet, length: f"{number} " + alphabet * length,
    st.integers(0, 9),
    st.sampled_from(ALPHABETS),
    st.sampled_from([0, 1, 40, 400, 1_300, 2_600, 5_000]),
)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    with building(tmp_path_factory.mktemp("walked") / "recall.db") as builder:
        yield builder


@given(
    said=st.lists(texts, min_size=1, max_size=30),
    limit=st.one_of(st.none(), st.integers(1, 20)),
    budget=st.sampled_from(sorted(BUDGETS)),
)
def test_next_offset_visits_every_message_once_in_order(
    walked: Builder, said: list[str], limit: int | None, budget: str
) -> None:
    chat = walked.add_chat("A walk", *said)
    visited: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page = walked.read(chat, offset=offset, limit=limit, budget=BUDGETS[budget])
        assert page.first_position == len(visited)
        assert page.messages, "every step gets on"
        assert len(to_json(page).encode()) <= BUDGETS[budget].read_bytes
        visited += [message.message_id for message in page.messages]
        assert page.has_more_after == (page.next_offset is not None) == (len(visited) < len(said))
        offset = page.next_offset
    assert visited == list(chat.messages)


@given(
    said=st.lists(texts, min_size=1, max_size=30),
    limit=st.one_of(st.none(), st.integers(1, 20)),
    budget=st.sampled_from(sorted(BUDGETS)),
    start=st.tuples(st.sampled_from(["around", "offset"]), st.integers(0, 31)),
)
def test_previous_offset_leads_back_to_the_start_and_leaves_none_out(
    walked: Builder, said: list[str], limit: int | None, budget: str, start: tuple[str, int]
) -> None:
    chat = walked.add_chat("A walk", *said)
    used = BUDGETS[budget]
    mode, at = start
    if mode == "around" and at < len(said):
        # What the model does next without a limit of its own: the default page.
        limit = None
        page = walked.read(chat, around_message_id=chat.messages[at], budget=used)
    else:
        page = walked.read(chat, offset=at, limit=limit, budget=used)
    first = page.first_position if page.first_position is not None else len(said)
    while (offset := page.previous_offset) is not None:
        assert offset < first, "every step gets on"
        page = walked.read(chat, offset=offset, limit=limit, budget=used)
        assert page.first_position == offset
        assert offset + len(page.messages) >= first, "up to where the walk came from"
        first = offset
    assert first == 0
    assert not page.has_more_before


def read_through(history: Builder, chat: BuiltChat, budget: Budget) -> Iterator[str]:
    start: int | None = 0
    while start is not None:
        page = history.read(
            chat, around_message_id=chat.messages[0], before=0, after=0, start_char=start, budget=budget
        )
        assert len(to_json(page).encode()) <= budget.read_bytes
        (message,) = page.messages
        assert len(message.text) <= MESSAGE_CHARACTERS
        assert message.next_start_char is None or message.next_start_char > start
        assert (message.truncated is True) == (message.next_start_char is not None) == page.output_truncated
        yield message.text
        start = message.next_start_char


@pytest.mark.parametrize("budget", sorted(BUDGETS))
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_start_char_reaches_the_end_of_a_long_message_with_every_character_once(
    walked: Builder, alphabet: str, budget: str
) -> None:
    text = "start " + alphabet * (60_000 // len(alphabet)) + " end"
    chat = walked.add_chat(None, text, "and more")
    pieces = list(read_through(walked, chat, BUDGETS[budget]))
    assert BIDI.sub("", "".join(pieces)) == unicodedata.normalize("NFC", BIDI.sub("", text))
    assert len(pieces) >= 25


@given(said=st.text(max_size=6_000), budget=st.sampled_from(sorted(BUDGETS)))
def test_any_text_is_read_through(walked: Builder, said: str, budget: str) -> None:
    text = "x" * 2_395 + said.encode("utf-8", "replace").decode()
    pieces = read_through(walked, walked.add_chat(None, text), BUDGETS[budget])
    whole = project_chat_message_for_reading(ChatSearchProjectionInput("user", text, is_compaction_summary=False))
    assert BIDI.sub("", "".join(pieces)) == BIDI.sub("", whole)


@pytest.mark.parametrize("budget", sorted(BUDGETS))
def test_an_emoji_at_the_cut_stays_whole(walked: Builder, budget: str) -> None:
    family = "👨‍👩‍👧‍👦"
    for shift in range(len(family)):
        chat = walked.add_chat(None, "x" * (2_400 - shift) + family + "y" * 100)
        pieces = list(read_through(walked, chat, BUDGETS[budget]))
        assert sum(family in piece for piece in pieces) == 1


def test_start_char_leaves_the_neighbours_whole_and_past_the_end_gives_nothing(walked: Builder) -> None:
    chat = walked.add_chat(None, "before", "x" * 3_000 + "tail", "after")
    page = walked.read(chat, around_message_id=chat.messages[1], start_char=3_000)
    assert [message.text for message in page.messages] == ["before", "tail", "after"]
    past = walked.read(chat, around_message_id=chat.messages[1], start_char=2**70)
    assert [message.text for message in past.messages] == ["before", "", "after"]
    assert not past.output_truncated
