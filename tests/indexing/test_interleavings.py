"""Edits and batches in any order end in the documents that a fresh index would have."""

import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
from hypothesis import given
from hypothesis import strategies as st

from recall_app.indexing.indexer import ChatSearchIndexer
from recall_app.service import open_store
from recall_app.store.connection import open_writer
from tests.checking import assert_current, assert_whole, before_next_transaction, documents, projected
from tests.scale import scaled

Act = Callable[[apsw.Connection, list[ChatSearchIndexer]], object]

TEXTS = st.sampled_from(
    ["", "zebra", "The useChatStore 登录 decision", "<think>no</think>yes", '<dyad-write path="a.ts">x</dyad-write>']
)
TITLES = st.none() | st.sampled_from(["Plan", "useChatStore", "登录"])
NUMBERS = st.integers(0, 5)


def on_message(sql: str) -> Callable[[int, object], Act]:
    """A statement on the n-th message there is, if any."""

    def act(number: int, value: object) -> Act:
        def run(connection: apsw.Connection, _: list[ChatSearchIndexer]) -> None:
            ids = [id_ for (id_,) in connection.execute("SELECT id FROM messages ORDER BY id")]
            if ids:
                connection.execute(sql, {"id": ids[number % len(ids)], "value": value, "number": number})

        return run

    return act


def on_chat(sql: str) -> Callable[[int, object], Act]:
    def act(number: int, value: object) -> Act:
        def run(connection: apsw.Connection, _: list[ChatSearchIndexer]) -> None:
            ids = [id_ for (id_,) in connection.execute("SELECT id FROM chats ORDER BY id")]
            if ids:
                connection.execute(sql, {"id": ids[number % len(ids)], "value": value, "number": number})

        return run

    return act


def batch(which: int) -> Act:
    return lambda _, indexers: indexers[which].run_batch(settled=False)


def rebuild(which: int) -> Act:
    return lambda _, indexers: indexers[which].rebuild()


def start(which: int) -> Act:
    return lambda _, indexers: indexers[which].start()


ACTS = st.one_of(
    st.builds(
        on_chat("INSERT INTO messages (chat_id, role, content, created_at) VALUES (:id, 'assistant', :value, :number)"),
        NUMBERS,
        TEXTS,
    ),
    st.builds(on_message("UPDATE messages SET content = :value WHERE id = :id"), NUMBERS, TEXTS),
    st.builds(
        on_message("UPDATE messages SET role = 'user', is_compaction_summary = 1, created_at = :number WHERE id = :id"),
        NUMBERS,
        st.none(),
    ),
    st.builds(
        on_message("UPDATE messages SET chat_id = (SELECT max(id) FROM chats) WHERE id = :id"), NUMBERS, st.none()
    ),
    st.builds(on_message("DELETE FROM messages WHERE id = :id"), NUMBERS, st.none()),
    st.builds(on_chat("UPDATE chats SET title = :value WHERE id = :id"), NUMBERS, TITLES),
    st.builds(on_chat("UPDATE chats SET app_id = 1 + :number % 2 WHERE id = :id"), NUMBERS, st.none()),
    st.builds(on_chat("INSERT INTO chats (app_id, title, created_at) VALUES (1, :value, 0)"), NUMBERS, TITLES),
    st.builds(on_chat("DELETE FROM chats WHERE id = :id"), NUMBERS, st.none()),
    st.builds(batch, st.integers(0, 1)),
    st.builds(batch, st.integers(0, 1)),
    st.builds(rebuild, st.integers(0, 1)),
    st.builds(start, st.integers(0, 1)),
)

FIRST_BATCH = st.builds(batch, st.just(0))
"""Often enough, so that acts in the middle of one are, too."""


@given(acts=st.lists(st.tuples(ACTS | FIRST_BATCH, ACTS), min_size=3, max_size=scaled(20, 50)))
def test_any_order_of_edits_and_batches_ends_in_the_right_documents(acts: list[tuple[Act, Act]]) -> None:
    """Each pair is an act, and another one that happens while the first one's batch is between reading and writing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recall.db"
        with open_store(path) as store:
            connection = store.writer.connection
            for name in ("Shop", "Other"):
                app = store.service.create_app(name)
                for title in ("Plan", None):
                    chat = store.service.create_chat(app.id, title)
                    for text in ("zebra", "useChatStore"):
                        store.service.add_message(chat.id, "assistant", text)
            store.index()
            with closing(open_writer(path)) as other:
                indexers = [ChatSearchIndexer(connection), ChatSearchIndexer(other)]
                for act, meanwhile in acts:
                    with before_next_transaction(connection, partial(meanwhile, other, [indexers[1]] * 2)):
                        act(connection, indexers)
                    assert set(documents(connection)) <= set(projected(connection))
                indexers[0].drain()
            assert_current(connection)
            before = documents(connection)
            store.index(rebuild=True)
            assert documents(connection) == before
            assert_whole(connection)
