"""Deleting chats: hidden at once, undone within ten seconds, then gone for good with every trace (contracts §8).

What other chats hold of a forgotten chat goes too: entries of their cards, their transcripts, quoted lines of their
agents' answers, excerpts of the ledger. What a person wrote stays the person's.
"""

import re
from collections.abc import Iterable

import apsw

from recall_app.domain.cards import HISTORY_TAGS, without_chat
from recall_app.domain.errors import NotFoundError
from recall_app.domain.projection import ChatSearchProjectionInput, project_chat_message_for_reading
from recall_app.domain.text import normalise, one_line
from recall_app.domain.word_breaks import BREAK, index_text
from recall_app.store.history import each_message, now_ms
from recall_app.store.search_index import delete_document

UNDO_MS = 10_000
STUB = "[from a deleted chat]"
_PURGING = 0
"""``deleted_at`` of a chat whose traces are being removed: there is no way back."""
_MESSAGES_AT_ONCE = 200
_QUOTED_WORDS = 5
"""A line of an answer that has so many words in a row from the chat is a quotation."""
_SHORTEST_TITLE = 3
_WORDS = re.compile(rf"[^\W_]+|{BREAK}")


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


def due(connection: apsw.Connection, *, everything: bool) -> list[int]:
    """Hidden chats whose time to undo is over; with ``everything`` (at exit or start) all hidden ones."""
    last = now_ms() - (0 if everything else UNDO_MS)
    return [id_ for (id_,) in connection.execute("SELECT id FROM chats WHERE deleted_at <= ? ORDER BY id", (last,))]


def remove_traces(connection: apsw.Connection, chat_id: int) -> None:
    """Take what other chats, transcripts and the ledger hold of the chat, and see that no import brings it back."""
    connection.execute(
        "INSERT INTO tombstones (source, source_key, deleted_at) "
        "SELECT source, source_key, ? FROM chats WHERE id = ? AND source_key IS NOT NULL ON CONFLICT DO NOTHING",
        (now_ms(), chat_id),
    )
    connection.execute("UPDATE chats SET deleted_at = ? WHERE id = ?", (_PURGING, chat_id))
    consulting = _consulting_chats(connection, chat_id)
    if consulting:
        quotations = _Quotations(connection, chat_id)
        for other in consulting:
            _clean_chat(connection, other, chat_id, quotations)
    connection.execute("UPDATE consulted_messages SET excerpt = NULL WHERE chat_id = ?", (chat_id,))
    connection.execute("DELETE FROM consultations WHERE chat_id = ?", (chat_id,))


def delete_messages(connection: apsw.Connection, chat_id: int) -> bool:
    """Delete some messages of the chat with their documents; False when none is left."""
    connection.execute(
        "DELETE FROM messages WHERE id IN (SELECT id FROM messages WHERE chat_id = ? LIMIT ?)",
        (chat_id, _MESSAGES_AT_ONCE),
    )
    return connection.changes() > 0


def delete_chat(connection: apsw.Connection, chat_id: int) -> None:
    connection.execute("DELETE FROM chats WHERE id = ?", (chat_id,))


def _consulting_chats(connection: apsw.Connection, chat_id: int) -> list[int]:
    """Chats that may hold text of this one. The ledger can have been erased, so cards count too: those in Recall's own
    chats, since cards that came with an import speak of the source's ids."""
    cards = " OR ".join(f"instr(m.content, '<{tag}') > 0" for tag in sorted(HISTORY_TAGS))
    rows = connection.execute(
        f"""
        SELECT k.chat_id FROM consultations k JOIN consulted_messages t ON t.consultation_id = k.id
        WHERE t.chat_id = ?1 AND k.chat_id IS NOT NULL AND k.chat_id <> ?1
        UNION
        SELECT c.id FROM chats c WHERE c.source_key IS NULL AND c.id <> ?1 AND EXISTS (
            SELECT 1 FROM messages m WHERE m.chat_id = c.id AND m.role = 'assistant' AND ({cards}))
        """,
        (chat_id,),
    )
    return [id_ for (id_,) in rows]


def _clean_chat(connection: apsw.Connection, other: int, chat_id: int, quotations: "_Quotations") -> None:
    changed = []
    for message in each_message(connection, other):
        if message.role == "assistant":
            content = quotations.removed_from(without_chat(message.content, chat_id, STUB))
            if content != message.content:
                changed.append((content, message.id))
    if not changed:
        return
    # The update marks the messages; their old documents hold the text and can't wait for the indexer.
    connection.executemany("UPDATE messages SET content = ? WHERE id = ?", changed)
    for _, message_id in changed:
        delete_document(connection, message_id)
    connection.execute(
        "UPDATE messages SET ai_messages_json = NULL WHERE chat_id = ? AND ai_messages_json IS NOT NULL", (other,)
    )


class _Quotations:
    """Recognises lines that were taken word for word from a chat, and its title."""

    def __init__(self, connection: apsw.Connection, chat_id: int) -> None:
        self._runs: set[tuple[str, ...]] = set()
        self._lines: set[tuple[str, ...]] = set()
        for message in each_message(connection, chat_id):
            text = project_chat_message_for_reading(
                ChatSearchProjectionInput(message.role, message.content, message.is_compaction_summary)
            )
            self._runs.update(_runs(_words(text)))
            self._lines.update(words for line in text.splitlines() if len(words := tuple(_words(line))) > 1)
        title = connection.execute("SELECT title FROM chats WHERE id = ?", (chat_id,)).get
        forms = {title, normalise(title), one_line(title)} if title else set()
        self._titles = sorted((form for form in forms if len(form) >= _SHORTEST_TITLE), key=len, reverse=True)

    def removed_from(self, content: str) -> str:
        """The content with each quoting line, and each mention of the title, replaced by the stub."""
        lines = [self._without_quotation(line) for line in content.splitlines(keepends=True)]
        cleaned = "".join(lines)
        for title in self._titles:
            cleaned = cleaned.replace(title, STUB)
        return cleaned

    def _without_quotation(self, line: str) -> str:
        words = _words(line)
        if tuple(words) not in self._lines and self._runs.isdisjoint(_runs(words)):
            return line
        lead = re.match(r"[\s>]*", line)
        end = "\n" if line.endswith("\n") else ""
        return f"{lead[0] if lead else ''}{STUB}{end}"


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(index_text(text)) if word != BREAK]


def _runs(words: list[str]) -> Iterable[tuple[str, ...]]:
    return (tuple(words[at : at + _QUOTED_WORDS]) for at in range(len(words) - _QUOTED_WORDS + 1))
