"""``read_chat`` anywhere in one very long chat, both modes, beside the plain SQL page at the same offsets."""

import random
from collections.abc import Callable
from functools import partial

from recall_app.domain.consulting import ReadChatInput, Viewer
from recall_app.service import LocalStore
from recall_app.store.connection import open_reader
from tests.benchmarks.history import FIRST_APP, Shape
from tests.benchmarks.stores import empty_store, fill, history
from tests.benchmarks.tables import Times, ms, print_table, timed

READS = 200
_PLAIN_PAGE = "SELECT content FROM messages WHERE chat_id = ? ORDER BY created_at, id LIMIT 10 OFFSET ?"


def run(messages: int) -> None:
    with empty_store() as store:
        fill(store, history(Shape.one_chat(messages)))
        rows = _measured(store, messages, random.Random(2))
    print_table(
        f"read_chat in a chat of {messages:,} messages, {READS} reads each, ms",
        ("where", "median", "p95", "worst"),
        rows,
    )


def _measured(store: LocalStore, messages: int, chance: random.Random) -> list[list[str]]:
    app_id = store.service.app(FIRST_APP).id
    chat_id = store.service.chats(app_id)[0].id
    plain = open_reader(store.service.path)
    ids: list[int] = [id_ for (id_,) in plain.execute("SELECT id FROM messages ORDER BY created_at, id")]
    last_tenth = range(messages * 9 // 10, messages)

    viewer, own = Viewer(app_id), Viewer(app_id, chat_id, ids[-1])

    def page(offset: int, viewer: Viewer = viewer) -> None:
        store.service.read_chat(viewer, ReadChatInput(chat_id=chat_id, offset=offset))

    def around(position: int, viewer: Viewer = viewer) -> None:
        store.service.read_chat(viewer, ReadChatInput(chat_id=chat_id, around_message_id=ids[position]))

    def plain_page(offset: int) -> None:
        plain.execute(_PLAIN_PAGE, (chat_id, offset)).fetchall()

    cases: list[tuple[str, Callable[[int], None], range]] = [
        ("page, anywhere", page, range(messages)),
        ("page, last tenth", page, last_tenth),
        ("around, anywhere", around, range(messages)),
        ("around, last tenth", around, last_tenth),
        ("page, while answering in this chat", partial(page, viewer=own), range(messages - 1)),
        ("around, while answering in this chat", partial(around, viewer=own), range(messages - 1)),
        ("plain SQL page, anywhere", plain_page, range(messages)),
    ]
    rows = []
    try:
        for name, read, positions in cases:
            chosen = chance.choices(positions, k=READS + 10)
            times = Times([timed(partial(read, at)) for at in chosen][10:])
            rows.append([name, ms(times.median), ms(times.p95), ms(times.worst)])
    finally:
        plain.close()
    return rows
