"""What a result gives away: the pieces a person can look at and keep back, and what the ledger says of them."""

from dataclasses import dataclass

from recall_app.domain.consulting import HistoryResult, ReadChatResult, SearchChatsResult
from recall_app.domain.records import Role


@dataclass(frozen=True, slots=True)
class SharedText:
    """One message's text as a result holds it: an excerpt, or what was read. ``created_at`` is ISO 8601."""

    chat_id: int
    message_id: int
    chat_title: str | None
    role: Role
    created_at: str
    text: str


def shared_texts(result: HistoryResult) -> tuple[SharedText, ...]:
    """The texts of ``result`` in its order; no message comes twice."""
    if isinstance(result, SearchChatsResult):
        return tuple(
            SharedText(chat.chat_id, match.message_id, chat.title, match.role, match.created_at, match.excerpt)
            for chat in result.results
            for match in chat.matches
        )
    return tuple(
        SharedText(
            result.chat.chat_id, message.message_id, result.chat.title, message.role, message.created_at, message.text
        )
        for message in result.messages
    )


def without_messages(result: HistoryResult, withheld: frozenset[int]) -> HistoryResult:
    """``result`` without the messages that the person kept back; a chat of which nothing is left goes too.

    It is then marked as truncated, so that the model doesn't take what it sees for everything there is.
    """
    if not any(shared.message_id in withheld for shared in shared_texts(result)):
        return result
    if isinstance(result, SearchChatsResult):
        chats = [
            chat.model_copy(update={"matches": tuple(m for m in chat.matches if m.message_id not in withheld)})
            for chat in result.results
        ]
        kept = tuple(chat for chat in chats if chat.matches)
        return result.model_copy(update={"results": kept, "results_truncated": True})
    return _read_without(result, withheld)


def _read_without(result: ReadChatResult, withheld: frozenset[int]) -> ReadChatResult:
    indices = [i for i, message in enumerate(result.messages) if message.message_id not in withheld]
    first = None if result.first_position is None or not indices else result.first_position + indices[0]
    return result.model_copy(
        update={
            "messages": tuple(result.messages[i] for i in indices),
            "first_position": first,
            "output_truncated": True,
        }
    )


def result_count(result: HistoryResult) -> int:
    """Chats found, or messages read."""
    return len(result.results) if isinstance(result, SearchChatsResult) else len(result.messages)


def is_truncated(result: HistoryResult) -> bool:
    """Whether a budget cut anything: entries left out, or a message's text shortened."""
    if isinstance(result, SearchChatsResult):
        return result.results_truncated
    return result.output_truncated or any(message.truncated for message in result.messages)


def index_status(result: HistoryResult) -> str | None:
    """Coverage of the index for a search; a read doesn't use it."""
    return result.index_status if isinstance(result, SearchChatsResult) else None
