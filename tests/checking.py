"""What must hold of a store whatever was done to it, checked without the code that keeps it so."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from recall_app.domain.projection import ChatSearchProjectionInput, project_chat_message_for_search
from recall_app.domain.text import one_line
from recall_app.domain.word_breaks import index_document

Document = tuple[Any, ...]


def documents(connection: apsw.Connection) -> dict[int, Document]:
    """Every document of the index by its rowid."""
    rows = connection.execute(
        """
        SELECT rowid, title, body, forms, scope, app_id, chat_id, message_id, role, message_created_at,
               is_compaction_summary, projection_truncated FROM chat_search_fts
        """
    )
    return {rowid: tuple(document) for rowid, *document in rows}


def projected(connection: apsw.Connection) -> dict[int, Document]:
    """The document that each message must have, from the message itself."""
    rows = connection.execute(
        """
        SELECT m.id, m.chat_id, c.app_id, c.title, m.role, m.content, m.is_compaction_summary, m.created_at
        FROM messages m JOIN chats c ON c.id = m.chat_id
        """
    )
    return {row[0]: _document(row) for row in rows}


def _document(row: tuple[Any, ...]) -> Document:
    id_, chat_id, app_id, title, role, content, is_summary, created_at = row
    projection = project_chat_message_for_search(ChatSearchProjectionInput(role, content, bool(is_summary)))
    body, forms = index_document(projection.text)
    shown, title_forms = index_document(one_line(title or "", 1_000))
    words = " ".join(part for part in (forms, title_forms) if part)
    texts = (shown, body, words, f"app{app_id}")
    return (*texts, app_id, chat_id, id_, role, created_at, is_summary, int(projection.truncated))


def queued(connection: apsw.Connection) -> set[int]:
    """Ids of the messages whose own mark is set."""
    return {id_ for (id_,) in connection.execute("SELECT message_id FROM chat_search_dirty_messages")}


def assert_whole(connection: apsw.Connection) -> None:
    """The file is sound, and so is the index inside it."""
    assert [line for (line,) in connection.execute("PRAGMA integrity_check")] == ["ok"]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    # Raises CorruptError if a posting is missing or too much.
    connection.execute("INSERT INTO chat_search_fts (chat_search_fts) VALUES ('integrity-check')")


def assert_current(connection: apsw.Connection) -> None:
    """After a drain: nothing is queued, every message has just its document, and no word of another one is left."""
    assert queued(connection) == set()
    assert documents(connection) == projected(connection)
    assert_whole(connection)
    assert is_secure(connection)


def is_secure(connection: apsw.Connection) -> bool:
    """Whether FTS5's secure-delete is on, as contracts §2 asks."""
    return bool(connection.execute("SELECT v FROM chat_search_fts_config WHERE k = 'secure-delete'").get)


@contextmanager
def before_next_transaction(connection: apsw.Connection, happens: Callable[[], object]) -> Iterator[None]:
    """Run ``happens`` once, just before the connection's next write transaction begins."""
    waiting = [happens]

    def trace(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        if sql.startswith("BEGIN IMMEDIATE") and waiting:
            waiting.pop()()
        return True

    connection.exec_trace = trace
    try:
        yield
    finally:
        connection.exec_trace = None
