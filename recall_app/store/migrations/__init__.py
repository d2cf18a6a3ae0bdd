"""Numbered ``.sql`` migrations: each is applied and recorded in one transaction, in order, once."""

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import apsw

from recall_app.domain.errors import ErrorKind, RecallError

APPLICATION_ID = 0x5243_4C4C
"""``RCLL`` in the file's header: tells our file from any other SQLite file."""


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    sql: str


@cache
def all_migrations() -> tuple[Migration, ...]:
    """The migrations that this version of Recall knows, in order."""
    found = [
        Migration(int(match[1]), match[2], entry.read_text("utf-8"))
        for entry in resources.files(__package__).iterdir()
        if (match := re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def latest() -> int:
    return all_migrations()[-1].number


def refuse_version(version: int, path: Path) -> None:
    """Raises ``NewerFile`` when the file was written by a newer Recall than this one."""
    if version > latest():
        raise RecallError(
            ErrorKind.NEWER_FILE,
            f"{path} was written by a newer Recall (file version {version}, this one knows {latest()}): "
            "update Recall. The file was not changed.",
        )


def refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    """Look once more, now that SQLite has read the log beside the file, in which all of a schema may still stand.

    Raises:
        RecallError: the file is another program's, or of a newer Recall.
    """
    if connection.execute("PRAGMA application_id").get == APPLICATION_ID:
        refuse_version(_version(connection), path)
    elif _version(connection) or connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        raise RecallError(ErrorKind.STORE, f"{path} is another program's database; nothing was changed.")


def refuse_older(connection: apsw.Connection, path: Path) -> None:
    """For readers, which can't migrate."""
    if _version(connection) < latest():
        raise RecallError(ErrorKind.STORE, f"{path} is of an older Recall: open it once with “recall index”.")


def migrate(connection: apsw.Connection) -> None:
    """Bring the file to the latest version; a failure leaves it at the last whole migration."""
    if _version(connection) == latest():
        return
    for migration in all_migrations():
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) < migration.number:
                _apply(connection, migration)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    # The header must tell an older Recall at once what it can't open, not only once the WAL is folded in.
    # Where another process is at it just now, its checkpoint does that.
    with suppress(apsw.BusyError):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


def _version(connection: apsw.Connection) -> int:
    version = connection.execute("PRAGMA user_version").get
    return int(version)


def _apply(connection: apsw.Connection, migration: Migration) -> None:
    connection.execute(migration.sql)
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations "
        "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)"
    )
    connection.execute(
        "INSERT INTO schema_migrations (number, name, applied_at) VALUES (?, ?, ?)",
        (migration.number, migration.name, int(time.time() * 1000)),
    )
    connection.execute(f"PRAGMA user_version = {migration.number}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
