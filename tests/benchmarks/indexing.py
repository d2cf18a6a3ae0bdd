"""A new title for a chat of 10,000 messages: when is it found, when is all done, how long is the writer held."""

import time

from recall_app.service import LocalStore
from tests.benchmarks.history import FIRST_APP, Shape
from tests.benchmarks.search_latency import search
from tests.benchmarks.stores import empty_store, fill, history
from tests.benchmarks.tables import Times, ms, print_table
from tests.benchmarks.writer_time import transactions_of

CHAT_MESSAGES = 10_000
_TITLE_WORD = "wobblethwaite"


def run(messages: int) -> None:
    """``messages`` is how many stand in the store beside the chat's."""
    with empty_store() as store:
        fill(store, history(Shape.one_chat(CHAT_MESSAGES)))
        fill(store, history(Shape(messages)))
        store.index()
        rows = _renamed(store)
    print_table(f"new title of a chat of {CHAT_MESSAGES:,} messages, {messages:,} others", ("what", ""), rows)


def _renamed(store: LocalStore) -> list[list[str]]:
    app_id = store.service.app(FIRST_APP).id
    longest = max(store.service.chats(app_id), key=lambda chat: chat.message_count)
    found_after = 0.0
    batches = 0
    started = time.perf_counter()
    with transactions_of(store.writer.connection) as held:
        store.service.rename_chat(longest.id, f"The {_TITLE_WORD} question")
        while store.indexer.run_batch(settled=False):
            batches += 1
            if not found_after and search(store.service, app_id, _TITLE_WORD).results:
                found_after = time.perf_counter() - started
    finished = time.perf_counter() - started
    return [
        ["found after, s", f"{found_after:.2f}"],
        ["all documents written after, s", f"{finished:.2f}"],
        ["batches", f"{batches:,}"],
        ["writer held, ms: median", ms(Times(held).median)],
        ["writer held, ms: worst", ms(Times(held).worst)],
    ]
