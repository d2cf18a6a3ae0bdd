"""Where Markdown code begins and ends, as far as the tag parser must know it.

A tag name inside a *closed* inline span or fence is text (contracts §3), so only two questions matter, both asked at
a tag: does the text before it leave code open, and is that code closed after it? Two rules are narrower than
CommonMark's, since shielding too little loses text and shielding too much leaks a payload: a span lies on one line,
and a backtick inside a quoted attribute doesn't close one.
"""

import re
from dataclasses import dataclass, field

# Written so that both branches begin with a literal: the engine then skips ordinary text quickly.
_RUN = re.compile(r"``*|~~*")
_LONGEST_FENCE_PREFIX = 200
_OPENER_PREFIX = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
_FENCE_CLOSE = {mark: re.compile(rf"\n[ \t>]*({mark}{{3,}})[ \t\r]*(?=\n)") for mark in "`~"}
_FENCE_LINE = {mark: re.compile(rf"\n[ \t>]*({mark}{{3,}})([^\n]*)") for mark in "`~"}


@dataclass(frozen=True, slots=True)
class Fence:
    """An open fence: its mark and length, and where its opening mark stands in the message."""

    mark: str
    run: int
    start: int


@dataclass(frozen=True, slots=True)
class CodeBefore:
    """What is open where a piece of text ends: a fence, or runs of backticks that may yet begin a span."""

    fence: Fence | None = None
    spans: tuple[int, ...] = ()


def code_before(text: str, base: int, at_line_start: bool) -> CodeBefore:
    """What ``text`` leaves open; it stands outside code at ``base`` in the message and a tag follows it.

    Linear in ``text``: every run of marks is looked at once.
    """
    spans: list[int] = []
    line: int | None = 0 if at_line_start else None
    at = 0
    while found := _RUN.search(text, at):
        newline = text.rfind("\n", at, found.start())
        if newline >= 0:
            spans.clear()
            line = newline + 1
        at = found.end()
        mark, run = text[found.start()], found.end() - found.start()
        body = _fence_body(text, found, line)
        if body is not None:
            end = _plain_fence_end(text, body, mark, run)
            if end is None:
                return CodeBefore(fence=Fence(mark, run, base + found.start()))
            at, line = end, None
            spans.clear()
        elif mark == "`":
            _pair(spans, run, escaped=_is_escaped(text, found.start()))
    if text.find("\n", at) >= 0:
        spans.clear()
    return CodeBefore(spans=tuple(spans))


def _fence_body(text: str, found: re.Match[str], line: int | None) -> int | None:
    """Where the body of the fence opened by ``found`` begins (at the line's end), or None: it opens no fence."""
    run = found.group()
    if line is None or len(run) < 3 or found.start() - line > _LONGEST_FENCE_PREFIX:
        return None
    if not _OPENER_PREFIX.fullmatch(text, line, found.start()):
        return None
    newline = text.find("\n", found.end())
    if newline < 0 or (run[0] == "`" and text.find("`", found.end(), newline) >= 0):
        return None
    return newline


def _plain_fence_end(text: str, at: int, mark: str, run: int) -> int | None:
    for found in _FENCE_CLOSE[mark].finditer(text, at):
        if len(found.group(1)) >= run:
            return found.end()
    return None


def _pair(spans: list[int], run: int, escaped: bool) -> None:
    """A run closes the open one of its length, and all that was opened inside it; else it may open a span itself."""
    if run in spans:
        del spans[spans.index(run) :]
        return
    opened = run - 1 if escaped else run
    if opened and opened not in spans:
        spans.append(opened)


def _is_escaped(text: str, at: int) -> bool:
    slashes = 0
    while at > slashes and text[at - slashes - 1] == "\\":
        slashes += 1
    return slashes % 2 == 1


def span_end(text: str, start: int, line_end: int, spans: tuple[int, ...]) -> int | None:
    """Where the span that one of the open ``spans`` began is closed in ``text[start:line_end]``, or None."""
    for found in _RUN.finditer(text, start, line_end):
        if text[found.start()] == "`" and found.end() - found.start() in spans:
            return found.end()
    return None


@dataclass(slots=True)
class FenceSearch:
    """Looks for the end of one open fence as its text arrives.

    After a tag, a fence line with an info string counts as nested: a file's body that holds ``` fences must not end
    the fence that a model has wrapped around the tag.
    """

    fence: Fence
    at: int
    """Everything before this offset of the message has been looked at."""
    open: list[Fence] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    """Start of a nested fence → its end, for those that were seen to close."""

    def advance(self, buffer: str, offset: int, final: bool) -> int | None:
        """The offset just after the closing fence, or None if it has not come (for good, when ``final``).

        ``buffer`` holds the message from ``offset`` on; unless ``final``, its last line is still growing.
        """
        if not self.open:
            self.open.append(self.fence)
        complete = len(buffer) if final else buffer.rfind("\n") + 1
        for found in _FENCE_LINE[self.fence.mark].finditer(buffer, self.at - offset, complete):
            self.at = offset + found.end()
            run, rest = len(found.group(1)), found.group(2).strip()
            if rest:
                if self.fence.mark not in rest:
                    self.open.append(Fence(self.fence.mark, run, offset + found.start(1)))
            elif run >= self.open[-1].run:
                closed = self.open.pop()
                self.ends[closed.start] = self.at
                if not self.open:
                    return self.at
        self.at = max(self.at, offset + complete - 1)
        return None
