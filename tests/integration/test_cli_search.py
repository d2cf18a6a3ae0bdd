"""``recall search``: the options, the pages, and how a person sees them."""

import re
from pathlib import Path

import pytest

from recall_app.service import open_store
from tests.integration.command_line import Recall


def found(recall: Recall, *arguments: str) -> list[int]:
    return [chat["chat_id"] for chat in recall("search", *arguments, "--json").json["chats"]]


def test_all_apps_and_private_chats_are_the_persons_own(shop: Path, recall: Recall) -> None:
    assert sorted(found(recall, "login")) == [1, 3, 4]
    assert sorted(found(recall, "login", "--app", "Shop")) == [1, 3]
    assert found(recall, "login app:2024") == [4]


def test_a_role(shop: Path, recall: Recall) -> None:
    page = recall("search", "login", "--role", "assistant", "--json").json
    assert [(hit["role"], hit["message_id"]) for chat in page["chats"] for hit in chat["hits"]] == [("assistant", 2)]


def test_a_span_of_days_holds_its_first_and_its_last(shop: Path, recall: Recall) -> None:
    with open_store(shop) as store:
        chat = store.service.create_chat(1, "Dated")
        for day in (1_767_268_800_000, 1_767_355_200_000, 1_767_441_600_000):
            store.service.add_message(chat.id, "user", "zeppelin", created_at=day)
        store.index()
    page = recall("search", "zeppelin", "--since", "2026-01-02", "--until", "2026-01-02", "--json").json
    assert [hit["created_at"][:10] for hit in page["chats"][0]["hits"]] == ["2026-01-02"]
    assert page["total_messages"] == 1


def test_pages_show_every_chat_once(shop: Path, recall: Recall) -> None:
    for sort in ("relevance", "newest"):
        seen: list[int] = []
        cursor: list[str] = []
        while True:
            page = recall("search", "login", "--sort", sort, "--limit", "1", *cursor, "--json").json
            seen += [chat["chat_id"] for chat in page["chats"]]
            assert page["total_chats"] == 3
            if page["next_cursor"] is None:
                break
            cursor = ["--cursor", page["next_cursor"]]
        assert sorted(seen) == [1, 3, 4]


def test_a_page_for_people(shop: Path, recall: Recall) -> None:
    shown = recall("search", "session cookies").out
    head, hit, empty, total = shown.splitlines()
    assert re.fullmatch(r"Authentication setup   Shop · chat #1 · [-0-9]{10} [:0-9]{5} UTC", head)
    assert re.fullmatch(r"    #2 assistant [-0-9]{10}  We decided to use session cookies for login\.", hit)
    assert (empty, total) == ("", "1 messages in 1 chats")


def test_the_cursor_that_a_person_sees_goes_on(shop: Path, recall: Recall) -> None:
    first = recall("search", "login", "--limit", "2").out
    shown = re.search(r"^Go on with --cursor (\S+)$", first, re.MULTILINE)
    assert shown is not None
    second = recall("search", "login", "--limit", "2", "--cursor", shown[1]).out
    assert len(re.findall(r"chat #\d", first)) == 2
    assert len(re.findall(r"chat #\d", second)) == 1


def test_what_a_page_leaves_open_is_said(shop: Path, recall: Recall) -> None:
    assert "Nothing was found." in recall("search", "zeppelin").out
    assert recall("search", "login zeppelin").out.startswith("No message has all of these words")
    assert "only the title matches" in recall("search", "authentication").out
    with open_store(shop) as store:
        store.service.add_message(1, "user", "one more")
    assert "The index is behind by 1 messages" in recall("search", "login").out


def test_what_was_found_is_shown_literally_on_one_line(shop: Path, recall: Recall) -> None:
    with open_store(shop) as store:
        store.service.rename_chat(2, "\x1b[31m[red]title\u202e")
        store.service.add_message(
            2, "user", "zeppelin [bold]\n\x1b]8;;https://example.org\x07link\x1b]8;;\x07 \u202eend"
        )
        store.index()
    shown = recall("search", "zeppelin").out
    assert "[red]title" in shown
    assert "zeppelin [bold]" in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert len(shown.splitlines()) == 4


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["login", "--since", "never"], 1, "A date is written"),
        (["login", "--cursor", "made up"], 1, "search again"),
        (["login", "--limit", "0"], 1, "1 to 100"),
        (["login", "--app", "nowhere"], 1, "no such app"),
        (["   "], 1, ""),
        (["login", "--role", "pirate"], 2, "user"),
        (["login", "--sort", "oldest"], 2, "newest"),
    ],
)
def test_what_can_not_be_searched_is_one_line(
    shop: Path, recall: Recall, arguments: list[str], code: int, said: str
) -> None:
    ran = recall("search", *arguments)
    assert ran.code == code
    assert said in ran.failure
