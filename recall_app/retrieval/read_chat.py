"""The agent's reading: a few messages of one chat around a hit, or a page of it, within bounds (contracts §5)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recall_app.domain.consulting import (
    MESSAGE_CHARACTERS,
    TITLE_CHARACTERS,
    AroundMode,
    Budget,
    PageMode,
    ReadChatHead,
    ReadChatInput,
    ReadChatResult,
    ReadMessage,
    Viewer,
    to_json,
)
from recall_app.domain.errors import NotFoundError
from recall_app.domain.projection import ChatSearchProjectionInput, project_chat_message_for_reading
from recall_app.domain.records import Message, iso_time
from recall_app.domain.text import cut, isolate_bidi, one_line
from recall_app.store import reading
from recall_app.store.connection import Connection, read_snapshot
from recall_app.store.reading import Located

DEFAULT_CONTEXT = 3
DEFAULT_PAGE = 10


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is shown of a message: ``text`` from ``start`` on, at most ``limit`` characters."""

    message: Message
    text: str
    start: int = 0
    limit: int = MESSAGE_CHARACTERS

    def shown(self) -> ReadMessage:
        start = min(self.start, len(self.text))
        piece = cut(self.text[start : start + self.limit + 1], self.limit)
        shown = isolate_bidi(piece)
        while len(shown) > self.limit:  # isolates count too
            piece = cut(piece, len(piece) - (len(shown) - self.limit))
            shown = isolate_bidi(piece)
        end = start + len(piece)
        goes_on = end < len(self.text)
        return ReadMessage(
            message_id=self.message.id,
            role=self.message.role,
            created_at=iso_time(self.message.created_at),
            text=shown,
            truncated=True if goes_on else None,
            next_start_char=end if goes_on else None,
            is_compaction_summary=True if self.message.is_compaction_summary else None,
        )


@dataclass(frozen=True, slots=True)
class _Window:
    """Messages in a row; ``first`` is the position of the first, ``target`` the index of the one that must stay."""

    first: int
    pieces: Sequence[_Piece]
    target: int
    was_cut: bool = False

    def without_farthest(self) -> "_Window":
        """One message less: the one farthest from the target, the earlier one of two as far."""
        after = len(self.pieces) - 1 - self.target
        if self.target >= after and self.target > 0:
            return _Window(self.first + 1, self.pieces[1:], self.target - 1, was_cut=True)
        return _Window(self.first, self.pieces[:-1], self.target, was_cut=True)

    def with_shorter_text(self, by: int) -> "_Window":
        """The one message left, at most ``by`` characters shorter."""
        (only,) = self.pieces
        limit = max(1, min(only.limit, len(only.text) - only.start) - by)
        return _Window(self.first, [replace(only, limit=limit)], 0, was_cut=True)


def read_chat(connection: Connection, viewer: Viewer, arguments: ReadChatInput, budget: Budget) -> ReadChatResult:
    """Read around a message or a page.

    Raises:
        NotFoundError: the chat or message is missing, of another app, private, deleted, or they do not belong
            together; the caller can't tell which.
    """
    with read_snapshot(connection):
        located = reading.locate(connection, viewer, arguments.chat_id, arguments.around_message_id)
        if located is None:
            raise NotFoundError
        if located.position is None:
            return _read_page(connection, viewer, arguments, located, budget)
        return _read_around(connection, viewer, arguments, located, budget)


def _read_around(
    connection: Connection, viewer: Viewer, arguments: ReadChatInput, located: Located, budget: Budget
) -> ReadChatResult:
    position = located.position or 0
    before = DEFAULT_CONTEXT if arguments.before is None else arguments.before
    after = DEFAULT_CONTEXT if arguments.after is None else arguments.after
    first = max(0, position - before)
    rows = reading.page(connection, viewer, located.chat_id, first, position - first + 1 + after)
    target = position - first
    start = arguments.start_char or 0
    pieces = [_piece(row, start if index == target else 0) for index, row in enumerate(rows)]
    window = _Window(first, pieces, target)
    while len(window.pieces) > budget.read_messages:
        window = window.without_farthest()
    mode = AroundMode(around_message_id=rows[target].id)
    return _fitted(located, mode, window, DEFAULT_PAGE, budget.read_bytes)


def _read_page(
    connection: Connection, viewer: Viewer, arguments: ReadChatInput, located: Located, budget: Budget
) -> ReadChatResult:
    offset = arguments.offset or 0
    limit = min(arguments.limit or DEFAULT_PAGE, budget.read_messages)
    rows = reading.page(connection, viewer, located.chat_id, offset, limit) if offset < located.total else []
    window = _Window(min(offset, located.total), [_piece(row) for row in rows], 0)
    return _fitted(located, PageMode(offset=offset, limit=limit), window, limit, budget.read_bytes)


def _piece(message: Message, start: int = 0) -> _Piece:
    text = project_chat_message_for_reading(
        ChatSearchProjectionInput(message.role, message.content, message.is_compaction_summary)
    )
    return _Piece(message, text, start)


def _fitted(
    located: Located, mode: AroundMode | PageMode, window: _Window, step: int, most_bytes: int
) -> ReadChatResult:
    """Drop context until the JSON fits; the target stays, at the worst with less of its text."""
    result = _result(located, mode, window, step)
    while _size(result) > most_bytes and len(window.pieces) > 1:
        window = window.without_farthest()
        result = _result(located, mode, window, step)
    while (excess := _size(result) - most_bytes) > 0:
        # A character is one to four bytes, so this never cuts much more than is needed.
        window = window.with_shorter_text(max(1, excess // 4))
        result = _result(located, mode, window, step)
    return result


def _size(result: ReadChatResult) -> int:
    return len(to_json(result).encode())


def _result(located: Located, mode: AroundMode | PageMode, window: _Window, step: int) -> ReadChatResult:
    messages = tuple(piece.shown() for piece in window.pieces)
    count = len(messages)
    end = window.first + count
    has_more_before = window.first > 0
    has_more_after = end < located.total
    return ReadChatResult(
        chat=ReadChatHead(
            chat_id=located.chat_id,
            title=None if located.title is None else one_line(located.title, TITLE_CHARACTERS),
            created_at=iso_time(located.created_at),
            total_messages=located.total,
        ),
        mode=mode,
        first_position=window.first if count else None,
        messages=messages,
        has_more_before=has_more_before,
        has_more_after=has_more_after,
        next_offset=end if has_more_after else None,
        previous_offset=max(0, window.first - step) if has_more_before else None,
        output_truncated=window.was_cut or any(message.truncated for message in messages),
    )
