"""Bounded reading of one chat: one statement authorises and locates, further ones touch only the rows returned."""

import json
from dataclasses import dataclass
from typing import Any

import apsw

from recall_app.domain.consulting import Viewer
from recall_app.domain.records import Message
from recall_app.store.history import message_from_row

# What the viewer may see of a chat, as an end ``w`` in *the* order: all of it, but of its own chat only what stands
# before the answer that is being written. A compaction summary made during the turn is dated earlier and so included.
_CHAT = "chats c LEFT JOIN messages w ON w.id = :writing AND w.chat_id = c.id"
_BEFORE_END = "(w.id IS NULL OR (m.created_at, m.id) < (w.created_at, w.id))"
_MAY_READ = "c.id = :chat AND c.app_id = :app AND c.deleted_at IS NULL AND (c.is_private = 0 OR c.id IS :current)"


def _count_before(row: str) -> str:
    """How many messages of the chat stand before a row: two counts of index ranges, half the cost of a row value."""
    return f"""
        ((SELECT count(*) FROM messages b WHERE b.chat_id = c.id AND b.created_at < {row}.created_at)
         + (SELECT count(*) FROM messages b
            WHERE b.chat_id = c.id AND b.created_at = {row}.created_at AND b.id < {row}.id))
    """


_TOTAL = f"""
    CASE WHEN w.id IS NULL THEN (SELECT count(*) FROM messages b WHERE b.chat_id = c.id)
         ELSE {_count_before("w")} END
"""

_LOCATE_CHAT = f"SELECT c.id, c.title, c.created_at, {_TOTAL}, w.id IS NULL, NULL FROM {_CHAT} WHERE {_MAY_READ}"
_LOCATE_MESSAGE = f"""
    SELECT c.id, c.title, c.created_at, {_TOTAL}, w.id IS NULL, {_count_before("m")}
    FROM {_CHAT} JOIN messages m ON m.id = :target AND m.chat_id = c.id
    WHERE {_MAY_READ} AND {_BEFORE_END}
"""
# What may be seen of a chat are its first ``Located.total`` messages: no test of each row that is passed over, and of a
# whole chat the later half is reached from its end.
_FROM_START = f"""
    SELECT m.id FROM chats c JOIN messages m ON m.chat_id = c.id
    WHERE {_MAY_READ} ORDER BY m.created_at, m.id LIMIT :limit OFFSET :skipped
"""
_FROM_END = f"""
    SELECT m.id FROM chats c JOIN messages m ON m.chat_id = c.id
    WHERE {_MAY_READ} ORDER BY m.created_at DESC, m.id DESC LIMIT :limit OFFSET :skipped
"""


@dataclass(frozen=True, slots=True)
class Located:
    """A chat that the viewer may read. ``total`` counts the messages that it may see, which are all when ``is_whole``;
    ``position`` is the target's place among them, from 0, or None without a target."""

    chat_id: int
    title: str | None
    created_at: int
    total: int
    is_whole: bool
    position: int | None


def locate(connection: apsw.Connection, viewer: Viewer, chat_id: int, target: int | None = None) -> Located | None:
    """The chat, with the target's position; None when it is missing, of another app, private to another chat, deleted,
    or does not hold the target: all by this same path."""
    names = _names(viewer, chat_id) | {"target": target}
    row = connection.execute(_LOCATE_CHAT if target is None else _LOCATE_MESSAGE, names).fetchone()
    if row is None:
        return None
    id_, title, created_at, total, is_whole, position = row
    return Located(id_, title, created_at, total, bool(is_whole), position)


def page(connection: apsw.Connection, viewer: Viewer, located: Located, positions: range) -> list[Message]:
    """The messages at these positions, as far as the viewer may see the chat, as it was ``located`` in this
    snapshot."""
    stop = min(positions.stop, located.total)
    is_near_end = located.is_whole and positions.start > located.total // 2
    names = _names(viewer, located.chat_id) | {
        "limit": max(0, stop - positions.start),
        "skipped": located.total - stop if is_near_end else positions.start,
    }
    ids = [id_ for (id_,) in connection.execute(_FROM_END if is_near_end else _FROM_START, names)]
    rows = connection.execute(
        """
        SELECT m.id, m.chat_id, m.role, m.content, m.model, m.is_compaction_summary, m.branch, m.created_at,
               m.source_key
        FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value ORDER BY m.created_at, m.id
        """,
        (json.dumps(ids),),
    )
    return [message_from_row(row) for row in rows]


def _names(viewer: Viewer, chat_id: int) -> dict[str, Any]:
    return {"chat": chat_id, "app": viewer.app_id, "current": viewer.chat_id, "writing": viewer.message_id}
