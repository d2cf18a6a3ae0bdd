"""Generated histories and the stores made of them, kept in a cache folder outside the checkout."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
from platformdirs import user_cache_path

from recall_app.service import LocalStore, open_store
from recall_app.sources.dyad import DyadReader
from recall_app.sources.importing import import_source
from tests.benchmarks.history import Shape, Truth, generate

ROOT = Path(__file__).resolve().parents[2]
# What decides how a store looks; when any of it changes, kept stores are made anew.
_MAKES_THE_STORE = (
    "recall_app/store/migrations",
    "recall_app/domain",
    "recall_app/indexing",
    "recall_app/store/search_index.py",
    "recall_app/store/imports.py",
)
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co So' tokenchars '+#'"


def cache_folder() -> Path:
    """``RECALL_BENCH_CACHE``, or a folder of our own in the person's cache."""
    chosen = os.environ.get("RECALL_BENCH_CACHE")
    folder = Path(chosen) if chosen else user_cache_path("recall-benchmarks", appauthor=False)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True)
class History:
    """A Dyad database and what stands in it."""

    path: Path
    truth: Truth


def history(shape: Shape) -> History:
    """The history of this shape, made now unless it is kept."""
    folder = cache_folder() / "histories"
    folder.mkdir(exist_ok=True)
    path, truth_path = folder / f"{shape.name}.db", folder / f"{shape.name}.json"
    if not truth_path.exists():
        path.unlink(missing_ok=True)
        started = time.perf_counter()
        truth = generate(shape, path)
        truth.save(truth_path)
        print(f"made a history: {shape.messages:,} messages in {time.perf_counter() - started:.1f} s", flush=True)
    return History(path, Truth.load(truth_path))


@dataclass(frozen=True, slots=True)
class BuiltStore:
    """An indexed store made of a history. ``baseline`` is a database of bare FTS5 tables over the same texts."""

    path: Path
    history: History

    @property
    def baseline(self) -> Path:
        return self.path.with_name("baseline.db")


def built_store(shape: Shape) -> BuiltStore:
    """An indexed store, made now unless one is kept that the present code would make alike."""
    made_of = history(shape)
    folder = cache_folder() / "stores" / f"{shape.name}-{_code_hash()}"
    if not folder.exists():
        for stale in folder.parent.glob(f"{shape.name}-*"):
            shutil.rmtree(stale)
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        started = time.perf_counter()
        with open_store(unfinished / "recall.db") as store:
            fill(store, made_of)
            store.index()
        _make_baseline(unfinished)
        unfinished.rename(folder)
        print(f"made a store: {shape.messages:,} messages in {time.perf_counter() - started:.1f} s", flush=True)
    return BuiltStore(folder / "recall.db", made_of)


@contextmanager
def empty_store() -> Iterator[LocalStore]:
    """A new store in a folder that goes afterwards; on the disk of the cache, not in memory."""
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        with open_store(Path(folder) / "recall.db") as store:
            yield store


def fill(store: LocalStore, made: History) -> None:
    """Import a history into a store; its index is left to do."""
    report = import_source(DyadReader(), made.path, store.writer)
    if report.messages.new != made.truth.messages:
        raise AssertionError(f"{report.messages.new} of {made.truth.messages} messages came in")


def _make_baseline(folder: Path) -> None:
    """``own_app`` holds the first app's texts alone; ``whole`` is the shape of Dyad's index, filtered by app later."""
    connection = apsw.Connection(str(folder / "baseline.db"))
    try:
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        connection.execute("ATTACH ? AS recall", (str(folder / "recall.db"),))
        connection.execute(f'CREATE VIRTUAL TABLE own_app USING fts5 (title, body, tokenize = "{TOKENIZER}")')
        connection.execute(
            "CREATE VIRTUAL TABLE whole USING fts5 (title, body, app_id UNINDEXED, chat_id UNINDEXED, "
            f'role UNINDEXED, created_at UNINDEXED, tokenize = "{TOKENIZER}")'
        )
        # In pieces: the bare tables, too, are filled by many transactions and not by one.
        app_id = connection.execute("SELECT app_id FROM recall.app_sources WHERE source_key = '1'").get
        last = connection.execute("SELECT max(rowid) FROM recall.chat_search_fts").get
        for first in range(0, last + 1, 1_000):
            piece = "FROM recall.chat_search_fts WHERE rowid > ?1 AND rowid <= ?1 + 1000"
            connection.execute(
                f"INSERT INTO own_app (rowid, title, body) SELECT rowid, title, body {piece} AND app_id = ?2",
                (first, app_id),
            )
            connection.execute(
                "INSERT INTO whole (rowid, title, body, app_id, chat_id, role, created_at) "
                f"SELECT rowid, title, body, app_id, chat_id, role, message_created_at {piece}",
                (first,),
            )
        # Recall merges its index after an import; a baseline in many pieces would flatter it.
        for table in ("own_app", "whole"):
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
    finally:
        connection.close()


def _code_hash() -> str:
    """Changes with the code and schema that a store is made by."""
    digest = hashlib.sha256()
    for name in _MAKES_THE_STORE:
        place = ROOT / name
        files = [place] if place.is_file() else sorted([*place.rglob("*.py"), *place.rglob("*.sql")])
        for file in files:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
