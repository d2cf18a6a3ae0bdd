"""``search_chats`` by class of query, beside the bare FTS5 query over that app's rows alone and Dyad's query shape."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import apsw

from recall_app.domain.consulting import SearchChatsInput, SearchChatsResult, Viewer
from recall_app.domain.word_breaks import query_words
from recall_app.retrieval.terms import any_of, quoted
from recall_app.service import RecallService, open_store
from tests.benchmarks.history import FIRST_APP, Shape, Truth, made_up_words
from tests.benchmarks.stores import BuiltStore, built_store
from tests.benchmarks.tables import Times, ms, print_table, timed

QUERIES = 60
WARM_UPS = 12
NEEDLE_CHATS = 8
_BARE = "SELECT rowid FROM own_app WHERE own_app MATCH ? ORDER BY rank LIMIT 200"
_DYAD = (
    "SELECT rowid FROM whole WHERE whole MATCH ? AND app_id = ? AND chat_id <> 0 "
    "ORDER BY bm25(whole, 3.0, 1.0) LIMIT 200"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and how it is put to a bare FTS5 table."""

    query: str
    match: str

    @classmethod
    def words(cls, *words: str) -> "Asked":
        return cls(" ".join(words), any_of(quoted(word) for word in words))

    @classmethod
    def phrase(cls, text: str, pieces: Sequence[str]) -> "Asked":
        return cls(text, quoted(" ".join(pieces)))


class Doors:
    """The three ways to ask: Recall, and two shapes of bare FTS5."""

    def __init__(self, service: RecallService, baseline: apsw.Connection) -> None:
        self._service = service
        self._baseline = baseline
        self._app_id = service.app(FIRST_APP).id

    def recall(self, query: str) -> SearchChatsResult:
        return search(self._service, self._app_id, query)

    def bare(self, match: str) -> None:
        self._baseline.execute(_BARE, (match,)).fetchall()

    def dyad(self, match: str) -> None:
        self._baseline.execute(_DYAD, (match, self._app_id)).fetchall()

    def chats_by_source_key(self) -> dict[str | None, int]:
        return {chat.source_key: chat.id for chat in self._service.chats(self._app_id)}


def run(messages: int) -> None:
    store = built_store(Shape(messages))
    truth = store.history.truth
    with open_store(store.path) as opened:
        baseline = _open_baseline(store)
        try:
            doors = Doors(opened.service, baseline)
            classes = query_classes(truth, random.Random(1))
            rows = [_measure(name, asked, doors) for name, asked in classes.items() if asked]
            found = _found(doors, truth)
        finally:
            baseline.close()
    print_table(
        f"search_chats, {messages:,} messages, {QUERIES} queries a class, ms",
        ("query", "recall", "p95", "bare FTS5", "p95", "ratio", "p95", "Dyad's shape", "p95", "ratio"),
        rows,
    )
    print_table(f"found among the first {NEEDLE_CHATS} chats", ("needles", "found", "first"), found)


def query_classes(truth: Truth, chance: random.Random) -> dict[str, list[Asked]]:
    """The classes of query, each with different ones; the first few of each only warm up."""
    count = QUERIES + WARM_UPS

    def drawn(draw: Callable[[], Asked]) -> list[Asked]:
        found: dict[str, Asked] = {}
        for _ in range(20 * count):
            asked = draw()
            found[asked.query] = asked
            if len(found) == count:
                break
        return list(found.values())

    def of(words: Sequence[str], number: int = 1) -> list[str]:
        return chance.sample(words, number)

    def phrase(text: str) -> Asked:
        return Asked.phrase(text, [piece for word in query_words(text) for piece in word.pieces])

    return {
        "rare": drawn(lambda: Asked.words(*of(truth.rare))),
        "needle": [Asked.words(*needle.query.split()) for needle in truth.needles],
        "mid": drawn(lambda: Asked.words(*of(truth.mid))),
        "three common": drawn(lambda: Asked.words(*of(truth.common, 3))),
        "eight common": drawn(lambda: Asked.words(*of(truth.common, 8))),
        "mixed": drawn(lambda: Asked.words(*of(truth.rare), *of(truth.mid), *of(truth.common, 2))),
        "phrase": drawn(lambda: phrase(chance.choice(truth.phrases))),
        "identifier": drawn(lambda: phrase(chance.choice(truth.identifiers))),
        "CJK": drawn(lambda: phrase(chance.choice(truth.unspaced))),
        "nothing": drawn(lambda: Asked.words(*made_up_words(chance, 3, ("xqj",)))),
    }


def _measure(name: str, asked: Sequence[Asked], doors: Doors) -> list[str]:
    """Every query once, asked at the three doors in turn; the first ones warm caches up and are not counted."""
    recall: list[float] = []
    bare: list[float] = []
    dyad: list[float] = []
    for each in asked:
        recall.append(timed(partial(doors.recall, each.query)))
        bare.append(timed(partial(doors.bare, each.match)))
        dyad.append(timed(partial(doors.dyad, each.match)))
    ours, theirs, shape = (Times(times[WARM_UPS:]) for times in (recall, bare, dyad))
    return [
        name,
        ms(ours.median),
        ms(ours.p95),
        ms(theirs.median),
        ms(theirs.p95),
        f"{ours.median / theirs.median:.2f}",
        f"{ours.p95 / theirs.p95:.2f}",
        ms(shape.median),
        ms(shape.p95),
        f"{ours.median / shape.median:.2f}",
    ]


def search(service: RecallService, app_id: int, query: str) -> SearchChatsResult:
    return service.search_chats(Viewer(app_id), SearchChatsInput(query=query, limit=NEEDLE_CHATS))


def _found(doors: Doors, truth: Truth) -> list[list[str]]:
    """By kind of needle, how many are among the first eight chats and how many first; how many payload words are."""
    ids = doors.chats_by_source_key()
    places: dict[str, list[int]] = {}
    for needle in truth.needles:
        found = [chat.chat_id for chat in doors.recall(needle.query).results]
        wanted = ids[str(needle.chat_id)]
        place = found.index(wanted) + 1 if wanted in found else 0
        places.setdefault(needle.kind, []).append(place)
        places.setdefault("all", []).append(place)
    places["all"] = places.pop("all", [])  # to the end
    rows = [
        [kind, f"{sum(map(bool, found))} of {len(found)}", str(sum(place == 1 for place in found))]
        for kind, found in places.items()
    ]
    leaked = sum(bool(doors.recall(word).results) for word in truth.payload_words)
    return [*rows, ["words only in payloads", f"{leaked} of {len(truth.payload_words)}", ""]]


def _open_baseline(store: BuiltStore) -> apsw.Connection:
    """With the cache and memory map that a reader of ours has."""
    connection = apsw.Connection(str(store.baseline), flags=apsw.SQLITE_OPEN_READONLY)
    connection.execute("PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 1073741824")
    return connection
