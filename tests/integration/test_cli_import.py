"""``recall import``, ``sources`` and ``demo``: histories of other programs, and the sample workspace."""

import sqlite3
from pathlib import Path

import pytest

from tests.integration.command_line import Recall, start


@pytest.fixture
def dyad(tmp_path: Path) -> Path:
    """A Dyad database with one app, one chat and two messages."""
    file = tmp_path / "sqlite.db"
    with sqlite3.connect(file) as database:
        database.executescript(
            """
            CREATE TABLE apps (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, path TEXT NOT NULL,
                created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
            CREATE TABLE chats (id INTEGER PRIMARY KEY AUTOINCREMENT, app_id INTEGER NOT NULL, title TEXT,
                created_at INTEGER NOT NULL);
            CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, chat_id INTEGER NOT NULL, role TEXT NOT NULL,
                content TEXT NOT NULL, created_at INTEGER NOT NULL);
            INSERT INTO apps VALUES (7, 'Bakery', 'bakery', 1750000000, 1750000000);
            INSERT INTO chats VALUES (3, 7, 'Ovens', 1750000000);
            INSERT INTO messages VALUES (1, 3, 'user', 'Which oven did we choose?', 1750000001);
            INSERT INTO messages VALUES (2, 3, 'assistant', 'We chose the stone oven.', 1750000002);
            """
        )
    database.close()
    return file


def test_an_import_is_searchable_at_once(dyad: Path, recall: Recall) -> None:
    report = recall("import", "dyad", str(dyad), "--json").json
    assert (report["chats"]["new"], report["messages"]["new"], report["indexed_now"]) == (1, 2, 2)
    assert (report["index_status"], report["pending_messages"], report["was_cancelled"]) == ("ready", 0, False)
    assert recall("search", "stone", "--app", "Bakery", "--json").json["total_messages"] == 1
    assert recall("tool", "search_chats", "--app", "Bakery", '{"query": "oven"}').json["results"]


def test_a_second_import_takes_only_what_is_new(dyad: Path, recall: Recall) -> None:
    recall("import", "dyad", str(dyad))
    with sqlite3.connect(dyad) as database:
        database.execute("INSERT INTO messages VALUES (3, 3, 'user', 'And the mixer?', 1750000003)")
    database.close()
    report = recall("import", "dyad", str(dyad), "--json").json
    assert (report["messages"]["new"], report["messages"]["unchanged"], report["indexed_now"]) == (1, 2, 1)


def test_the_counts_for_people(dyad: Path, recall: Recall) -> None:
    ran = recall("import", "dyad", str(dyad))
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["new", "changed", "unchanged", "skipped", "failed"] in lines
    assert ["messages", "2", "0", "0", "0", "0"] in lines
    assert lines[-1] == ["2", "messages", "indexed."]


def test_all_of_it_into_one_app(dyad: Path, recall: Recall) -> None:
    recall("import", "dyad", str(dyad), "--app", "Kitchen")
    assert [row["name"] for row in recall("apps", "--json").json] == ["Kitchen"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["dyad", "missing.db"], 1),
        (["dyad", __file__], 1),
        (["dyad", str(Path(__file__).parent)], 1),
        (["nonsense", __file__], 1),
        (["dyad"], 2),
    ],
)
def test_what_can_not_be_imported_is_one_line(recall: Recall, arguments: list[str], code: int) -> None:
    ran = recall("import", *arguments)
    assert ran.code == code
    assert ran.failure
    assert recall("apps", "--json").json == []


def test_a_database_of_another_program_is_one_line(recall: Recall, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "theirs.db") as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    assert recall("import", "dyad", str(tmp_path / "theirs.db")).failure


def test_sources(recall: Recall) -> None:
    kinds = {source["kind"]: source for source in recall("sources", "--json").json}
    assert kinds["dyad"]["found"] == []
    assert len(kinds["sample"]["found"]) == 1
    assert "dyad" in recall("sources").out


def test_the_demo_answers_with_its_sources_and_leaves_nothing(recall: Recall, tmp_path: Path) -> None:
    told = recall("demo", "--data-dir", str(tmp_path), "--json").json
    assert told["consulted"]
    assert told["answer"]
    assert {call["consultation_id"] for call in told["calls"]} == {row["id"] for row in told["ledger"]}
    assert list(tmp_path.iterdir()) == []
    assert recall("apps", "--json").json == []


def test_the_demo_as_a_program(tmp_path: Path) -> None:
    with start("demo", TMPDIR=str(tmp_path)) as program:
        out, err = program.communicate()
    assert (program.returncode, err) == (0, b"")
    assert b"Why did we drop refresh tokens?" in out
    assert b"Authentication setup" in out
    assert b"search_chats" in out
    assert list(tmp_path.iterdir()) == []


def test_a_hostile_sample_reaches_no_terminal_as_a_command(recall: Recall) -> None:
    sample = recall("sources", "--json").json[-1]["found"][0]
    recall("import", "sample", sample)
    shown = [recall("apps").out]
    for app in recall("apps", "--json").json:
        shown.append(recall("chats", "--app", str(app["id"])).out)
        shown.append(recall("search", "ignore previous instructions", "--app", str(app["id"])).out)
    assert not {character for text in shown for character in text if character < " " and character != "\n"}
