"""Opening ``recall.db``: the only place that knows how our file is opened, guarded and refused.

One connection belongs to one thread. A writer connection is opened once in a process; readers are opened read-only, so
that a door that must not write cannot.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from recall_app.domain.errors import ErrorKind, NotFoundError, RecallError
from recall_app.store import migrations

Connection = apsw.Connection
"""The name by which the floors above speak of a connection of ours; they pass it on and run no SQL."""

BUSY_TIMEOUT_MS = 10_000
OLDEST_SQLITE = (3, 42, 0)
_MAGIC = b"SQLite format 3\0"
_USER_VERSION_AT = 60
_APPLICATION_ID_AT = 68
_HEADER_BYTES = 100


@contextmanager
def translate_errors(path: Path | str) -> Iterator[None]:
    """Turn what SQLite says of the file at ``path`` into one line for a person; our own bugs pass as they are."""
    try:
        yield
    except OverflowError as error:
        raise NotFoundError from error  # a number of more than 64 bits is no id of ours
    except apsw.Error as error:
        known = _known_error(error, path)
        if known is None:
            raise
        raise known from error


def _known_error(error: apsw.Error, path: Path | str) -> RecallError | None:
    cases: tuple[tuple[type[apsw.Error], ErrorKind, str], ...] = (
        (apsw.FullError, ErrorKind.DISK_FULL, "The disk is full: free some space and try again; {} lost nothing."),
        (apsw.BusyError, ErrorKind.BUSY, "Another program is using {}: wait for it to finish and try again."),
        (apsw.LockedError, ErrorKind.BUSY, "Another program is using {}: wait for it to finish and try again."),
        (apsw.NotADBError, ErrorKind.DAMAGED, "{} is not a database."),
        (apsw.CorruptError, ErrorKind.DAMAGED, "{} is damaged: restore a backup, or run “recall doctor”."),
        (apsw.ReadOnlyError, ErrorKind.STORE, "{} can't be written: check the rights of the file and its folder."),
        (apsw.PermissionsError, ErrorKind.STORE, "{} can't be opened: check the rights of the file and its folder."),
        (apsw.CantOpenError, ErrorKind.STORE, "{} can't be opened: check that it exists and the rights of its folder."),
        (apsw.IOError, ErrorKind.STORE, "Reading or writing {} failed: check the disk and the rights of its folder."),
        (apsw.ConstraintError, ErrorKind.NOT_FOUND, "What this belongs to is not there any more; {} was not changed."),
        (apsw.InterruptError, ErrorKind.CANCELLED, "Stopped."),
    )
    for kind_of_error, kind, line in cases:
        if isinstance(error, kind_of_error):
            return RecallError(kind, line.format(path))
    return None


def check_capability() -> None:
    """Refuse, in words, a SQLite without FTS5 or older than 3.42: search has no lesser way to work (contracts §2).

    Raises:
        RecallError: of kind ``Unsupported``.
    """
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST_SQLITE:
        raise RecallError(
            ErrorKind.UNSUPPORTED, f"SQLite {version} is too old for Recall: 3.42 or newer is needed. Reinstall Recall."
        )
    probe = apsw.Connection(":memory:")
    try:
        probe.execute("CREATE VIRTUAL TABLE probe USING fts5 (body)")
        probe.execute("INSERT INTO probe VALUES ('recall')")
        found = probe.execute("SELECT count(*) FROM probe WHERE probe MATCH 'recall'").get
    except apsw.SQLError as error:
        raise RecallError(
            ErrorKind.UNSUPPORTED, "This SQLite has no full-text search (FTS5), which Recall needs. Reinstall Recall."
        ) from error
    finally:
        probe.close()
    if found != 1:
        raise RecallError(ErrorKind.UNSUPPORTED, "Full-text search (FTS5) does not work here. Reinstall Recall.")


def open_writer(path: Path) -> apsw.Connection:
    """Open (and create and migrate) the store for writing; closes nothing else.

    Raises:
        RecallError: no rights, a full disk, not a database, another program's database, a newer Recall's file.
    """
    check_capability()
    _make_private(path)
    _refuse_foreign(path)
    with translate_errors(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    try:
        with translate_errors(path):
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            # Closing must not fold a log into a file that turns out to be none of ours.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            migrations.refuse_foreign(connection, path)
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -65536")
            connection.execute("PRAGMA temp_store = MEMORY")
            migrations.migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def close_writer(connection: apsw.Connection) -> None:
    """Close with SQLite's own housekeeping, if that is possible just now: somebody may be writing, the disk be full."""
    with suppress(apsw.Error):
        connection.set_busy_timeout(0)
        connection.execute("PRAGMA optimize")
    connection.close()


def open_reader(path: Path) -> apsw.Connection:
    """Open an existing, migrated store read-only: whatever runs on this connection, it can't write.

    Raises:
        RecallError: missing, no rights, not ours, of a newer Recall, or not migrated yet.
    """
    if not path.exists():
        raise RecallError(ErrorKind.STORE, f"{path} does not exist yet: import a history first.")
    _refuse_foreign(path)
    with translate_errors(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        with translate_errors(path):
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA cache_size = -65536")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA mmap_size = 1073741824")
            migrations.refuse_foreign(connection, path)
            migrations.refuse_older(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[None]:
    """One IMMEDIATE transaction: commits at the end, rolls all back on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def read_snapshot(connection: apsw.Connection) -> Iterator[None]:
    """One read transaction, so that several queries of one answer see the same state of the store."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _make_private(path: Path) -> None:
    """Create folder and file before SQLite does, so that nobody else can read them even for a moment."""
    try:
        path.parent.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR)
        os.close(descriptor)
    except IsADirectoryError as error:
        raise RecallError(ErrorKind.STORE, f"{path} is a folder, not a Recall file.") from error
    except OSError as error:
        raise RecallError(
            ErrorKind.STORE, f"{path} can't be opened ({error.strerror}): check the rights of the file and its folder."
        ) from error


def _refuse_foreign(path: Path) -> None:
    """Look at the file's header without SQLite, which would touch the file: is it ours, and not newer than we are?"""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise RecallError(ErrorKind.STORE, f"{path} can't be read ({error.strerror}).") from error
    if not header:
        return
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise RecallError(ErrorKind.DAMAGED, f"{path} is not a database; nothing was changed.")
    version = int.from_bytes(header[_USER_VERSION_AT : _USER_VERSION_AT + 4], "big")
    application = int.from_bytes(header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4], "big")
    if application == 0 and version == 0 and header[28:32] in (b"\0\0\0\0", b"\0\0\0\1"):
        return  # created, but never migrated: a first start was cut off
    if application != migrations.APPLICATION_ID:
        raise RecallError(ErrorKind.STORE, f"{path} is another program's database; nothing was changed.")
    migrations.refuse_version(version, path)
