"""Copies of the store and what is wrong with it: ``recall backup`` and ``recall doctor``."""

import os
import stat
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.store import migrations
from recall_app.store.connection import BUSY_TIMEOUT_MS, check_capability, translate_errors

_SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Health:
    """What a check found. ``problems`` are SQLite's own words, at most twenty; none means all is well."""

    sqlite_version: str
    apsw_version: str
    file_version: int
    known_version: int
    has_fts5: bool
    file_bytes: int
    messages: int
    documents: int
    problems: tuple[str, ...]


def backup(path: Path, target: Path) -> int:
    """Write a consistent copy, readable by the person alone, while others go on writing; returns its size in bytes.

    Raises:
        RecallError: the target exists already, or can't be written; nothing is left of it then.
    """
    if target.exists():
        raise RecallError(ErrorKind.INVALID_INPUT, f"{target} exists already: name a new file.")
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR))
    except OSError as error:
        raise RecallError(ErrorKind.STORE, f"{target} can't be written ({error.strerror}).") from error
    try:
        with translate_errors(target), closing(_reader(path)) as connection:
            connection.execute("VACUUM INTO ?", (str(target),))
    except BaseException:
        with suppress(OSError):
            target.unlink()
        raise
    return target.stat().st_size


def _reader(path: Path) -> apsw.Connection:
    """Read-only by its flags alone: under ``query_only`` SQLite refuses even to write a copy elsewhere."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def examine(connection: apsw.Connection, path: Path) -> Health:
    """Check the whole file; reads all of it, and writes nothing. A damaged file is an answer, not an error."""
    problems: list[str] = []
    has_fts5 = True
    try:
        check_capability()
    except RecallError as error:
        has_fts5 = False
        problems.append(error.message)
    try:
        problems += [str(line) for (line,) in connection.execute("PRAGMA integrity_check(20)") if line != "ok"]
        problems += [
            f"a row of {table} points to nothing" for table, *_ in connection.execute("PRAGMA foreign_key_check")
        ]
    except apsw.CorruptError as error:
        problems.append(str(error))
    return Health(
        sqlite_version=apsw.sqlite_lib_version(),
        apsw_version=apsw.apsw_version(),
        file_version=_count(connection, "PRAGMA user_version"),
        known_version=migrations.latest(),
        has_fts5=has_fts5,
        file_bytes=path.stat().st_size,
        messages=_count(connection, "SELECT count(*) FROM messages"),
        documents=_count(connection, "SELECT count(*) FROM chat_search_fts_docsize"),
        problems=tuple(problems[:_SHOWN_PROBLEMS]),
    )


def _count(connection: apsw.Connection, query: str) -> int:
    """-1 where damage keeps the answer from us."""
    try:
        return int(connection.execute(query).get)
    except apsw.CorruptError:
        return -1
