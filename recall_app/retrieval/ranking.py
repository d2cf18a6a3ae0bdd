"""How well a message answers a query: BM25 with the statistics of one app, and bonuses relative to that score.

Scores here are positive and larger is better; FTS5's own ``bm25()`` (negative, smaller is better) only cuts candidates.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recall_app.retrieval.terms import Term
from recall_app.retrieval.written import WrittenForms
from recall_app.store.search_queries import Candidate, IndexedText

TITLE_WEIGHT = 3.0
_K1 = 1.2
_B = 0.75
"""The usual constants of BM25, those of FTS5 too."""
_SHORT_TOKENS = 64
"""Below this a document's length says nothing: in talk, a turn of five words is not more to the point than one of
fifty. Only longer ones are weighed by their length."""

ALL_TERMS_BONUS = 0.2
SUMMARY_PENALTY = 0.85
"""A compaction summary repeats what its chat said better."""
CHAT_SHARE = 0.5
"""What a message gains of its chat's coverage of the query: the best that each term is worth anywhere in the chat."""
NEIGHBOUR_SHARE = (0.35, 0.2)
"""What a message gains of the score of a matching message one and two places away: talk spreads over turns."""
REPLY_SHARE = 0.75
"""What a reply gains instead of the score of the question that it answers: it need not repeat the question's words."""
QUESTION_PENALTY = 0.85
"""A question has the words, its answer has the matter."""
_QUESTION_MARKS = ("?", "？", "؟")


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """A term, how many documents of the app hold it, and which phrases of the MATCH expression stand for it."""

    term: Term
    documents: int
    phrases: tuple[int, ...]


_Order = tuple[bool, float, int, int]


@dataclass(slots=True)
class Scored:
    """A candidate and what each term of the query adds to its score.

    ``may_be_verbatim``: the index holds the whole query side by side, stems for words; ``is_verbatim``: so does the
    text as it is written, which goes before any score.
    """

    candidate: Candidate
    parts: list[float]
    score: float
    in_body: bool
    may_be_verbatim: bool
    chat_share: float = 0.0
    is_verbatim: bool = False
    is_question: bool = False

    @property
    def total(self) -> float:
        return self.score + self.chat_share

    @property
    def tie_break(self) -> _Order:
        """Best first, then the newest, then the highest id."""
        return (not self.is_verbatim, -self.total, -self.candidate.created_at, -self.candidate.message_id)

    @property
    def at_best(self) -> _Order:
        """Where ``tie_break`` can put it at best, before its text was looked at."""
        return (not self.may_be_verbatim, -self.total, -self.candidate.created_at, -self.candidate.message_id)


def idf(documents: int, app_documents: int) -> float:
    """Always positive, so that a word in most messages still counts a little."""
    return math.log(1 + (max(app_documents, documents) - documents + 0.5) / (documents + 0.5))


def score_candidates(
    candidates: Sequence[Candidate],
    statistics: Sequence[TermStatistics],
    app_documents: int,
    phrase: int | None,
) -> list[Scored]:
    """BM25 of each candidate; the average length is that of the candidates, which are all of this app.

    ``phrase`` is the place of the whole query among the counted phrases; None when it is one term.
    """
    if not candidates:
        return []
    average = max(_SHORT_TOKENS, sum(candidate.size for candidate in candidates) / len(candidates))
    # A query has up to 13 phrases and 1,500 candidates: this loop is a good part of its cost.
    places = [
        (each.phrases[0], each.phrases[1:], idf(each.documents, app_documents) * (_K1 + 1)) for each in statistics
    ]
    scored = []
    for candidate in candidates:
        norm = _K1 * (1 - _B + _B * max(_SHORT_TOKENS, candidate.size) / average)
        titles, bodies = candidate.titles, candidate.bodies
        parts = []
        in_body = False
        for first, others, most in places:
            in_title, in_this_body = titles[first], bodies[first]
            for other in others:
                in_title, in_this_body = max(in_title, titles[other]), max(in_this_body, bodies[other])
            in_body = in_body or in_this_body > 0
            frequency = TITLE_WEIGHT * in_title + in_this_body
            parts.append(most * frequency / (frequency + norm))
        may_be_verbatim = phrase is None or bool(titles[phrase] or bodies[phrase])
        scored.append(Scored(candidate, parts, _sum(parts), in_body, may_be_verbatim))
    _share_of_chat(scored)
    return scored


def _sum(parts: Sequence[float]) -> float:
    return sum(parts) * (1 + ALL_TERMS_BONUS if all(parts) and len(parts) > 1 else 1)


def _share_of_chat(scored: Sequence[Scored]) -> None:
    """Give each message its share of what its chat covers of the query, however many messages that takes."""
    covered: dict[int, list[float]] = {}
    for each in scored:
        best = covered.get(each.candidate.chat_id)
        covered[each.candidate.chat_id] = each.parts if best is None else list(map(max, best, each.parts))
    shares = {chat_id: CHAT_SHARE * sum(best) for chat_id, best in covered.items()}
    for each in scored:
        each.chat_share = shares[each.candidate.chat_id]


def weigh_by_text(scored: Scored, text: IndexedText, written: WrittenForms) -> None:
    """Score it anew by how its terms are written; it can only lose."""
    scored.score = _sum(written.weigh(scored.parts, f"{text.title}\n{text.body}"))
    scored.is_verbatim = scored.may_be_verbatim and written.is_verbatim(text.title, text.body)
    scored.is_question = scored.candidate.size <= _SHORT_TOKENS and text.body.rstrip().endswith(_QUESTION_MARKS)
    if scored.candidate.is_compaction_summary:
        scored.score *= SUMMARY_PENALTY


def share_with_neighbours(
    looked_at: Sequence[Scored],
    all_scored: Sequence[Scored],
    neighbours: Mapping[int, tuple[Sequence[int], Sequence[int]]],
) -> None:
    """Add to each score a share of the matching messages just before and after it in its chat.

    ``neighbours`` are the ids before and after a message, the nearest first. A neighbour counts at most as much as the
    message itself, save a question for what the other side replies.
    """
    own = {each.candidate.message_id: each.score for each in all_scored}
    questions = {each.candidate.message_id: each for each in looked_at if each.is_question}
    for each in looked_at:
        if not each.in_body:
            continue  # only the chat's title matched: its neighbours match as little
        before, after = neighbours.get(each.candidate.message_id, ((), ()))
        gain = _gain(before, own, each.score) + _gain(after, own, each.score)
        asked = questions.get(before[0]) if before else None
        if asked is not None and asked.candidate.role != each.candidate.role:
            asked_score = own[asked.candidate.message_id]
            gain += REPLY_SHARE * asked_score - NEIGHBOUR_SHARE[0] * min(asked_score, each.score)
        each.score += gain
        if each.is_question:
            each.score *= QUESTION_PENALTY


def _gain(side: Sequence[int], own: Mapping[int, float], most: float) -> float:
    shares = zip(NEIGHBOUR_SHARE, side, strict=False)
    return sum(share * min(own.get(message_id, 0.0), most) for share, message_id in shares)


def rarest(statistics: Mapping[Term, int], most: int) -> list[Term]:
    """The terms with the fewest documents, rarest first; those that no document holds are left out."""
    found = [term for term, documents in statistics.items() if documents]
    return sorted(found, key=lambda term: (statistics[term], term.written))[:most]
