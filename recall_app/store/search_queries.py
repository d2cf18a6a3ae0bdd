"""The MATCH queries on ``chat_search_fts``: counting, candidates with their term counts, texts and highlights.

MATCH expressions come from ``retrieval``; the boundary is here: every query that serves an agent joins ``chats`` on
the app, and leaves out private, deleted and the current chats (contracts §4).
"""

import json
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import apsw

from recall_app.domain.records import Role
from recall_app.store.history import Row
from recall_app.store.search_index import scope_token

MARK_OPEN = "\x02"
MARK_CLOSE = "\x03"
"""Around a match in ``highlights``; no indexed text holds these characters, since projections drop controls."""

_TITLE = 0
_LAST_TEXT_COLUMN = 2
_SIZE = struct.Struct("<I")
_MOST = 255


class Candidate(NamedTuple):
    """A message that matches. ``titles`` and ``bodies`` hold, for each phrase of the expression, how often it stands in
    the title, and in body and forms (at most 255 each); ``size`` is the document's length in tokens.

    A tuple, since a search makes a thousand of them.
    """

    message_id: int
    chat_id: int
    role: Role
    created_at: int
    is_compaction_summary: bool
    size: int
    titles: bytes
    bodies: bytes


class _Places:
    """How many rows of each chat a query may still give; SQLite asks it row by row, before the costly columns."""

    def __init__(self) -> None:
        self._most = 0
        self._taken: Counter[int] = Counter()

    def begin(self, *values: Any) -> None:
        (self._most,) = values
        self._taken.clear()

    def take(self, *values: Any) -> bool:
        (chat_id,) = values
        self._taken[chat_id] += 1
        return self._taken[chat_id] <= self._most


def register(connection: apsw.Connection) -> None:
    """Make the functions of these queries known to a connection that will ask for candidates."""
    places = _Places()
    connection.register_fts5_function("phrase_counts", _phrase_counts)
    connection.create_scalar_function("begin_places", places.begin, 1)
    connection.create_scalar_function("take_place", places.take, 1)


def _phrase_counts(api: apsw.FTS5ExtensionApi, /, *_: Any) -> bytes:
    """Size and counts of every phrase but the first, which is the scope token."""
    phrases = api.phrase_count
    counts = bytearray(2 * (phrases - 1))
    for phrase in range(1, phrases):
        for column in api.phrase_columns(phrase):
            if column <= _LAST_TEXT_COLUMN:
                at = 2 * (phrase - 1) + (column != _TITLE)
                counts[at] = min(_MOST, counts[at] + len(api.phrase_column_offsets(phrase, column)))
    return _SIZE.pack(api.column_size(-1)) + bytes(counts)


def scoped(app_id: int, expression: str) -> str:
    """``expression`` confined to one app inside the index; the join in SQL stays the authority."""
    return f'scope : "{scope_token(app_id)}" AND {expression}'


def count_documents(connection: apsw.Connection, match: str) -> int:
    """How many documents match."""
    count = connection.execute("SELECT count(*) FROM chat_search_fts WHERE chat_search_fts MATCH ?", (match,)).get
    return int(count)


_CANDIDATES = """
    SELECT m.id, m.chat_id, m.role, m.created_at, m.is_compaction_summary, phrase_counts(chat_search_fts)
    FROM chat_search_fts CROSS JOIN messages m ON m.id = chat_search_fts.rowid CROSS JOIN chats c ON c.id = m.chat_id
    WHERE chat_search_fts MATCH :match AND c.app_id = :app AND c.is_private = 0 AND c.deleted_at IS NULL
        AND c.id IS NOT :current
"""


_SPELT = """
    AND instr(lower(chat_search_fts.title || ' ' || chat_search_fts.body || ' ' || chat_search_fts.forms), :spelling)
"""


@dataclass(frozen=True, slots=True)
class Cut:
    """The best by ``bm25()``: so many in all, and so many of one chat, lest one whose title matches fill them all.

    The statistics of ``bm25()`` are those of the whole table: good for cutting, not for the final order.
    """

    most: int
    most_of_a_chat: int


def candidates(
    connection: apsw.Connection,
    match: str,
    app_id: int,
    current_chat_id: int | None,
    *,
    cut: Cut | None = None,
    spelling: str = "",
) -> list[Candidate]:
    """The messages that an agent of this app may find; ``match`` must be ``scoped``.

    A ``spelling`` (lower case) must stand in the text too; each match's text is read for that.
    """
    sql = _CANDIDATES + (_SPELT if spelling else "")
    values = {"match": match, "app": app_id, "current": current_chat_id, "spelling": spelling}
    if cut is None:
        return [_candidate(row) for row in connection.execute(sql, values)]
    connection.execute("SELECT begin_places(?)", (cut.most_of_a_chat,))
    rows = connection.execute(f"{sql} AND take_place(m.chat_id) ORDER BY chat_search_fts.rank", values)
    best = [_candidate(row) for row in islice(rows, cut.most)]
    rows.close()
    return best


def _candidate(row: Row) -> Candidate:
    message_id, chat_id, role, created_at, is_summary, packed = row
    (size,) = _SIZE.unpack_from(packed)
    counts = packed[_SIZE.size :]
    return Candidate(message_id, chat_id, role, created_at, bool(is_summary), size, counts[::2], counts[1::2])


@dataclass(frozen=True, slots=True)
class IndexedText:
    """Title, body and forms of one document as they are indexed (with word breaks), and what a result says of it."""

    message_id: int
    chat_id: int
    role: Role
    created_at: int
    title: str
    body: str
    forms: str
    truncated: bool
    is_compaction_summary: bool


def indexed_texts(connection: apsw.Connection, message_ids: Sequence[int]) -> dict[int, IndexedText]:
    """The documents of these messages, by message id."""
    rows = connection.execute(
        """
        SELECT f.rowid, m.chat_id, m.role, m.created_at, f.title, f.body, f.forms, f.projection_truncated,
               m.is_compaction_summary
        FROM json_each(?) j CROSS JOIN chat_search_fts f ON f.rowid = j.value CROSS JOIN messages m ON m.id = j.value
        """,
        (json.dumps(message_ids),),
    )
    return {row[0]: _indexed_text(row) for row in rows}


def _indexed_text(row: Row) -> IndexedText:
    fields = list(row)
    fields[7:] = map(bool, row[7:])
    return IndexedText(*fields)


def highlights(connection: apsw.Connection, match: str, message_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """``(title, body)`` of these messages with MARK_OPEN and MARK_CLOSE around what ``match`` matches."""
    rows = connection.execute(
        f"""
        SELECT rowid, highlight(chat_search_fts, 0, '{MARK_OPEN}', '{MARK_CLOSE}'),
               highlight(chat_search_fts, 1, '{MARK_OPEN}', '{MARK_CLOSE}')
        FROM chat_search_fts WHERE chat_search_fts MATCH ? AND rowid IN (SELECT value FROM json_each(?))
        """,
        (match, json.dumps(message_ids)),
    )
    return {message_id: (title, body) for message_id, title, body in rows}


def neighbours(
    connection: apsw.Connection, message_ids: Sequence[int], reach: int
) -> dict[int, tuple[list[int], list[int]]]:
    """For each of these messages the ids of up to ``reach`` messages before it in its chat, and after it, the nearest
    first."""
    rows = connection.execute(
        """
        SELECT m.id,
               (SELECT json_group_array(id) FROM (
                    SELECT id FROM messages WHERE chat_id = m.chat_id AND (created_at, id) < (m.created_at, m.id)
                    ORDER BY created_at DESC, id DESC LIMIT ?2)),
               (SELECT json_group_array(id) FROM (
                    SELECT id FROM messages WHERE chat_id = m.chat_id AND (created_at, id) > (m.created_at, m.id)
                    ORDER BY created_at, id LIMIT ?2))
        FROM json_each(?1) j CROSS JOIN messages m ON m.id = j.value
        """,
        (json.dumps(message_ids), reach),
    )
    return {message_id: (json.loads(before), json.loads(after)) for message_id, before, after in rows}


def first_with_text(connection: apsw.Connection, chat_id: int) -> int | None:
    """The first message of a chat whose document has a body; looks at the first 50."""
    row = connection.execute(
        """
        SELECT m.id FROM (SELECT id FROM messages WHERE chat_id = ? ORDER BY created_at, id LIMIT 50) m
        CROSS JOIN chat_search_fts f ON f.rowid = m.id WHERE f.body <> '' LIMIT 1
        """,
        (chat_id,),
    ).fetchone()
    return None if row is None else int(row[0])


@dataclass(frozen=True, slots=True)
class ChatHead:
    """What a result says of a chat."""

    chat_id: int
    app_id: int
    title: str | None
    source: str | None
    last_message_at: int


def chat_heads(connection: apsw.Connection, chat_ids: Sequence[int]) -> dict[int, ChatHead]:
    rows = connection.execute(
        """
        SELECT c.id, c.app_id, c.title, c.source,
               coalesce((SELECT max(m.created_at) FROM messages m WHERE m.chat_id = c.id), c.created_at)
        FROM json_each(?) j CROSS JOIN chats c ON c.id = j.value
        """,
        (json.dumps(chat_ids),),
    )
    return {row[0]: ChatHead(*row) for row in rows}
