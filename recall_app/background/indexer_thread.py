"""The indexer thread: the process's only write connection, on which write commands go first and index batches between.

A QThread with a worker object. Everything that other threads may call is on ``IndexerThread``; what the worker says
comes back as one signal with one frozen record.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal, Slot

from recall_app.domain.errors import CancelledError, RecallError
from recall_app.indexing.indexer import SETTLE_MS, ChatSearchIndexer, progress_of
from recall_app.store import search_index
from recall_app.store.connection import Connection, close_writer, open_writer
from recall_app.store.writer import InlineWriter, WriteCommand

T = TypeVar("T")

REPAIR_POLL_MS = 60_000
"""How often the queue is looked at although nobody said that something was written (another process may have)."""
REPORT_SECONDS = 0.1
_WORK_TO_COUNTING = 10
_MORE_SOON_MS = SETTLE_MS + 20


@dataclass(frozen=True, slots=True)
class IndexState:
    """What the status bar shows. Counts are messages; ``rate`` is messages per second.

    ``pending_by_app`` holds only apps with something pending. ``error`` is the line of the last batch that failed.
    """

    is_paused: bool = False
    done: int = 0
    pending: int = 0
    failed: int = 0
    rate: float = 0.0
    seconds_left: float | None = None
    pending_by_app: tuple[tuple[int, int], ...] = ()
    error: str | None = None


class _Command:
    """A write command on its way to the thread, with the future that brings its result back."""

    def __init__(self, call: Callable[[InlineWriter], Any]) -> None:
        self.call = call
        self.future: Future[Any] = Future()


class _Worker(QObject):
    """Lives on the thread; opens, uses and closes the write connection there."""

    state_changed = Signal(object)
    opened = Signal(object)
    wake = Signal()

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._commands: deque[_Command] = deque()
        self._lock = threading.Lock()
        self._refusal: RecallError | None = None
        self.pause_asked = threading.Event()
        self.stop_asked = threading.Event()
        self.current = threading.Condition()
        self.is_current = False
        self._connection: Connection | None = None
        self._state = IndexState()
        self._reported = 0.0
        self._counting_seconds = 0.0
        self._busy_since: float | None = None
        self._busy_from = 0

    def put(self, command: _Command) -> None:
        """From any thread: take a command, or refuse it once the shutdown has begun or the store can't be opened."""
        with self._lock:
            refusal = self._refusal
            if refusal is None:
                self._commands.append(command)
        if refusal is not None:
            command.future.set_exception(refusal)
        else:
            self.wake.emit()

    def _refuse(self, refusal: RecallError) -> None:
        """Take no more commands; those that wait and can't be run any more are refused too."""
        with self._lock:
            self._refusal = refusal
            waiting = list(self._commands) if self._connection is None else []
            for command in waiting:
                self._commands.remove(command)
        for command in waiting:
            command.future.set_exception(refusal)

    @Slot()
    def open(self) -> None:
        try:
            self._connection = open_writer(self._path)
            self._writer = InlineWriter(self._connection)
            self._indexer = ChatSearchIndexer(self._connection)
            self._indexer.start()
        except RecallError as error:
            self._connection = None
            self._refuse(error)
            self.opened.emit(error)
            return
        self._poll = QTimer(self)
        self._poll.timeout.connect(self.work)
        self._poll.start(REPAIR_POLL_MS)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.work)
        self.wake.connect(self.work, Qt.ConnectionType.QueuedConnection)
        self.opened.emit(None)
        self.work()

    @Slot()
    def work(self) -> None:
        """Commands first, then one batch; comes back by itself while there is something to do."""
        if self._connection is None:
            return
        self._run_commands()
        if self.stop_asked.is_set() or self.pause_asked.is_set():
            self._report(is_busy=False)
            return
        try:
            done = self._indexer.run_batch()
        except RecallError as error:
            self._set_current(is_current=True)
            self._report(is_busy=False, error=error.message)
            self._soon.start(REPAIR_POLL_MS // 10)
            return
        if done:
            self._set_current(is_current=False)
            self._report(is_busy=True)
            self._soon.start(0)
        else:
            self._report(is_busy=False)
            self._set_current(is_current=self._state.pending == 0)
            if self._state.pending:
                self._soon.start(_MORE_SOON_MS)

    def _run_commands(self) -> None:
        while True:
            with self._lock:
                if not self._commands:
                    return
                command = self._commands.popleft()
            if not command.future.set_running_or_notify_cancel():
                continue
            try:
                result = command.call(self._writer)
            except BaseException as error:
                command.future.set_exception(error)
            else:
                self._set_current(is_current=False)
                command.future.set_result(result)

    def _set_current(self, *, is_current: bool) -> None:
        with self.current:
            self.is_current = is_current
            self.current.notify_all()

    def _report(self, *, is_busy: bool, error: str | None = None) -> None:
        """While busy at most every 100 ms, and seldom enough that counting a long queue does not hold up the work."""
        now = time.perf_counter()
        pause = max(REPORT_SECONDS, _WORK_TO_COUNTING * self._counting_seconds)
        if self._connection is None or (is_busy and now - self._reported < pause):
            return
        by_app = search_index.pending_by_app(self._connection)
        self._counting_seconds = time.perf_counter() - now
        pending = sum(by_app.values())
        if not is_busy:
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since, self._busy_from = now, pending
        since = now if self._busy_since is None else self._busy_since
        progress = progress_of(self._busy_from - pending if is_busy else 0, pending, now - since)
        state = IndexState(
            is_paused=self.pause_asked.is_set(),
            done=progress.done,
            pending=pending,
            failed=search_index.failed_count(self._connection),
            rate=progress.rate,
            seconds_left=progress.seconds_left,
            pending_by_app=tuple(by_app.items()),
            error=error,
        )
        self._reported = now
        if state != self._state:
            self._state = state
            self.state_changed.emit(state)

    @Slot()
    def close(self) -> None:
        """The last step of a shutdown: what was asked before is written, then the connection closes."""
        self._refuse(CancelledError("Recall is closing."))
        if self._connection is None:
            return
        self._poll.stop()
        self._soon.stop()
        self._run_commands()
        close_writer(self._connection)
        self._connection = None


class IndexerThread(QObject):
    """Starts, feeds and stops the thread. Also the window's ``Writer``.

    ``state_changed`` carries an ``IndexState``, at most every 100 ms and once more when it comes to rest; ``opened``
    carries None, or the ``RecallError`` for which the store could not be opened.
    """

    state_changed = Signal(object)
    opened = Signal(object)
    _close = Signal()

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread = QThread(self)
        self._thread.setObjectName("indexer")
        self._worker = _Worker(path)
        self._worker.moveToThread(self._thread)
        self._thread.started.connect(self._worker.open)
        self._worker.state_changed.connect(self.state_changed)
        self._worker.opened.connect(self.opened)
        self._close.connect(self._worker.close, Qt.ConnectionType.BlockingQueuedConnection)

    def start(self) -> None:
        self._thread.start()

    def submit(self, command: WriteCommand[T]) -> "Future[T]":
        """From any thread: run a write command soon; the future has its result or its ``RecallError``."""
        return self._put(lambda writer: writer.run(command))

    def _put(self, call: Callable[[InlineWriter], T]) -> "Future[T]":
        command = _Command(call)
        self._worker.put(command)
        return command.future

    def run(self, command: WriteCommand[T]) -> T:
        """``submit`` and wait; not for the GUI thread."""
        return self.submit(command).result()

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file and empty it."""
        self._put(lambda writer: writer.checkpoint()).result()

    def rewrite(self) -> None:
        """Between two batches, like every command."""
        self._put(lambda writer: writer.rewrite()).result()

    def notify(self) -> None:
        """Say that another connection wrote something."""
        self._worker.wake.emit()

    def pause(self) -> None:
        """Stop indexing after the running batch; writing goes on."""
        self._worker.pause_asked.set()
        self._worker.wake.emit()

    def resume(self) -> None:
        self._worker.pause_asked.clear()
        self._worker.wake.emit()

    def rebuild(self) -> "Future[None]":
        """Mark every message, to be indexed anew in the background."""
        return self.submit(search_index.mark_all)

    def wait_until_current(self, seconds: float) -> bool:
        """From any other thread: wait until nothing is due, at most so long; True if it came to that."""
        with self._worker.current:
            return self._worker.current.wait_for(lambda: self._worker.is_current, timeout=seconds)

    def shutdown(self) -> None:
        """Refuse new work, finish what was asked, close the connection, end the thread. Safe to call twice."""
        if not self._thread.isRunning():
            return
        self._worker.stop_asked.set()
        self._close.emit()
        self._thread.quit()
        self._thread.wait()
