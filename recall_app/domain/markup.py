"""The streaming tag parser: assistant text in, blocks of text and tags out (contracts §3).

One parser serves the window, which feeds it while a model writes, and the projections, which hand it whole messages;
any split of the same text ends in the same blocks. It looks for ``dyad-*``, ``think`` and ``thinking``, knows nothing
of what a tag means, and never backtracks over what it has settled: its work is linear in the text.

Where the text is ambiguous it errs towards the tag, since a reader loses less by missing text than by meeting a
payload: whatever begins like a tag outside closed code *is* one, and runs to its matching close or to the end.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from recall_app.domain.code_regions import CodeBefore, FenceSearch, code_before, span_end

_NAME = r'(?:dyad-[^\s<>/"=]{0,80}|think(?:ing)?(?![\w-]))'
_TAG = re.compile(rf"<(/?)({_NAME})")
_LONGEST_SPACE = 100
_CLOSE_END = re.compile(rf"\s{{0,{_LONGEST_SPACE}}}>")
_QUOTE_OR_END = re.compile(r'[">]')
_ATTRIBUTE = re.compile(r'\s+([^\s"=<>/]+)\s*=\s*"([^"]*)"')
_WELL_FORMED = re.compile(r'(?:\s++[^\s"=<>/]++\s*+=\s*+"[^"]*+")*+\s*+/?+')
# Inside closed code a tag must be whole to count as one; an opening with a bare "<" in it is only a mention.
_WHOLE_TAG = re.compile(
    rf'<(?:(?P<close>/)(?P<closed>{_NAME})\s*|(?P<opened>{_NAME})(?P<rest>(?:[^"<>]++|"[^"]*+")*+))>'
)
_STARTS = ("<dyad-", "</dyad-", "<thinking", "</thinking")
_LONGEST_START = max(map(len, _STARTS))
_LONGEST_NESTED_OPENING = 2_000
_ENTITY = re.compile(r"&(?:lt|gt|amp);")
_ATTRIBUTE_ENTITY = re.compile(r"&(?:lt|gt|amp|quot);")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"'}


class TagState(StrEnum):
    """How far a tag has come: a body cut off by the end of the stream is unfinished."""

    COMPLETE = "complete"
    IN_PROGRESS = "in progress"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text outside tags, as written. Markup left in it stands in closed code: it is a mention, not a tag."""

    text: str


@dataclass(frozen=True, slots=True)
class TagBlock:
    """One tag. ``start`` and ``end`` are its place in the whole text, in code points, closing tag included.

    Attribute values are decoded. ``well_formed`` is false if the opening tag breaks the grammar (a quote that never
    closes, an unquoted value): then only attributes that can't have swallowed a body are kept.
    """

    name: str
    attributes: Mapping[str, str]
    raw_body: str
    state: TagState
    well_formed: bool
    start: int
    end: int

    @property
    def body(self) -> str:
        """The body with its entities decoded."""
        return decode_entities(self.raw_body)


@dataclass(frozen=True, slots=True)
class StrayClose:
    """A closing tag that nothing had opened.

    Seen after a tag of that name it shows that the tag's payload held its own closing tag as text: what lies between
    may be the payload's tail.
    """

    name: str


Block = TextBlock | TagBlock | StrayClose


def decode_entities(text: str) -> str:
    """``&lt; &gt; &amp;`` decoded once; other entities are text."""
    return _ENTITY.sub(lambda found: _ENTITIES[found.group()], text) if "&" in text else text


def encode_entities(text: str) -> str:
    """A tag's body as it is written: what ``decode_entities`` gives back."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def encode_attribute(value: str) -> str:
    """An attribute's value as it stands between double quotes."""
    return encode_entities(value).replace('"', "&quot;")


def parse_blocks(text: str) -> list[Block]:
    """The blocks of a whole text, in order; neighbouring text is one block."""
    parser = StreamingTagParser()
    parser.feed(text)
    return parser.finish()


def mentioned_tags(text: str) -> Iterator[tuple[str, int]]:
    """Name and place of every opening that stands in the text of a ``TextBlock``, and so is only a mention."""
    return ((found.group(2), found.start()) for found in _TAG.finditer(text) if not found.group(1))


@dataclass(slots=True)
class _Opening:
    """A tag whose closing tag has not come."""

    name: str
    start: int
    attributes: dict[str, str] = field(default_factory=dict)
    well_formed: bool = False
    in_body: bool = False
    pieces: list[str] = field(default_factory=list)
    depth: int = 1
    look_at: int = 0
    """Up to here the opening tag was searched for its end."""
    quoted: bool = False

    def block(self, state: TagState, end: int) -> TagBlock:
        return TagBlock(self.name, self.attributes, "".join(self.pieces), state, self.well_formed, self.start, end)


class StreamingTagParser:
    """Reads a text in pieces. ``blocks`` shows what is settled so far, ``finish()`` the whole.

    Text that could still turn out to be a tag, or to be shielded by code that closes later, is held back until it is
    decided; nothing that was shown is taken back.
    """

    def __init__(self) -> None:
        self._settled: list[Block] = []
        self._text: list[str] = []
        self._unread: list[str] = []
        self._buffer = ""
        self._offset = 0
        self._at = 0
        self._awaits = ""
        self._opening: _Opening | None = None
        self._context: list[str] = []
        self._context_at_line_start = True
        self._code: CodeBefore | None = None
        self._fence_search: FenceSearch | None = None
        self._fence_ends: dict[int, int | None] = {}

    @property
    def blocks(self) -> list[Block]:
        """The blocks so far; a tag whose end has not come is in progress."""
        blocks = self._settled.copy()
        if self._text:
            blocks.append(TextBlock("".join(self._text)))
        if self._opening:
            blocks.append(self._open_block(self._opening, TagState.IN_PROGRESS, self._offset + self._at))
        return blocks

    def feed(self, chunk: str) -> None:
        """Take the next piece of the text, of any size."""
        self._unread.append(chunk)
        if not self._awaits or self._awaits in chunk:
            self._advance(final=False)

    def finish(self) -> list[Block]:
        """The text has ended: everything held back is decided."""
        self._advance(final=True)
        if self._opening:
            end = self._offset + len(self._buffer)
            if self._opening.in_body:
                self._take_body(self._opening, len(self._buffer))
            self._settled.append(self._open_block(self._opening, TagState.UNFINISHED, end))
            self._opening, self._at = None, len(self._buffer)
        self._flush_text()
        return self._settled.copy()

    def _open_block(self, opening: _Opening, state: TagState, end: int) -> TagBlock:
        if not opening.in_body:
            opening.attributes, _ = _parse_attributes(self._buffer[self._at :], whole=False)
        return opening.block(state, end)

    def _advance(self, final: bool) -> None:
        self._buffer = "".join((self._buffer, *self._unread))
        self._unread.clear()
        self._awaits = ""
        while self._step(final):
            pass
        self._offset += self._at
        self._buffer = self._buffer[self._at :]
        self._at = 0

    def _step(self, final: bool) -> bool:
        """Settle one more stretch of the buffer; False when more text is needed."""
        if self._opening:
            return self._read_body(self._opening, final) if self._opening.in_body else self._read_opening(self._opening)
        if self._code:
            return self._decide_code(self._code, final)
        return self._read_text(final)

    # Text and the code in it

    def _read_text(self, final: bool) -> bool:
        found = _TAG.search(self._buffer, self._at)
        if not found:
            self._take_text(len(self._buffer) if final else self._possible_start())
            return False
        self._take_text(found.start())
        if found.end() == len(self._buffer) and not final:
            return False
        before = "".join(self._context)
        self._code = code_before(before, self._offset + self._at - len(before), self._context_at_line_start)
        return True

    def _possible_start(self) -> int:
        """Where the buffer's tail may be the beginning of a tag."""
        buffer = self._buffer
        at = buffer.rfind("<", max(self._at, len(buffer) - _LONGEST_START))
        if at >= 0 and any(start.startswith(buffer[at:]) for start in _STARTS):
            return at
        return len(buffer)

    def _take_text(self, end: int) -> None:
        if end > self._at:
            text = self._buffer[self._at : end]
            self._text.append(text)
            self._context.append(text)
            self._at = end

    def _decide_code(self, code: CodeBefore, final: bool) -> bool:
        """At a tag: is it in code that closes? Then its name is text; else it is a tag."""
        if code.fence:
            end = self._closed_fence(code, final)
        elif code.spans:
            end = self._closed_span(code, final)
        else:
            end = None
        if self._awaits:
            return False
        if end is None:
            return self._begin_tag(final)
        self._take_code(end)
        return True

    def _closed_fence(self, code: CodeBefore, final: bool) -> int | None:
        """The buffer index after the closing fence; None if there is none, or (``_awaits`` set) none yet."""
        fence = code.fence
        assert fence
        if fence.start in self._fence_ends:
            known = self._fence_ends[fence.start]
            return None if known is None else known - self._offset
        if self._fence_search is None:
            self._fence_search = FenceSearch(fence, self._offset + self._at)
        search = self._fence_search
        end = search.advance(self._buffer, self._offset, final)
        if end is None and not final:
            self._awaits = "\n"
            return None
        self._fence_search = None
        if end is None:
            # Nothing more will come: remember how its inner fences end, so that none of them is searched again.
            self._fence_ends.update(search.ends)
            self._fence_ends.update((left.start, None) for left in search.open)
            return None
        return end - self._offset

    def _closed_span(self, code: CodeBefore, final: bool) -> int | None:
        line_end = self._buffer.find("\n", self._at)
        if line_end < 0:
            if not final:
                self._awaits = "\n"
                return None
            line_end = len(self._buffer)
        opening = _WHOLE_TAG.match(self._buffer, self._at, line_end)
        start = opening.end() if opening else self._at
        return span_end(self._buffer, start, line_end, code.spans)

    def _take_code(self, end: int) -> None:
        """Closed code up to ``end``: whole elements in it are tags all the same, everything else is text."""
        for block in _elements_in(self._buffer, self._at, end, self._offset):
            self._text.append(self._buffer[self._at : block.start - self._offset])
            self._flush_text()
            self._settled.append(block)
            self._at = block.end - self._offset
        self._text.append(self._buffer[self._at : end])
        self._at = end
        self._restart_context()

    def _restart_context(self) -> None:
        self._context.clear()
        self._context_at_line_start = False
        self._code = None

    def _flush_text(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text:
            self._settled.append(TextBlock(text))

    # Tags

    def _begin_tag(self, final: bool) -> bool:
        found = _TAG.match(self._buffer, self._at)
        assert found
        if not found.group(1):
            self._flush_text()
            self._opening = _Opening(found.group(2), self._offset + self._at, look_at=self._offset + found.end())
            self._at = found.end()
            self._restart_context()
            return True
        closed = _CLOSE_END.match(self._buffer, found.end())
        if not closed and not final and self._may_be_close(found.end()):
            return False
        self._flush_text()
        self._settled.append(StrayClose(found.group(2)))
        self._at = closed.end() if closed else found.end()
        self._restart_context()
        return True

    def _may_be_close(self, at: int) -> bool:
        rest = self._buffer[at : at + _LONGEST_SPACE + 1]
        return at + len(rest) == len(self._buffer) and len(rest) <= _LONGEST_SPACE and not rest.strip()

    def _read_opening(self, opening: _Opening) -> bool:
        at = opening.look_at - self._offset
        while found := _QUOTE_OR_END.search(self._buffer, at):
            at = found.end()
            if found.group() == '"':
                opening.quoted = not opening.quoted
            elif not opening.quoted:
                self._end_opening(opening, at)
                return True
        opening.look_at = self._offset + len(self._buffer)
        self._awaits = '"' if opening.quoted else ">"
        return False

    def _end_opening(self, opening: _Opening, end: int) -> None:
        source = self._buffer[self._at : end - 1]
        self._at = end
        opening.attributes, opening.well_formed = _parse_attributes(source)
        # A malformed tag that happens to meet "/>" may have met it in its own body.
        if opening.well_formed and source.endswith("/"):
            self._close_tag(opening)
        else:
            opening.in_body = True

    def _read_body(self, opening: _Opening, final: bool) -> bool:
        body_edge = _body_edge(opening.name)
        look_at = self._at
        while found := body_edge.search(self._buffer, look_at):
            at = found.start()
            edge = self._edge_at(opening.name, found, final)
            if edge is None:
                self._take_body(opening, at)
                return False
            depth, look_at = edge
            opening.depth += depth
            if not opening.depth:
                self._take_body(opening, at)
                self._at = look_at
                self._close_tag(opening)
                return True
        if not final:
            self._take_body(opening, self._possible_edge(opening.name))
        return False

    def _edge_at(self, name: str, found: re.Match[str], final: bool) -> tuple[int, int] | None:
        """How a possible edge of the body changes the depth, and where it ends; None if that is not decided yet."""
        buffer = self._buffer
        if found.group(1):
            closed = _CLOSE_END.match(buffer, found.end())
            if closed:
                return -1, closed.end()
            return None if not final and self._may_be_close(found.end()) else (0, found.end())
        limit = found.start() + _LONGEST_NESTED_OPENING
        nested = _nested_opening(name).match(buffer, found.start(), limit)
        if nested:
            return (0 if nested.group().endswith("/>") else 1), nested.end()
        return None if not final and len(buffer) < limit else (0, found.end())

    def _possible_edge(self, name: str) -> int:
        buffer = self._buffer
        at = buffer.rfind("<", max(self._at, len(buffer) - len(name) - 2))
        if at >= 0 and (f"</{name}".startswith(buffer[at:]) or f"<{name}".startswith(buffer[at:])):
            return at
        return len(buffer)

    def _take_body(self, opening: _Opening, end: int) -> None:
        if end > self._at:
            opening.pieces.append(self._buffer[self._at : end])
            self._at = end

    def _close_tag(self, opening: _Opening) -> None:
        self._settled.append(opening.block(TagState.COMPLETE, self._offset + self._at))
        self._opening = None


@lru_cache(maxsize=128)
def _body_edge(name: str) -> re.Pattern[str]:
    return re.compile(rf"<(/?){re.escape(name)}(?=[\s/>]|\Z)")


@lru_cache(maxsize=128)
def _nested_opening(name: str) -> re.Pattern[str]:
    # A quoted value stops before "</", so that a quote left open in a payload can't hide the payload's own end.
    return re.compile(rf'<{re.escape(name)}(?=[\s/>])(?:[^"<>]++|"(?:[^"<]++|<(?!/))*+")*+>')


def _parse_attributes(source: str, whole: bool = True) -> tuple[dict[str, str], bool]:
    """The attributes between a tag's name and its ``>``, and whether they keep to the grammar."""
    well_formed = whole and _WELL_FORMED.fullmatch(source) is not None
    attributes: dict[str, str] = {}
    at = 0
    while found := _ATTRIBUTE.match(source, at):
        at = found.end()
        name, value = found.groups()
        if _can_be_value(value, well_formed):
            attributes.setdefault(name, _decode_attribute(value))
    return attributes, well_formed


def _can_be_value(value: str, well_formed: bool) -> bool:
    """Whether a quoted value is one, and not the start of a body that an unclosed quote has swallowed."""
    if not well_formed:
        return not any(mark in value for mark in "<>\n")
    return "</" not in value and not _TAG.search(value) and not (">" in value and "\n" in value)


def _decode_attribute(value: str) -> str:
    return _ATTRIBUTE_ENTITY.sub(lambda found: _ENTITIES[found.group()], value) if "&" in value else value


def _elements_in(text: str, start: int, end: int, offset: int) -> list[TagBlock]:
    """The outermost whole elements with a body in closed code ``text[start:end]``; ``offset`` is where text begins."""
    unclosed: dict[str, list[re.Match[str]]] = {}
    pairs: list[tuple[re.Match[str], re.Match[str]]] = []
    for found in _WHOLE_TAG.finditer(text, start, end):
        if not found.group("close"):
            if not found.group("rest").endswith("/"):
                unclosed.setdefault(found.group("opened"), []).append(found)
        elif unclosed.get(found.group("closed")):
            pairs.append((unclosed[found.group("closed")].pop(), found))
    pairs.sort(key=lambda pair: pair[0].start())
    blocks: list[TagBlock] = []
    at = start
    for opened, closed in pairs:
        body = text[opened.end() : closed.start()]
        if opened.start() >= at and body.strip():
            at = closed.end()
            attributes, well_formed = _parse_attributes(opened.group("rest"))
            place = offset + opened.start(), offset + at
            blocks.append(TagBlock(opened.group("opened"), attributes, body, TagState.COMPLETE, well_formed, *place))
    return blocks
