"""Apps, chats and messages: what the person has, as it is stored.

Reading functions take any connection of ours, writing ones the connection of a write command (``store.writer``).
A chat that the person deleted (``deleted_at``) is invisible to every reading function here. No function selects
``ai_messages_json`` (contracts §2); only ``set_transcript`` writes it and ``transcripts`` hands it to the agent.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from recall_app.domain.errors import NotFoundError
from recall_app.domain.records import App, Chat, Message, Role

Row = tuple[Any, ...]

_CHAT_COLUMNS = (
    "c.id, c.app_id, c.title, c.created_at, c.source, c.source_key, c.parent_chat_id, c.mode, c.model, "
    "c.is_private, c.is_favorite, c.last_read_at, c.deleted_at"
)
_MESSAGE_COLUMNS = (
    "m.id, m.chat_id, m.role, m.content, m.model, m.is_compaction_summary, m.branch, m.created_at, m.source_key"
)


def now_ms() -> int:
    """Now in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def apps(connection: apsw.Connection) -> list[App]:
    """All apps with their counts of chats and messages, by name."""
    rows = connection.execute(
        """
        SELECT a.id, a.name, a.path, a.created_at, a.updated_at,
               (SELECT count(*) FROM chats c WHERE c.app_id = a.id AND c.deleted_at IS NULL),
               (SELECT count(*) FROM chats c JOIN messages m ON m.chat_id = c.id
                WHERE c.app_id = a.id AND c.deleted_at IS NULL)
        FROM apps a ORDER BY a.name COLLATE NOCASE, a.id
        """
    )
    return [App(*row) for row in rows]


def app_names(connection: apsw.Connection) -> dict[int, str]:
    """Each app's name by its id, without the counts."""
    return dict(connection.execute("SELECT id, name FROM apps"))


def app_exists(connection: apsw.Connection, app_id: int) -> bool:
    return connection.execute("SELECT 1 FROM apps WHERE id = ?", (app_id,)).fetchone() is not None


def add_app(connection: apsw.Connection, name: str, path: str | None = None) -> int:
    """A new app of Recall's own; returns its id."""
    now = now_ms()
    connection.execute(
        "INSERT INTO apps (name, path, created_at, updated_at) VALUES (?, ?, ?, ?)", (name, path, now, now)
    )
    return connection.last_insert_rowid()


def chats(connection: apsw.Connection, app_id: int) -> list[Chat]:
    """The chats of an app, the one with the newest message first."""
    rows = connection.execute(
        f"""
        SELECT {_CHAT_COLUMNS},
               (SELECT max(m.created_at) FROM messages m WHERE m.chat_id = c.id) AS last_message_at,
               (SELECT count(*) FROM messages m WHERE m.chat_id = c.id)
        FROM chats c WHERE c.app_id = ? AND c.deleted_at IS NULL
        ORDER BY coalesce(last_message_at, c.created_at) DESC, c.id DESC
        """,
        (app_id,),
    )
    return [_chat(row) for row in rows]


def chat(connection: apsw.Connection, chat_id: int) -> Chat:
    """One chat, private ones too (this is the person's own view).

    Raises:
        NotFoundError: there is none, or it is deleted.
    """
    row = connection.execute(
        f"""
        SELECT {_CHAT_COLUMNS}, (SELECT max(m.created_at) FROM messages m WHERE m.chat_id = c.id),
               (SELECT count(*) FROM messages m WHERE m.chat_id = c.id)
        FROM chats c WHERE c.id = ? AND c.deleted_at IS NULL
        """,
        (chat_id,),
    ).fetchone()
    if row is None:
        raise NotFoundError("No such chat.")
    return _chat(row)


def _chat(row: Row) -> Chat:
    fields = list(row)
    fields[9:11] = map(bool, row[9:11])
    return Chat(*fields)


def is_chat_of(connection: apsw.Connection, chat_id: int, app_id: int) -> bool:
    """Is there such a chat, not deleted, in this app?"""
    found = connection.execute(
        "SELECT 1 FROM chats WHERE id = ? AND app_id = ? AND deleted_at IS NULL", (chat_id, app_id)
    ).fetchone()
    return found is not None


def messages(connection: apsw.Connection, chat_id: int, *, offset: int = 0, limit: int = -1) -> list[Message]:
    """Messages of a chat in *the* order (created_at, id); a negative limit means all."""
    rows = connection.execute(
        f"""
        SELECT {_MESSAGE_COLUMNS} FROM messages m JOIN chats c ON c.id = m.chat_id
        WHERE m.chat_id = ? AND c.deleted_at IS NULL ORDER BY m.created_at, m.id LIMIT ? OFFSET ?
        """,
        (chat_id, limit, offset),
    )
    return [message_from_row(row) for row in rows]


def each_message(connection: apsw.Connection, chat_id: int) -> Iterator[Message]:
    """``messages`` one at a time, for chats of any length."""
    for row in connection.execute(
        f"SELECT {_MESSAGE_COLUMNS} FROM messages m WHERE m.chat_id = ? ORDER BY m.created_at, m.id", (chat_id,)
    ):
        yield message_from_row(row)


def message(connection: apsw.Connection, message_id: int) -> Message:
    """One message.

    Raises:
        NotFoundError: there is none, or its chat is deleted.
    """
    row = connection.execute(
        f"""
        SELECT {_MESSAGE_COLUMNS} FROM messages m JOIN chats c ON c.id = m.chat_id
        WHERE m.id = ? AND c.deleted_at IS NULL
        """,
        (message_id,),
    ).fetchone()
    if row is None:
        raise NotFoundError("No such message.")
    return message_from_row(row)


def message_from_row(row: Row) -> Message:
    """A message from the columns id, chat_id, role, content, model, is_compaction_summary, branch, created_at,
    source_key."""
    id_, chat_id, role, content, model, is_summary, branch, created_at, source_key = row
    return Message(id_, chat_id, role, content, model, bool(is_summary), branch, created_at, source_key)


def add_chat(
    connection: apsw.Connection, app_id: int, title: str | None, *, mode: str | None = None, model: str | None = None
) -> int:
    """A new chat of Recall's own; returns its id."""
    if not app_exists(connection, app_id):
        raise NotFoundError("No such app.")
    connection.execute(
        "INSERT INTO chats (app_id, title, created_at, mode, model) VALUES (?, ?, ?, ?, ?)",
        (app_id, title, now_ms(), mode, model),
    )
    return connection.last_insert_rowid()


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to append. Without ``created_at`` it gets now, or the chat's last time if that is later."""

    chat_id: int
    role: Role
    content: str
    model: str | None = None
    is_compaction_summary: bool = False
    created_at: int | None = None


def add_message(connection: apsw.Connection, new: NewMessage) -> int:
    """Append a message; returns its id. Its time is lifted to the chat's last one, so that the order holds."""
    created_at = new.created_at
    if created_at is None:
        last = connection.execute("SELECT max(created_at) FROM messages WHERE chat_id = ?", (new.chat_id,)).get
        created_at = max(now_ms(), last or 0)
    connection.execute(
        "INSERT INTO messages (chat_id, role, content, model, is_compaction_summary, created_at) "
        "SELECT id, ?, ?, ?, ?, ? FROM chats WHERE id = ? AND deleted_at IS NULL",
        (new.role, new.content, new.model, int(new.is_compaction_summary), created_at, new.chat_id),
    )
    if connection.changes() != 1:
        raise NotFoundError("No such chat.")
    return connection.last_insert_rowid()


def set_content(connection: apsw.Connection, message_id: int, content: str) -> None:
    """Replace what a message says."""
    connection.execute("UPDATE messages SET content = ? WHERE id = ?", (content, message_id))
    if connection.changes() != 1:
        raise NotFoundError("No such message.")


def set_transcript(connection: apsw.Connection, message_id: int, transcript_json: str) -> None:
    """Keep the model-side transcript of the turn that a message ends."""
    connection.execute("UPDATE messages SET ai_messages_json = ? WHERE id = ?", (transcript_json, message_id))


def rename_chat(connection: apsw.Connection, chat_id: int, title: str | None) -> None:
    connection.execute("UPDATE chats SET title = ? WHERE id = ? AND deleted_at IS NULL", (title, chat_id))
    if connection.changes() != 1:
        raise NotFoundError("No such chat.")


def set_private(connection: apsw.Connection, chat_id: int, is_private: bool) -> None:
    """Keep a chat out of agent recall, or let it back in."""
    connection.execute(
        "UPDATE chats SET is_private = ? WHERE id = ? AND deleted_at IS NULL", (int(is_private), chat_id)
    )
    if connection.changes() != 1:
        raise NotFoundError("No such chat.")


def move_chat(connection: apsw.Connection, chat_id: int, app_id: int) -> None:
    """Move a chat to another app by hand: a later import leaves it there."""
    if not app_exists(connection, app_id):
        raise NotFoundError("No such app.")
    connection.execute(
        "UPDATE chats SET app_id = ?, placed_by_hand = 1 WHERE id = ? AND deleted_at IS NULL", (app_id, chat_id)
    )
    if connection.changes() != 1:
        raise NotFoundError("No such chat.")
