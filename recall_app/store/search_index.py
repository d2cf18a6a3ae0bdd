"""The derived index in our file: the queues of what is out of date, the documents, and how much is covered.

Reading functions take any connection of ours, writing ones the connection inside a write transaction.
"""

import json
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

import apsw

from recall_app.domain.records import Coverage, FailedMessage, Role

_MERGE_PAGES = 64
_NO_MERGE = 2
"""A merge command that changes fewer rows than this found nothing left to merge (SQLite's documentation of FTS5)."""


@dataclass(frozen=True, slots=True)
class DirtyMessage:
    """A message whose document is out of date, as it stood when it was read; ``mark`` is the mark that was seen.

    Title and content are the bytes of the file: UTF-8, unless another program wrote something else there.
    """

    message_id: int
    mark: int
    chat_id: int
    app_id: int
    title: bytes | None
    role: Role
    is_compaction_summary: bool
    created_at: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Document:
    """The one row of ``chat_search_fts`` for a message, texts already prepared for the tokenizer."""

    source: DirtyMessage
    title: str
    body: str
    forms: str
    truncated: bool


def scope_token(app_id: int) -> str:
    """The token of the ``scope`` column that confines MATCH to one app."""
    return f"app{app_id}"


def dirty_messages(connection: apsw.Connection, *, unsettled: tuple[int, int] | None = None) -> Generator[DirtyMessage]:
    """What is to be indexed, by id, read one at a time; leaves out what was marked within ``unsettled`` (ms)."""
    first, last = unsettled or (1, 0)
    rows = connection.execute(
        """
        SELECT d.message_id, d.mark, m.chat_id, c.app_id, CAST(c.title AS BLOB), m.role, m.is_compaction_summary,
               m.created_at, CAST(m.content AS BLOB)
        FROM chat_search_dirty_messages d JOIN messages m ON m.id = d.message_id JOIN chats c ON c.id = m.chat_id
        WHERE d.marked_at NOT BETWEEN ? AND ? ORDER BY d.message_id
        """,
        (first, last),
    )
    for id_, mark, chat_id, app_id, title, role, is_summary, created_at, content in rows:
        yield DirtyMessage(id_, mark, chat_id, app_id, title, role, bool(is_summary), created_at, content)


def has_many_dirty_messages(connection: apsw.Connection, many: int) -> bool:
    """Whether at least ``many`` messages are queued."""
    row = connection.execute("SELECT 1 FROM chat_search_dirty_messages LIMIT 1 OFFSET ?", (many - 1,)).fetchone()
    return row is not None


def take_mark(connection: apsw.Connection, message: DirtyMessage) -> bool:
    """Clear the mark that was seen; False when the message was marked anew, or gone, or done by someone else."""
    connection.execute(
        "DELETE FROM chat_search_dirty_messages WHERE message_id = ? AND mark = ?", (message.message_id, message.mark)
    )
    return connection.changes() == 1


def replace_document(connection: apsw.Connection, document: Document) -> None:
    """Write the document in place of the message's old one."""
    source = document.source
    delete_document(connection, source.message_id)
    connection.execute(
        """
        INSERT INTO chat_search_fts (rowid, title, body, forms, scope, app_id, chat_id, message_id, role,
                                     message_created_at, is_compaction_summary, projection_truncated)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            source.message_id,
            document.title,
            document.body,
            document.forms,
            scope_token(source.app_id),
            source.app_id,
            source.chat_id,
            source.message_id,
            source.role,
            source.created_at,
            int(source.is_compaction_summary),
            int(document.truncated),
        ),
    )
    connection.execute("DELETE FROM chat_search_failures WHERE message_id = ?", (source.message_id,))


def delete_document(connection: apsw.Connection, message_id: int) -> None:
    connection.execute("DELETE FROM chat_search_fts WHERE rowid = ?", (message_id,))


def record_failure(connection: apsw.Connection, message_id: int, error_class: str, failed_at: int) -> None:
    """A message that can't be projected leaves the queue and is listed; its old document goes."""
    delete_document(connection, message_id)
    connection.execute(
        "INSERT INTO chat_search_failures (message_id, error_class, failed_at) VALUES (?, ?, ?) "
        "ON CONFLICT (message_id) DO UPDATE SET error_class = excluded.error_class, failed_at = excluded.failed_at",
        (message_id, error_class, failed_at),
    )


def having_documents(connection: apsw.Connection, message_ids: Sequence[int]) -> set[int]:
    """Those of the messages that have a document already."""
    rows = connection.execute(
        "SELECT id FROM chat_search_fts_docsize WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(message_ids),),
    )
    return {id_ for (id_,) in rows}


# FTS5's secure-delete removes a document's words at once, but one by one: 20 µs each, 2 ms a message. Without it
# FTS5 notes the deletion and drops the words when it merges: twenty times faster where much is replaced or deleted.
# The two must not mix: what was only noted has to be merged away before anything is deleted securely again, else FTS5
# loses count (3.54). Hence the setting itself, kept in the file, says whether words of old documents may linger.


def is_secure(connection: apsw.Connection) -> bool:
    """Whether deleted documents leave no word behind; False from ``defer_secure_delete`` to the end of the merging."""
    value = connection.execute("SELECT v FROM chat_search_fts_config WHERE k = 'secure-delete'").get
    return bool(value)


def defer_secure_delete(connection: apsw.Connection) -> None:
    """Delete documents the fast way until ``merge`` has seen to it that nothing of them is left."""
    if is_secure(connection):
        connection.execute("INSERT INTO chat_search_fts (chat_search_fts, rank) VALUES ('secure-delete', 0)")


def merge(connection: apsw.Connection, seconds: float) -> bool:
    """Merge the index for about so long; True once it is in one piece, and nothing of deleted documents lingers."""
    stop_at = time.perf_counter() + seconds
    while time.perf_counter() < stop_at:
        before = connection.total_changes()
        connection.execute("INSERT INTO chat_search_fts (chat_search_fts, rank) VALUES ('merge', ?)", (-_MERGE_PAGES,))
        if connection.total_changes() - before < _NO_MERGE:
            if not is_secure(connection):
                connection.execute("INSERT INTO chat_search_fts (chat_search_fts, rank) VALUES ('secure-delete', 1)")
            return True
    return False


def merge_deleted(connection: apsw.Connection, seconds: float) -> bool:
    """``merge``, but only if something of deleted documents lingers; True once nothing does."""
    return is_secure(connection) or merge(connection, seconds)


def next_generation(connection: apsw.Connection) -> None:
    """Say that documents changed."""
    connection.execute("UPDATE chat_search_meta SET value = value + 1 WHERE key = 'generation'")


def meta(connection: apsw.Connection, key: str) -> int:
    """``generation`` or ``projection_version``."""
    value = connection.execute("SELECT value FROM chat_search_meta WHERE key = ?", (key,)).get
    return int(value)


def set_projection_version(connection: apsw.Connection, version: int) -> None:
    connection.execute("UPDATE chat_search_meta SET value = ? WHERE key = 'projection_version'", (version,))


def mark_all(connection: apsw.Connection) -> None:
    """Mark everything, by chat: a few rows now, spread over the messages by ``expand_dirty_chats``."""
    connection.execute(
        "INSERT INTO chat_search_dirty_chats (chat_id) SELECT id FROM chats WHERE true "
        "ON CONFLICT (chat_id) DO UPDATE SET expanded_to = 0"
    )
    connection.execute("DELETE FROM chat_search_failures")


def expand_dirty_chats(connection: apsw.Connection, limit: int) -> int:
    """Turn the marks of chats into marks of at most ``limit`` of their messages.

    Returns how many it marked: 0 only when no chat is marked any more.
    """
    marked = 0
    while marked < limit:
        row = connection.execute("SELECT chat_id, expanded_to FROM chat_search_dirty_chats LIMIT 1").fetchone()
        if row is None:
            break
        chat_id, expanded_to = row
        marked += _expand_dirty_chat(connection, chat_id, expanded_to, limit - marked)
    return marked


def _expand_dirty_chat(connection: apsw.Connection, chat_id: int, expanded_to: int, limit: int) -> int:
    ids = [
        each
        for (each,) in connection.execute(
            "SELECT id FROM messages INDEXED BY messages_in_order WHERE chat_id = ? AND id > ? ORDER BY id LIMIT ?",
            (chat_id, expanded_to, limit),
        )
    ]
    connection.executemany(
        "INSERT INTO chat_search_dirty_messages (message_id, chat_id) VALUES (?, ?) "
        "ON CONFLICT (message_id) DO UPDATE SET mark = excluded.mark",
        [(message_id, chat_id) for message_id in ids],
    )
    if len(ids) < limit:
        connection.execute("DELETE FROM chat_search_dirty_chats WHERE chat_id = ?", (chat_id,))
    else:
        connection.execute("UPDATE chat_search_dirty_chats SET expanded_to = ? WHERE chat_id = ?", (ids[-1], chat_id))
    return len(ids)


def has_dirty_chats(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM chat_search_dirty_chats LIMIT 1").fetchone() is not None


def unmarked_without_document(connection: apsw.Connection) -> list[int]:
    """Messages that have no document although nothing says that one is due: what a repair must mark."""
    rows = connection.execute(
        """
        SELECT id FROM messages m
        WHERE NOT EXISTS (SELECT 1 FROM chat_search_fts_docsize d WHERE d.id = m.id)
          AND NOT EXISTS (SELECT 1 FROM chat_search_dirty_messages q WHERE q.message_id = m.id)
          AND NOT EXISTS (SELECT 1 FROM chat_search_failures f WHERE f.message_id = m.id)
          AND m.chat_id NOT IN (SELECT chat_id FROM chat_search_dirty_chats)
        """
    )
    return [id_ for (id_,) in rows]


def documents_without_message(connection: apsw.Connection) -> list[int]:
    """Documents that no message stands behind: what a repair must delete."""
    rows = connection.execute(
        "SELECT id FROM chat_search_fts_docsize d WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = d.id)"
    )
    return [id_ for (id_,) in rows]


def mark_messages(connection: apsw.Connection, message_ids: Iterable[int]) -> None:
    connection.executemany(
        "INSERT INTO chat_search_dirty_messages (message_id, chat_id) SELECT id, chat_id FROM messages WHERE id = ? "
        "ON CONFLICT (message_id) DO UPDATE SET mark = excluded.mark",
        [(message_id,) for message_id in message_ids],
    )


# CROSS JOIN keeps the order: from the marks to their chats. SQLite, which takes the queues for small, would rather
# scan them once for each chat of the app.
_PENDING = """
    SELECT (SELECT count(*) FROM chat_search_dirty_messages d
            CROSS JOIN chats c
                ON c.id = coalesce(d.chat_id, (SELECT m.chat_id FROM messages m WHERE m.id = d.message_id))
            WHERE {chats})
         + (SELECT count(*) FROM chat_search_dirty_chats q CROSS JOIN chats c ON c.id = q.chat_id
            CROSS JOIN messages m ON m.chat_id = c.id
            WHERE {chats} AND m.id > q.expanded_to
              AND NOT EXISTS (SELECT 1 FROM chat_search_dirty_messages d WHERE d.message_id = m.id))
"""


def pending(connection: apsw.Connection, app_id: int | None = None) -> int:
    """Distinct messages, of one app or of all, that are dirty themselves or belong to a dirty chat."""
    count = connection.execute(_PENDING.format(chats="(?1 IS NULL OR c.app_id = ?1)"), (app_id,)).get
    return int(count)


def pending_by_app(connection: apsw.Connection) -> dict[int, int]:
    """``pending`` of every app that has any."""
    app_ids: list[int] = [app_id for (app_id,) in list(connection.execute("SELECT id FROM apps ORDER BY id"))]
    counts = {app_id: pending(connection, app_id) for app_id in app_ids}
    return {app_id: count for app_id, count in counts.items() if count}


def pending_for_agent(connection: apsw.Connection, app_id: int, current_chat_id: int | None) -> int:
    """``pending`` of the chats that a tool call from ``current_chat_id`` searches."""
    visible = "c.app_id = ?1 AND c.id IS NOT ?2 AND c.is_private = 0 AND c.deleted_at IS NULL"
    count = connection.execute(_PENDING.format(chats=visible), (app_id, current_chat_id)).get
    return int(count)


def coverage(connection: apsw.Connection, app_id: int | None = None) -> Coverage:
    """Coverage of one app, or of everything."""
    total, failed = connection.execute(
        """
        SELECT (SELECT count(*) FROM messages m JOIN chats c ON c.id = m.chat_id WHERE ?1 IS NULL OR c.app_id = ?1),
               (SELECT count(*) FROM chat_search_failures f JOIN messages m ON m.id = f.message_id
                JOIN chats c ON c.id = m.chat_id WHERE ?1 IS NULL OR c.app_id = ?1)
        """,
        (app_id,),
    ).get
    return Coverage(app_id, total, pending(connection, app_id), failed)


def failed_count(connection: apsw.Connection) -> int:
    """How many messages could not be projected."""
    count = connection.execute("SELECT count(*) FROM chat_search_failures").get
    return int(count)


def failed_messages(connection: apsw.Connection, app_id: int | None = None) -> Sequence[FailedMessage]:
    """The messages that could not be projected, the latest first."""
    rows = connection.execute(
        """
        SELECT f.message_id, m.chat_id, f.error_class, f.failed_at FROM chat_search_failures f
        JOIN messages m ON m.id = f.message_id JOIN chats c ON c.id = m.chat_id
        WHERE ?1 IS NULL OR c.app_id = ?1 ORDER BY f.failed_at DESC, f.message_id
        """,
        (app_id,),
    )
    return [FailedMessage(*row) for row in rows]
