"""What the person's search is asked and what it answers (contracts §4a); window and command line use the same."""

from dataclasses import dataclass, field
from enum import StrEnum

from recall_app.domain.records import Coverage, Role


class Sort(StrEnum):
    """The order of the chats in a result."""

    RELEVANCE = "relevance"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows a search. Times are Unix milliseconds: from ``after`` on, and before ``before``."""

    app_id: int | None = None
    role: Role | None = None
    source: str | None = None
    after: int | None = None
    before: int | None = None
    in_title: bool = False


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A person's question. ``query`` may hold filters as typed (``role:user``); ``filters`` are those set elsewhere.

    ``limit`` is chats a page, 1 to 100; ``cursor`` the ``next_cursor`` of the page before.
    """

    query: str
    filters: Filters = field(default_factory=Filters)
    sort: Sort = Sort.RELEVANCE
    limit: int = 20
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that matches; ``ranges`` are the (start, end) in characters of ``excerpt`` that do."""

    message_id: int
    role: Role
    created_at: int
    excerpt: str
    ranges: tuple[tuple[int, int], ...]
    is_compaction_summary: bool


@dataclass(frozen=True, slots=True)
class ChatHits:
    """A chat of a result: up to three of its messages that match, and how many more do.

    ``title_matches`` with no ``hits``: only the title matched.
    """

    chat_id: int
    app_id: int
    app_name: str
    title: str | None
    title_ranges: tuple[tuple[int, int], ...]
    title_matches: bool
    source: str | None
    last_message_at: int
    hits: tuple[MessageHit, ...]
    more: int


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A page of chats. Totals count all pages and are exact. ``is_partial``: nothing holds all words, these are the
    best of what holds some. ``filters`` are those in force, typed ones included."""

    chats: tuple[ChatHits, ...]
    total_chats: int
    total_messages: int
    is_partial: bool
    filters: Filters
    coverage: Coverage
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """One place that in-chat find shows: ``start`` and ``end`` are characters of the message's shown text."""

    message_id: int
    start: int
    end: int
