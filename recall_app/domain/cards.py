"""The text form of a consultation inside the assistant's message, and what keeps a model from forging it (§9)."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from pydantic import ValidationError

from recall_app.domain.consulting import ReadChatResult, SearchChatsResult, to_json
from recall_app.domain.markup import TagBlock, TagState, encode_attribute, encode_entities, parse_blocks
from recall_app.domain.text import one_line

SEARCH_TAG = "dyad-search-chats"
READ_TAG = "dyad-read-chat"
HISTORY_TAGS = (SEARCH_TAG, READ_TAG)

_TITLE_CHARACTERS = 200
_SEARCH_LINE = re.compile(r"#(?P<id>\d{1,18})(?!\w)(?P<title>.*?)(?P<date>\s\(?\d{4}-\d{2}-\d{2}\S*)?\s*")
_EXCERPT_LINE = re.compile(r"\s+-\s(?P<excerpt>.*)")
_READ_LINE = re.compile(r"\[(?P<role>user|assistant)[\s,·]+(?P<date>\d{4}-[^\]\s]*)\]\s*(?P<text>.*)")
# Hidden characters may stand between the letters: removing them later must not complete a tag either.
_HIDDEN = "[\u00ad\u034f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
_FORGEABLE = re.compile(f"<(?={_HIDDEN}/?{_HIDDEN}(?:{_HIDDEN.join('dyad-')}|{_HIDDEN.join('think')}))", re.IGNORECASE)
_FORGEABLE_NOISE = re.compile(f"/|{_HIDDEN}")
_FORGEABLE_NAMES = ("dyad-", "think")
_LONGEST_HELD = 64


class CardState(StrEnum):
    """How a consultation stands, as its card shows it."""

    PENDING = "pending"
    DONE = "done"
    EMPTY = "nothing found"
    INDEXING = "index still updating"
    TRUNCATED = "truncated"
    DECLINED = "declined"
    FAILED = "failed"
    UNFINISHED = "unfinished"


_FOREIGN_STATES = {"finished": CardState.DONE, "aborted": CardState.UNFINISHED, "error": CardState.FAILED}


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One message that a card shows; what the card doesn't say is None. ``date`` is as written in it."""

    chat_id: int | None
    title: str | None
    message_id: int | None
    role: str | None
    date: str | None
    text: str


@dataclass(frozen=True, slots=True)
class HistoryCard:
    """A consultation as its tag tells it. Whether it is genuine only the ledger knows."""

    kind: Literal["search", "read"]
    state: CardState
    query: str | None
    index_status: str | None
    result_count: int | None
    chat_id: int | None
    title: str | None
    range: str | None
    consultation_id: int | None
    entries: tuple[HistoryEntry, ...]


def search_card(
    query: str, state: CardState, consultation_id: int | None, result: SearchChatsResult | None = None
) -> str:
    """The tag that keeps a ``search_chats`` call; ``result`` is None for one that gave nothing."""
    attributes = {"query": query}
    if result:
        attributes |= {"index-status": result.index_status, "result-count": str(len(result.results))}
    return _card(SEARCH_TAG, attributes, state, consultation_id, to_json(result) if result else "")


def read_card(chat_id: int, state: CardState, consultation_id: int | None, result: ReadChatResult | None = None) -> str:
    """The tag that keeps a ``read_chat`` call. The range counts messages from 1: ``4-10 of 31``."""
    attributes = {"chat-id": str(chat_id)}
    if result:
        attributes["title"] = one_line(result.chat.title or "", _TITLE_CHARACTERS)
        if result.first_position is not None and result.messages:
            first = result.first_position + 1
            last = result.first_position + len(result.messages)
            attributes["range"] = f"{first}-{last} of {result.chat.total_messages}"
    return _card(READ_TAG, attributes, state, consultation_id, to_json(result) if result else "")


def _card(name: str, attributes: dict[str, str], state: CardState, consultation_id: int | None, body: str) -> str:
    attributes = attributes | {"state": state.value}
    if consultation_id is not None:
        attributes["consultation-id"] = str(consultation_id)
    return _tag(name, attributes, body)


def _tag(name: str, attributes: dict[str, str], body: str) -> str:
    written = "".join(f' {key}="{encode_attribute(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{encode_entities(body)}</{name}>"


def escape_model_text(text: str) -> str:
    """A model's text with every ``<`` that could begin or end a ``dyad-`` or ``think`` tag written ``&lt;``.

    In any case and with hidden characters between the letters, so that nothing a model writes is taken for a card,
    or hides its answer.
    """
    return _FORGEABLE.sub("&lt;", text)


class ModelTextEscaper:
    """``escape_model_text`` for a stream: what ``feed`` and ``finish`` return is safe to store in that order."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, chunk: str) -> str:
        """The next safe text; a possible beginning of a tag is held back."""
        text = self._held + chunk
        start = self._possible_start(text)
        self._held = text[start:]
        safe = escape_model_text(text[:start])
        if len(self._held) > _LONGEST_HELD:
            # So much hidden text in a row is no accident: escaping too much costs nothing.
            safe, self._held = f"{safe}&lt;{self._held[1:]}", ""
        return safe

    def finish(self) -> str:
        """What was still held back."""
        rest, self._held = self._held, ""
        return escape_model_text(rest)

    @staticmethod
    def _possible_start(text: str) -> int:
        at = text.rfind("<")
        if at < 0:
            return len(text)
        letters = _FORGEABLE_NOISE.sub("", text[at + 1 :]).lower()
        undecided = any(name.startswith(letters) and name != letters for name in _FORGEABLE_NAMES)
        return at if undecided else len(text)


def history_cards(content: str) -> list[HistoryCard]:
    """The history cards of an assistant message, in order."""
    cards = (history_card(block) for block in parse_blocks(content) if isinstance(block, TagBlock))
    return [card for card in cards if card]


def history_card(block: TagBlock) -> HistoryCard | None:
    """The card of a tag, or None if it is no history tag. A body that can't be understood gives no entries."""
    if block.name not in HISTORY_TAGS:
        return None
    kind: Literal["search", "read"] = "search" if block.name == SEARCH_TAG else "read"
    attributes = block.attributes
    chat_id, title = _number(attributes.get("chat-id")), attributes.get("title") or None
    body = block.body.strip()
    if kind == "search":
        entries = _searched(body)
    else:
        entries = _read(body, chat_id, title)
        if entries and chat_id is None:
            chat_id, title = entries[0].chat_id, title or entries[0].title
    return HistoryCard(
        kind=kind,
        state=_state(block),
        query=attributes.get("query"),
        index_status=attributes.get("index-status"),
        result_count=_number(attributes.get("result-count")),
        chat_id=chat_id,
        title=title,
        range=attributes.get("range"),
        consultation_id=_number(attributes.get("consultation-id")),
        entries=entries,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else None


def _state(block: TagBlock) -> CardState:
    if block.state is TagState.IN_PROGRESS:
        return CardState.PENDING
    if block.state is TagState.UNFINISHED:
        return CardState.UNFINISHED
    written = block.attributes.get("state", "")
    if written in _FOREIGN_STATES:
        return _FOREIGN_STATES[written]
    return CardState(written) if written in set(CardState) else CardState.DONE


def _searched(body: str) -> tuple[HistoryEntry, ...]:
    if not body.startswith("{"):
        return _searched_text(body)
    try:
        result = SearchChatsResult.model_validate_json(body)
    except ValidationError:
        return ()
    return tuple(
        HistoryEntry(chat.chat_id, chat.title, match.message_id, match.role, match.created_at, match.excerpt)
        for chat in result.results
        for match in chat.matches
    )


def _searched_text(body: str) -> tuple[HistoryEntry, ...]:
    entries: list[HistoryEntry] = []
    chat: HistoryEntry | None = None
    for line in body.splitlines():
        if head := _SEARCH_LINE.fullmatch(line):
            date = (head["date"] or "").strip(" ()\t") or None
            chat = HistoryEntry(int(head["id"]), head["title"].strip() or None, None, None, date, "")
            entries.append(chat)
        elif chat and (excerpt := _EXCERPT_LINE.fullmatch(line)):
            if entries[-1] is chat:
                entries.pop()
            entries.append(HistoryEntry(chat.chat_id, chat.title, None, None, chat.date, excerpt["excerpt"]))
    return tuple(entries)


def _read(body: str, chat_id: int | None, title: str | None) -> tuple[HistoryEntry, ...]:
    if not body.startswith("{"):
        return _read_text(body, chat_id, title)
    try:
        result = ReadChatResult.model_validate_json(body)
    except ValidationError:
        return ()
    chat = result.chat
    return tuple(
        HistoryEntry(chat.chat_id, chat.title, message.message_id, message.role, message.created_at, message.text)
        for message in result.messages
    )


def _read_text(body: str, chat_id: int | None, title: str | None) -> tuple[HistoryEntry, ...]:
    heads: list[tuple[str, str]] = []
    texts: list[list[str]] = []
    for line in body.splitlines():
        if head := _READ_LINE.fullmatch(line):
            heads.append((head["role"], head["date"]))
            texts.append([head["text"]])
        elif texts:
            texts[-1].append(line)
    return tuple(
        HistoryEntry(chat_id, title, None, role, date, "\n".join(lines).strip())
        for (role, date), lines in zip(heads, texts, strict=True)
    )


def without_chat(content: str, chat_id: int, stub: str) -> str:
    """A message whose history cards hold nothing of one chat any more; all else stays as it was, byte for byte.

    Titles, excerpts and texts of the chat become ``stub``. A body that can't be understood but names the chat goes
    as a whole.
    """
    parts: list[str] = []
    at = 0
    for block in parse_blocks(content):
        if isinstance(block, TagBlock) and block.name in HISTORY_TAGS:
            forgotten = _forget_read(block, chat_id, stub) if block.name == READ_TAG else None
            forgotten = forgotten or _forget_searched(block, chat_id, stub)
            if forgotten is not None:
                parts += [content[at : block.start], forgotten]
                at = block.end
    return "".join((*parts, content[at:]))


def _forget_read(block: TagBlock, chat_id: int, stub: str) -> str | None:
    attributes = dict(block.attributes)
    if _number(attributes.get("chat-id")) != chat_id:
        return None
    if "title" in attributes:
        attributes["title"] = stub
    return _tag(block.name, attributes, stub)


def _forget_searched(block: TagBlock, chat_id: int, stub: str) -> str | None:
    """The tag with what it holds of the chat replaced, or None if it holds nothing of it."""
    body = block.body
    if body.lstrip().startswith("{"):
        if not re.search(rf'"chat_id"\s*:\s*{chat_id}(?!\d)', body):
            return None
        kept = _forget_in_json(body, chat_id, stub)
    else:
        kept = _forget_in_text(body, chat_id, stub)
        if kept == body:
            return None
    attributes = dict(block.attributes)
    if block.name == READ_TAG and "title" in attributes:
        attributes["title"] = stub
    return _tag(block.name, attributes, kept)


def _forget_in_json(body: str, chat_id: int, stub: str) -> str:
    try:
        result: Any = json.loads(body)
        chats = result["results"]
        for chat in chats:
            if chat["chat_id"] == chat_id:
                chat["title"] = stub
                for match in chat["matches"]:
                    match["excerpt"] = stub
    except (ValueError, LookupError, TypeError, RecursionError):
        return stub
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def _forget_in_text(body: str, chat_id: int, stub: str) -> str:
    lines: list[str] = []
    is_forgotten = False
    for line in body.splitlines(keepends=True):
        if head := _SEARCH_LINE.fullmatch(line):
            is_forgotten = int(head["id"]) == chat_id
            if is_forgotten:
                lines.append(f"#{chat_id} {stub}\n")
        if not is_forgotten:
            lines.append(line)
    return "".join(lines)
