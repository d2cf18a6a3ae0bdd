"""Storing what a reader yields: incrementally, idempotently, in short write transactions, stopped at any time.

Parsing happens outside the transactions. Whatever was committed stays, and the next import of the same source goes on
from there: a run that was killed and repeated ends where an undisturbed one does.
"""

import stat
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from recall_app.domain.errors import InvalidInputError, RecallError
from recall_app.domain.records import SkippedRecord, SourceApp, SourceChat, SourceMessage
from recall_app.sources.reader import SourceNote, SourceReader, SourceSize, StreamItem
from recall_app.store import imports
from recall_app.store.imports import Change, ChatCursor, Entry, ImportedFile, Origin
from recall_app.store.writer import Writer

BATCH_MESSAGES = 500
BATCH_CHARACTERS = 4_000_000
WRITE_SECONDS = 0.03
"""A transaction takes no further message after so long (architecture: the writer is held ≤ 50 ms)."""
PROGRESS_SECONDS = 0.1
LISTED_SKIPS = 100
"""So many skipped records are listed with place and reason; all are counted."""
_LINKS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Counts:
    """How many chats or messages came in; ``changed`` chats have a new title or app, or new or changed messages."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    skipped: int = 0
    """Left out: deleted here by the person, or not readable as a chat or message (listed in ``skipped_records``)."""
    failed: int = 0
    """Refused by the store (longer than SQLite can hold)."""


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """Where an import stands: messages done, how many there are (None while unknown), messages per second."""

    done: int
    total: int | None
    rate: float


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What one import did. ``skipped_records`` holds the first ``LISTED_SKIPS``; ``was_cancelled``: it is not whole."""

    chats: Counts
    messages: Counts
    skipped_records: tuple[SkippedRecord, ...]
    notes: tuple[str, ...]
    was_cancelled: bool
    seconds: float


def import_source(
    reader: SourceReader,
    path: Path,
    writer: Writer,
    *,
    app_name: str | None = None,
    progress: Callable[[ImportProgress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> ImportReport:
    """Bring the history at ``path`` into the store, all of it into the app ``app_name`` if that is given.

    ``progress`` is called at most every 100 ms and at the end; ``cancelled`` is asked between transactions.

    Raises:
        RecallError: the source can't be read (kind ``Source``) or the store can't be written. What was committed stays.
        InvalidInputError: ``app_name`` is blank.
    """
    if app_name is not None and not app_name.strip():
        raise InvalidInputError("Give the app a name.")
    origin = Origin(reader.kind, reader.counts_ids, app_name)
    path = path.absolute()
    state = _file_state(path)
    run = _Import(origin, writer, progress, cancelled)
    items = reader.read(path)
    try:
        run.take(items)
    finally:
        if isinstance(items, Generator):
            items.close()
    if state is not None and not run.was_cancelled:
        writer.run(lambda connection: imports.note_imported_file(connection, origin.kind, str(path), state))
    return run.report()


class _Import:
    """One import under way: the batch that is not written yet, and the counts of what is."""

    def __init__(
        self,
        origin: Origin,
        writer: Writer,
        progress: Callable[[ImportProgress], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self.was_cancelled = False
        self._origin = origin
        self._writer = writer
        self._progress = progress
        self._cancelled = cancelled
        self._batch: list[Entry] = []
        self._batch_characters = 0
        self._cursor: ChatCursor | None = None
        self._parents: list[tuple[str, str]] = []
        self._chats: Counter[Change] = Counter()
        self._messages: Counter[Change] = Counter()
        self._counted: tuple[ChatCursor, Change] | None = None
        self._skipped: list[SkippedRecord] = []
        self._notes: list[str] = []
        self._total: int | None = None
        self._started = self._reported = time.perf_counter()

    def take(self, items: Iterator[StreamItem]) -> None:
        """Store all items, or as many as came before ``cancelled`` said stop."""
        while not self.was_cancelled:
            try:
                item = next(items, None)
            except RecallError:
                # The reader can't go on; what it yielded so far is sound.
                self._write_batch()
                raise
            if item is None:
                break
            self._take(item)
        self._write_batch()
        self._link_parents()
        self._report_progress(is_last=True)

    def report(self) -> ImportReport:
        notes = list(self._notes)
        if deleted := self._chats[Change.SKIPPED]:
            notes.append(f"Chats that were deleted here stay deleted: {deleted}.")
        return ImportReport(
            chats=_counts(self._chats),
            messages=_counts(self._messages),
            skipped_records=tuple(self._skipped),
            notes=tuple(notes),
            was_cancelled=self.was_cancelled,
            seconds=time.perf_counter() - self._started,
        )

    def _take(self, item: StreamItem) -> None:
        match item:
            case SourceMessage():
                self._take_message(item)
            case SourceChat():
                self._write_full_batch()
                self._cursor = ChatCursor(item)
                self._batch.append((self._cursor, None))
                if item.parent_source_key is not None:
                    self._parents.append((item.source_key, item.parent_source_key))
            case SourceApp():
                if self._origin.app_name is None:
                    self._writer.run(lambda connection: imports.place_app(connection, self._origin, item))
            case SkippedRecord():
                self._messages[Change.SKIPPED] += 1
                if len(self._skipped) < LISTED_SKIPS:
                    self._skipped.append(item)
            case SourceSize():
                self._total = item.messages
            case SourceNote():
                self._notes.append(item.text)

    def _take_message(self, message: SourceMessage) -> None:
        if self._cursor is None:
            raise ValueError("a reader yielded a message before its chat")
        if self._cursor.first_message_at is None:
            self._cursor.first_message_at = message.created_at
        self._batch.append((self._cursor, message))
        self._batch_characters += len(message.content)
        # A chat and its first message go together: one without a time of its own takes the message's.
        self._write_full_batch()

    def _write_full_batch(self) -> None:
        if len(self._batch) >= BATCH_MESSAGES or self._batch_characters >= BATCH_CHARACTERS:
            self._write_batch()

    def _write_batch(self) -> None:
        """Write what is waiting, in as many transactions as it takes; between them the import can be stopped."""
        while self._batch and not self.was_cancelled:
            changes = self._writer.run(
                lambda connection: imports.write_entries(connection, self._origin, self._batch, WRITE_SECONDS)
            )
            self._count(changes)
            del self._batch[: len(changes)]
            self._report_progress()
            self.was_cancelled = self._cancelled is not None and self._cancelled()
        self._batch_characters = 0

    def _count(self, changes: Sequence[Change | None]) -> None:
        self._messages.update(change for change in changes if change is not None)
        for cursor in dict.fromkeys(cursor for cursor, _ in self._batch[: len(changes)]):
            if self._counted is not None and self._counted[0] is cursor:
                self._chats[self._counted[1]] -= 1
            if cursor.change is not None:
                self._chats[cursor.change] += 1
                self._counted = (cursor, cursor.change)

    def _link_parents(self) -> None:
        for start in range(0, len(self._parents), _LINKS_AT_ONCE):
            pairs = self._parents[start : start + _LINKS_AT_ONCE]
            self._writer.run(partial(imports.link_parents, origin=self._origin, pairs=pairs))

    def _report_progress(self, *, is_last: bool = False) -> None:
        now = time.perf_counter()
        if self._progress is None or (not is_last and now - self._reported < PROGRESS_SECONDS):
            return
        self._reported = now
        done = self._messages.total()
        self._progress(ImportProgress(done, self._total, done / max(now - self._started, 1e-9)))


def _counts(changes: Counter[Change]) -> Counts:
    return Counts(**{change.value: changes[change] for change in Change})


def _file_state(path: Path) -> ImportedFile | None:
    """None for a folder and for what can't be looked at."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return ImportedFile(status.st_size, status.st_mtime_ns, status.st_ino) if stat.S_ISREG(status.st_mode) else None
