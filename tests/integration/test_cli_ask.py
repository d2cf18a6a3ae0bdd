"""``recall ask`` and ``recall consulted``: a turn of the built-in assistant, and what it leaves behind."""

import json
from pathlib import Path

import pytest

from recall_app.config import paths
from recall_app.config.permissions import Permission
from recall_app.config.settings import Settings, SettingsStore
from recall_app.service import open_store
from tests.integration.command_line import Recall, start

QUESTION = "What did we decide to use for login?"


def allow(permission: Permission) -> None:
    def change(settings: Settings) -> Settings:
        permissions = settings.permissions.with_everywhere("search_chats", permission)
        return settings.model_copy(update={"permissions": permissions})

    SettingsStore(paths.settings_path(paths.data_dir())).update(change)


def test_the_answer_quotes_and_names_its_sources(shop: Path, recall: Recall) -> None:
    ran = recall("ask", QUESTION, "--app", "Shop")
    assert (ran.code, ran.err) == (0, "")
    assert "We decided to use session cookies for login." in ran.out
    sources = ran.out.split("\n\n")[-1].splitlines()
    assert sources[0].split() == ["chat", "consulted", "messages"]
    assert sources[1].split() == ["1", "Authentication", "setup", "#1,", "#2"]


def test_the_answer_as_json(shop: Path, recall: Recall) -> None:
    told = recall("ask", QUESTION, "--app", "Shop", "--json").json
    assert {source["chat_id"] for source in told["consulted"]} == {1}
    assert told["calls"][0]["tool"] == "search_chats"
    assert all(call["decision"] == "always" for call in told["calls"])
    kept = [row["id"] for row in recall("consulted", "--json").json]
    assert sorted(kept) == [call["consultation_id"] for call in told["calls"]]


def test_question_and_answer_become_history_of_the_app(shop: Path, recall: Recall) -> None:
    told = recall("ask", QUESTION, "--app", "Shop", "--json").json
    with open_store(shop) as store:
        asked, answered = store.service.messages(told["chat_id"])
        assert store.service.coverage().pending == 0
    assert (asked.id, asked.content) == (told["user_message_id"], QUESTION)
    assert (answered.id, answered.role) == (told["message_id"], "assistant")


def test_a_turn_can_go_on_in_a_chat(shop: Path, recall: Recall) -> None:
    assert recall("ask", QUESTION, "--app", "Shop", "--chat", "2", "--json").json["chat_id"] == 2
    assert recall("ask", QUESTION, "--app", "Shop", "--chat", "4").code == 1


def test_nothing_found_is_said(shop: Path, recall: Recall) -> None:
    ran = recall("ask", "Where is the zeppelin?", "--app", "Shop")
    assert ran.code == 0
    assert ran.out.endswith("No chat was consulted.\n")


def test_ask_without_a_terminal_is_declined(shop: Path) -> None:
    allow(Permission.ASK)
    with start("ask", QUESTION, "--app", "Shop", "--json") as program:
        out, err = program.communicate()
    assert (program.returncode, err) == (0, b"")
    told = json.loads(out)
    assert told["consulted"] == []
    assert {call["decision"] for call in told["calls"]} == {"declined"}


def test_basic_mode_is_taken(shop: Path, recall: Recall) -> None:
    assert recall("ask", QUESTION, "--app", "Shop", "--mode", "basic", "--json").json["consulted"]
    assert recall("ask", QUESTION, "--app", "Shop", "--mode", "godmode").code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([QUESTION, "--app", "nowhere"], "There is no such app"),
        (["  ", "--app", "Shop"], "There is no question."),
        ([QUESTION, "--app", "Shop", "--model", "openai:gpt"], "offline"),
    ],
)
def test_what_can_not_be_asked_is_one_line(shop: Path, recall: Recall, arguments: list[str], said: str) -> None:
    ran = recall("ask", *arguments)
    assert ran.code == 1
    assert said in ran.failure
    assert recall("chats", "--app", "Shop", "--json").json[0]["id"] == 3


def test_consulted_tells_what_went_where(shop: Path, recall: Recall) -> None:
    recall("ask", QUESTION, "--app", "Shop")
    recall("tool", "search_chats", "--app", "2024", '{"query": "login"}')
    lines = recall("consulted").out.splitlines()
    assert lines[0].split()[0] == "#4"
    assert lines[0].endswith("search_chats  login")
    assert lines[1].startswith("    done: 1 results, ")
    assert lines[1].endswith("permission: person; stays on this computer")
    assert lines[2] == "    from chat #4: #5"


def test_consulted_of_one_chat_or_app(shop: Path, recall: Recall) -> None:
    chat = recall("ask", QUESTION, "--app", "Shop", "--json").json["chat_id"]
    recall("tool", "search_chats", "--app", "2024", '{"query": "login"}')
    assert {row["chat_id"] for row in recall("consulted", "--chat", str(chat), "--json").json} == {chat}
    assert [row["app_id"] for row in recall("consulted", "--app", "2024", "--json").json] == [2]
    assert recall("consulted", "--chat", "1").out == "Nothing has been consulted yet.\n"


def test_what_was_asked_is_shown_on_one_safe_line(shop: Path, recall: Recall) -> None:
    recall("tool", "search_chats", "--app", "Shop", '{"query": "a\\u001b[31m\\n[bold]b"}')
    first = recall("consulted").out.splitlines()[0]
    assert first.endswith("[bold]b")
    assert "\x1b" not in first
