"""Reading other programs' SQLite databases, live or copied, without leaving anything in or beside them.

A read-only connection to a database in WAL mode makes ``-wal`` and ``-shm`` files where there are none, so how a
database is opened depends on what lies beside it (``_open``). Whatever it holds is untrusted.
"""

import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.domain.text import replace_surrogates

BUSY_TIMEOUT_MS = 10_000
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_READ_VERSION_AT = 19
_WAL_VERSION = 2
_COPY_ATTEMPTS = 3

Value = None | int | float | str | bytes
Stamp = tuple[tuple[int, int, int] | None, ...]


class DamagedPagesError(RecallError):
    """A query met pages that can't be read; what it returned before is sound, and other queries may work."""

    def __init__(self, path: Path) -> None:
        super().__init__(ErrorKind.SOURCE, f"{path} is damaged and can't be read any further.")


@dataclass(frozen=True, slots=True)
class ForeignDatabase:
    """One consistent state of another program's database: all queries are of one read transaction."""

    path: Path
    is_wal_missing: bool
    """The database writes a ``-wal``, and there is none beside it: its newest rows may have stayed behind."""
    _connection: apsw.Connection
    _encoding: str

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table, in lower case; empty when there is no such table (a view is none)."""
        rows = self.rows(
            "SELECT lower(c.name) FROM sqlite_schema s, pragma_table_info(s.name) c "
            "WHERE s.type = 'table' AND lower(s.name) = ?",
            (table,),
        )
        return frozenset(name for (name,) in rows if isinstance(name, str))

    def rows(self, sql: str, values: Sequence[Value] = ()) -> Iterator[tuple[Value, ...]]:
        """The rows of a query, one at a time. Text columns must come as ``CAST(… AS BLOB)``: see ``decode``.

        Raises:
            DamagedPagesError: pages that the query needs can't be read. RecallError: of kind ``Source``, any other.
        """
        with _translated(self.path), closing(self._connection.execute(sql, tuple(values))) as cursor:
            yield from cursor

    def decode(self, text: bytes) -> str:
        """Text from a column cast to a blob; what is no text in the database's encoding becomes U+FFFD."""
        try:
            return text.decode(self._encoding)
        except UnicodeDecodeError:
            pass
        try:
            return replace_surrogates(text.decode(self._encoding, "surrogatepass"))
        except UnicodeDecodeError:
            return text.decode(self._encoding, "replace")

    def is_text(self, blob: bytes) -> bool:
        """Is a value that the database holds as a blob text of its encoding all the same?"""
        try:
            blob.decode(self._encoding)
        except UnicodeDecodeError:
            return False
        return True


@contextmanager
def open_foreign(path: Path) -> Iterator[ForeignDatabase]:
    """Open the database at ``path`` for reading, in one read transaction.

    Raises:
        RecallError: of kind ``Source``: missing, a folder, no rights, no database, or (at the end) another program
            changed it in a way that the reading could not be shielded from.
    """
    header = _header(path)
    path = path.resolve()  # the logs lie beside the file itself, not beside a link to it
    is_wal = header[_READ_VERSION_AT] == _WAL_VERSION
    with ExitStack() as cleanup:
        before = _stamp(path)
        with _translated(path):
            connection, is_shielded = _open(path, is_wal, cleanup)
        cleanup.callback(connection.close)
        try:
            with _translated(path):
                encoding = _begin(connection)
            yield ForeignDatabase(path, is_wal and not _beside(path, "-wal").exists(), connection, encoding)
        except DamagedPagesError:
            _refuse_changed(path, before, is_shielded)
            raise
        _refuse_changed(path, before, is_shielded)


def _header(path: Path) -> bytes:
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise RecallError(ErrorKind.SOURCE, f"{path} is a folder, not a database.")
        header = b""
        if stat.S_ISREG(kind):  # reading a pipe would wait for ever
            with path.open("rb") as file:
                header = file.read(_HEADER_BYTES)
    except FileNotFoundError as error:
        raise RecallError(ErrorKind.SOURCE, f"{path} does not exist.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise RecallError(ErrorKind.SOURCE, f"{path} can't be read: {reason}.") from error
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise RecallError(ErrorKind.SOURCE, f"{path} is not a database.")
    return header


def _open(path: Path, is_wal: bool, cleanup: ExitStack) -> tuple[apsw.Connection, bool]:
    """The connection, and whether other programs' writing can't disturb it (locks or a copy shield it)."""
    if not is_wal:
        return _open_journalled(path, cleanup)
    log, shared_memory = _beside(path, "-wal"), _beside(path, "-shm")
    if not log.exists() or (not shared_memory.exists() and log.stat().st_size == 0):
        return _connect(path, "immutable=1"), False  # nobody has it open; the file alone is all there is
    if shared_memory.exists():
        # Not even the shared memory is written: with a live writer SQLite reads it, else it rebuilds it in its own.
        with suppress(apsw.CantOpenError, apsw.ReadOnlyError):
            return _probed(_connect(path, "readonly_shm=1")), True
    return _connect(_copied(path, "-wal", cleanup)), True


def _open_journalled(path: Path, cleanup: ExitStack) -> tuple[apsw.Connection, bool]:
    try:
        return _probed(_connect(path)), True
    except (apsw.ReadOnlyError, apsw.CantOpenError):
        # A writer died and left a journal that must be rolled back first, which only a copy may be.
        copy = _copied(path, "-journal", cleanup)
        connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
        return _probed(connection), True


def _probed(connection: apsw.Connection) -> apsw.Connection:
    """Makes SQLite really open the files now, so that a failure can still be answered by opening another way."""
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    try:
        connection.execute("PRAGMA schema_version").fetchall()
    except apsw.CorruptError:
        pass  # the reading itself will tell
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, parameters: str = "") -> apsw.Connection:
    uri = path.absolute().as_uri()
    if not uri.startswith("file:///"):  # a network share: SQLite takes the host as part of the path only
        uri = uri.replace("file://", "file:////", 1)
    return apsw.Connection(
        f"{uri}?mode=ro&{parameters}" if parameters else f"{uri}?mode=ro",
        flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
    )


def _begin(connection: apsw.Connection) -> str:
    """Start the read transaction; the codec of the database's text."""
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.execute("PRAGMA trusted_schema = OFF")
    # On a connection that can't write, this only makes SQLite read what is left of a truncated file.
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    encoding: str = connection.execute("PRAGMA encoding").get
    return {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}.get(encoding, "utf-8")


def _copied(path: Path, suffix: str, cleanup: ExitStack) -> Path:
    """A private copy of the database and the file ``suffix`` beside it, of one moment."""
    folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="recall-")))
    copy = folder / "copy.db"
    try:
        for _ in range(_COPY_ATTEMPTS):
            before = _stamp(path)
            shutil.copyfile(path, copy)
            if _beside(path, suffix).exists():
                shutil.copyfile(_beside(path, suffix), _beside(copy, suffix))
            if _stamp(path) == before:
                return copy
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RecallError(ErrorKind.SOURCE, f"{path} can't be copied to be read: {reason}.") from error
    raise _changed(path)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _stamp(path: Path) -> Stamp:
    """Size, time and inode of the database and its logs; None for what isn't there."""
    stamps: list[tuple[int, int, int] | None] = []
    for suffix in ("", "-wal", "-journal"):
        try:
            status = _beside(path, suffix).stat()
            stamps.append((status.st_size, status.st_mtime_ns, status.st_ino))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


def _refuse_changed(path: Path, before: Stamp, is_shielded: bool) -> None:
    if not is_shielded and _stamp(path) != before:
        raise _changed(path)


def _changed(path: Path) -> RecallError:
    return RecallError(
        ErrorKind.SOURCE, f"{path} was changed while it was read: what was read is kept; import it again."
    )


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.CorruptError, apsw.IOError) as error:
        raise DamagedPagesError(path) from error
    except apsw.NotADBError as error:
        raise RecallError(ErrorKind.SOURCE, f"{path} is not a database.") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise RecallError(
            ErrorKind.SOURCE, f"Another program keeps {path} to itself: wait for it to finish and try again."
        ) from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError) as error:
        raise RecallError(
            ErrorKind.SOURCE, f"{path} can't be opened: check the rights of the file and its folder."
        ) from error
    except apsw.FullError as error:
        raise RecallError(ErrorKind.SOURCE, f"There is no room on the disk to read {path}.") from error
