"""The content of an assistant's message while it is written: the model's text and the cards, in their order."""

from dataclasses import dataclass, field

from recall_app.agent.calls import ToolCall
from recall_app.agent.sharing import index_status, is_truncated
from recall_app.domain.cards import CardState, escape_model_text, read_card, search_card
from recall_app.domain.code_regions import code_before
from recall_app.domain.consulting import (
    SEARCH_CHATS,
    ReadChatInput,
    ReadChatResult,
    SearchChatsInput,
    SearchChatsResult,
)
from recall_app.domain.markup import encode_attribute
from recall_app.domain.records import IndexStatus, Outcome

UNKNOWN_CHAT = 0
"""What a card of a read shows as its chat when the model's arguments could not be understood."""


@dataclass(slots=True)
class _Text:
    """What the model wrote between two cards, as it came."""

    text: str = ""


@dataclass(slots=True)
class AnswerContent:
    """Grows by text and cards. The model's text is escaped whole when it is stored: a tag may come in two pieces."""

    _parts: list[_Text | str] = field(default_factory=list)

    def begin_text(self) -> None:
        self._parts.append(_Text())

    def add_text(self, text: str) -> None:
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, _Text):
            last = _Text()
            self._parts.append(last)
        last.text += text

    def add_call(self, call: ToolCall) -> None:
        self._parts.append(card_of(call))

    def add_end(self, kind: str, line: str) -> None:
        """One line that says why the answer ends here; ``kind`` is ``error`` or ``warning``."""
        message = encode_attribute(line)
        self._parts.append(f'<dyad-output type="{kind}" message="{message}"></dyad-output>')

    @property
    def answer(self) -> str:
        """The model's text alone, as it wrote it."""
        return "\n\n".join(part.text for part in self._parts if isinstance(part, _Text) and part.text)

    def stored(self) -> str:
        last = self._parts[-1] if self._parts else None
        shown = (_shown(part, is_last=part is last) if isinstance(part, _Text) else part for part in self._parts)
        return "\n\n".join(part for part in shown if part)


def _shown(part: _Text, *, is_last: bool) -> str:
    """The text as it may be stored; a fence left open is closed, or a card after it would be code and no card."""
    text = escape_model_text(part.text)
    fence = None if is_last else code_before(f"{text}\n", 0, at_line_start=True).fence
    return text if fence is None else f"{text}\n{fence.mark * fence.run}"


def card_of(call: ToolCall) -> str:
    """The card that keeps ``call``, with the very text that the model was given."""
    match call.result, call.arguments:
        case SearchChatsResult() as found, _:
            return search_card(found.query, _state(call), call.consultation_id, found)
        case ReadChatResult() as given, _:
            return read_card(given.chat.chat_id, _state(call), call.consultation_id, given)
        case _, SearchChatsInput(query=query):
            return search_card(query, _state(call), call.consultation_id)
        case _, ReadChatInput(chat_id=chat_id):
            return read_card(chat_id, _state(call), call.consultation_id)
    if call.tool == SEARCH_CHATS:
        return search_card("", _state(call), call.consultation_id)
    return read_card(UNKNOWN_CHAT, _state(call), call.consultation_id)


def _state(call: ToolCall) -> CardState:
    """What the person should know first of this call."""
    match call.outcome:
        case Outcome.DECLINED:
            return CardState.DECLINED
        case Outcome.FAILED | Outcome.CANCELLED:
            return CardState.FAILED
    if call.result is not None and index_status(call.result) == IndexStatus.INDEXING:
        return CardState.INDEXING
    if call.outcome is Outcome.EMPTY:
        return CardState.EMPTY
    return CardState.TRUNCATED if call.result is not None and is_truncated(call.result) else CardState.DONE
