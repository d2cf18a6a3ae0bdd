"""What importing needs of our file: finding or making the app, chat and message that a source's record stands for.

All functions take the connection of a write command. Nothing is written where nothing changed: a trigger or a
counter that moves would have the index redo its work.
"""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, overload

import apsw

from recall_app.domain.records import SourceApp, SourceChat, SourceMessage
from recall_app.domain.text import replace_surrogates
from recall_app.store.history import app_names, now_ms

_LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999; later times (and those before 1970) are no times."""


class Change(StrEnum):
    """What an import did with one chat or message."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    """Left out: the person deleted it here, or it can't be taken as it is."""
    FAILED = "failed"
    """The store refused it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where records come from. ``app_name`` puts all of them into the app of that name."""

    kind: str
    counts_ids: bool
    app_name: str | None = None


@dataclass(slots=True, eq=False)
class ChatCursor:
    """Where the import of one chat stands; its messages may come in several write commands."""

    chat: SourceChat
    first_message_at: int | None = None
    change: Change | None = None
    last_at: int | None = None
    """The time of the message before, as stored: times never go back within a chat (contracts §2)."""


Entry = tuple[ChatCursor, SourceMessage | None]
"""A message of a chat, or (None) the chat itself."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """The state of a source's file at its last whole import: bytes, nanoseconds, inode."""

    size: int
    mtime_ns: int
    inode: int


def write_entries(
    connection: apsw.Connection, origin: Origin, entries: Sequence[Entry], seconds: float
) -> list[Change | None]:
    """Store entries, as many as fit into ``seconds`` and at least one; what was done with each message of them."""
    stop_at = time.perf_counter() + seconds
    changes: list[Change | None] = []
    placed: ChatCursor | None = None
    chat_id: int | None = None
    for cursor, message in entries:
        if cursor is not placed:
            # Looked up anew in each transaction: the person may have deleted or moved the chat in between.
            placed, chat_id = cursor, _place_chat(connection, origin, cursor)
        if message is None:
            changes.append(None)
        elif chat_id is None:
            changes.append(Change.SKIPPED)
        else:
            changes.append(_put_message(connection, chat_id, cursor, message))
        if time.perf_counter() >= stop_at:
            break
    return changes


def place_app(connection: apsw.Connection, origin: Origin, app: SourceApp) -> int:
    """The id of our app for a source's: the one it was given before, one of the same folder, or a new one."""
    key, known = _identify_app(connection, origin, app)
    if origin.app_name is not None:
        wanted = _app_named(connection, origin.app_name)
    elif known is not None:
        return known
    else:
        wanted = _app_of_folder(connection, app.path) or _create_app(
            connection, _storable(app.name), _storable(app.path), _time(app.created_at)
        )
    if wanted != known:
        connection.execute(
            "INSERT INTO app_sources (app_id, source, source_key, created_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (source, source_key) DO UPDATE SET app_id = excluded.app_id",
            (wanted, origin.kind, key, _time(app.created_at)),
        )
    return wanted


def link_parents(connection: apsw.Connection, origin: Origin, pairs: Iterable[tuple[str, str]]) -> None:
    """Note for each (chat, parent chat), by their keys at the source, whose child a chat is; unknown ones are left."""
    for child, parent in pairs:
        connection.execute(
            """
            UPDATE chats SET parent_chat_id = p.id FROM chats p
            WHERE chats.source = ?1 AND chats.source_key = ?2 AND p.source = ?1 AND p.source_key = ?3
              AND chats.parent_chat_id IS NOT p.id AND chats.id <> p.id
            """,
            (origin.kind, _storable(child), _storable(parent)),
        )


def imported_file(connection: apsw.Connection, kind: str, path: str) -> ImportedFile | None:
    """The state in which a file was last imported as a whole."""
    row = connection.execute(
        "SELECT size, mtime_ns, inode FROM import_state WHERE source = ? AND path = ?", (kind, _storable(path))
    ).fetchone()
    return None if row is None else ImportedFile(*row)


def note_imported_file(connection: apsw.Connection, kind: str, path: str, file: ImportedFile) -> None:
    """Note that a file was imported as a whole in this state."""
    if imported_file(connection, kind, path) == file:
        return
    connection.execute(
        """
        INSERT INTO import_state (source, path, size, mtime_ns, inode, imported_at) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (source, path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns,
            inode = excluded.inode, imported_at = excluded.imported_at
        """,
        (kind, _storable(path), file.size, file.mtime_ns, file.inode, now_ms()),
    )


def _identify_app(connection: apsw.Connection, origin: Origin, app: SourceApp) -> tuple[str, int | None]:
    """The key under which the app is or will be known, and our app's id if it is known."""
    created_at = _time(app.created_at)
    for key in _keys(origin, app.source_key, created_at):
        row = connection.execute(
            "SELECT app_id, created_at FROM app_sources WHERE source = ? AND source_key = ?", (origin.kind, key)
        ).fetchone()
        if row is None:
            return key, None
        if not origin.counts_ids or row[1] == created_at:
            return key, row[0]
    raise AssertionError("the last key names its time of creation")


def _keys(origin: Origin, source_key: str, created_at: int | None) -> Iterable[str]:
    """The source's own key, then the one for a namesake from another history (two computers' chat 5)."""
    key = _storable(source_key)
    return (key, f"{key}@{created_at}") if origin.counts_ids else (key,)


def _is_same_chat(origin: Origin, stored_at: int | None, created_at: int | None) -> bool:
    """A chat without a time at its source was stored with one from its messages: it can't be told apart."""
    return not origin.counts_ids or stored_at is None or created_at is None or stored_at == created_at


def _app_named(connection: apsw.Connection, name: str) -> int:
    """The app of this name (an exact one before one in other case), made if there is none."""
    name = _storable(name).strip()
    apps = app_names(connection)
    exact = sorted(app_id for app_id, other in apps.items() if other == name)
    alike = sorted(app_id for app_id, other in apps.items() if other.casefold() == name.casefold())
    return next(iter([*exact, *alike]), None) or _create_app(connection, name, None, None)


def _app_of_folder(connection: apsw.Connection, path: str | None) -> int | None:
    """The app of the same folder. A relative path names no folder: it means another one on every computer."""
    if path is None or not (PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()):
        return None
    for app_id, other in connection.execute("SELECT id, path FROM apps WHERE path IS NOT NULL ORDER BY id"):
        if _folder(other) == _folder(path):
            return int(app_id)
    return None


def _folder(path: str) -> str:
    return os.path.normcase(os.path.normpath(path))


def _create_app(connection: apsw.Connection, name: str | None, path: str | None, created_at: int | None) -> int:
    now = now_ms()
    connection.execute(
        "INSERT INTO apps (name, path, created_at, updated_at) VALUES (?, ?, ?, ?)",
        (name, path, now if created_at is None else created_at, now),
    )
    return connection.last_insert_rowid()


def _place_chat(connection: apsw.Connection, origin: Origin, cursor: ChatCursor) -> int | None:
    """The id of our chat, brought up to date or made; None when the person deleted it here."""
    key, row, is_deleted = _identify_chat(connection, origin, cursor.chat)
    if is_deleted:
        cursor.change = Change.SKIPPED
        return None
    if row is None:
        cursor.change = Change.NEW
        return _create_chat(connection, origin, key, cursor)
    chat_id, app_id, title, source_title, is_placed_by_hand = row
    changed = _update_title(connection, chat_id, title, source_title, _storable(cursor.chat.title))
    wanted = place_app(connection, origin, cursor.chat.app)
    if wanted != app_id and not is_placed_by_hand:
        connection.execute("UPDATE chats SET app_id = ? WHERE id = ?", (wanted, chat_id))
        changed = True
    if cursor.change is None:
        cursor.change = Change.UNCHANGED
    if changed:
        _note_change(cursor)
    return int(chat_id)


def _identify_chat(
    connection: apsw.Connection, origin: Origin, chat: SourceChat
) -> tuple[str, tuple[Any, ...] | None, bool]:
    """The chat's key here, its row unless it is new, and whether the person deleted it here."""
    created_at = _time(chat.created_at)
    for key in _keys(origin, chat.source_key, created_at):
        row = connection.execute(
            "SELECT created_at, deleted_at, id, app_id, title, source_title, placed_by_hand "
            "FROM chats WHERE source = ? AND source_key = ?",
            (origin.kind, key),
        ).fetchone()
        if row is not None and _is_same_chat(origin, row[0], created_at):
            return key, row[2:], row[1] is not None
        grave = connection.execute(
            "SELECT created_at FROM tombstones WHERE source = ? AND source_key = ?", (origin.kind, key)
        ).fetchone()
        if grave is not None and _is_same_chat(origin, grave[0], created_at):
            return key, None, True
        if row is None and grave is None:
            return key, None, False
    raise AssertionError("the last key names its time of creation")


def _create_chat(connection: apsw.Connection, origin: Origin, key: str, cursor: ChatCursor) -> int:
    chat = cursor.chat
    app_id = place_app(connection, origin, chat.app)
    times = (_time(chat.created_at), _time(cursor.first_message_at))
    created_at = next((moment for moment in times if moment is not None), now_ms())
    title = _storable(chat.title)
    connection.execute(
        "INSERT INTO chats (app_id, title, source_title, created_at, source, source_key, mode, model, is_private, "
        "is_favorite) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            app_id,
            title,
            title,
            created_at,
            origin.kind,
            key,
            _storable(chat.mode),
            _storable(chat.model),
            int(chat.is_private),
            int(chat.is_favorite),
        ),
    )
    return connection.last_insert_rowid()


def _update_title(
    connection: apsw.Connection, chat_id: int, title: str | None, source_title: str | None, new: str | None
) -> bool:
    """Take a title that changed at the source, unless the person changed it here."""
    if new is None or new == source_title:
        return False
    kept = title if title != source_title else new
    connection.execute("UPDATE chats SET title = ?, source_title = ? WHERE id = ?", (kept, new, chat_id))
    return kept != title


def _put_message(connection: apsw.Connection, chat_id: int, cursor: ChatCursor, message: SourceMessage) -> Change:
    key = _storable(message.source_key)
    says = (
        message.role,
        _storable(message.content),
        int(message.is_compaction_summary),
        _storable(message.model),
        _storable(message.branch),
    )
    try:
        row = connection.execute(
            "SELECT id, created_at, role = ?3 AND content = ?4 AND is_compaction_summary = ?5 AND model IS ?6 "
            "AND branch IS ?7 FROM messages WHERE chat_id = ?1 AND source_key = ?2",
            (chat_id, key, *says),
        ).fetchone()
        if row is None:
            _add_message(connection, chat_id, cursor, message, (key, *says))
            change = Change.NEW
        else:
            message_id, created_at, is_same = row
            if not message.is_compaction_summary:
                cursor.last_at = created_at
            if is_same:
                return Change.UNCHANGED
            connection.execute(
                "UPDATE messages SET role = ?, content = ?, is_compaction_summary = ?, model = ?, branch = ? "
                "WHERE id = ?",
                (*says, message_id),
            )
            change = Change.CHANGED
    except apsw.TooBigError:
        return Change.FAILED
    _note_change(cursor)
    return change


def _add_message(
    connection: apsw.Connection,
    chat_id: int,
    cursor: ChatCursor,
    message: SourceMessage,
    columns: tuple[Any, ...],
) -> None:
    """Insert a message at its place in the order: its own time, or the time of the one before if that is later.

    A reader yields the whole chat, so that the one before is known; nothing before it, and its own time is its place.
    """
    created_at = _time(message.created_at)
    if created_at is None:
        created_at = cursor.last_at if cursor.last_at is not None else _chat_created_at(connection, chat_id)
    if not message.is_compaction_summary:
        created_at = max(created_at, created_at if cursor.last_at is None else cursor.last_at)
        cursor.last_at = created_at
    connection.execute(
        "INSERT INTO messages (chat_id, created_at, source_key, role, content, is_compaction_summary, model, branch) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (chat_id, created_at, *columns),
    )


def _chat_created_at(connection: apsw.Connection, chat_id: int) -> int:
    return int(connection.execute("SELECT created_at FROM chats WHERE id = ?", (chat_id,)).get)


def _note_change(cursor: ChatCursor) -> None:
    if cursor.change is Change.UNCHANGED:
        cursor.change = Change.CHANGED


def _time(moment: int | None) -> int | None:
    return moment if moment is not None and 0 <= moment <= _LATEST_MS else None


@overload
def _storable(text: str) -> str: ...
@overload
def _storable(text: None) -> None: ...
def _storable(text: str | None) -> str | None:
    """The text with lone surrogates, which SQLite can't hold, as U+FFFD."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return replace_surrogates(text)
    return text
