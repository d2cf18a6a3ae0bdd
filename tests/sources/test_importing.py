"""Importing through its one door: incremental, idempotent, stopped or killed at any time, the person's choices kept."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_app.domain.consulting import SearchChatsInput, Viewer
from recall_app.domain.errors import ErrorKind, InvalidInputError, RecallError
from recall_app.domain.records import Chat, SkippedRecord, SourceApp, SourceChat, SourceMessage
from recall_app.service import LocalStore, open_store
from recall_app.sources.dyad import DyadReader
from recall_app.sources.importing import (
    BATCH_MESSAGES,
    LISTED_SKIPS,
    Counts,
    ImportProgress,
    ImportReport,
    import_source,
)
from recall_app.sources.reader import SourceNote, StreamItem
from recall_app.store.writer import WriteCommand
from tests.scale import scaled
from tests.sources.dyad_builder import START, dyad, fill, live, reopened, snapshot

SHOP = SourceApp("shop", "shop", created_at=START * 1000)


class ListReader:
    """A history that is a list; an exception in it is raised in its place."""

    def __init__(self, *items: StreamItem | Exception, kind: str = "list", counts_ids: bool = False) -> None:
        self.kind = kind
        self.label = "List"
        self.counts_ids = counts_ids
        self._items = items

    def detect(self, path: Path) -> bool:
        return path.exists()

    def discover(self) -> Sequence[Path]:
        return ()

    def read(self, path: Path) -> Iterator[StreamItem]:
        for item in self._items:
            if isinstance(item, Exception):
                raise item
            yield item


class CountingWriter:
    """Notes how many rows each transaction changed."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self.changes: list[int] = []

    def run(self, command: WriteCommand[Any]) -> Any:
        before = self._store.writer.connection.total_changes()
        result = self._store.writer.run(command)
        self.changes.append(self._store.writer.connection.total_changes() - before)
        return result

    def checkpoint(self) -> None:
        self._store.writer.checkpoint()

    def rewrite(self) -> None:
        self._store.writer.rewrite()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Dyad's folder: one app, three chats of eight messages."""
    path = tmp_path / "dyad" / "sqlite.db"
    with dyad(path) as database:
        fill(database)
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with open_store(tmp_path / "recall" / "recall.db") as opened:
        yield opened


def bring(store: LocalStore, path: Path, **options: Any) -> ImportReport:
    return import_source(DyadReader(), path, store.writer, **options)


def bring_list(store: LocalStore, *items: StreamItem, **options: Any) -> ImportReport:
    return import_source(ListReader(*items, **options), Path("list"), store.writer)


def rows(store: LocalStore, sql: str) -> list[tuple[Any, ...]]:
    return list(store.writer.connection.execute(sql))


def said(store: LocalStore, chat_id: int) -> list[str]:
    return [message.content for message in store.service.messages(chat_id)]


def chat_of(store: LocalStore, source_key: str) -> Chat:
    ((chat_id,),) = rows(store, f"SELECT id FROM chats WHERE source_key = '{source_key}'")
    return store.service.chat(chat_id)


def pending(store: LocalStore) -> int:
    return store.service.coverage().pending


def test_a_history_comes_in_and_is_found(store: LocalStore, source: Path) -> None:
    report = bring(store, source)
    assert report.chats == Counts(new=3)
    assert report.messages == Counts(new=24)
    assert not report.was_cancelled
    (app,) = store.service.apps()
    assert (app.name, app.path, app.created_at, app.chat_count, app.message_count) == (
        "shop",
        "shop",
        START * 1000,
        3,
        24,
    )
    first = store.service.messages(1)[0]
    assert (first.content, first.role, first.created_at, first.source_key) == (
        "chat 0 message 0",
        "user",
        START * 1000,
        "1",
    )
    assert store.index() == 24
    found = store.service.search_chats(Viewer(app.id, None), SearchChatsInput(query="chat message"))
    assert {result.chat_id for result in found.results} == {1, 2, 3}


def test_a_second_run_changes_nothing(store: LocalStore, source: Path) -> None:
    bring(store, source)
    store.index()
    before = store.writer.connection.total_changes()
    report = bring(store, source)
    assert store.writer.connection.total_changes() == before
    assert report.chats == Counts(unchanged=3)
    assert report.messages == Counts(unchanged=24)
    assert pending(store) == 0


def test_what_changed_at_the_source_is_found_next_time(store: LocalStore, source: Path) -> None:
    bring(store, source)
    store.index()
    with reopened(source) as database:
        database.message(1, "a tail", created_at=START + 500)
        database.execute("UPDATE messages SET content = 'streamed to its end' WHERE id = 16")
        database.execute("UPDATE chats SET title = 'Renamed' WHERE id = 3")
        database.message(database.chat(1, "Another"), "hello")
    report = bring(store, source)
    assert report.chats == Counts(new=1, changed=3)
    assert report.messages == Counts(new=2, changed=1, unchanged=23)
    assert said(store, 1)[-1] == "a tail"
    assert said(store, 2)[-1] == "streamed to its end"
    assert store.service.chat(3).title == "Renamed"
    assert store.index() == 2 + 1 + 8
    found = store.service.search_chats(Viewer(1, None), SearchChatsInput(query="streamed"))
    assert [match.message_id for result in found.results for match in result.matches] == [16]


def test_what_is_gone_at_the_source_stays(store: LocalStore, source: Path) -> None:
    bring(store, source)
    with reopened(source) as database:
        database.execute("DELETE FROM messages WHERE chat_id = 1")
        database.execute("DELETE FROM messages WHERE chat_id = 2 AND id % 2")
        database.execute("DELETE FROM chats WHERE id = 3")
    report = bring(store, source)
    assert report.messages == Counts(unchanged=4, skipped=1)
    assert [len(said(store, chat_id)) for chat_id in (1, 2, 3)] == [8, 8, 8]


@pytest.mark.parametrize("is_purged", [False, True])
def test_a_chat_deleted_here_stays_deleted(store: LocalStore, source: Path, is_purged: bool) -> None:
    bring(store, source)
    store.service.delete_chat(2)
    if is_purged:
        store.service.purge_deleted(at_exit=True)
    with reopened(source) as database:
        database.message(2, "a tail")
        database.execute("UPDATE chats SET title = 'back?' WHERE id = 2")
    report = bring(store, source)
    assert report.chats == Counts(unchanged=2, skipped=1)
    assert report.messages == Counts(unchanged=16, skipped=9)
    assert report.notes[-1] == "Chats that were deleted here stay deleted: 1."
    assert [chat.id for chat in store.service.chats(1)] == [3, 1]


def test_a_chat_moved_in_dyad_moves_unless_it_was_placed_by_hand(store: LocalStore, source: Path) -> None:
    bring(store, source)
    store.index()
    mine = store.service.create_app("mine")
    store.service.move_chat(1, mine.id)
    with reopened(source) as database:
        other = database.app("blog", created_at=START + 9)
        database.execute("UPDATE chats SET app_id = ? WHERE id IN (1, 2)", (other,))
    report = bring(store, source)
    assert report.chats == Counts(changed=1, unchanged=2)
    names = {app.id: app.name for app in store.service.apps()}
    assert {chat_id: names[store.service.chat(chat_id).app_id] for chat_id in (1, 2, 3)} == {
        1: "mine",
        2: "blog",
        3: "shop",
    }


def test_a_title_given_here_stays(store: LocalStore, source: Path) -> None:
    bring(store, source)
    store.service.rename_chat(1, "My title")
    bring(store, source)
    assert store.service.chat(1).title == "My title"
    with reopened(source) as database:
        database.execute("UPDATE chats SET title = 'Theirs'")
    assert bring(store, source).chats == Counts(changed=2, unchanged=1)
    assert [store.service.chat(chat_id).title for chat_id in (1, 2, 3)] == ["My title", "Theirs", "Theirs"]


def second_computer(path: Path) -> Path:
    """Another Dyad's database, with the same ids for other things."""
    with dyad(path) as database:
        app = database.app("garden", created_at=START + 5)
        database.message(database.chat(app, "Roses", created_at=START + 6), "when to cut them")
    return path


def test_two_computers_with_the_same_ids_are_kept_apart(store: LocalStore, source: Path, tmp_path: Path) -> None:
    other = second_computer(tmp_path / "laptop" / "sqlite.db")
    bring(store, source)
    assert bring(store, other).chats == Counts(new=1)
    assert said(store, 1)[0] == "chat 0 message 0"
    roses = chat_of(store, f"1@{(START + 6) * 1000}")
    assert (roses.title, said(store, roses.id)) == ("Roses", ["when to cut them"])
    assert {app.name: app.chat_count for app in store.service.apps()} == {"shop": 3, "garden": 1}
    before = store.writer.connection.total_changes()
    bring(store, source)
    bring(store, other)
    assert store.writer.connection.total_changes() == before


def test_deleting_a_chat_of_one_computer_does_not_block_the_others(
    store: LocalStore, source: Path, tmp_path: Path
) -> None:
    bring(store, source)
    store.service.delete_chat(1)
    store.service.purge_deleted(at_exit=True)
    other = second_computer(tmp_path / "laptop" / "sqlite.db")
    assert bring(store, other).chats == Counts(new=1)
    assert bring(store, source).chats == Counts(unchanged=2, skipped=1)


@pytest.mark.parametrize("is_missing", [True, False])
def test_an_app_that_is_missing_or_undated_is_not_another_computers(
    store: LocalStore, source: Path, tmp_path: Path, is_missing: bool
) -> None:
    bring(store, source)
    other = tmp_path / "laptop" / "sqlite.db"
    with dyad(other) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        app = 1 if is_missing else database.app("undated", created_at=None)
        database.message(database.chat(app, "Stray", created_at=START + 6), "whose am I?")
    bring(store, other)
    name = "Dyad app 1" if is_missing else "undated"
    assert {app.name: app.chat_count for app in store.service.apps()} == {"shop": 3, name: 1}
    before = store.writer.connection.total_changes()
    bring(store, other)
    assert store.writer.connection.total_changes() == before


def test_all_can_be_put_into_one_app_and_stays_there(store: LocalStore, source: Path) -> None:
    with reopened(source) as database:
        database.message(database.chat(database.app("blog", created_at=START + 9)), "hello")
    bring(store, source, app_name="Everything")
    assert {app.name: app.chat_count for app in store.service.apps()} == {"Everything": 4}
    before = store.writer.connection.total_changes()
    bring(store, source, app_name="everything")
    bring(store, source)
    assert store.writer.connection.total_changes() == before
    existing = store.service.create_app("Other")
    assert bring(store, source, app_name="Other").chats == Counts(changed=4)
    assert store.service.app("Other").id == existing.id
    assert store.service.app("Other").chat_count == 4
    with pytest.raises(InvalidInputError):
        bring(store, source, app_name=" ")


def test_sources_of_one_folder_share_the_app(store: LocalStore, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    for kind, path in (("one", str(folder)), ("two", f"{folder}/./"), ("three", "shop"), ("four", "shop")):
        bring_list(store, SourceChat("c", SourceApp(f"key of {kind}", kind, path), "t", 5), kind=kind)
    assert {app.name: app.chat_count for app in store.service.apps()} == {"one": 2, "three": 1, "four": 1}


def test_apps_without_chats_parents_and_private_chats_come_in(store: LocalStore) -> None:
    child = SourceChat("child", SHOP, "Child", 5, parent_source_key="parent", is_private=True, is_favorite=True)
    orphan = SourceChat("orphan", SHOP, "Orphan", 6, parent_source_key="nowhere")
    parent = SourceChat("parent", SHOP, "Parent", 4, mode="ask", model="m")
    items = (SourceApp("empty", "empty"), child, orphan, parent)
    bring_list(store, *items)
    assert {app.name for app in store.service.apps()} == {"empty", "shop"}
    assert chat_of(store, "child").parent_chat_id == chat_of(store, "parent").id
    assert (chat_of(store, "child").is_private, chat_of(store, "child").is_favorite) == (True, True)
    assert chat_of(store, "orphan").parent_chat_id is None
    assert (chat_of(store, "parent").mode, chat_of(store, "parent").model) == ("ask", "m")
    before = store.writer.connection.total_changes()
    bring_list(store, *items)
    assert store.writer.connection.total_changes() == before


def test_lone_surrogates_and_impossible_times_become_storable(store: LocalStore) -> None:
    chat = SourceChat("\ud800c", SourceApp("a\udfff", "n\ud800"), "t\ud800", -1)
    bring_list(store, chat, SourceMessage("\ud800", "user", "x\ud800\0y", 2**70), SourceMessage("m", "user", "z", 7))
    bring_list(store, chat, SourceMessage("\ud800", "user", "x\ud800\0y", 2**70))
    (app,) = store.service.apps()
    (stored,) = store.service.chats(app.id)
    assert (app.name, stored.title, stored.source_key) == ("n\ufffd", "t\ufffd", "\ufffdc")
    assert said(store, stored.id) == ["x\ufffd\0y", "z"]


def test_missing_times_are_the_neighbours_or_the_chats(store: LocalStore) -> None:
    bring_list(
        store,
        SourceChat("a", SHOP, None, 50),
        SourceMessage("1", "user", "x", None),
        SourceMessage("2", "user", "y", 70),
        SourceMessage("3", "user", "z", None),
        SourceChat("b", SHOP, None, None),
        SourceMessage("1", "user", "x", 90),
    )
    assert [message.created_at for message in store.service.messages(1)] == [50, 70, 70]
    assert store.service.chat(2).created_at == 90


def test_the_sources_order_holds_however_the_tail_comes(store: LocalStore) -> None:
    number = 0

    @settings(max_examples=40)
    @given(st.lists(st.integers(0, 5) | st.none(), max_size=12), st.integers(0, 12))
    def check(times: list[int | None], cut: int) -> None:
        nonlocal number
        number += 1
        chat = SourceChat(f"chat {number}", SHOP, "t", 3)
        messages = [SourceMessage(str(at), "user", str(at), moment) for at, moment in enumerate(times)]
        bring_list(store, chat, *messages[:cut])
        bring_list(store, chat, *messages)
        stored = store.service.messages(chat_of(store, chat.source_key).id)
        assert [message.content for message in stored] == [message.content for message in messages]
        moments = [message.created_at for message in stored]
        assert moments == sorted(moments)
        for given_time, message in zip(times, stored, strict=True):
            assert given_time is None or message.created_at >= given_time

    check()


def test_a_message_that_comes_late_stands_where_its_time_is(store: LocalStore) -> None:
    chat = SourceChat("a", SHOP, "t", 50)
    messages = [SourceMessage(str(number), "user", str(number), 100 + number) for number in range(4)]
    bring_list(store, chat, *messages[1:])
    bring_list(store, chat, *messages)
    stored = store.service.messages(chat_of(store, "a").id)
    assert [(message.content, message.created_at) for message in stored] == [
        ("0", 100),
        ("1", 101),
        ("2", 102),
        ("3", 103),
    ]


def test_a_compaction_that_comes_later_stands_before_its_prompt(store: LocalStore, source: Path) -> None:
    bring(store, source)
    with reopened(source) as database:
        summary = {"role": "assistant", "is_compaction_summary": 1}
        database.message(1, "question", created_at=START + 200)
        database.message(1, "summary", created_at=START + 199, **summary)
        database.message(1, "answer", role="assistant", created_at=START + 203)
    bring(store, source)
    with reopened(source) as database:
        database.message(1, "older summary", created_at=START + 199, **summary)
        database.message(1, "thanks", created_at=START + 230)
    bring(store, source)
    assert said(store, 1)[8:] == ["summary", "older summary", "question", "answer", "thanks"]
    assert [message.is_compaction_summary for message in store.service.messages(1)[8:]] == [True, True] + [False] * 3


def test_skipped_records_are_counted_and_the_first_are_listed(store: LocalStore) -> None:
    skipped = [SkippedRecord(f"line {number}", "broken") for number in range(LISTED_SKIPS + 5)]
    report = bring_list(store, SourceChat("c", SHOP, "t", 1), *skipped, SourceNote("Look here."))
    assert report.messages == Counts(skipped=LISTED_SKIPS + 5)
    assert report.skipped_records == tuple(skipped[:LISTED_SKIPS])
    assert report.notes == ("Look here.",)


def test_transactions_stay_small(store: LocalStore) -> None:
    writer = CountingWriter(store)
    chat = SourceChat("c", SHOP, "t", 1)
    long = [SourceMessage(f"long {number}", "user", "x" * 1_500_000, number) for number in range(9)]
    short = [SourceMessage(str(number), "user", "x", number) for number in range(1200)]
    import_source(ListReader(chat, *long, *short), Path("list"), writer)
    assert len(store.service.messages(1)) == 1209
    # Every message is two rows with its mark for the index; app, its source and chat are three more.
    assert max(writer.changes) <= 2 * BATCH_MESSAGES + 3
    assert writer.changes[0] <= 2 * 3 + 3


def test_a_reader_that_fails_midway_keeps_what_it_yielded(store: LocalStore) -> None:
    failure = RecallError(ErrorKind.SOURCE, "The disk was pulled out.")
    reader = ListReader(SourceChat("c", SHOP, "t", 1), SourceMessage("1", "user", "kept", 1), failure)
    with pytest.raises(RecallError, match="pulled out"):
        import_source(reader, Path("list"), store.writer)
    assert said(store, 1) == ["kept"]


def test_what_cannot_be_read_makes_no_app(store: LocalStore, tmp_path: Path) -> None:
    with pytest.raises(RecallError, match="does not exist"):
        bring(store, tmp_path / "none.db", app_name="new")
    assert store.service.apps() == []


def test_progress_ends_with_the_whole(store: LocalStore, source: Path) -> None:
    seen: list[ImportProgress] = []
    bring(store, source, progress=seen.append)
    assert (seen[-1].done, seen[-1].total) == (24, 24)
    assert seen[-1].rate > 0


def test_cancelling_keeps_what_is_committed_and_the_next_run_goes_on(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "long" / "sqlite.db"
    with dyad(path) as database:
        fill(database, chats=4, messages=400)
    report = bring(store, path, cancelled=lambda: True)
    assert report.was_cancelled
    assert 0 < report.messages.new < 1600
    assert rows(store, "SELECT count(*) FROM messages") == [(report.messages.new,)]
    again = bring(store, path)
    assert again.messages == Counts(new=1600 - report.messages.new, unchanged=report.messages.new)
    assert not again.was_cancelled


def test_a_live_database_is_imported_and_nothing_is_left_beside_it(store: LocalStore, source: Path) -> None:
    with live(source) as writer:
        writer.execute("UPDATE messages SET content = 'only in the log' WHERE id = 1")
        before = snapshot(source.parent)
        bring(store, source)
        after = snapshot(source.parent)
        assert set(after) == set(before)
        assert after["sqlite.db"] == before["sqlite.db"]
        assert said(store, 1)[0] == "only in the log"
        writer.execute("UPDATE messages SET content = 'next' WHERE id = 1")
        assert bring(store, source).messages == Counts(changed=1, unchanged=23)


IMPORT_SLOWLY = """
import sys, time
from pathlib import Path
from recall_app.service import open_store
from recall_app.sources.dyad import DyadReader
from recall_app.sources.importing import import_source

class TellingWriter:
    def __init__(self, writer):
        self._writer = writer
    def run(self, command):
        def slowly(connection):
            print("begun", flush=True)
            result = command(connection)
            time.sleep(0.02)
            print("written", flush=True)
            return result
        result = self._writer.run(slowly)
        print("committed", flush=True)
        return result

with open_store(Path(sys.argv[2])) as store:
    import_source(DyadReader(), Path(sys.argv[1]), TellingWriter(store.writer))
"""


def kill_import(source: Path, target: Path, steps: int) -> None:
    """Import in another process and kill it after so many of its steps: in a transaction, at its end, between two."""
    arguments = [sys.executable, "-c", IMPORT_SLOWLY, str(source), str(target)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(steps):
            assert process.stdout.readline()
        process.kill()


def test_two_imports_at_once_double_nothing(store: LocalStore, tmp_path: Path) -> None:
    source = tmp_path / "dyad" / "sqlite.db"
    with dyad(source) as database:
        fill(database, chats=4, messages=400)
    arguments = [sys.executable, "-c", IMPORT_SLOWLY, str(source), str(store.service.path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        mine = bring(store, source)
        other.stdout.read()
    assert other.returncode == 0
    assert mine.messages.new + mine.messages.unchanged == 1600
    assert rows(store, "SELECT count(*), count(DISTINCT content) FROM messages") == [(1600, 1600)]
    assert [(app.chat_count, app.message_count) for app in store.service.apps()] == [(4, 1600)]


def content_of(target: Path) -> list[list[tuple[Any, ...]]]:
    """All that an import stores, but for the time of the import."""
    with open_store(target) as store:
        return [
            rows(store, "SELECT id, name, path, created_at FROM apps ORDER BY id"),
            rows(store, "SELECT * FROM app_sources ORDER BY source_key"),
            rows(store, "SELECT * FROM chats ORDER BY id"),
            rows(store, "SELECT * FROM messages ORDER BY id"),
            rows(store, "SELECT message_id FROM chat_search_dirty_messages ORDER BY message_id"),
        ]


def test_a_killed_import_run_again_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    source = tmp_path / "dyad" / "sqlite.db"
    with dyad(source) as database:
        fill(database, chats=7, messages=400)
    with open_store(tmp_path / "whole.db") as store:
        bring(store, source)
    whole = content_of(tmp_path / "whole.db")
    assert len(whole[3]) == 2800
    cut_off = 0
    for steps in range(2, 2 + scaled(3, 20)):
        target = tmp_path / f"killed {steps}.db"
        kill_import(source, target, steps)
        kill_import(source, target, max(1, steps // 2))
        with open_store(target) as store:
            cut_off += rows(store, "SELECT count(*) FROM messages") != [(2800,)]
            bring(store, source)
        assert content_of(target) == whole
    assert cut_off > 0
