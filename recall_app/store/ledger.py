"""The ledger: what was consulted, by which chat, and where it went (contracts §8)."""

from collections.abc import Iterator

import apsw

from recall_app.domain.errors import NotFoundError
from recall_app.domain.records import Consultation, ConsultedMessage, NewConsultation
from recall_app.store.history import Row

_COLUMNS = (
    "at, app_id, chat_id, message_id, tool, arguments_json, decision, provider, model, is_local, index_status, "
    "result_count, bytes, truncated, duration_ms, outcome"
)
_NAMES = _COLUMNS.split(", ")
_IS_SHOWN = "NOT EXISTS (SELECT 1 FROM chats c WHERE c.id = k.chat_id AND c.deleted_at IS NOT NULL)"
_ALL = -1


def record(connection: apsw.Connection, entry: NewConsultation) -> int:
    """Add a consultation with its messages; returns its id.

    What was taken from a chat that has been deleted for good meanwhile is kept without its excerpt.

    Raises:
        NotFoundError: the asking app, chat or message is gone.
    """
    try:
        connection.execute(
            f"INSERT INTO consultations ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                entry.at,
                entry.app_id,
                entry.chat_id,
                entry.message_id,
                entry.tool,
                entry.arguments_json,
                entry.decision,
                entry.provider,
                entry.model,
                int(entry.is_local),
                entry.index_status,
                entry.result_count,
                entry.bytes,
                int(entry.truncated),
                entry.duration_ms,
                entry.outcome,
            ),
        )
    except apsw.ConstraintError as error:
        raise NotFoundError from error
    consultation_id = connection.last_insert_rowid()
    connection.executemany(
        """
        INSERT INTO consulted_messages (consultation_id, chat_id, message_id, excerpt)
        VALUES (?1, ?2, ?3, CASE WHEN EXISTS (
            SELECT 1 FROM messages m JOIN chats c ON c.id = m.chat_id WHERE m.id = ?3 AND c.deleted_at IS NOT 0
        ) THEN ?4 END)
        ON CONFLICT DO NOTHING
        """,
        [(consultation_id, each.chat_id, each.message_id, each.excerpt) for each in entry.messages],
    )
    return consultation_id


def consultations(
    connection: apsw.Connection, *, app_id: int | None = None, chat_id: int | None = None, limit: int = _ALL
) -> list[Consultation]:
    """The newest first, of one app, one asking chat, or all; those of a deleted chat are hidden with it."""
    rows = connection.execute(
        f"""
        SELECT id, {_COLUMNS} FROM consultations k
        WHERE (?1 IS NULL OR app_id = ?1) AND (?2 IS NULL OR chat_id = ?2)
          AND {_IS_SHOWN}
        ORDER BY id DESC LIMIT ?3
        """,
        (app_id, chat_id, limit),
    )
    return [_consultation(connection, row) for row in rows]


def consultations_of_message(connection: apsw.Connection, message_id: int) -> list[Consultation]:
    """Every consultation that gave this message's text away, the newest first; those of a deleted chat are hidden."""
    rows = connection.execute(
        f"""
        SELECT id, {_COLUMNS} FROM consultations k
        WHERE id IN (SELECT consultation_id FROM consulted_messages WHERE message_id = ?) AND {_IS_SHOWN}
        ORDER BY id DESC
        """,
        (message_id,),
    )
    return [_consultation(connection, row) for row in rows]


def is_of_message(connection: apsw.Connection, consultation_id: int, message_id: int) -> bool:
    """Is a card in this message genuine: has the ledger its id for this very message (contracts §9)?"""
    return (
        connection.execute(
            "SELECT 1 FROM consultations WHERE id = ? AND message_id = ?", (consultation_id, message_id)
        ).fetchone()
        is not None
    )


def erase(connection: apsw.Connection, *, app_id: int | None = None, chat_id: int | None = None) -> int:
    """Erase the ledger of one app, one asking chat, or all; returns how many consultations went."""
    connection.execute(
        "DELETE FROM consultations WHERE (?1 IS NULL OR app_id = ?1) AND (?2 IS NULL OR chat_id = ?2)",
        (app_id, chat_id),
    )
    return connection.changes()


def _consultation(connection: apsw.Connection, row: Row) -> Consultation:
    (id_, *fields) = row
    for name in ("is_local", "truncated"):
        at = _NAMES.index(name)
        fields[at] = bool(fields[at])
    fields.append(tuple(_messages(connection, id_)))
    return Consultation(id_, NewConsultation(*fields))


def _messages(connection: apsw.Connection, consultation_id: int) -> Iterator[ConsultedMessage]:
    """By message id; the excerpts of a chat that is deleted but can still be brought back are hidden."""
    for row in connection.execute(
        """
        SELECT k.chat_id, k.message_id, CASE WHEN c.deleted_at IS NULL THEN k.excerpt END
        FROM consulted_messages k LEFT JOIN chats c ON c.id = k.chat_id WHERE k.consultation_id = ?
        ORDER BY k.message_id
        """,
        (consultation_id,),
    ):
        yield ConsultedMessage(*row)
