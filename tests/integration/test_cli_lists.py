"""``recall apps``, ``chats`` and ``index``, and what holds for every command: options, errors, hostile text."""

import sqlite3
import unicodedata
from pathlib import Path

import pytest

from recall_app.domain.text import BIDI_CONTROLS
from recall_app.service import RecallService, open_store
from tests.integration.command_line import Recall

HOSTILE = "\x1b[31m[bold]evil[/bold]\x1b]8;;https://example.org\x07link\x1b]8;;\x07\n\u202eright\x9b2J {x} :smile:"


def test_apps(shop: Path, recall: Recall) -> None:
    rows = recall("apps", "--json").json
    assert [(row["id"], row["name"], row["chats"], row["messages"]) for row in rows] == [
        (2, "2024", 1, 1),
        (1, "Shop", 3, 4),
    ]
    assert rows[1]["path"] == "/home/someone/shop"
    assert rows[1]["created_at"].endswith("Z")
    table = recall("apps").out.splitlines()
    assert table[0].split() == ["id", "app", "chats", "messages", "folder"]
    assert table[2].split() == ["1", "Shop", "3", "4", "/home/someone/shop"]


@pytest.mark.parametrize("app", ["1", "Shop", "shop", " SHOP "])
def test_an_app_is_given_by_id_or_name(shop: Path, recall: Recall, app: str) -> None:
    rows = recall("chats", "--app", app, "--json").json
    assert [(row["id"], row["title"], row["messages"], row["is_private"]) for row in rows] == [
        (3, "Salaries", 1, True),
        (2, None, 1, False),
        (1, "Authentication setup", 2, False),
    ]


def test_a_name_that_is_a_number_goes_before_an_id(shop: Path, recall: Recall) -> None:
    assert [row["title"] for row in recall("chats", "--app", "2024", "--json").json] == ["Elsewhere"]


def test_a_name_that_two_apps_have_is_not_guessed(shop: Path, recall: Recall) -> None:
    with open_store(shop) as store:
        store.service.create_app("Shop")
    assert "1, 3" in recall("chats", "--app", "Shop").failure


def test_an_unknown_app_fails(shop: Path, recall: Recall) -> None:
    ran = recall("chats", "--app", "nowhere")
    assert (ran.code, ran.failure) == (1, "There is no such app: “recall apps” lists them.")


def test_chats_for_people(shop: Path, recall: Recall) -> None:
    shown = recall("chats", "--app", "Shop").out
    assert "Authentication setup" in shown
    assert "untitled" in shown
    assert "private" in shown


def test_index_reports_coverage(shop: Path, recall: Recall) -> None:
    with open_store(shop) as store:
        store.service.add_message(1, "user", "one more")
    report = recall("index", "--json").json
    assert report["indexed_now"] == 1
    assert (report["index_status"], report["messages"], report["pending_messages"]) == ("ready", 6, 0)
    assert [(app["name"], app["messages"], app["failed_messages"]) for app in report["apps"]] == [
        ("2024", 1, 0),
        ("Shop", 5, 0),
    ]
    assert recall("index", "--json").json["indexed_now"] == 0
    assert "ready" in recall("index").out


def test_index_rebuild_makes_all_anew(shop: Path, recall: Recall) -> None:
    assert recall("index", "--rebuild", "--json").json["indexed_now"] == 5


def test_an_empty_store_says_what_to_do(recall: Recall) -> None:
    assert recall("apps").out == "There is no app yet: “recall import” brings one in.\n"
    assert recall("apps", "--json").json == []


def test_hostile_names_and_titles_are_shown_literally(recall: Recall, shop: Path) -> None:
    with open_store(shop) as store:
        app = store.service.create_app(HOSTILE)
        store.service.create_chat(app.id, HOSTILE)
    for ran in (recall("apps"), recall("chats", "--app", str(app.id)), recall("index")):
        assert "[bold]evil[/bold]" in ran.out
        assert ":smile:" in ran.out
        assert len([line for line in ran.out.splitlines() if "evil" in line]) == 1
        assert {c for c in ran.out if unicodedata.category(c) == "Cc"} == {"\n"}
        assert not set(BIDI_CONTROLS.replace("-", "")) & set(ran.out)


def test_json_holds_the_name_itself_and_nothing_that_steers_a_terminal(recall: Recall, shop: Path) -> None:
    with open_store(shop) as store:
        store.service.create_app(HOSTILE)
    ran = recall("apps", "--json")
    assert HOSTILE in {row["name"] for row in ran.json}
    assert {c for c in ran.out if unicodedata.category(c) == "Cc"} == {"\n"}


def test_the_data_folder_is_taken_from_either_side_of_the_command(recall: Recall, shop: Path, tmp_path: Path) -> None:
    assert recall("apps", "--data-dir", str(tmp_path / "other"), "--json").json == []
    assert recall("--data-dir", str(tmp_path / "other"), "apps", "--json").json == []
    assert (
        len(recall("--data-dir", str(tmp_path / "other"), "apps", "--data-dir", str(shop.parent), "--json").json) == 2
    )
    assert len(recall("apps", "--json").json) == 2


def test_without_a_command_the_window_would_open(recall: Recall) -> None:
    ran = recall()
    assert ran.code == 1
    assert "recall demo" in ran.failure


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "No such command 'nonsense'."),
        (["chats"], "Missing option '--app'."),
        (["apps", "--colour"], "No such option: --colour"),
        (["tool", "read_chat", "--app", "Shop", "--chat", "one", "{}"], "'--chat'"),
        (["tool"], "a tool's name and --app are needed"),
        (["tool", "search_chats", "--batch", "-"], "--batch takes tools"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(shop: Path, recall: Recall, arguments: list[str], said: str) -> None:
    ran = recall(*arguments)
    assert ran.code == 2
    assert said in ran.failure


def damaged(file: Path) -> None:
    file.write_bytes(b"not a database at all, and long enough to have a header of a hundred bytes" * 4)


def foreign(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()


def newer(file: Path) -> None:
    with sqlite3.connect(file) as ours:
        ours.execute("PRAGMA user_version = 9999")
    ours.close()


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("make", [damaged, foreign, newer, folder])
def test_a_file_that_is_not_ours_is_refused_and_left_alone(shop: Path, recall: Recall, make: object) -> None:
    assert callable(make)
    make(shop)
    before = shop.read_bytes() if shop.is_file() else None
    ran = recall("apps")
    assert ran.code == 1
    assert str(shop) in ran.failure
    assert (shop.read_bytes() if shop.is_file() else None) == before


def test_a_data_folder_that_is_a_file_is_refused(recall: Recall, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = recall("apps", "--data-dir", str(tmp_path / "file"))
    assert ran.code == 1
    assert str(tmp_path / "file") in ran.failure


def test_a_bug_of_ours_is_one_line_without_its_text(
    shop: Path, recall: Recall, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(service: RecallService) -> None:
        try:
            raise KeyError("a secret title")
        except KeyError as error:
            raise ZeroDivisionError("another secret") from error

    monkeypatch.setattr(RecallService, "apps", broken)
    ran = recall("apps")
    log = shop.parent / "logs" / "errors.log"
    assert ran.code == 1
    assert (
        ran.failure == f"Something went wrong inside Recall (ZeroDivisionError); where it happened is written in {log}."
    )
    written = log.read_text(encoding="utf-8")
    assert "builtins.ZeroDivisionError" in written
    assert "builtins.KeyError" in written
    assert f"{__file__}:" in written
    assert "secret" not in written
    recall("apps")
    assert log.read_text(encoding="utf-8").count("ZeroDivisionError") == 2
