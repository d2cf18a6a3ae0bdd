"""From a query's text to what FTS5 is asked: every word is quoted, MATCH is built and never taken (contracts §4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from recall_app.domain.text import normalise
from recall_app.domain.word_breaks import QueryWord, query_words
from recall_app.retrieval.stopwords import STOPWORDS

MOST_TERMS = 12
"""A query asks for at most so many terms, the rarest."""
MOST_COUNTED_TERMS = 64
"""And looks for those among at most so many, the longest first: a 500-character query is mostly small talk."""
_WHOLE_RUN_PIECES = 2
"""An unspaced run (登录, 검색을) of more pieces than this is asked in overlapping pairs, since where its words end is
written nowhere; that it stands whole is rewarded as a phrase."""


@dataclass(frozen=True, slots=True)
class Term:
    """One thing a message may contain: ``pieces`` side by side, or ``joined``, the word's form without its borders."""

    written: str
    pieces: tuple[str, ...]
    joined: str | None = None

    @property
    def phrases(self) -> tuple[str, ...]:
        """The FTS5 phrases, quoted, that stand for this term; a message matches with any of them."""
        together = quoted(" ".join(self.pieces))
        return (together,) if self.joined is None else (together, quoted(self.joined))

    @property
    def match(self) -> str:
        return any_of(self.phrases)


def quoted(text: str) -> str:
    """A FTS5 string: whatever is in it is text."""
    return '"' + text.replace('"', '""') + '"'


def any_of(expressions: Iterable[str]) -> str:
    return "(" + " OR ".join(expressions) + ")"


def all_of(expressions: Iterable[str]) -> str:
    return "(" + " AND ".join(expressions) + ")"


def terms_of(query: str) -> list[Term]:
    """The terms of an agent's query, stopwords out unless nothing else remains; each once, at most 64."""
    words = query_words(normalise(query))
    meaningful = [word for word in words if word.written.lower() not in STOPWORDS]
    terms: dict[tuple[str, ...], Term] = {}
    for word in meaningful or words:
        for term in _terms_of_word(word):
            if term.written.lower() in STOPWORDS and meaningful:
                continue
            terms.setdefault(tuple(piece.lower() for piece in term.pieces), term)
    found = list(terms.values())
    if len(found) > MOST_COUNTED_TERMS:
        longest = sorted(found, key=lambda term: -len(term.written))[:MOST_COUNTED_TERMS]
        found = [term for term in found if term in longest]
    return found


def _terms_of_word(word: QueryWord) -> list[Term]:
    is_unspaced_run = word.joined is None and len(word.pieces) > _WHOLE_RUN_PIECES
    if not is_unspaced_run:
        return [Term(word.written, word.pieces, word.joined)]
    pairs = zip(word.pieces, word.pieces[1:], strict=False)
    return [Term("".join(pair), pair) for pair in pairs]


def phrase_of(query: str) -> tuple[str, ...]:
    """All pieces of the query in order, stopwords in place: what must stand side by side for the phrase bonus."""
    return tuple(piece for word in query_words(normalise(query)) for piece in word.pieces)


def match_in(columns: Sequence[str], expression: str) -> str:
    return "{" + " ".join(columns) + "} : " + expression


@dataclass(frozen=True, slots=True)
class Expression:
    """What FTS5 is asked for, and where each term's phrases stand in it (0 is the first phrase of ``match``)."""

    match: str
    places: Mapping[Term, tuple[int, ...]]

    @classmethod
    def any_of(cls, selectors: Sequence[Term], counted: Sequence[Term]) -> Self:
        """Messages that hold any selector; all of ``counted`` are counted in those."""
        return cls._counting(any_of(term.match for term in selectors), selectors, counted)

    @classmethod
    def all_of(cls, selectors: Sequence[Term], counted: Sequence[Term]) -> Self:
        """Messages that hold all selectors; all of ``counted`` are counted in those."""
        return cls._counting(all_of(term.match for term in selectors), selectors, counted)

    @classmethod
    def _counting(cls, selection: str, selectors: Sequence[Term], counted: Sequence[Term]) -> Self:
        if list(selectors) == list(counted):
            return cls(selection, _places(counted, 0))
        # FTS5 has no optional term. “x AND (x OR y)” selects just what x does and knows where y stands.
        first = sum(len(term.phrases) for term in selectors)
        return cls(all_of((selection, any_of(term.match for term in counted))), _places(counted, first))


def _places(terms: Sequence[Term], first: int) -> dict[Term, tuple[int, ...]]:
    places = {}
    for term in terms:
        places[term] = tuple(range(first, first + len(term.phrases)))
        first += len(term.phrases)
    return places
