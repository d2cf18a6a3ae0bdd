"""The agent's search: ranked pointers and short excerpts of one app's chats (contracts §4).

Terms → candidates (the rare terms choose them, the common ones only help to rank) → per-app BM25, neighbours, written
forms → at most two different matches a chat → excerpts, within the byte budget.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from recall_app.domain.consulting import (
    EXCERPT_CHARACTERS,
    SHORTEST_EXCERPT_CHARACTERS,
    TITLE_CHARACTERS,
    Budget,
    SearchChatsInput,
    SearchChatsResult,
    SearchedChat,
    SearchMatch,
    Viewer,
    to_json,
)
from recall_app.domain.records import iso_time
from recall_app.domain.text import one_line
from recall_app.retrieval.distinct import is_repetition
from recall_app.retrieval.excerpts import Excerpt, excerpt, first_sentence, mark_written, read_marks
from recall_app.retrieval.ranking import (
    NEIGHBOUR_SHARE,
    Scored,
    TermStatistics,
    WrittenForms,
    rarest,
    score_candidates,
    share_with_neighbours,
)
from recall_app.retrieval.statistics import AppStatistics
from recall_app.retrieval.terms import MOST_TERMS, Expression, Term, any_of, match_in, phrase_of, terms_of
from recall_app.store import search_index, search_queries
from recall_app.store.connection import Connection
from recall_app.store.search_queries import Candidate, ChatHead, IndexedText

_COLUMNS = ("title", "body", "forms")
EXHAUSTIVE = 1_500
"""Up to so many matching documents, all of them are scored; beyond, ``bm25()`` cuts."""
WINDOW = 200
"""Candidates whose texts are looked at."""
CANDIDATES_OF_A_CHAT = 8
"""So many candidates a chat, lest one whose title matches fill the window with all its messages."""
MATCHES_OF_A_CHAT = 2
_CONJUNCTION_TERMS = 3
"""Of common words only, messages that hold this many of the rarest at once are looked for first."""
_EXCERPT_LIMITS = (EXCERPT_CHARACTERS, 240, 170, 130, SHORTEST_EXCERPT_CHARACTERS)


@dataclass(frozen=True, slots=True)
class _Match:
    text: IndexedText
    is_compaction_summary: bool
    marked: Excerpt | None
    """The whole text with what matched; None when only the title matched."""

    def excerpt(self, limit: int) -> Excerpt:
        return first_sentence(self.text.body, limit) if self.marked is None else excerpt(self.marked, limit)


class ChatSearch:
    """Searches on one read-only connection. ``statistics`` may be shared by all searches of a process."""

    def __init__(self, connection: Connection, statistics: AppStatistics) -> None:
        self._connection = connection
        self._statistics = statistics

    def search(self, viewer: Viewer, arguments: SearchChatsInput, budget: Budget) -> SearchChatsResult:
        """Find what the viewer's app has on the query; nothing found is an empty result, not an error."""
        pending = search_index.pending_for_agent(self._connection, viewer.app_id, viewer.chat_id)
        limit = min(arguments.limit, budget.search_chats)
        found = self._ranked_chats(viewer, arguments.query, limit + 1)
        empty = SearchChatsResult(
            query=arguments.query,
            index_status="indexing" if pending else "ready",
            pending_messages=pending or None,
            results=(),
            results_truncated=len(found) > limit,
        )
        heads = search_queries.chat_heads(self._connection, [matches[0].text.chat_id for matches in found[:limit]])
        return _within_budget(empty, found[:limit], heads, budget.search_bytes)

    def _ranked_chats(self, viewer: Viewer, query: str, most: int) -> list[list[_Match]]:
        counts = {term: self._documents_with(viewer.app_id, term) for term in terms_of(query)}
        terms = rarest(counts, MOST_TERMS)
        if not terms:
            return []
        scored = self._scored(viewer, terms, counts)
        chosen = _capped(sorted(scored, key=lambda each: each.tie_break), lambda each: each.candidate.chat_id)
        texts = search_queries.indexed_texts(self._connection, [each.candidate.message_id for each in chosen])
        chosen = [each for each in chosen if each.candidate.message_id in texts]
        own = {each.candidate.message_id: each.score for each in scored}
        written = WrittenForms(terms, phrase_of(query))
        for each in chosen:
            written.apply(each, texts[each.candidate.message_id])
        share_with_neighbours(chosen, own, self._neighbours)
        chosen.sort(key=lambda each: each.tie_break)
        kept = _grouped(chosen, texts)[:most]
        return self._with_marks(viewer, terms, kept, texts)

    def _documents_with(self, app_id: int, term: Term) -> int:
        return self._statistics.documents(self._connection, app_id, match_in(_COLUMNS, term.match))

    def _scored(self, viewer: Viewer, terms: Sequence[Term], counts: dict[Term, int]) -> list[Scored]:
        """BM25 of the messages that hold the rarest terms; the commoner ones only add to it.

        Where even the rarest are common, ``bm25()`` cuts: messages that hold several of them first.
        """
        app_documents = self._statistics.app_documents(self._connection, viewer.app_id)
        selecting = 1
        found = counts[terms[0]]
        while selecting < len(terms) and found + counts[terms[selecting]] <= EXHAUSTIVE:
            found += counts[terms[selecting]]
            selecting += 1
        if found <= EXHAUSTIVE:
            expression = Expression.any_of(terms[:selecting], terms)
            rows = list(self._rows(viewer, expression, best_first=False))
        else:
            few = terms[:_CONJUNCTION_TERMS]
            expression = Expression.all_of(few, terms)
            rows = _capped(self._rows(viewer, expression, best_first=True), lambda row: row.chat_id)
            if len(rows) < WINDOW and len(few) > 1:
                expression = Expression.any_of(few, terms)
                rows = _capped(self._rows(viewer, expression, best_first=True), lambda row: row.chat_id)
        statistics = [TermStatistics(term, counts[term], expression.places[term]) for term in terms]
        return score_candidates(rows, statistics, app_documents)

    def _rows(self, viewer: Viewer, expression: Expression, *, best_first: bool) -> Iterator[Candidate]:
        match = search_queries.scoped(viewer.app_id, match_in(_COLUMNS, expression.match))
        return search_queries.candidates(self._connection, match, viewer.app_id, viewer.chat_id, best_first=best_first)

    def _neighbours(self, candidate: Candidate) -> tuple[Sequence[int], Sequence[int]]:
        return search_queries.neighbours(
            self._connection, candidate.chat_id, candidate.created_at, candidate.message_id, len(NEIGHBOUR_SHARE)
        )

    def _with_marks(
        self, viewer: Viewer, terms: Sequence[Term], kept: list[list[Scored]], texts: dict[int, IndexedText]
    ) -> list[list[_Match]]:
        wanted = [each.candidate.message_id for scored in kept for each in scored if each.in_body]
        match = match_in(_COLUMNS, any_of(term.match for term in terms))
        marked = search_queries.highlights(self._connection, search_queries.scoped(viewer.app_id, match), wanted)
        return [[self._match(each, terms, marked, texts) for each in scored] for scored in kept]

    def _match(
        self,
        scored: Scored,
        terms: Sequence[Term],
        marked: dict[int, tuple[str, str]],
        texts: dict[int, IndexedText],
    ) -> _Match:
        candidate = scored.candidate
        if candidate.message_id in marked:
            whole = mark_written(read_marks(marked[candidate.message_id][1]), terms)
            return _Match(texts[candidate.message_id], candidate.is_compaction_summary, whole)
        text = texts[candidate.message_id]
        if not text.body and (other := search_queries.first_with_text(self._connection, candidate.chat_id)) is not None:
            text = search_queries.indexed_texts(self._connection, [other])[other]
        return _Match(text, text.is_compaction_summary, None)


_Row = TypeVar("_Row")


def _capped(rows: Iterable[_Row], chat_of: Callable[[_Row], int]) -> list[_Row]:
    """The first rows, at most ``CANDIDATES_OF_A_CHAT`` a chat and ``WINDOW`` in all."""
    of_chat: Counter[int] = Counter()
    kept: list[_Row] = []
    for row in rows:
        chat_id = chat_of(row)
        if of_chat[chat_id] < CANDIDATES_OF_A_CHAT:
            of_chat[chat_id] += 1
            kept.append(row)
            if len(kept) == WINDOW:
                break
    return kept


def _grouped(ordered: Iterable[Scored], texts: dict[int, IndexedText]) -> list[list[Scored]]:
    """By chat, the best first; at most two a chat that differ in what they say, an original before its summary."""
    chats: dict[int, list[Scored]] = {}
    for each in ordered:
        kept = chats.setdefault(each.candidate.chat_id, [])
        body = texts[each.candidate.message_id].body
        twin = next((k for k in kept if is_repetition(body, texts[k.candidate.message_id].body)), None)
        if twin is not None:
            if twin.candidate.is_compaction_summary and not each.candidate.is_compaction_summary:
                kept[kept.index(twin)] = each
        elif len(kept) < MATCHES_OF_A_CHAT and (each.in_body or not kept):
            kept.append(each)
    return list(chats.values())


def _within_budget(
    empty: SearchChatsResult, found: Sequence[Sequence[_Match]], heads: dict[int, ChatHead], most_bytes: int
) -> SearchChatsResult:
    """Over budget, excerpts shrink first, then trailing chats go; the best chat always stays, if need be short."""
    for limit in _EXCERPT_LIMITS:
        result = _filled(empty, found, heads, limit)
        if _size(result) <= most_bytes:
            return result
    for count in range(len(found) - 1, 0, -1):
        result = _filled(empty, found[:count], heads, SHORTEST_EXCERPT_CHARACTERS, cut_short=True)
        if _size(result) <= most_bytes:
            return result
    return _filled(empty, [found[0][:1]], heads, SHORTEST_EXCERPT_CHARACTERS // 2, cut_short=True)


def _size(result: SearchChatsResult) -> int:
    return len(to_json(result).encode())


def _filled(
    empty: SearchChatsResult,
    found: Sequence[Sequence[_Match]],
    heads: dict[int, ChatHead],
    limit: int,
    *,
    cut_short: bool = False,
) -> SearchChatsResult:
    chats = tuple(
        SearchedChat(
            chat_id=head.chat_id,
            title=None if head.title is None else one_line(head.title, TITLE_CHARACTERS),
            last_message_at=iso_time(head.last_message_at),
            matches=tuple(
                SearchMatch(
                    message_id=match.text.message_id,
                    role=match.text.role,
                    created_at=iso_time(match.text.created_at),
                    excerpt=match.excerpt(limit).text,
                    projection_truncated=match.text.truncated,
                    is_compaction_summary=match.is_compaction_summary,
                )
                for match in matches
            ),
        )
        for matches in found
        if (head := heads.get(matches[0].text.chat_id)) is not None
    )
    return empty.model_copy(update={"results": chats, "results_truncated": empty.results_truncated or cut_short})
