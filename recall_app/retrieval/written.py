"""Looks queries up in stored texts as they were written, where the index knows only stems and pieces.

Porter makes one stem of ``university`` and ``universe``, and word breaks make ``useChatStore`` of the same pieces as
“use chat store”. A word as written stands above both.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from recall_app.domain.word_breaks import BREAK, without_breaks
from recall_app.retrieval.terms import Term

STEM_MATE = 0.6
"""What a term is worth in a text that holds only other words of its stem, or its pieces, not the word as written."""

_NOT_A_WORD = rf"[\W_{BREAK}]"
_BETWEEN_PIECES = rf"{_NOT_A_WORD}{{0,8}}"
_Y_ENDING = re.compile(r"(\w{2,}[^aeou\W])(?:y|ies|ied|ying)")
_ENDING = re.compile(r"(?<=\w{3})(?:es|ed|ing|e|(?<!s)s)$")
_DOUBLED = re.compile(r"([bdgmnprt])\1$")
_SHORTEST_INFLECTED = 3
"""Shorter words have no plain inflections to look for."""

_Search = Callable[[str], object]


class WrittenForms:
    """The terms of one query and the query as a whole; ``phrase`` are all its pieces, stopwords in place."""

    def __init__(self, terms: Sequence[Term], phrase: Sequence[str]) -> None:
        self._words = [_Word(term) for term in terms]
        self._phrase = _phrase_pattern(phrase) if len(terms) > 1 else None

    def weigh(self, parts: Sequence[float], text: str) -> list[float]:
        """What each term adds to the score of a text (as it is indexed): less where it does not stand as written."""
        broken = text.lower()
        plain = without_breaks(broken)
        weighed = zip(parts, self._words, strict=True)
        return [part if not part or word.stands_in(broken, plain) else part * STEM_MATE for part, word in weighed]

    def is_verbatim(self, title: str, body: str) -> bool:
        """Does the query itself stand there?

        A query of one term does when the term does, or a plain inflection of it (``decided`` for ``decide``): the words
        around it in a question (“what about the login?”) say nothing. One of several terms must stand there as a
        phrase, with its stopwords.
        """
        if self._phrase is not None:
            return any(self._phrase(text) for text in (body, title))
        (word,) = self._words
        broken = f"{title}\n{body}".lower()
        if word.stands_in(broken, without_breaks(broken)):
            return True
        return word.inflected is not None and word.inflected(broken) is not None


class _Word:
    def __init__(self, term: Term) -> None:
        self._term = term
        self._pieces = BREAK.join(term.pieces).lower()
        self._joined = (term.joined or term.written).lower()
        self._is_unspaced = term.joined is None and len(term.pieces) > 1

    def stands_in(self, broken: str, plain: str) -> bool:
        """Does the term stand as written in a lower-case text, given with word breaks and without?

        In one it is found as a piece of a longer word (``store`` in ``useChatStore``), in the other whatever its own
        pieces are (``typescript`` as “TypeScript”).
        """
        if self._is_unspaced:
            return self._pieces in broken  # no word borders to look for
        return _stands_apart(broken, self._pieces) or _stands_apart(plain, self._joined)

    @cached_property
    def inflected(self) -> _Search | None:
        """The term with a plain English ending, or None for what has none: identifiers, other scripts, short words.

        Only endings that leave the word what it is: no ``-ity``, ``-ation``, ``-er``.
        """
        word = self._term.written.lower()
        if len(self._term.pieces) > 1 or not (word.isascii() and word.isalpha()) or len(word) < _SHORTEST_INFLECTED:
            return None
        if with_y := _Y_ENDING.fullmatch(word):
            pattern = f"{with_y[1]}(?:y|ies|ied|ying)"
        else:
            base = _ENDING.sub("", word)
            base = _DOUBLED.sub(r"\1", base) if base != word else base
            pattern = f"{base}{base[-1]}?(?:e|es|s|ed|ing)?"
        return re.compile(rf"(?<![^\W_]){pattern}(?![^\W_])", re.IGNORECASE).search


def _stands_apart(text: str, spelling: str) -> bool:
    """Is it there without a letter or digit beside it? Ten times as fast as a pattern that ignores case, and every
    candidate's text is asked for every term."""
    at = text.find(spelling)
    while at >= 0:
        end = at + len(spelling)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return True
        at = text.find(spelling, at + 1)
    return False


def _phrase_pattern(pieces: Sequence[str]) -> _Search:
    pattern = _BETWEEN_PIECES.join(re.escape(piece) for piece in pieces)
    return re.compile(rf"(?<![^\W_]){pattern}(?![^\W_])", re.IGNORECASE).search
