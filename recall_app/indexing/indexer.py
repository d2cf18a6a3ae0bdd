"""``ChatSearchIndexer``: dirty queue → projection → document, in short batches (contracts §2, "Indexer").

It lives on the thread of the process's write connection. Reading and projecting happen outside the write transaction,
so that a batch holds the writer only for the documents themselves; a mark made in between survives, since a document
clears only the mark it was made from.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from recall_app.domain.projection import (
    CHAT_SEARCH_PROJECTION_VERSION,
    ChatSearchProjectionInput,
    project_chat_message_for_search,
)
from recall_app.domain.text import one_line
from recall_app.domain.word_breaks import index_document
from recall_app.store import search_index
from recall_app.store.connection import Connection, translate_errors, write_transaction
from recall_app.store.search_index import DirtyMessage, Document

SETTLE_MS = 500
"""A message that was touched less than this long ago is left to settle: a streaming answer is projected once."""
WRITE_SECONDS = 0.020
"""Writer time of one batch, to which its commit adds up to half as much (contracts §2: 30 ms)."""
PREPARE_SECONDS = 0.020
"""About as much as is then written: what is prepared beyond it is prepared again."""
_EXPAND_MESSAGES = 4_000
_MANY = 1_000
"""So many documents written, or messages in the queue with old documents to replace, are worth a merge of the whole
index afterwards."""
_SOME = 16
"""Fewer replaced documents in a batch are replaced securely even then."""
_SECURELY_REPLACED_CHARACTERS = 10_000
"""Replacing securely takes 20 µs of writer time for each different word, almost all of it when the batch commits."""
_INDEXED_TITLE_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """Where a drain stands. Counts are messages; ``rate`` is messages per second, ``seconds_left`` None if unknown."""

    done: int
    pending: int
    rate: float
    seconds_left: float | None


def progress_of(done: int, pending: int, seconds: float) -> IndexProgress:
    """The progress after so many seconds; ``done`` below 0 (more came than was done) counts as 0."""
    done = max(0, done)
    rate = done / seconds if seconds > 0 else 0.0
    return IndexProgress(done, pending, rate, pending / rate if rate > 0 else None)


@dataclass(frozen=True, slots=True)
class _Failure:
    source: DirtyMessage
    error_class: str


class ChatSearchIndexer:
    """Keeps the documents current. Not thread-safe: one thread owns it and its connection."""

    def __init__(self, connection: Connection, *, clock: Callable[[], float] = time.time) -> None:
        self._connection = connection
        self._clock = clock
        self._unmerged = 0

    def start(self) -> None:
        """Start-up repair: a new policy re-marks everything, lost marks and orphaned documents are mended."""
        with translate_errors(self._connection.filename):
            if search_index.meta(self._connection, "projection_version") != CHAT_SEARCH_PROJECTION_VERSION:
                self.rebuild()
            lost = search_index.unmarked_without_document(self._connection)
            orphans = search_index.documents_without_message(self._connection)
            if lost or orphans:
                with write_transaction(self._connection):
                    search_index.mark_messages(self._connection, lost)
                    for message_id in orphans:
                        search_index.delete_document(self._connection, message_id)
                    search_index.next_generation(self._connection)

    def rebuild(self) -> None:
        """Mark every message, to be projected anew; old documents answer until theirs is written."""
        with translate_errors(self._connection.filename), write_transaction(self._connection):
            search_index.mark_all(self._connection)
            search_index.set_projection_version(self._connection, CHAT_SEARCH_PROJECTION_VERSION)

    def run_batch(self, *, settled: bool = True) -> int:
        """One batch of work; returns how much was done (messages marked, written, or a step of merging), 0 when nothing
        is due.

        With ``settled`` False even what was touched this moment is taken.

        Raises:
            RecallError: the file can't be read or written; the queue is as it was before the batch.
        """
        with translate_errors(self._connection.filename):
            if search_index.has_dirty_chats(self._connection):
                with write_transaction(self._connection):
                    expanded = search_index.expand_dirty_chats(self._connection, _EXPAND_MESSAGES)
                if expanded:
                    return expanded
            prepared = self._prepare(settled)
            return self._write(prepared) if prepared else self._merge()

    def drain(
        self,
        *,
        progress: Callable[[IndexProgress], None] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> int:
        """Index all that is queued, for a door that waits; returns the number of messages done.

        Stops between batches when ``cancelled`` says so; what is left stays queued.
        """
        meter = ProgressMeter(self._connection)
        while not cancelled():
            if self.run_batch(settled=False) == 0:
                break
            if progress is not None and (report := meter.report()) is not None:
                progress(report)
        last = meter.last()
        if progress is not None:
            progress(last)
        return last.done

    def _prepare(self, settled: bool) -> list[Document | _Failure]:
        stop_at = time.perf_counter() + PREPARE_SECONDS
        prepared: list[Document | _Failure] = []
        with closing(search_index.dirty_messages(self._connection, unsettled=self._unsettled(settled))) as rows:
            for message in rows:
                prepared.append(prepare_document(message))
                if time.perf_counter() >= stop_at:
                    break
        return prepared

    def _unsettled(self, settled: bool) -> tuple[int, int] | None:
        if not settled:
            return None
        # Marks from the future, made before the computer's clock was set back, need not wait for it to catch up.
        now = int(self._clock() * 1000)
        return now - SETTLE_MS + 1, now + SETTLE_MS

    def _write(self, prepared: list[Document | _Failure]) -> int:
        written = 0
        with write_transaction(self._connection):
            stop_at = time.perf_counter() + WRITE_SECONDS
            replaced = search_index.having_documents(self._connection, [each.source.message_id for each in prepared])
            if len(replaced) >= _SOME and search_index.has_many_dirty_messages(self._connection, _MANY):
                search_index.defer_secure_delete(self._connection)
            is_secure = search_index.is_secure(self._connection)
            room = _SECURELY_REPLACED_CHARACTERS
            for each in prepared:
                if is_secure and each.source.message_id in replaced:
                    room -= len(each.body) if isinstance(each, Document) else len(each.source.content)
                    if room < 0 and written:
                        break
                self._replace(each)
                written += 1
                if time.perf_counter() >= stop_at:
                    break
            search_index.next_generation(self._connection)
        self._unmerged += written
        return written

    def _replace(self, prepared: Document | _Failure) -> None:
        source = prepared.source
        if not search_index.take_mark(self._connection, source):
            return
        if isinstance(prepared, Document):
            search_index.replace_document(self._connection, prepared)
        else:
            search_index.record_failure(
                self._connection, source.message_id, prepared.error_class, int(self._clock() * 1000)
            )

    def _merge(self) -> int:
        """A step of merging: after many documents, since an index in one piece is searched faster."""
        if self._unmerged < _MANY and search_index.is_secure(self._connection):
            return 0
        with write_transaction(self._connection):
            if search_index.merge(self._connection, WRITE_SECONDS):
                self._unmerged = 0
        return 1


def prepare_document(message: DirtyMessage) -> Document | _Failure:
    """Project a message and break its words for the tokenizer."""
    try:
        projection = project_chat_message_for_search(
            ChatSearchProjectionInput(message.role, message.content.decode(), message.is_compaction_summary)
        )
        body, forms = index_document(projection.text)
        title, title_forms = index_document(one_line((message.title or b"").decode(), _INDEXED_TITLE_CHARACTERS))
    except Exception as error:
        # A hostile message must never block the queue: it is listed by its id and the error's class, without text.
        return _Failure(message, type(error).__name__)
    return Document(message, title, body, f"{forms} {title_forms}".strip(), projection.truncated)


class ProgressMeter:
    """Measures a drain: at most one report every 100 ms."""

    _INTERVAL = 0.1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._started = time.perf_counter()
        self._reported = self._started
        self._pending_at_start = search_index.pending(connection)

    def report(self) -> IndexProgress | None:
        """Where it stands, or None when the last report is less than 100 ms old."""
        now = time.perf_counter()
        if now - self._reported < self._INTERVAL:
            return None
        self._reported = now
        return self.last()

    def last(self) -> IndexProgress:
        """Where it stands now."""
        pending = search_index.pending(self._connection)
        return progress_of(self._pending_at_start - pending, pending, time.perf_counter() - self._started)
