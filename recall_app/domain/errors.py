"""The errors that Recall shows to a person or hands back to a model.

Two families, kept apart on purpose: a ``RecallError`` is something that went wrong *outside* our code (a wrong path,
a full disk, an argument that can't be taken) and is shown as its one line; any other exception is a bug of ours.
"""

from enum import StrEnum


class ErrorKind(StrEnum):
    """What went wrong, as machines see it (``error.kind`` in JSON output, ``outcome`` in the ledger)."""

    NOT_FOUND = "NotFound"
    INVALID_INPUT = "InvalidInput"
    DECLINED = "Declined"
    NOT_PERMITTED = "NotPermitted"
    CANCELLED = "Cancelled"
    SOURCE = "Source"
    """A history to import can't be read."""
    STORE = "Store"
    """Our own file can't be opened, read or written."""
    BUSY = "Busy"
    DISK_FULL = "DiskFull"
    NEWER_FILE = "NewerFile"
    DAMAGED = "Damaged"
    UNSUPPORTED = "Unsupported"
    """This computer's SQLite lacks something that Recall needs."""
    MODEL = "Model"


class RecallError(Exception):
    """One plain line for a person: what is wrong and what to do. Never holds message text, a query or a key."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class NotFoundError(RecallError):
    """Missing, of another app, private, deleted or mismatched: deliberately indistinguishable (contracts §5)."""

    def __init__(self, message: str = "No such chat or message in this app.") -> None:
        super().__init__(ErrorKind.NOT_FOUND, message)


class InvalidInputError(RecallError):
    """Arguments that can't be taken; the text says what to change."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorKind.INVALID_INPUT, message)


class CancelledError(RecallError):
    """The person stopped it; what was done so far is kept."""

    def __init__(self, message: str = "Stopped.") -> None:
        super().__init__(ErrorKind.CANCELLED, message)
