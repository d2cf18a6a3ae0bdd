"""What counts as taken from a chat that is being forgotten, and what does not."""

import json

import pytest

from recall_app.domain.cards import CardState, history_cards, search_card
from recall_app.domain.consulting import SearchChatsResult, SearchedChat, SearchMatch
from recall_app.domain.projection import ChatSearchProjectionInput
from recall_app.domain.quotations import Quotations

STUB = "[gone]"


@pytest.fixture
def quotations() -> Quotations:
    return Quotations(
        "Vault plan",
        [
            ChatSearchProjectionInput("user", "Where does the vault open?\nUse `openVault()`", False),
            ChatSearchProjectionInput(
                "assistant", "<think>never mind</think>It opens at midnight with marmalade.", False
            ),
        ],
        STUB,
    )


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("He said: it opens at midnight with marmalade!", STUB),
        ("before\n> It opens at MIDNIGHT with marmalade.\nafter\n", f"before\n> {STUB}\nafter\n"),
        ("  Use `openVault()`\n", f"  {STUB}\n"),
        ("As the VAULT PLAN has it.", f"As the {STUB} has it."),
        ("The vaults open at noon.", "The vaults open at noon."),
        ("Vault planning, a vault plane", "Vault planning, a vault plane"),
        ("It opens at noon with marmalade.", "It opens at noon with marmalade."),
        ("", ""),
    ],
)
def test_lines_and_title(quotations: Quotations, written: str, left: str) -> None:
    assert quotations.removed_from(written) == left
    assert quotations.removed_from_message(written) == left


def test_unspaced_scripts() -> None:
    quotations = Quotations("登录方案", [ChatSearchProjectionInput("user", "我们决定用新的登录方案来做", False)], STUB)
    assert quotations.removed_from("他说我们决定用新的。\n别的话") == f"{STUB}\n别的话"
    assert quotations.removed_from("看登录方案吧") == f"看{STUB}吧"


def test_a_chat_without_title_or_text_takes_nothing() -> None:
    quotations = Quotations(None, [], STUB)
    assert quotations.removed_from("any line\n\nat all") == "any line\n\nat all"


def result(*excerpts: str) -> SearchChatsResult:
    chats = tuple(
        SearchedChat(
            chat_id=number,
            title="Vault plan",
            last_message_at="2026-07-12T18:30:00.000Z",
            matches=(
                SearchMatch(
                    message_id=number,
                    role="assistant",
                    created_at="2026-07-12T18:30:00.000Z",
                    excerpt=excerpt,
                    projection_truncated=False,
                    is_compaction_summary=False,
                ),
            ),
        )
        for number, excerpt in enumerate(excerpts, 1)
    )
    return SearchChatsResult(query="vault plan <now>", index_status="ready", results=chats, results_truncated=False)


def test_a_card_of_other_chats_loses_only_what_it_quotes(quotations: Quotations) -> None:
    given = result('We "know": it opens at midnight with <marmalade> & jam', "Nothing & <b>of</b> it")
    message = f"Well.\n{search_card('vault plan?', CardState.DONE, 7, given)}\nIt opens at midnight with marmalade."
    cleaned = quotations.removed_from_message(message)
    assert cleaned.startswith("Well.\n<dyad-search-chats ")
    assert cleaned.endswith(f"\n{STUB}")
    (card,) = history_cards(cleaned)
    assert [(entry.title, entry.text) for entry in card.entries] == [
        ("Vault plan", STUB),
        ("Vault plan", "Nothing & <b>of</b> it"),
    ]
    assert (card.query, card.consultation_id, card.state) == (f"{STUB}?", 7, CardState.DONE)
    assert "vault plan" not in cleaned
    assert "marmalade" not in cleaned


def test_a_card_that_quotes_nothing_stays_byte_for_byte(quotations: Quotations) -> None:
    card = search_card("zebras", CardState.DONE, 7, result("Nothing & <b>of</b> it")).replace("vault plan", "zebras")
    assert quotations.removed_from_message(card) == card


def test_arguments_of_a_call(quotations: Quotations) -> None:
    arguments = json.dumps({"query": 'what of "vault plan"?', "limit": 3})
    assert json.loads(quotations.removed_from_arguments(arguments)) == {"query": f'what of "{STUB}"?', "limit": 3}
    assert quotations.removed_from_arguments('{"chat_id":5}') == '{"chat_id":5}'
