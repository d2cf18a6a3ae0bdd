"""Import of a Dyad database and its indexing, end to end: rate, memory, file size, longest hold of the writer."""

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import apsw

from recall_app.service import open_store
from tests.benchmarks.history import Shape
from tests.benchmarks.stores import TOKENIZER, History, cache_folder, empty_store, fill, history
from tests.benchmarks.tables import Times, ms, print_table
from tests.benchmarks.writer_time import transactions_of

TRACED_MESSAGES = 20_000
"""Holds of the writer are measured on a history of this size: the trace that does it slows everything."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Seconds, megabytes and bytes."""

    import_seconds: float
    index_seconds: float
    bare_seconds: float
    peak_megabytes: float
    file_bytes: int


def run(messages: int) -> None:
    source = history(Shape(messages))
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        # A process of its own, whose peak memory is that of the import alone.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            done = pool.apply(_imported, (source, Path(folder) / "recall.db"))
    steps = {
        "import (read, write)": done.import_seconds,
        "index (project, write, merge)": done.index_seconds,
        "end to end": done.import_seconds + done.index_seconds,
        "bare FTS5 insert of the projected texts": done.bare_seconds,
    }
    print_table(
        f"import and index, {messages:,} messages, {source.truth.raw_bytes / 1e6:,.0f} MB of text",
        ("step", "seconds", "messages/s"),
        [[step, f"{seconds:.1f}", f"{messages / seconds:,.0f}"] for step, seconds in steps.items()],
    )
    print_table(
        "memory and disk",
        ("what", ""),
        [
            ["peak memory, MB", f"{done.peak_megabytes:,.0f}"],
            ["file, MB", f"{done.file_bytes / 1e6:,.0f}"],
            ["file ÷ raw text", f"{done.file_bytes / source.truth.raw_bytes:.2f}"],
        ],
    )
    print_table(
        f"writer held by one transaction, {TRACED_MESSAGES:,} messages, ms",
        ("step", "transactions", "median", "p99", "worst"),
        [
            [step, f"{len(held):,}", *map(ms, (Times(held).median, Times(held).p99, Times(held).worst))]
            for step, held in _held().items()
        ],
    )


def _imported(source: History, path: Path) -> Imported:
    with open_store(path) as store:
        started = time.perf_counter()
        fill(store, source)
        imported = time.perf_counter()
        store.index()
        indexed = time.perf_counter()
        peak = _peak_megabytes()
        store.writer.checkpoint()
        return Imported(imported - started, indexed - imported, _bare_insert(path), peak, path.stat().st_size)


def _peak_megabytes() -> float:
    """The largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def _bare_insert(path: Path) -> float:
    """Seconds to insert the projected texts, a thousand a transaction, into a contentless table of another file."""
    texts = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    bare = apsw.Connection(str(path.with_name("bare.db")))
    try:
        bare.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536")
        bare.execute(f"CREATE VIRTUAL TABLE bare USING fts5 (title, body, content = '', tokenize = \"{TOKENIZER}\")")
        rows = texts.execute("SELECT rowid, title, body FROM chat_search_fts")
        seconds = 0.0
        while piece := [row for _, row in zip(range(1_000), rows, strict=False)]:
            started = time.perf_counter()
            bare.execute("BEGIN")
            bare.executemany("INSERT INTO bare (rowid, title, body) VALUES (?, ?, ?)", piece)
            bare.execute("COMMIT")
            seconds += time.perf_counter() - started
        return seconds
    finally:
        texts.close()
        bare.close()


def _held() -> Mapping[str, list[float]]:
    """The transactions of an import, of its indexing, and of indexing everything once more."""
    with empty_store() as store:
        connection = store.writer.connection
        with transactions_of(connection) as importing:
            fill(store, history(Shape(TRACED_MESSAGES)))
        with transactions_of(connection) as indexing:
            store.index()
        with transactions_of(connection) as again:
            store.index(rebuild=True)
    return {"import": importing, "index": indexing, "index once more": again}
