"""The agent's reading: a few messages of one chat around a hit, or a page of it, within bounds (contracts §5)."""

from collections.abc import Mapping
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
_AS_LONG_AS_NULL = 1_000


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
        while len(shown) > self.limit and len(piece) > 1:  # isolates count too
            piece = cut(piece, min(len(piece) - 1, len(piece) * self.limit // len(shown)))
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
    target = located.position or 0
    before = DEFAULT_CONTEXT if arguments.before is None else arguments.before
    after = DEFAULT_CONTEXT if arguments.after is None else arguments.after
    window = range(max(0, target - before), min(located.total, target + 1 + after))
    asked_for = len(window)
    while len(window) > budget.read_messages:
        window = _without_farthest(window, target)
    step = min(DEFAULT_PAGE, budget.read_messages)
    pieces = _pieces(connection, viewer, located, window, step)
    pieces[target] = replace(pieces[target], start=arguments.start_char or 0)
    mode = AroundMode(around_message_id=pieces[target].message.id)
    fitting = _Fitting(located, mode, pieces, step, budget.read_bytes)
    return fitting.result(window, target, was_cut=len(window) < asked_for)


def _read_page(
    connection: Connection, viewer: Viewer, arguments: ReadChatInput, located: Located, budget: Budget
) -> ReadChatResult:
    offset = arguments.offset or 0
    limit = min(arguments.limit or DEFAULT_PAGE, budget.read_messages)
    first = min(offset, located.total)
    window = range(first, min(located.total, first + limit))
    pieces = _pieces(connection, viewer, located, window, limit)
    mode = PageMode(offset=offset, limit=limit)
    return _Fitting(located, mode, pieces, limit, budget.read_bytes).result(window, first, was_cut=False)


def _pieces(connection: Connection, viewer: Viewer, located: Located, window: range, step: int) -> dict[int, _Piece]:
    """By position: the window's messages, and those of the page before it."""
    base = max(0, window.start - step)
    rows = reading.page(connection, viewer, located, range(base, window.stop))
    return {base + index: _piece(row) for index, row in enumerate(rows)}


def _piece(message: Message) -> _Piece:
    text = project_chat_message_for_reading(
        ChatSearchProjectionInput(message.role, message.content, message.is_compaction_summary)
    )
    return _Piece(message, text)


def _without_farthest(window: range, target: int) -> range:
    """One message less: the one farthest from the target, the earlier one of two as far."""
    before, after = target - window.start, window.stop - 1 - target
    return window[1:] if before >= after and before > 0 else window[:-1]


@dataclass(frozen=True, slots=True)
class _Fitting:
    """Makes results that fit ``most_bytes``. ``pieces`` are by position; a page has ``step`` messages."""

    located: Located
    mode: AroundMode | PageMode
    pieces: Mapping[int, _Piece]
    step: int
    most_bytes: int

    def result(self, window: range, target: int, *, was_cut: bool) -> ReadChatResult:
        """Context goes until the JSON fits; the target stays, at the worst with less of its text."""
        shown = {position: self.pieces[position].shown() for position in window}
        while self._excess(window, shown) > 0 and len(window) > 1:
            window, was_cut = _without_farthest(window, target), True
        piece = self.pieces.get(target)
        while piece is not None and (excess := self._excess(window, shown)) > 0:
            # A character is one to six bytes of JSON, so this never cuts much more than is needed.
            length = min(piece.limit, len(piece.text) - piece.start)
            piece, was_cut = replace(piece, limit=max(1, length - max(1, excess // 6))), True
            shown[target] = piece.shown()
        return self._result(window, shown, was_cut, self._previous_offset(window.start))

    def _previous_offset(self, first: int) -> int | None:
        """Where the page begins that ends just before ``first``: later than a page's length when that many messages
        are more than fits, so that walking back leaves none out."""
        if first == 0:
            return None
        page = replace(self, mode=PageMode(offset=first, limit=self.step))
        window = range(max(0, first - self.step), first)
        shown = {position: self.pieces[position].shown() for position in window}
        while page._excess(window, shown) > 0 and len(window) > 1:
            window = window[1:]
        return window.start

    def _excess(self, window: range, shown: Mapping[int, ReadMessage]) -> int:
        """Bytes beyond the budget, at the worst: ``previous_offset`` is not known yet."""
        longest = max(window.start, _AS_LONG_AS_NULL)
        return len(to_json(self._result(window, shown, False, longest)).encode()) - self.most_bytes

    def _result(
        self, window: range, shown: Mapping[int, ReadMessage], was_cut: bool, previous_offset: int | None
    ) -> ReadChatResult:
        located = self.located
        messages = tuple(shown[position] for position in window)
        has_more_after = window.stop < located.total
        return ReadChatResult(
            chat=ReadChatHead(
                chat_id=located.chat_id,
                title=None if located.title is None else one_line(located.title, TITLE_CHARACTERS),
                created_at=iso_time(located.created_at),
                total_messages=located.total,
            ),
            mode=self.mode,
            first_position=window.start if messages else None,
            messages=messages,
            has_more_before=window.start > 0,
            has_more_after=has_more_after,
            next_offset=window.stop if has_more_after else None,
            previous_offset=previous_offset,
            output_truncated=was_cut or any(message.truncated for message in messages),
        )
