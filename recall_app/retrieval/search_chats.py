"""The agent's search: ranked pointers and short excerpts of one app's chats (contracts §4).

Terms → candidates (the rare terms choose them, the common ones only help to rank) → per-app BM25, neighbours, written
forms → at most two different matches a chat → excerpts, within the byte budget.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice

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
    rarest,
    score_candidates,
    share_with_neighbours,
    weigh_by_text,
)
from recall_app.retrieval.read_chat import DEFAULT_CONTEXT
from recall_app.retrieval.statistics import AppStatistics
from recall_app.retrieval.terms import MOST_TERMS, Expression, Term, any_of, match_in, phrase_of, terms_of
from recall_app.retrieval.written import WrittenForms
from recall_app.store import search_index, search_queries
from recall_app.store.connection import Connection
from recall_app.store.search_queries import Candidate, ChatHead, Cut, IndexedText

_COLUMNS = ("title", "body", "forms")
EXHAUSTIVE = 1_500
"""Up to so many matching documents, all of them are scored; beyond, ``bm25()`` cuts."""
POOL = 200
"""So many candidates are left where ``bm25()`` cuts."""
WINDOW = 100
"""So many candidates' texts are looked at in any case, and as many more at a time where that is not enough."""
CANDIDATES_OF_A_CHAT = 8
"""So many candidates a chat, lest one whose title matches fill the window with all its messages."""
_CUT = Cut(POOL, CANDIDATES_OF_A_CHAT)
MATCHES_OF_A_CHAT = 2
NEAR_BEST = 0.9
"""What a second match is worth that a read around the first one shows anyway."""
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
        pieces = phrase_of(query)
        scored = self._scored(viewer, terms, counts, Term(query, pieces) if len(terms) > 1 else None, most)
        written = WrittenForms(terms, pieces)
        looked_at, texts = self._looked_at(scored, written, most)
        if len(terms) == 1 and counts[terms[0]] > EXHAUSTIVE and len(_chats_with_verbatim(looked_at)) < most:
            scored += self._spelt_so(
                viewer, terms[0], counts[terms[0]], known={each.candidate.message_id for each in scored}
            )
            looked_at, texts = self._looked_at(scored, written, most)
        share_with_neighbours(looked_at, scored, self._neighbours_of(looked_at, scored))
        chats = _copies_last(_by_chat(sorted(looked_at, key=lambda each: each.tie_break)), texts)[:most]
        best = [of_chat[0].candidate.message_id for of_chat in chats]
        shown_with = search_queries.neighbours(self._connection, best, DEFAULT_CONTEXT)
        kept = [
            _distinct(of_chat, texts, set(chain(*shown_with[id_]))) for id_, of_chat in zip(best, chats, strict=True)
        ]
        return self._with_marks(viewer, terms, kept, texts)

    def _documents_with(self, app_id: int, term: Term) -> int:
        return self._statistics.documents(self._connection, app_id, match_in(_COLUMNS, term.match))

    def _scored(
        self, viewer: Viewer, terms: Sequence[Term], counts: dict[Term, int], phrase: Term | None, most: int
    ) -> list[Scored]:
        """BM25 of the messages that hold the rarest terms; the commoner ones only add to it.

        Unless those give fewer than ``most`` chats (what is rare may stand in the asking chat alone): then the commoner
        ones choose too.
        """
        app_documents = self._statistics.app_documents(self._connection, viewer.app_id)
        counted = list(terms) if phrase is None else [*terms, phrase]
        selecting = 1
        found = counts[terms[0]]
        while selecting < len(terms) and found + counts[terms[selecting]] <= EXHAUSTIVE:
            found += counts[terms[selecting]]
            selecting += 1
        if found > EXHAUSTIVE:
            return self._scored_common(viewer, terms, terms, counts, phrase)
        # Who holds the phrase holds its words: selecting by it too adds nothing but the count.
        selectors = counted if selecting == len(terms) else terms[:selecting]
        expression = Expression.any_of(selectors, counted)
        rows = self._rows(viewer, expression)
        statistics = [TermStatistics(term, counts[term], expression.places[term]) for term in terms]
        scored = score_candidates(
            rows, statistics, app_documents, None if phrase is None else expression.places[phrase][0]
        )
        if selecting < len(terms) and len({row.chat_id for row in rows}) < most:
            known = {row.message_id for row in rows}
            more = self._scored_common(viewer, terms[selecting:], terms, counts, phrase)
            scored += [each for each in more if each.candidate.message_id not in known]
        return scored

    def _scored_common(
        self,
        viewer: Viewer,
        selectors: Sequence[Term],
        terms: Sequence[Term],
        counts: dict[Term, int],
        phrase: Term | None,
    ) -> list[Scored]:
        """Where even the rarest terms are common ``bm25()`` cuts: messages that hold several of them go first.

        Each phrase of an expression costs ``bm25()`` a count over the whole table. So the query as a phrase is asked
        for by itself; a message that holds it holds each of its terms at least as often.
        """
        app_documents = self._statistics.app_documents(self._connection, viewer.app_id)
        few = selectors[:_CONJUNCTION_TERMS]
        scored: list[Scored] = []
        known: set[int] = set()
        for together in range(len(few), 0, -1):
            selection = Expression.all_of(few[:together], terms) if together > 1 else Expression.any_of(few, terms)
            rows = [row for row in self._rows(viewer, selection, cut=_CUT) if row.message_id not in known]
            known.update(row.message_id for row in rows)
            statistics = [TermStatistics(term, counts[term], selection.places[term]) for term in terms]
            scored += score_candidates(rows, statistics, app_documents, None)
            if len(scored) >= WINDOW:
                break
        if phrase is None:
            return scored
        whole = Expression.any_of([phrase], [phrase])
        holding = {row.message_id: row for row in self._rows(viewer, whole, cut=_CUT)}
        is_cut = len(holding) == POOL
        for each in scored:
            each.may_be_verbatim = holding.pop(each.candidate.message_id, None) is not None or is_cut
        place = whole.places[phrase]
        statistics = [TermStatistics(term, counts[term], place) for term in terms]
        return scored + score_candidates(list(holding.values()), statistics, app_documents, place[0])

    def _spelt_so(self, viewer: Viewer, term: Term, documents: int, known: Set[int]) -> list[Scored]:
        """Among too many messages that hold a word's stem, those that hold the word: few, or the cut had shown them."""
        expression = Expression.any_of([term], [term])
        spelling = (term.joined or term.pieces[0]).lower()
        rows = self._rows(viewer, expression, cut=_CUT, spelling=spelling)
        app_documents = self._statistics.app_documents(self._connection, viewer.app_id)
        statistics = [TermStatistics(term, documents, expression.places[term])]
        return score_candidates([row for row in rows if row.message_id not in known], statistics, app_documents, None)

    def _looked_at(
        self, scored: Sequence[Scored], written: WrittenForms, most: int
    ) -> tuple[list[Scored], dict[int, IndexedText]]:
        """The candidates whose texts were looked at, and those texts: the best ``WINDOW``, then on for as long as one
        that is left may still come before the ``most`` best chats (a score only falls when the text is looked at)."""
        looked_at: list[Scored] = []
        texts: dict[int, IndexedText] = {}
        of_chat: Counter[int] = Counter()
        best: dict[int, tuple[bool, float, int, int]] = {}
        waiting = iter(sorted(scored, key=lambda each: each.at_best))
        while batch := _next_batch(waiting, of_chat):
            last_key = sorted(best.values())[most - 1] if len(best) >= most else None
            if len(looked_at) >= WINDOW and last_key is not None and last_key <= batch[0].at_best:
                break
            found = search_queries.indexed_texts(self._connection, [each.candidate.message_id for each in batch])
            texts |= found
            for each in batch:
                if (text := found.get(each.candidate.message_id)) is None:
                    continue
                weigh_by_text(each, text, written)
                looked_at.append(each)
                chat_id = each.candidate.chat_id
                of_chat[chat_id] += not each.may_be_verbatim or each.is_verbatim or not each.in_body
                best[chat_id] = min(best.get(chat_id, each.tie_break), each.tie_break)
        return looked_at, texts

    def _rows(
        self, viewer: Viewer, expression: Expression, *, cut: Cut | None = None, spelling: str = ""
    ) -> list[Candidate]:
        match = search_queries.scoped(viewer.app_id, match_in(_COLUMNS, expression.match))
        return search_queries.candidates(
            self._connection, match, viewer.app_id, viewer.chat_id, cut=cut, spelling=spelling
        )

    def _neighbours_of(
        self, looked_at: Sequence[Scored], scored: Sequence[Scored]
    ) -> dict[int, tuple[list[int], list[int]]]:
        """Of those that are not alone in their chat."""
        of_chat = Counter(each.candidate.chat_id for each in scored)
        wanted = [each.candidate.message_id for each in looked_at if of_chat[each.candidate.chat_id] > 1]
        return search_queries.neighbours(self._connection, wanted, len(NEIGHBOUR_SHARE))

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


def _next_batch(waiting: Iterator[Scored], of_chat: Mapping[int, int]) -> list[Scored]:
    """The next candidates of chats that still have a place."""
    free = (each for each in waiting if of_chat.get(each.candidate.chat_id, 0) < CANDIDATES_OF_A_CHAT)
    return list(islice(free, WINDOW))


def _chats_with_verbatim(looked_at: Iterable[Scored]) -> set[int]:
    return {each.candidate.chat_id for each in looked_at if each.is_verbatim}


def _by_chat(ordered: Iterable[Scored]) -> list[list[Scored]]:
    """The chats, the one whose best comes first first."""
    chats: dict[int, list[Scored]] = {}
    for each in ordered:
        chats.setdefault(each.candidate.chat_id, []).append(each)
    return list(chats.values())


def _copies_last(chats: Sequence[list[Scored]], texts: Mapping[int, IndexedText]) -> list[list[Scored]]:
    """Chats whose best only repeats the best of one before, word for word, go behind all others: a question that was
    asked in ten chats must not keep its answer out."""
    seen: set[str] = set()
    first: list[list[Scored]] = []
    repeated: list[list[Scored]] = []
    for of_chat in chats:
        body = texts[of_chat[0].candidate.message_id].body
        (repeated if body and body in seen else first).append(of_chat)
        seen.add(body)
    return [*first, *repeated]


def _distinct(ordered: Sequence[Scored], texts: dict[int, IndexedText], near_best: Set[int]) -> list[Scored]:
    """At most two of one chat, the best and the best other; ``near_best`` are the messages that a read around the best
    shows anyway, so that one farther away which is almost as good says more."""
    best, *others = ordered
    kept = [best]
    others.sort(key=lambda each: -each.total * (1 if each.candidate.message_id not in near_best else NEAR_BEST))
    for each in others:
        if len(kept) == MATCHES_OF_A_CHAT and not any(k.candidate.is_compaction_summary for k in kept):
            break
        body = texts[each.candidate.message_id].body
        twin = next((k for k in kept if is_repetition(body, texts[k.candidate.message_id].body)), None)
        if twin is not None:
            if twin.candidate.is_compaction_summary and not each.candidate.is_compaction_summary:
                kept[kept.index(twin)] = each
        elif len(kept) < MATCHES_OF_A_CHAT and each.in_body:
            kept.append(each)
    return kept


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
