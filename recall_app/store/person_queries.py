"""The MATCH queries of the person's search: over one app or all, private chats included, deleted ones not.

MATCH expressions come from ``retrieval``.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import regex

from recall_app.domain.person_search import Filters
from recall_app.domain.records import Role
from recall_app.domain.text import fold
from recall_app.domain.word_breaks import without_breaks

TOKENIZER = ("unicode61", "remove_diacritics", "2", "categories", "L* M* N* Co So", "tokenchars", "+#")
"""What ``porter`` wraps in the migration."""


_FORMS = 2
_COLUMNS = {"title": frozenset({0}), "message": frozenset({1, _FORMS}), "anywhere": frozenset({0, 1, _FORMS})}


def register(connection: apsw.Connection) -> None:
    """Make ``confirms_prefix`` known to a connection that will ask these queries."""
    connection.register_fts5_function("confirms_prefix", _confirms_prefix)


def _confirms_prefix(api: apsw.FTS5ExtensionApi, /, *arguments: Any) -> int:
    """Does one of ``count`` phrases from ``first`` on match, or does a word of the text begin with ``prefix``?

    The index knows stems only: what stands in for “a word that begins with authentica” has to be looked at.
    """
    first, count, prefix, where = arguments
    columns = _COLUMNS[where]
    if any(columns.intersection(api.phrase_columns(phrase)) for phrase in range(first, first + count)):
        return 1
    begins = _word_beginning(prefix)
    texts = (api.column_text(column).decode() for column in sorted(columns) if column != _FORMS)
    return int(any(begins.search(fold(without_breaks(text))) is not None for text in texts))


def _word_beginning(prefix: str) -> "regex.Pattern[str]":
    return regex.compile(rf"(?<![\p{{L}}\p{{M}}\p{{N}}]){regex.escape(prefix)}")


def stems(connection: apsw.Connection, words: Iterable[str]) -> list[str]:
    """What the tokenizer makes of each word, which must be one token."""
    tokenizer = connection.fts5_tokenizer("porter", list(TOKENIZER))
    found = []
    for word in words:
        tokens = tokenizer(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
        found.append(next((str(token) for alternatives in tokens for token in alternatives), ""))
    return found


@dataclass(frozen=True, slots=True)
class PrefixCheck:
    """Arguments of ``confirms_prefix``: which phrases of MATCH are sure, the folded prefix to look for else, and where
    it must stand: in the ``title``, in the ``message``, or ``anywhere``."""

    first: int
    count: int
    prefix: str
    where: str = "anywhere"


@dataclass(frozen=True, slots=True)
class ChatGroup:
    """A chat with matching messages: how many, their best ``bm25`` (smaller is better) and their latest time."""

    chat_id: int
    best: float
    messages: int
    newest: int


def _conditions(filters: Filters, check: PrefixCheck | None) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {
        "app": filters.app_id,
        "role": filters.role,
        "source": filters.source,
        "after": filters.after,
        "before": filters.before,
    }
    sql = "c.deleted_at IS NULL"
    tests = {
        "app": "c.app_id = :app",
        "role": "m.role = :role",
        "source": "c.source = :source",
        "after": "m.created_at >= :after",
        "before": "m.created_at < :before",
    }
    for name, test in tests.items():
        if values[name] is not None:
            sql += f" AND {test}"
    if check is not None:
        sql += " AND confirms_prefix(chat_search_fts, :first, :count, :prefix, :where)"
        values |= {"first": check.first, "count": check.count, "prefix": check.prefix, "where": check.where}
    return sql, values


_FROM = """
    FROM chat_search_fts CROSS JOIN messages m ON m.id = chat_search_fts.rowid CROSS JOIN chats c ON c.id = m.chat_id
    WHERE chat_search_fts MATCH :match AND
"""


def groups(
    connection: apsw.Connection, match: str, filters: Filters, check: PrefixCheck | None = None
) -> list[ChatGroup]:
    """Every chat with a matching message, in no order."""
    conditions, values = _conditions(filters, check)
    rows = connection.execute(
        f"SELECT m.chat_id, min(chat_search_fts.rank), count(*), max(m.created_at) {_FROM} {conditions} "
        "GROUP BY m.chat_id",
        values | {"match": match},
    )
    return [ChatGroup(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class HitRow:
    """A matching message of a chat."""

    message_id: int
    chat_id: int
    role: Role
    created_at: int
    is_compaction_summary: bool


def hits(
    connection: apsw.Connection,
    match: str,
    filters: Filters,
    check: PrefixCheck | None,
    chat_ids: Sequence[int],
    *,
    newest_first: bool,
) -> list[HitRow]:
    """The matching messages of these chats, the best or the newest first."""
    conditions, values = _conditions(filters, check)
    order = "m.created_at DESC, m.id DESC" if newest_first else "chat_search_fts.rank, m.created_at DESC, m.id DESC"
    rows = connection.execute(
        f"SELECT m.id, m.chat_id, m.role, m.created_at, m.is_compaction_summary {_FROM} {conditions} "
        f"AND m.chat_id IN (SELECT value FROM json_each(:chats)) ORDER BY {order}",
        values | {"match": match, "chats": json.dumps(chat_ids)},
    )
    return [HitRow(id_, chat_id, role, at, bool(summary)) for id_, chat_id, role, at, summary in rows]
