"""How well a message answers a query: BM25 with the statistics of one app, and bonuses relative to that score.

Scores here are positive and larger is better; FTS5's own ``bm25()`` (negative, smaller is better) only cuts candidates.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from recall_app.domain.word_breaks import BREAK
from recall_app.retrieval.terms import Term
from recall_app.store.search_queries import Candidate, IndexedText

TITLE_WEIGHT = 3.0
_K1 = 1.2
_B = 0.75
"""The usual constants of BM25, those of FTS5 too."""

PHRASE_BONUS = 0.5
"""The whole query stands in the text as it was written."""
ALL_TERMS_BONUS = 0.2
STEM_MATE = 0.6
"""What a term is worth in a text that holds only its stem mates or its scattered pieces, not the word as written."""
SUMMARY_PENALTY = 0.85
"""A compaction summary repeats what its chat said better."""
NEIGHBOUR_SHARE = (0.35, 0.2)
"""What a message gains of the score of a matching message one and two places away: talk spreads over turns."""


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """A term, how many documents of the app hold it, and which phrases of the MATCH expression stand for it."""

    term: Term
    documents: int
    phrases: tuple[int, ...]


@dataclass(slots=True)
class Scored:
    """A candidate and what each term of the query adds to its score."""

    candidate: Candidate
    parts: list[float]
    score: float = 0.0
    in_body: bool = False

    @property
    def tie_break(self) -> tuple[float, int, int]:
        """Best first, then the newest, then the highest id."""
        return (-self.score, -self.candidate.created_at, -self.candidate.message_id)


def idf(documents: int, app_documents: int) -> float:
    """Always positive, so that a word in most messages still counts a little."""
    return math.log(1 + (max(app_documents, documents) - documents + 0.5) / (documents + 0.5))


def score_candidates(
    candidates: Sequence[Candidate], statistics: Sequence[TermStatistics], app_documents: int
) -> list[Scored]:
    """BM25 of each candidate; the average length is that of the candidates, which are all of this app."""
    if not candidates:
        return []
    average = max(1.0, sum(candidate.size for candidate in candidates) / len(candidates))
    weights = [idf(each.documents, app_documents) for each in statistics]
    scored = []
    for candidate in candidates:
        norm = _K1 * (1 - _B + _B * candidate.size / average)
        parts = []
        in_body = False
        for each, weight in zip(statistics, weights, strict=True):
            titles = max((candidate.counts[phrase][0] for phrase in each.phrases), default=0)
            bodies = max((candidate.counts[phrase][1] for phrase in each.phrases), default=0)
            in_body = in_body or bodies > 0
            frequency = TITLE_WEIGHT * titles + bodies
            parts.append(weight * frequency * (_K1 + 1) / (frequency + norm) if frequency else 0.0)
        scored.append(Scored(candidate, parts, sum(parts), in_body))
    return scored


def share_with_neighbours(
    scored: Sequence[Scored],
    own: Mapping[int, float],
    neighbours: Callable[[Candidate], tuple[Sequence[int], Sequence[int]]],
) -> None:
    """Add to each score a share of the matching messages just before and after it in its chat.

    ``own`` are the scores of all that match, by message id. A neighbour counts at most as much as the message itself.
    """
    of_chat = Counter(each.candidate.chat_id for each in scored)
    for each in scored:
        if of_chat[each.candidate.chat_id] == 1:
            continue
        gain = 0.0
        for side in neighbours(each.candidate):
            for share, message_id in zip(NEIGHBOUR_SHARE, side, strict=False):
                gain += share * min(own.get(message_id, 0.0), each.score)
        each.score += gain


class WrittenForms:
    """Looks terms up in stored texts as they were written, where the index knows only stems and pieces."""

    def __init__(self, terms: Sequence[Term], phrase: Sequence[str]) -> None:
        self._exact = [_as_written(term) for term in terms]
        self._phrase = _phrase_pattern(phrase) if len(phrase) > 1 else None

    def apply(self, scored: Scored, text: IndexedText) -> None:
        """Set the score from its parts: stem mates count less, all terms and the exact phrase more."""
        words = f"{text.title}\n{text.body}"
        score = 0.0
        present = 0
        for part, exact in zip(scored.parts, self._exact, strict=True):
            if part:
                present += 1
                score += part if exact(words) else part * STEM_MATE
        if present == len(scored.parts) > 1:
            score *= 1 + ALL_TERMS_BONUS
        if self._phrase is not None and (self._phrase(text.body) or self._phrase(text.title)):
            score *= 1 + PHRASE_BONUS
        if scored.candidate.is_compaction_summary:
            score *= SUMMARY_PENALTY
        scored.score = score


_NOT_A_WORD = rf"[\W_{BREAK}]"


def _as_written(term: Term) -> Callable[[str], object]:
    """Is the term there as it was written: all its pieces with nothing but our own breaks between them?"""
    written = BREAK.join(re.escape(piece) for piece in term.pieces)
    if term.joined is None and len(term.pieces) > 1:
        return re.compile(written).search  # unspaced script: no word borders to look for
    borders = rf"(?<![^\W_])(?:{written}|{re.escape(term.joined or term.written)})(?![^\W_])"
    return re.compile(borders, re.IGNORECASE).search


def _phrase_pattern(pieces: Sequence[str]) -> Callable[[str], object]:
    between = rf"{_NOT_A_WORD}{{0,8}}"
    pattern = between.join(re.escape(piece) for piece in pieces)
    return re.compile(rf"(?<![^\W_]){pattern}(?![^\W_])", re.IGNORECASE).search


def rarest(statistics: Mapping[Term, int], most: int) -> list[Term]:
    """The terms with the fewest documents, rarest first; those that no document holds are left out."""
    found = [term for term, documents in statistics.items() if documents]
    return sorted(found, key=lambda term: (statistics[term], term.written))[:most]
