"""``recall tool``: one call, and batches."""

import json
from pathlib import Path
from typing import Any

import pytest

from recall_app.service import RecallService, open_store
from tests.integration.command_line import Recall, start


def ledger(shop: Path) -> list[tuple[str, str, str, str]]:
    """Tool, provider, decision and outcome of each row, the oldest first."""
    with open_store(shop) as store:
        rows = [row.entry for row in store.service.consultations()]
    return [(row.tool, row.provider, row.decision, row.outcome) for row in reversed(rows)]


def batch(*requests: object) -> bytes:
    return b"".join(json.dumps(request).encode() + b"\n" for request in requests)


def test_search_prints_what_the_agent_would_get(shop: Path, recall: Recall) -> None:
    result = recall("tool", "search_chats", "--app", "Shop", '{"query": "login"}').json
    assert result["query"] == "login"
    assert result["index_status"] == "ready"
    assert [(chat["chat_id"], chat["title"]) for chat in result["results"]] == [(1, "Authentication setup")]
    assert result["archival_content"] is True


def test_the_chat_that_it_is_called_from_is_left_out(shop: Path, recall: Recall) -> None:
    result = recall("tool", "search_chats", "--app", "Shop", "--chat", "1", '{"query": "login"}').json
    assert result["results"] == []


def test_read_prints_the_messages(shop: Path, recall: Recall) -> None:
    result = recall("tool", "read_chat", "--app", "1", '{"chat_id": 1}').json
    assert [message["text"] for message in result["messages"]] == [
        "What should we use for login?",
        "We decided to use session cookies for login.",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["read_chat", "--app", "Shop", '{"chat_id": 3}'], "No such chat or message in this app."),
        (["read_chat", "--app", "Shop", '{"chat_id": 4}'], "No such chat or message in this app."),
        (["read_chat", "--app", "Shop", '{"chat_id": 99}'], "No such chat or message in this app."),
        (["read_chat", "--app", "Shop", "--chat", "4", '{"chat_id": 1}'], "No such chat or message in this app."),
        (["read_chat", "--app", "Shop", '{"chat_id": 1, "offset": 1, "around_message_id": 1}'], "drop offset"),
        (["search_chats", "--app", "Shop", "{"], "JSON object"),
        (["search_chats", "--app", "Shop"], "query"),
        (["search_chats", "--app", "Shop", '{"query": "x", "app_id": 2}'], "app_id"),
        (["rm_rf", "--app", "Shop", "{}"], "search_chats, read_chat"),
    ],
)
def test_what_can_not_be_done_is_one_line(shop: Path, recall: Recall, arguments: list[str], said: str) -> None:
    ran = recall("tool", *arguments)
    assert ran.code == 1
    assert said in ran.failure


def test_every_call_is_in_the_ledger_as_the_persons_own(shop: Path, recall: Recall) -> None:
    recall("tool", "search_chats", "--app", "Shop", '{"query": "cookies"}')
    recall("tool", "search_chats", "--app", "Shop", '{"query": "zeppelin"}')
    recall("tool", "read_chat", "--app", "Shop", '{"chat_id": 3}')
    recall("tool", "search_chats", "--app", "Shop", "{}")
    assert ledger(shop) == [
        ("search_chats", "cli", "person", "done"),
        ("search_chats", "cli", "person", "nothing found"),
        ("read_chat", "cli", "person", "failed"),
        ("search_chats", "cli", "person", "failed"),
    ]


def test_the_ledger_counts_the_bytes_that_were_printed(shop: Path, recall: Recall) -> None:
    printed = recall("tool", "read_chat", "--app", "Shop", '{"chat_id": 2}').out
    assert "登录问题 ☃" in printed
    rows = recall("consulted", "--json").json
    assert rows[0]["bytes"] == len(printed.rstrip("\n").encode())
    assert rows[0]["messages"] == [{"chat_id": 2, "message_id": 3, "excerpt": "登录问题 ☃"}]


def test_a_batch_is_answered_line_by_line_in_order(shop: Path, recall: Recall) -> None:
    lines = batch(
        {"tool": "search_chats", "app": "Shop", "args": {"query": "login"}},
        {"tool": "search_chats", "app": 2, "args": {"query": "login"}},
        {"tool": "read_chat", "app": 1, "chat": 1, "args": {"chat_id": 1, "limit": 1}},
        {"tool": "search_chats", "app": "shop", "chat": 1, "args": {"query": "login"}},
    )
    answers = recall("tool", "--batch", "-", stdin=lines).lines
    assert [answer["ok"] for answer in answers] == [True] * 4
    assert all(answer["elapsed_ms"] > 0 for answer in answers)
    found = [[chat["chat_id"] for chat in answer["result"].get("results", [])] for answer in answers]
    assert found == [[1], [4], [], []]
    assert answers[2]["result"]["chat"]["total_messages"] == 2
    assert len(ledger(shop)) == 4


def test_a_bad_line_is_an_error_and_the_rest_goes_on(shop: Path, recall: Recall) -> None:
    bad = [
        b"not json\n",
        b"[]\n",
        b'{"tool": "search_chats"}\n',
        b'{"tool": "search_chats", "app": "Shop", "extra": 1, "args": {"query": "login"}}\n',
        b'{"tool": "search_chats", "app": true, "args": {"query": "login"}}\n',
        b'{"tool": "search_chats", "app": "nowhere", "args": {"query": "login"}}\n',
        b'{"tool": "no_such_tool", "app": "Shop", "args": {}}\n',
        b'{"tool": "search_chats", "app": "Shop", "args": {"query": ""}}\n',
        b'{"tool": "search_chats", "app": "Shop", "args": {"query": "\\ud800"}}\n',
        b"\xff\xfe\n",
        b"[" * 5000 + b"\n",
    ]
    good = batch({"tool": "search_chats", "app": "Shop", "args": {"query": "login"}})
    answers = recall("tool", "--batch", "-", stdin=b"\n".join([*bad, good])).lines
    assert [answer["ok"] for answer in answers] == [False] * len(bad) + [True]
    assert {answer["error"]["kind"] for answer in answers[:-1]} == {"InvalidInput", "NotFound"}
    assert all(set(answer["error"]) == {"kind", "message"} for answer in answers[:-1])


def test_a_last_line_without_its_end_counts(shop: Path, recall: Recall) -> None:
    line = batch({"tool": "search_chats", "app": "Shop", "args": {"query": "login"}})
    assert len(recall("tool", "--batch", "-", stdin=line.rstrip(b"\n")).lines) == 1


def test_the_command_fills_what_the_lines_leave_open(shop: Path, recall: Recall, tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    file.write_bytes(
        batch(
            {"tool": "search_chats", "args": {"query": "login"}},
            {"tool": "search_chats", "app": "2024", "args": {"query": "login"}},
        )
    )
    answers = recall("tool", "--batch", str(file), "--app", "Shop").lines
    assert [answer["result"]["results"][0]["chat_id"] for answer in answers] == [1, 4]


def test_a_batch_file_that_is_not_there_is_one_line(shop: Path, recall: Recall, tmp_path: Path) -> None:
    ran = recall("tool", "--batch", str(tmp_path / "missing"))
    assert ran.code == 1
    assert "missing" in ran.failure


def test_a_bug_of_ours_fails_its_line_only(shop: Path, recall: Recall, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("a secret title")

    monkeypatch.setattr(RecallService, "read_chat", broken)
    lines = batch(
        {"tool": "read_chat", "app": 1, "args": {"chat_id": 1}},
        {"tool": "search_chats", "app": 1, "args": {"query": "login"}},
    )
    first, second = recall("tool", "--batch", "-", stdin=lines).lines
    assert first["error"]["kind"] == "Internal"
    assert "ZeroDivisionError" in first["error"]["message"]
    assert "secret" not in json.dumps(first)
    assert second["ok"]
    assert ledger(shop)[0] == ("read_chat", "cli", "person", "failed")


def test_each_line_is_answered_before_the_next_is_there(shop: Path) -> None:
    with start("tool", "--batch", "-") as program:
        assert program.stdin is not None
        assert program.stdout is not None
        answers: list[Any] = []
        for query in ("login", "cookies"):
            program.stdin.write(batch({"tool": "search_chats", "app": "Shop", "args": {"query": query}}))
            program.stdin.flush()
            answers.append(json.loads(program.stdout.readline()))
        program.stdin.close()
        assert [answer["result"]["query"] for answer in answers] == ["login", "cookies"]
        assert program.wait() == 0


@pytest.mark.parametrize("chat", [10**30, 999, 4])
def test_a_chat_that_is_not_of_the_app_is_not_found_whatever_it_is(shop: Path, recall: Recall, chat: int) -> None:
    ran = recall("tool", "search_chats", "--app", "Shop", "--chat", str(chat), '{"query": "login"}')
    assert (ran.code, ran.err) == (1, "recall: No such chat or message in this app.\n")
    line = {"tool": "search_chats", "app": "Shop", "chat": chat, "args": {"query": "login"}}
    answer = json.loads(recall("tool", "--batch", "-", stdin=batch(line)).out)
    assert answer["error"] == {"kind": "NotFound", "message": "No such chat or message in this app."}


@pytest.mark.parametrize(
    "arguments", ['{"query": "login", "limit": true}', '{"query": "login", "limit": "5"}', '{"query": 5}']
)
def test_numbers_are_numbers_and_text_is_text(shop: Path, recall: Recall, arguments: str) -> None:
    ran = recall("tool", "search_chats", "--app", "Shop", arguments)
    assert (ran.code, ran.err.count("\n")) == (1, 1)


def test_a_batch_gives_the_very_text_that_is_counted(shop: Path, recall: Recall) -> None:
    line = {"tool": "search_chats", "app": "Shop", "args": {"query": "login"}}
    out = recall("tool", "--batch", "-", stdin=batch(line)).out
    result = json.loads(out)["result"]
    with open_store(shop) as store:
        (row,) = store.service.consultations()
    assert len(json.dumps(result, ensure_ascii=False).encode()) == row.entry.bytes
    assert json.dumps(result, ensure_ascii=False) in out
