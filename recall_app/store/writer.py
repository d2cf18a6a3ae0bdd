"""The one way to write: a command runs inside one IMMEDIATE transaction of the process's only write connection."""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

import apsw

from recall_app.store.connection import BUSY_TIMEOUT_MS, translate_errors, write_transaction

T = TypeVar("T")

_CHECKPOINT_WAIT_MS = 500

WriteCommand = Callable[[apsw.Connection], T]


class Writer(Protocol):
    """Passed to whoever writes. The window's runs on the indexer thread; the command line's is ``InlineWriter``."""

    def run(self, command: WriteCommand[T]) -> T:
        """Run ``command`` in one transaction and return its result once it is committed.

        Raises:
            RecallError: the file can't be written (full, locked, damaged); nothing of the command is kept.
        """
        ...

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file and empty it.

        A process that still reads an older state is not waited for: then the log goes when the last one closes.
        """
        ...

    def rewrite(self) -> None:
        """Write file and log anew, so that nothing of what was deleted is in either.

        Takes about 5 s a gigabyte, and as much room on the disk again.

        Raises:
            RecallError: there is no room, or another process goes on writing.
        """
        ...


class InlineWriter:
    """Writes at once, on the connection and thread that it was made with."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def run(self, command: WriteCommand[T]) -> T:
        with translate_errors(self.connection.filename):
            with write_transaction(self.connection):
                return command(self.connection)

    def checkpoint(self) -> None:
        with translate_errors(self.connection.filename):
            self.connection.set_busy_timeout(_CHECKPOINT_WAIT_MS)
            try:
                with suppress(apsw.BusyError):
                    self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                self.connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    def rewrite(self) -> None:
        # `secure_delete` clears what is freed, but not what SQLite leaves between the pointers and the cells of a page
        # when it moves cells to another one. Only a file that is written anew is without such remains.
        with translate_errors(self.connection.filename):
            self.connection.execute("PRAGMA temp_store = FILE")
            try:
                self.connection.execute("VACUUM")
            finally:
                self.connection.execute("PRAGMA temp_store = MEMORY")
        self.checkpoint()
