"""Find in one chat: on what the conversation shows, in every script, without the index (contracts §4a)."""

from recall_app.domain.errors import InvalidInputError
from recall_app.domain.person_search import Found
from recall_app.domain.shown import shown_text
from recall_app.domain.text import fold, fold_with_offsets, original_range
from recall_app.store import history
from recall_app.store.connection import Connection


def find_in_chat(connection: Connection, chat_id: int, text: str) -> list[Found]:
    """Every place that shows ``text``, case and accents aside, in order; ranges are characters of ``shown_text``.

    Raises:
        InvalidInputError: nothing to look for. NotFoundError: no such chat.
    """
    needle = fold(text)
    if not needle.strip():
        raise InvalidInputError("Type what to find.")
    history.chat(connection, chat_id)
    found = []
    for message in history.each_message(connection, chat_id):
        shown = shown_text(message)
        if needle not in fold(shown):
            continue
        folded, offsets = fold_with_offsets(shown)
        at = folded.find(needle)
        while at >= 0:
            found.append(Found(message.id, *original_range(offsets, at, at + len(needle))))
            at = folded.find(needle, at + len(needle))
    return found
