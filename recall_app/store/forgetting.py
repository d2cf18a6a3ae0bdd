"""Deleting chats: hidden at once, undone within ten seconds, then gone for good with every trace (contracts §8).

What other chats hold of a forgotten chat goes too: entries of their cards, their transcripts, quoted lines of their
agents' answers, excerpts of the ledger. What a person wrote stays the person's.
"""

from collections.abc import Collection, Sequence

import apsw

from recall_app.domain.cards import HISTORY_TAGS, without_chat
from recall_app.domain.errors import NotFoundError
from recall_app.domain.projection import ChatSearchProjectionInput
from recall_app.domain.quotations import Quotations
from recall_app.store.history import each_message, now_ms
from recall_app.store.search_index import defer_secure_delete, delete_document, is_secure, merge_deleted

UNDO_MS = 10_000
STUB = "[from a deleted chat]"
_PURGING = 0
"""``deleted_at`` of a chat whose traces are being removed: there is no way back."""
_LONG_CHAT = 500
"""Deleting so many messages from the index one word after another takes longer than merging all of it."""
_MESSAGES_AT_ONCE = 200
_SECURELY_AT_ONCE = 10
_MERGE_SECONDS = 0.03
_SOURCE_WITH_CARDS = "dyad"
"""The one source whose messages hold history cards; they name chats by the source's ids."""


def hide(connection: apsw.Connection, chat_id: int) -> None:
    """Hide a chat from every door."""
    connection.execute("UPDATE chats SET deleted_at = ? WHERE id = ? AND deleted_at IS NULL", (now_ms(), chat_id))
    if connection.changes() != 1:
        raise NotFoundError("No such chat.")


def restore(connection: apsw.Connection, chat_id: int) -> None:
    """Bring a hidden chat back whole, within ``UNDO_MS``."""
    connection.execute(
        "UPDATE chats SET deleted_at = NULL WHERE id = ? AND deleted_at > ?", (chat_id, now_ms() - UNDO_MS)
    )
    if connection.changes() != 1:
        raise NotFoundError("This chat can't be brought back any more.")


def due(connection: apsw.Connection, *, at_once: Collection[int] = ()) -> list[int]:
    """Hidden chats whose time to undo is over, and those of ``at_once`` that are hidden."""
    now = now_ms()
    # What was deleted "in the future", before the computer's clock was set back, is not kept until then.
    rows = connection.execute("SELECT id, deleted_at FROM chats WHERE deleted_at IS NOT NULL ORDER BY id")
    return [id_ for id_, deleted_at in rows if id_ in at_once or not now - UNDO_MS < deleted_at <= now]


def remove_traces(connection: apsw.Connection, chat_id: int) -> None:
    """Take what other chats, transcripts and the ledger hold of the chat, and see that no import brings it back.

    From here on there is no way back. Does nothing to a chat that was restored meanwhile.
    """
    row = connection.execute("SELECT title FROM chats WHERE id = ? AND deleted_at IS NOT NULL", (chat_id,)).fetchone()
    if row is None:
        return
    title = row[0]
    # A start that was cut off goes on from this row, which is the last thing to go.
    connection.execute("UPDATE chats SET deleted_at = ?, title = NULL WHERE id = ?", (_PURGING, chat_id))
    connection.execute(
        "INSERT INTO tombstones (source, source_key, created_at, deleted_at) "
        "SELECT source, source_key, created_at, ? FROM chats WHERE id = ? AND source_key IS NOT NULL "
        "ON CONFLICT DO NOTHING",
        (now_ms(), chat_id),
    )
    told = _chats_told_by_ledger(connection, chat_id)
    with_cards = [*_own_chats_with_cards(connection, chat_id), *_imported_chats_with_cards(connection, chat_id)]
    if told or with_cards:
        quotations = _quotations(connection, chat_id, title)
        for other in sorted({*told, *with_cards}):
            _clean_chat(connection, other, _ids_in_cards(connection, other, chat_id), quotations)
        _clean_ledger(connection, told, quotations)
    _drop_transcripts(connection, told, chat_id)
    connection.execute("UPDATE consulted_messages SET excerpt = NULL WHERE chat_id = ?", (chat_id,))
    connection.execute("DELETE FROM consultations WHERE chat_id = ?", (chat_id,))


def delete_messages(connection: apsw.Connection, chat_id: int) -> bool:
    """One short step of deleting the chat's messages and their documents; False when nothing of them is left.

    The last steps merge the index, if it needs that to let go of a document's words.
    """
    if is_secure(connection) and _has_many_messages(connection, chat_id):
        defer_secure_delete(connection)
    at_once = _SECURELY_AT_ONCE if is_secure(connection) else _MESSAGES_AT_ONCE
    connection.execute(
        """
        DELETE FROM messages WHERE id IN (
            SELECT m.id FROM messages m JOIN chats c ON c.id = m.chat_id
            WHERE m.chat_id = ? AND c.deleted_at = ? LIMIT ?)
        """,
        (chat_id, _PURGING, at_once),
    )
    return connection.changes() > 0 or not merge_deleted(connection, _MERGE_SECONDS)


def delete_chat(connection: apsw.Connection, chat_id: int) -> None:
    """The end of it; a chat that was restored meanwhile stays."""
    connection.execute("DELETE FROM chats WHERE id = ? AND deleted_at = ?", (chat_id, _PURGING))


def _has_many_messages(connection: apsw.Connection, chat_id: int) -> bool:
    row = connection.execute(
        "SELECT 1 FROM messages WHERE chat_id = ? LIMIT 1 OFFSET ?", (chat_id, _LONG_CHAT - 1)
    ).fetchone()
    return row is not None


def _quotations(connection: apsw.Connection, chat_id: int, title: str | None) -> Quotations:
    messages = (
        ChatSearchProjectionInput(message.role, message.content, message.is_compaction_summary)
        for message in each_message(connection, chat_id)
    )
    return Quotations(title, messages, STUB)


def _chats_told_by_ledger(connection: apsw.Connection, chat_id: int) -> list[int]:
    rows = connection.execute(
        """
        SELECT DISTINCT k.chat_id FROM consulted_messages t JOIN consultations k ON k.id = t.consultation_id
        WHERE t.chat_id = ?1 AND k.chat_id IS NOT NULL AND k.chat_id <> ?1
        """,
        (chat_id,),
    )
    return [id_ for (id_,) in rows]


_HAS_CARD = "m.role = 'assistant' AND ({})".format(
    " OR ".join(f"instr(m.content, '<{tag}') > 0" for tag in HISTORY_TAGS)
)


def _own_chats_with_cards(connection: apsw.Connection, chat_id: int) -> list[int]:
    """Recall's own chats with any card: the ledger may have been erased, and an answer that quotes this chat may have
    been consulted in its turn."""
    rows = connection.execute(
        f"""
        SELECT c.id FROM chats c WHERE c.source IS NULL AND c.id <> ?
        AND EXISTS (SELECT 1 FROM messages m WHERE m.chat_id = c.id AND {_HAS_CARD})
        """,
        (chat_id,),
    )
    return [id_ for (id_,) in rows]


def _imported_chats_with_cards(connection: apsw.Connection, chat_id: int) -> list[int]:
    """If the chat came from Dyad: the chats of its app there whose cards may show it."""
    rows = connection.execute(
        f"""
        SELECT c.id FROM chats d JOIN chats c ON c.app_id = d.app_id AND c.source = d.source AND c.id <> d.id
        WHERE d.id = ? AND d.source = ?
        AND EXISTS (SELECT 1 FROM messages m WHERE m.chat_id = c.id AND {_HAS_CARD})
        """,
        (chat_id, _SOURCE_WITH_CARDS),
    )
    return [id_ for (id_,) in rows]


def _ids_in_cards(connection: apsw.Connection, other: int, chat_id: int) -> Sequence[int]:
    """The ids by which cards in the other chat can name this one: its own, and in an imported chat its source's."""
    key = connection.execute(
        "SELECT d.source_key FROM chats d JOIN chats c ON c.source = d.source WHERE d.id = ? AND c.id = ?",
        (chat_id, other),
    ).get
    is_imported = connection.execute("SELECT source IS NOT NULL FROM chats WHERE id = ?", (other,)).get
    theirs = [int(key)] if key is not None and key.isascii() and key.isdigit() and len(key) <= 18 else []
    # A card of Recall's own can stand in an imported chat as well: the person may have gone on with it here.
    return [chat_id, *theirs] if not is_imported or _has_consulted(connection, other) else theirs


def _has_consulted(connection: apsw.Connection, chat_id: int) -> bool:
    return connection.execute("SELECT 1 FROM consultations WHERE chat_id = ?", (chat_id,)).fetchone() is not None


def _clean_chat(connection: apsw.Connection, other: int, ids: Sequence[int], quotations: Quotations) -> None:
    changed = []
    for message in each_message(connection, other):
        if message.role == "assistant":
            content = message.content
            for id_ in ids:
                content = without_chat(content, id_, STUB)
            content = quotations.removed_from_message(content)
            if content != message.content:
                changed.append((content, message.id))
    if not changed:
        return
    # The update marks the messages; their old documents hold the text and can't wait for the indexer.
    connection.executemany("UPDATE messages SET content = ? WHERE id = ?", changed)
    for _, message_id in changed:
        delete_document(connection, message_id)
        _clean_excerpts(connection, message_id, quotations)
    connection.execute(
        "UPDATE messages SET ai_messages_json = NULL WHERE chat_id = ? AND ai_messages_json IS NOT NULL", (other,)
    )


def _clean_excerpts(connection: apsw.Connection, message_id: int, quotations: Quotations) -> None:
    """What consultations of an answer that quotes the chat have kept of it."""
    rows = connection.execute(
        "SELECT consultation_id, excerpt FROM consulted_messages WHERE message_id = ? AND excerpt IS NOT NULL",
        (message_id,),
    ).fetchall()
    connection.executemany(
        "UPDATE consulted_messages SET excerpt = ? WHERE consultation_id = ? AND message_id = ?",
        [(quotations.removed_from(str(excerpt)), consultation_id, message_id) for consultation_id, excerpt in rows],
    )


def _clean_ledger(connection: apsw.Connection, told: Sequence[int], quotations: Quotations) -> None:
    """An agent that has read a chat may look for its words next: those are in the arguments."""
    for other in told:
        rows = connection.execute("SELECT id, arguments_json FROM consultations WHERE chat_id = ?", (other,)).fetchall()
        cleaned = [(quotations.removed_from_arguments(str(arguments)), id_) for id_, arguments in rows]
        connection.executemany("UPDATE consultations SET arguments_json = ? WHERE id = ?", cleaned)


def _drop_transcripts(connection: apsw.Connection, told: Sequence[int], chat_id: int) -> None:
    """Transcripts of chats that consulted this one, by the ledger or (it may have been erased) by their own text."""
    for other in told:
        connection.execute(
            "UPDATE messages SET ai_messages_json = NULL WHERE chat_id = ? AND ai_messages_json IS NOT NULL", (other,)
        )
    # A tool's JSON inside the transcript's JSON. That chat 42's text is taken for 4's costs no more than a transcript.
    connection.execute(
        "UPDATE messages SET ai_messages_json = NULL "
        "WHERE instr(ai_messages_json, ?) > 0 OR instr(ai_messages_json, ?) > 0",
        (f'chat_id\\": {chat_id}', f'chat_id\\":{chat_id}'),
    )
