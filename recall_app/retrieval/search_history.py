"""The person's search: all words in one message, grouped by chat, over one app or all (contracts §4a)."""

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from recall_app.domain.consulting import EXCERPT_CHARACTERS
from recall_app.domain.errors import InvalidInputError
from recall_app.domain.person_search import ChatHits, MessageHit, SearchPage, SearchRequest, Sort
from recall_app.domain.text import fold, fold_with_offsets, one_line, original_range
from recall_app.retrieval.excerpts import Excerpt, excerpt, mark_written, read_marks
from recall_app.retrieval.person_query import PersonQuery, parse_query
from recall_app.retrieval.prefix import TypedWord, typed_word
from recall_app.retrieval.terms import Term, all_of, any_of, match_in
from recall_app.store import history, person_queries, search_index, search_queries
from recall_app.store.connection import Connection
from recall_app.store.person_queries import ChatGroup, HitRow, PrefixCheck

HITS_OF_A_CHAT = 3
LARGEST_PAGE = 100
_TEXT = ("title", "body", "forms")
_MESSAGE = ("body", "forms")
_BAD_CURSOR = "This page can't be continued: search again."


@dataclass(frozen=True, slots=True)
class _Asked:
    """The MATCH expressions of a query: for messages, for titles, and for what to highlight."""

    messages: str
    titles: str
    marks: str
    typed: TypedWord
    message_check: PrefixCheck | None
    title_check: PrefixCheck | None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A chat of the result before it is filled; ``messages`` is 0 when only its title matched."""

    chat_id: int
    best: float
    messages: int
    newest: int
    title_matches: bool


class HistorySearch:
    """Searches on one read-only connection."""

    def __init__(self, connection: Connection, app_named: Callable[[str], int]) -> None:
        self._connection = connection
        self._app_named = app_named

    def search(self, request: SearchRequest) -> SearchPage:
        """One page.

        Raises:
            InvalidInputError: no word to look for, an unreadable filter, a page size out of bounds, a foreign cursor.
            NotFoundError: there is no such app.
        """
        if not 1 <= request.limit <= LARGEST_PAGE:
            raise InvalidInputError(f"A page has 1 to {LARGEST_PAGE} chats.")
        query = parse_query(request.query, request.filters, self._app_named)
        asked = self._asked(query, all_of)
        entries = self._entries(query, asked)
        is_partial = False
        if not entries and len(query.wanted) > 1:
            # A word being typed would have to be confirmed in each message, which may hold the others only.
            asked = self._asked(replace(query, is_typing=False), any_of)
            entries = self._entries(query, asked)
            is_partial = bool(entries)
        page, cursor = _page(entries, request)
        return SearchPage(
            chats=self._filled(page, query, asked, request.sort),
            total_chats=len(entries),
            total_messages=sum(entry.messages for entry in entries),
            is_partial=is_partial,
            filters=query.filters,
            coverage=search_index.coverage(self._connection, query.filters.app_id),
            next_cursor=cursor,
        )

    def _asked(self, query: PersonQuery, combine: Callable[[Iterable[str]], str]) -> _Asked:
        app_id = query.filters.app_id
        *settled, last = query.wanted
        # The word being typed comes first, so that the place of its phrases in the expression is known.
        typed = self._typed(last, query, 0 if app_id is None else 1)
        words = [typed.match, *(term.match for term in settled)]
        columns = ("title",) if query.filters.in_title else _TEXT
        messages = match_in(columns, combine(words))
        if not query.filters.in_title:
            # All words, and at least one of them in what the message says: a title alone is no message hit.
            messages = f"({messages}) AND {match_in(_MESSAGE, any_of(words))}"
        titles = match_in(("title",), combine(words))
        marks = match_in(_TEXT, any_of(words))
        if query.unwanted:
            without = match_in(_TEXT, any_of(term.match for term in query.unwanted))
            messages, titles = f"({messages}) NOT {without}", f"({titles}) NOT {without}"
        if app_id is not None:
            messages, titles = (search_queries.scoped(app_id, f"({match})") for match in (messages, titles))
        check = typed.check
        # A word alone must stand in the message itself; with others, the title may be where it stands.
        where = "message" if len(query.wanted) == 1 and not query.filters.in_title else "anywhere"
        return _Asked(
            messages,
            titles,
            marks,
            typed,
            message_check=None if check is None else replace(check, where=where),
            title_check=None if check is None else replace(check, where="title"),
        )

    def _typed(self, term: Term, query: PersonQuery, first_phrase: int) -> TypedWord:
        if not query.is_typing:
            return TypedWord(term.match, None)
        return typed_word(term, lambda words: person_queries.stems(self._connection, words), first_phrase)

    def _entries(self, query: PersonQuery, asked: _Asked) -> list[_Entry]:
        """Chats with a message that matches, and those whose title alone does."""
        filters = query.filters
        found: dict[int, ChatGroup] = {}
        if not filters.in_title:
            groups = person_queries.groups(self._connection, asked.messages, filters, asked.message_check)
            found = {group.chat_id: group for group in groups}
        titled: dict[int, ChatGroup] = {}
        if filters.role is None:
            groups = person_queries.groups(self._connection, asked.titles, filters, asked.title_check)
            titled = {group.chat_id: group for group in groups}
        entries = [
            _Entry(group.chat_id, group.best, group.messages, group.newest, group.chat_id in titled)
            for group in found.values()
        ]
        entries += [
            _Entry(group.chat_id, group.best, 0, group.newest, title_matches=True)
            for group in titled.values()
            if group.chat_id not in found
        ]
        return entries

    def _filled(self, entries: Sequence[_Entry], query: PersonQuery, asked: _Asked, sort: Sort) -> tuple[ChatHits, ...]:
        with_hits = [entry.chat_id for entry in entries if entry.messages]
        rows: dict[int, list[HitRow]] = {}
        if with_hits:
            for row in person_queries.hits(
                self._connection,
                asked.messages,
                query.filters,
                asked.message_check,
                with_hits,
                newest_first=sort is Sort.NEWEST,
            ):
                kept = rows.setdefault(row.chat_id, [])
                if len(kept) < HITS_OF_A_CHAT:
                    kept.append(row)
        shown = [row.message_id for kept in rows.values() for row in kept]
        marked = search_queries.highlights(self._connection, asked.marks, shown)
        heads = search_queries.chat_heads(self._connection, [entry.chat_id for entry in entries])
        names = history.app_names(self._connection)
        filled = []
        for entry in entries:
            head = heads[entry.chat_id]
            hits = tuple(
                _hit(row, self._sure_marks(read_marks(marked[row.message_id][1]), asked.typed), query.wanted)
                for row in rows.get(entry.chat_id, ())
            )
            title = None if head.title is None else one_line(head.title)
            filled.append(
                ChatHits(
                    chat_id=entry.chat_id,
                    app_id=head.app_id,
                    app_name=names[head.app_id],
                    title=title,
                    title_ranges=_title_ranges(title, query.wanted) if entry.title_matches else (),
                    title_matches=entry.title_matches,
                    source=head.source,
                    last_message_at=head.last_message_at,
                    hits=hits,
                    more=entry.messages - len(hits),
                )
            )
        return tuple(filled)

    def _sure_marks(self, marked: Excerpt, typed: TypedWord) -> Excerpt:
        """Without the words that the typed one might have become but did not."""
        if typed.check is None:
            return marked
        words = [marked.text[start:end] for start, end in marked.ranges]
        stems = person_queries.stems(self._connection, words)
        sure = tuple(
            span
            for span, word, stem in zip(marked.ranges, words, stems, strict=True)
            if stem not in typed.unsure_stems or fold(word).startswith(typed.check.prefix)
        )
        return Excerpt(marked.text, sure)


def _hit(row: HitRow, marked: Excerpt, wanted: Sequence[Term]) -> MessageHit:
    shown = excerpt(mark_written(marked, wanted), EXCERPT_CHARACTERS)
    return MessageHit(row.message_id, row.role, row.created_at, shown.text, shown.ranges, row.is_compaction_summary)


def _title_ranges(title: str | None, wanted: Sequence[Term]) -> tuple[tuple[int, int], ...]:
    if title is None:
        return ()
    folded, offsets = fold_with_offsets(title)
    ranges = set()
    for term in wanted:
        needle = fold(term.written)
        at = folded.find(needle)
        if needle and at >= 0:
            ranges.add(original_range(offsets, at, at + len(needle)))
    return tuple(sorted(ranges))


def _page(entries: list[_Entry], request: SearchRequest) -> tuple[list[_Entry], str | None]:
    """Newest goes on after a time and chat; relevance after the chats already shown, since scores move."""
    cursor = _read_cursor(request)
    if request.sort is Sort.NEWEST:
        entries = sorted(entries, key=lambda entry: (-entry.newest, -entry.chat_id))
        if cursor:
            entries = [entry for entry in entries if [entry.newest, entry.chat_id] < cursor]
    else:
        entries = sorted(entries, key=lambda entry: (entry.best, -entry.newest, -entry.chat_id))
        shown = set(cursor)
        entries = [entry for entry in entries if entry.chat_id not in shown]
    page = entries[: request.limit]
    if len(entries) <= request.limit:
        return page, None
    if request.sort is Sort.NEWEST:
        return page, _write_cursor(request.sort, [page[-1].newest, page[-1].chat_id])
    return page, _write_cursor(request.sort, [*cursor, *(entry.chat_id for entry in page)])


def _write_cursor(sort: Sort, numbers: list[int]) -> str:
    text = json.dumps([sort.value, numbers], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_cursor(request: SearchRequest) -> list[int]:
    if request.cursor is None:
        return []
    try:
        padded = request.cursor + "=" * (-len(request.cursor) % 4)
        sort, numbers = json.loads(base64.urlsafe_b64decode(padded))
        if sort != request.sort.value or not all(isinstance(number, int) for number in numbers):
            raise InvalidInputError(_BAD_CURSOR)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(_BAD_CURSOR) from error
    return list(numbers)
