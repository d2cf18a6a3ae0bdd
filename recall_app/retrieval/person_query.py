"""The person's query language: words, ``"phrases"``, ``-without`` and a few filters; all else is literal (§4a)."""

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from recall_app.domain.errors import InvalidInputError
from recall_app.domain.person_search import Filters
from recall_app.domain.records import Role
from recall_app.domain.text import normalise
from recall_app.domain.word_breaks import QueryWord, query_words
from recall_app.retrieval.terms import Term

_PART = re.compile(
    r"""(?P<unfinished>(?:app|role|source|after|before|in):"?)(?=\s|$)
    |(?P<minus>-)?(?:(?P<name>app|role|source|after|before|in):)?(?:"(?P<phrase>[^"]*)"|(?P<plain>\S+))""",
    re.VERBOSE | re.IGNORECASE,
)
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")


@dataclass(frozen=True, slots=True)
class PersonQuery:
    """What a typed query asks. Each of ``wanted`` must stand in a message, none of ``unwanted`` may.

    ``is_typing``: the last of ``wanted`` is a word that may go on.
    """

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...]
    is_typing: bool
    filters: Filters


def parse_query(text: str, given: Filters, app_named: Callable[[str], int]) -> PersonQuery:
    """Read a query as typed; typed filters go before ``given`` ones. ``app_named`` finds an app's id.

    Raises:
        InvalidInputError: nothing to look for, or a filter's value can't be understood.
    """
    wanted: list[Term] = []
    unwanted: list[Term] = []
    filters = given
    is_typing = False
    text = normalise(text)
    for match in _PART.finditer(text):
        name, value = (match["name"] or "").lower(), match["phrase"] if match["phrase"] is not None else match["plain"]
        if match["unfinished"] or value is None:
            continue
        if name and not match["minus"] and (filtered := _filtered(filters, name, value, app_named)) is not None:
            filters = filtered
            continue
        terms = _terms(match[0] if name else value)
        if match["minus"] and match.start() == _word_start(text, match.start()):
            unwanted += _terms(value)
        else:
            wanted += terms
            is_typing = match["phrase"] is None and match.end() == len(text) and _ends_in_word(value, terms)
    if not wanted:
        ask = "Add a word to look for: “-without” alone finds nothing." if unwanted else "Type a word to look for."
        raise InvalidInputError(ask)
    return PersonQuery(tuple(wanted), tuple(unwanted), is_typing, filters)


def _word_start(text: str, at: int) -> int:
    """``at`` when a part begins there after white space, else -1: the dash of ``multi-agent`` takes nothing out."""
    return at if at == 0 or text[at - 1].isspace() else -1


def _terms(value: str) -> list[Term]:
    """A run without spaces, or a phrase, is one thing to find: its words side by side."""
    words = query_words(value)
    return [_term(words)] if words else []


def _term(words: Sequence[QueryWord]) -> Term:
    pieces = tuple(piece for word in words for piece in word.pieces)
    joined = words[0].joined if len(words) == 1 else None
    return Term(" ".join(word.written for word in words), pieces, joined)


def _ends_in_word(value: str, terms: Sequence[Term]) -> bool:
    return bool(terms) and value[-1:].isalnum()


def _filtered(filters: Filters, name: str, value: str, app_named: Callable[[str], int]) -> Filters | None:
    """The filters with one more, or None when this is no filter but text."""
    if not value:
        return filters
    if name == "app":
        return replace(filters, app_id=app_named(value))
    if name == "role":
        return replace(filters, role=_role(value))
    if name == "source":
        return replace(filters, source=value.lower())
    if name == "after":
        return replace(filters, after=start_of(value))
    if name == "before":
        return replace(filters, before=start_of(value))
    return replace(filters, in_title=True) if value.lower() == "title" else None


def _role(value: str) -> Role:
    roles: dict[str, Role] = {
        "user": "user",
        "you": "user",
        "me": "user",
        "assistant": "assistant",
        "agent": "assistant",
    }
    if (role := roles.get(value.lower())) is None:
        raise InvalidInputError("role: takes “user” or “assistant”.")
    return role


def start_of(written: str) -> int:
    """Unix milliseconds at which a written day, month or year begins here: ``2026-07-12``, ``2026-07``, ``2026``,
    ``today``, ``yesterday``, or an ISO time.

    Raises:
        InvalidInputError: it is none of these.
    """
    return _span_of(written)[0]


def end_of(written: str) -> int:
    """Unix milliseconds just after a written day, month, year or moment ends here."""
    return _span_of(written)[1]


def _span_of(written: str) -> tuple[int, int]:
    try:
        first, last = _days_of(written.strip().lower())
    except (ValueError, OverflowError):
        return _moment(written), _moment(written) + 1
    return _midnight(first), _midnight(last + timedelta(days=1))


def _moment(written: str) -> int:
    try:
        return int(datetime.fromisoformat(written.strip()).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError("A date is written 2026-07-12, 2026-07 or 2026, or “today” or “yesterday”.") from error


def _days_of(written: str) -> tuple[date, date]:
    today = datetime.now().astimezone().date()
    if written in {"today", "yesterday"}:
        day = today - timedelta(days=written == "yesterday")
        return day, day
    match = _DAY.fullmatch(written)
    if match is None:
        raise ValueError(written)
    year, month, day_of_month = (int(part) if part else None for part in match.groups())
    assert year is not None
    if month is None:
        return date(year, 1, 1), date(year, 12, 31)
    if day_of_month is None:
        return date(year, month, 1), date(year, month, monthrange(year, month)[1])
    return (day := date(year, month, day_of_month)), day


def _midnight(day: date) -> int:
    """In the computer's own time zone, as day labels are."""
    return int(datetime(day.year, day.month, day.day).astimezone().timestamp() * 1000)
