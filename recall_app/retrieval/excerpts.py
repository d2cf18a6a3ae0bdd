"""Short pieces of indexed text around what matched, for a model or a person; never markup, ranges instead.

Indexed text holds no bidi controls (word breaks drop them), so an excerpt can't reorder what stands around it.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from recall_app.domain.text import cut, cut_tail
from recall_app.domain.word_breaks import without_breaks
from recall_app.retrieval.terms import Term
from recall_app.store.search_queries import MARK_CLOSE, MARK_OPEN

_MARK = re.compile(f"[{MARK_OPEN}{MARK_CLOSE}]")
_SPACES = re.compile(r"\s+")
_SENTENCE = re.compile(r".+?(?:[.!?…](?=\s|$)|[。！？؟۔।]|$)", re.MULTILINE)
_ELLIPSIS = "…"
_MEANINGFUL = 12
"""A first sentence shorter than this ("OK.", "Sure!") says too little to stand for its message."""
_SENTENCES_TRIED = 5
_LEAD = 0.25
"""The share of an excerpt that stands before the first match shown."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """``ranges`` are the (start, end) in characters of ``text`` that matched."""

    text: str
    ranges: tuple[tuple[int, int], ...] = ()


def read_marks(highlighted: str) -> Excerpt:
    """A whole text from ``search_queries.highlights``: without word breaks, white space folded, and what matched."""
    flat = _SPACES.sub(" ", without_breaks(highlighted)).strip()
    parts: list[str] = []
    ranges: list[tuple[int, int]] = []
    length = at = start = 0
    for mark in _MARK.finditer(flat):
        parts.append(flat[at : mark.start()])
        length += mark.start() - at
        at = mark.end()
        if mark[0] == MARK_OPEN:
            start = length
        elif ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], length)
        else:
            ranges.append((start, length))
    parts.append(flat[at:])
    return Excerpt("".join(parts), tuple(ranges))


def mark_written(marked: Excerpt, terms: Sequence[Term]) -> Excerpt:
    """Where only a joined form matched (``typescript`` for “TypeScript”), the index marks nothing: look it up."""
    if marked.ranges:
        return marked
    ranges: list[tuple[int, int]] = []
    for term in terms:
        wanted = re.escape(term.joined or term.written)
        ranges += [match.span() for match in re.finditer(wanted, marked.text, re.IGNORECASE)]
    return Excerpt(marked.text, tuple(sorted(set(ranges))))


def excerpt(marked: Excerpt, limit: int) -> Excerpt:
    """At most ``limit`` characters where most matches stand together; the head of the text without a match."""
    text = marked.text
    if len(text) <= limit:
        return marked
    room = limit - 2 * len(_ELLIPSIS)
    start = _best_start(marked, room)
    if start:
        start = len(text) - len(cut_tail(text, len(text) - start))
        space = text.find(" ", start, start + room // 8)
        start = space + 1 if space >= 0 else start
    body = cut(text[start:], room)
    lead = _ELLIPSIS if start else ""
    tail = _ELLIPSIS if start + len(body) < len(text) else ""
    shift = len(lead) - start
    end = start + len(body)
    ranges = [(max(a, start) + shift, min(b, end) + shift) for a, b in marked.ranges if a < end and b > start]
    return Excerpt(f"{lead}{body}{tail}", tuple(ranges))


def _best_start(marked: Excerpt, room: int) -> int:
    """Where a window of ``room`` characters holds the most different matched words, then the most matches."""
    if not marked.ranges:
        return 0
    starts = [start for start, _ in marked.ranges]
    words = [marked.text[start:end].casefold() for start, end in marked.ranges]
    lead = int(room * _LEAD)
    best, best_value = 0, (-1, -1)
    for index, start in enumerate(starts):
        after = bisect_right(starts, start + room - lead)
        value = (len(set(words[index:after])), after - index)
        if value > best_value:
            best, best_value = index, value
    return max(0, min(starts[best] - lead, len(marked.text) - room))


def first_sentence(body: str, limit: int) -> Excerpt:
    """The first sentence that says something, for a message whose title alone matched."""
    head = without_breaks(body[: 8 * limit]).strip()
    sentences = [" ".join(match[0].split()) for match in islice(_SENTENCE.finditer(head), _SENTENCES_TRIED)]
    chosen = next((sentence for sentence in sentences if len(sentence) >= _MEANINGFUL), " ".join(head.split()))
    return Excerpt(chosen if len(chosen) <= limit else cut(chosen, limit - len(_ELLIPSIS)) + _ELLIPSIS)
