"""Deleting a chat costs what the chat costs, however large the rest of the index is."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from recall_app.service import open_store
from tests.building import Builder
from tests.checking import assert_whole
from tests.scale import scaled

STEP = 100
MESSAGES = scaled(500, 5_000)


def steps(connection: apsw.Connection, act: Callable[[], object]) -> int:
    """How many of SQLite's virtual machine's steps ``act`` takes, in hundreds."""
    count = 0

    def progress() -> bool:
        nonlocal count
        count += 1
        return False

    connection.set_progress_handler(progress, STEP)
    try:
        act()
    finally:
        connection.set_progress_handler(None)
    return count


@pytest.mark.timeout(scaled(120, 600))
def test_deleting_a_long_chat_does_not_scan_the_index(tmp_path: Path) -> None:
    costs = []
    for others in (MESSAGES, 6 * MESSAGES):
        with open_store(tmp_path / f"{others}.db") as store:
            built = Builder(store)
            chat = built.add_chat("doomed", *[f"zebra number {number}" for number in range(MESSAGES)])
            for start in range(0, others, 500):
                built.add_chat("other", *[f"okapi number {number}" for number in range(start, start + 500)])
            store.index()
            connection = store.writer.connection
            costs.append(steps(connection, partial(connection.execute, "DELETE FROM chats WHERE id = ?", (chat.id,))))
            assert connection.execute("SELECT count(*) FROM chat_search_fts").get == others
            assert_whole(connection)
    assert costs[0] > 0
    # Scanning would make it six times as much.
    assert costs[1] < 1.5 * costs[0]


def test_the_triggers_find_documents_by_their_rowid(tmp_path: Path) -> None:
    with open_store(tmp_path / "recall.db") as store:
        connection = store.writer.connection
        sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'messages_forget'").get
        statement = next(part.strip() for part in sql.split(";") if "chat_search_fts" in part).split("BEGIN")[1].strip()
        (plan,) = connection.execute(f"EXPLAIN QUERY PLAN {statement.replace('old.id', '1')}")
        assert plan[-1].endswith("VIRTUAL TABLE INDEX 0:=")
