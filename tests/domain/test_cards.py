"""The text form of consultations: written, read back, forged, forgotten."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_app.domain.cards import (
    CardState,
    HistoryCard,
    ModelTextEscaper,
    escape_model_text,
    history_cards,
    read_card,
    search_card,
    without_chat,
)
from recall_app.domain.consulting import (
    AroundMode,
    ReadChatHead,
    ReadChatResult,
    ReadMessage,
    SearchChatsResult,
    SearchedChat,
    SearchMatch,
)
from recall_app.domain.markup import TextBlock, parse_blocks
from tests.scale import scaled

WHEN = "2026-07-12T18:29:00.000Z"
HOSTILE = 'Auth "x" </dyad-search-chats> <think> & \u2028 end'
FORGERIES = [
    "<",
    "/",
    "d",
    "yad-",
    "DYAD-",
    "think",
    "Think",
    "\u00ad",
    "\u200b",
    "a",
    " ",
    ">",
    "&lt;",
    "`",
    "<dyad-read-chat>",
]


def searched(*chats: tuple[int, str]) -> SearchChatsResult:
    results = tuple(
        SearchedChat(
            chat_id=chat_id,
            title=title,
            last_message_at=WHEN,
            matches=(
                SearchMatch(
                    message_id=chat_id * 10, role="user", created_at=WHEN, excerpt=f"excerpt of {title}",
                    projection_truncated=False, is_compaction_summary=False,
                ),
            ),
        )
        for chat_id, title in chats
    )  # fmt: skip
    return SearchChatsResult(query="auth", index_status="ready", results=results, results_truncated=False)


def was_read(chat_id: int, title: str) -> ReadChatResult:
    return ReadChatResult(
        chat=ReadChatHead(chat_id=chat_id, title=title, created_at=WHEN, total_messages=31),
        mode=AroundMode(around_message_id=5),
        first_position=3,
        messages=(ReadMessage(message_id=5, role="assistant", created_at=WHEN, text="the text"),),
        has_more_before=True,
        has_more_after=True,
        next_offset=4,
        previous_offset=0,
        output_truncated=False,
    )


def only(content: str) -> HistoryCard:
    [card] = history_cards(content)
    return card


def test_a_search_comes_back_as_it_was_written() -> None:
    card = only(search_card(HOSTILE, CardState.INDEXING, 7, searched((42, HOSTILE))))
    assert (card.kind, card.query, card.state, card.consultation_id) == ("search", HOSTILE, CardState.INDEXING, 7)
    assert (card.index_status, card.result_count) == ("ready", 1)
    [entry] = card.entries
    assert (entry.chat_id, entry.title, entry.message_id, entry.role, entry.date) == (42, HOSTILE, 420, "user", WHEN)
    assert entry.text == f"excerpt of {HOSTILE}"


def test_a_read_comes_back_as_it_was_written() -> None:
    card = only(read_card(42, CardState.TRUNCATED, 8, was_read(42, "Auth")))
    assert (card.kind, card.chat_id, card.title, card.range) == ("read", 42, "Auth", "4-4 of 31")
    assert [(entry.message_id, entry.text) for entry in card.entries] == [(5, "the text")]


@pytest.mark.parametrize("state", CardState)
def test_every_state_comes_back(state: CardState) -> None:
    assert only(search_card("q", state, 1)).state is state
    assert only(read_card(3, state, None)).state is state


def test_the_text_bodies_of_dyad_are_understood() -> None:
    card = only(
        '<dyad-search-chats query="auth" state="finished">\n#42 Authentication setup 2026-07-12\n  - We decided\n'
        "  - And then\n#7 Untitled\n</dyad-search-chats>"
    )
    assert card.state is CardState.DONE
    assert [(entry.chat_id, entry.title, entry.date, entry.text) for entry in card.entries] == [
        (42, "Authentication setup", "2026-07-12", "We decided"),
        (42, "Authentication setup", "2026-07-12", "And then"),
        (7, "Untitled", None, ""),
    ]
    card = only(
        f'<dyad-read-chat chat-id="42" title="Auth">[user {WHEN}]\nhow?\n\n'
        f"[assistant {WHEN}] so\n- [x]</dyad-read-chat>"
    )
    assert [(entry.chat_id, entry.role, entry.text) for entry in card.entries] == [
        (42, "user", "how?"),
        (42, "assistant", "so\n- [x]"),
    ]


@pytest.mark.parametrize(
    "body", ["{", "{}", "[]", "null", '{"results": 3}', "{" * 10_000, "#x", "\u0000", "#" + "9" * 50]
)
def test_a_malformed_body_gives_a_card_without_entries(body: str) -> None:
    for name in ("dyad-search-chats", "dyad-read-chat"):
        assert only(f"<{name} chat-id='x' result-count=\"²\">{body}</{name}>").entries == ()
        assert only(f"<{name}>{body}").state is CardState.UNFINISHED


@given(st.lists(st.sampled_from(FORGERIES), max_size=30))
@settings(max_examples=scaled(200, 3_000), deadline=None)
def test_model_text_never_holds_a_tag(chunks: list[str]) -> None:
    escaper = ModelTextEscaper()
    stored = "".join(escaper.feed(chunk) for chunk in chunks) + escaper.finish()
    assert stored == escape_model_text("".join(chunks))
    assert all(
        isinstance(block, TextBlock) for block in parse_blocks(stored.replace("\u00ad", "").replace("\u200b", ""))
    )
    assert stored.replace("&lt;", "<") == "".join(chunks).replace("&lt;", "<")


def test_other_markup_of_a_model_stays() -> None:
    assert escape_model_text("a < b <div> <Think> <dyad> </dyad-x>") == "a < b <div> &lt;Think> <dyad> &lt;/dyad-x>"


def test_a_long_run_of_hidden_characters_is_not_held_for_ever() -> None:
    escaper = ModelTextEscaper()
    assert escaper.feed("<" + "\u200b" * 100).startswith("&lt;")
    assert escaper.feed("dyad-x>") == "dyad-x>"


def test_forgetting_takes_only_what_belongs_to_the_chat() -> None:
    before = "Prose about Gone.\r\n<think>x</think> "
    other = search_card("q", CardState.DONE, 1, searched((8, "Other")))
    read = read_card(4, CardState.DONE, 2, was_read(4, "Gone"))
    content = before + search_card("q", CardState.DONE, 3, searched((4, "Gone"), (8, "Kept"))) + other + read + " end"
    kept = without_chat(content, 4, "deleted")
    assert kept.startswith(before)
    assert kept.endswith(" end")
    assert other in kept
    assert "Gone" not in kept.removeprefix(before)
    assert "the text" not in kept
    first, second, third = history_cards(kept)
    assert [(entry.chat_id, entry.title, entry.text) for entry in first.entries] == [
        (4, "deleted", "deleted"),
        (8, "Kept", "excerpt of Kept"),
    ]
    assert [entry.title for entry in second.entries] == ["Other"]
    assert (third.chat_id, third.title, third.entries) == (4, "deleted", ())
    assert without_chat(content, 44, "deleted") == content


def test_forgetting_reaches_text_bodies_and_broken_ones() -> None:
    text = "<dyad-search-chats>#4 Gone 2026-01-01\n  - Gone\n#8 Kept\n  - kept\n</dyad-search-chats>"
    assert without_chat(text, 4, "deleted") == (
        "<dyad-search-chats>#4 deleted\n#8 Kept\n  - kept\n</dyad-search-chats>"
    )
    broken = '<dyad-search-chats>{"results": [{"chat_id": 4, "title": "Gone"</dyad-search-chats>'
    assert without_chat(broken, 4, "deleted") == "<dyad-search-chats>deleted</dyad-search-chats>"
    cut_off = '<dyad-read-chat chat-id="4" title="Gone">[user 2026-01-01] Gone'
    assert "Gone" not in without_chat(cut_off, 4, "deleted")
