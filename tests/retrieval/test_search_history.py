"""The person's search through ``RecallService.search_history`` (contracts §4a)."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_app.domain.errors import InvalidInputError, NotFoundError
from recall_app.domain.person_search import Filters, SearchPage, SearchRequest, Sort
from tests.building import Builder, Said, building

WORDS = [
    "authentication",
    "organization",
    "possibilities",
    "filing",
    "relational",
    "caringbridge",
    "happiness",
    "studies",
    "hopping",
    "useChatStore",
    "登录问题",
    "검색을",
    "état",
    "университет",
]
ENDINGS = ["ize", "ization", "ation", "ational", "ate", "ive", "iveness", "ful", "fully", "ness", "ing", "ed", "er"]
ENDINGS += ["able", "s", "ity", "al", "ally"]


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Builder]:
    with building(tmp_path / "recall.db") as builder:
        yield builder


def _search(
    built: Builder,
    query: str,
    *,
    filters: Filters | None = None,
    sort: Sort = Sort.RELEVANCE,
    limit: int = 20,
    cursor: str | None = None,
) -> SearchPage:
    return built.service.search_history(SearchRequest(query, filters or Filters(), sort, limit, cursor))


def _chats(page: SearchPage) -> list[int]:
    return [chat.chat_id for chat in page.chats]


def test_all_words_are_required_in_one_message(built: Builder) -> None:
    both = built.add_chat(None, "the redis session store", "ok")
    built.add_chat(None, "redis only", "session only")
    built.index()
    page = _search(built, "redis session")
    assert _chats(page) == [both.id]
    assert (page.total_chats, page.total_messages, page.is_partial) == (1, 1, False)
    assert [hit.message_id for hit in page.chats[0].hits] == [both.messages[0]]


def test_a_word_in_the_title_counts_for_a_message_that_has_the_others(built: Builder) -> None:
    chat = built.add_chat("Login page", "we keep redis", "something else")
    built.index()
    page = _search(built, "login redis")
    assert [hit.message_id for hit in page.chats[0].hits] == [chat.messages[0]]
    assert not page.chats[0].title_matches


@pytest.mark.parametrize("word", WORDS)
def test_results_never_vanish_while_a_matching_word_is_typed(built: Builder, word: str) -> None:
    chat = built.add_chat(None, f"Here stands {word} in a sentence.")
    built.index()
    for length in range(1, len(word) + 1):
        assert _chats(_search(built, word[:length])) == [chat.id], word[:length]


@given(
    stem=st.sampled_from(["organ", "relat", "digit", "electr", "hope", "general", "commun", "happ", "oper"]),
    data=st.data(),
)
def test_any_english_word_is_found_by_each_of_its_heads(
    tmp_path_factory: pytest.TempPathFactory, stem: str, data: st.DataObject
) -> None:
    endings = st.lists(st.sampled_from(ENDINGS), max_size=2)
    word = stem + "".join(data.draw(endings))
    with building(tmp_path_factory.mktemp("store") / "recall.db") as built:
        chat = built.add_chat(None, f"before {word} after")
        built.index()
        for length in range(3, len(word) + 1):
            assert _chats(_search(built, word[:length])) == [chat.id], (word, word[:length])


def test_a_typed_word_matches_as_written_not_by_its_stem(built: Builder) -> None:
    chat = built.add_chat(None, "authentication works")
    built.add_chat(None, "an authentic antique")
    built.index()
    assert _chats(_search(built, "authentica")) == [chat.id]
    assert len(_chats(_search(built, "authentication "))) == 2, "a finished word matches its stem mates"


def test_phrases_and_exclusions(built: Builder) -> None:
    phrase = built.add_chat(None, "this is state of the art today")
    scattered = built.add_chat(None, "the art of the state")
    built.index()
    assert _chats(_search(built, '"state of the art"')) == [phrase.id]
    assert set(_chats(_search(built, "state art"))) == {phrase.id, scattered.id}
    assert _chats(_search(built, "state art -today")) == [scattered.id]
    assert _chats(_search(built, 'state -"of the art"')) == [scattered.id]


def test_a_dash_inside_a_word_takes_nothing_out(built: Builder) -> None:
    chat = built.add_chat(None, "a multi-agent set-up")
    built.index()
    assert _chats(_search(built, "multi-agent")) == [chat.id]


@pytest.mark.parametrize(
    "text",
    ["don't", "Downloads/x", "C++", 'a"b', "foo:bar", "AND", "x*y", "NEAR(a b)", "col:val", "{a}", "^start", "a OR b"],
)
def test_everything_else_is_literal(built: Builder, text: str) -> None:
    chat = built.add_chat(None, f"before {text} after")
    built.add_chat(None, "nothing of that kind")
    built.index()
    assert _chats(_search(built, text)) == [chat.id]


@given(query=st.text(max_size=60))
def test_no_query_breaks_the_search(tmp_path_factory: pytest.TempPathFactory, query: str) -> None:
    with building(tmp_path_factory.mktemp("store") / "recall.db") as built:
        built.add_chat("A title", "some words and C++ and 登录")
        built.index()
        with suppress(InvalidInputError, NotFoundError):
            assert _search(built, query).total_chats in (0, 1)


@pytest.mark.parametrize("query", ["", "   ", "...", "-only", "app:", "role:user"])
def test_something_to_look_for_is_needed(built: Builder, query: str) -> None:
    with pytest.raises(InvalidInputError):
        _search(built, query)


@pytest.mark.parametrize(
    "query", ["redis role:robot", "redis after:someday", "redis before:2026-13", "redis app:nowhere"]
)
def test_a_filter_that_cannot_be_understood_is_said(built: Builder, query: str) -> None:
    with pytest.raises((InvalidInputError, NotFoundError)):
        _search(built, query)


def test_filters_typed_and_given(built: Builder) -> None:
    shop = built.add_chat("Shop chat", "redis asked", "redis answered")
    other = built.add_app("Other app")
    elsewhere = built.add_chat("Other chat", "redis elsewhere", app=other)
    built.index()
    assert set(_chats(_search(built, "redis"))) == {shop.id, elsewhere.id}
    assert _chats(_search(built, 'redis app:"Other app"')) == [elsewhere.id]
    assert _chats(_search(built, "redis", filters=Filters(app_id=built.app))) == [shop.id]
    page = _search(built, "redis role:assistant")
    assert [hit.message_id for hit in page.chats[0].hits] == [shop.messages[1]]
    assert page.filters == Filters(role="assistant")
    assert _chats(_search(built, "chat in:title app:shop")) == [shop.id]
    assert _search(built, "redis source:dyad").chats == ()


def test_dates_are_days_of_this_computer(built: Builder) -> None:
    half_past_midnight = int(datetime(2026, 7, 12, 0, 30).astimezone().timestamp() * 1000)
    chat = built.add_chat(None, Said("redis at night", at=half_past_midnight))
    built.index()
    assert _chats(_search(built, "redis after:2026-07-12")) == [chat.id]
    assert _chats(_search(built, "redis before:2026-07-12")) == []
    assert _chats(_search(built, "redis before:2026-07-13 after:2026-07")) == [chat.id]
    assert _chats(_search(built, "redis after:2026-08")) == []


def test_private_chats_are_the_persons_own_and_deleted_ones_are_gone(built: Builder) -> None:
    private = built.add_chat("Salary", "redis salary")
    deleted = built.add_chat("Old", "redis old")
    built.service.set_private(private.id, is_private=True)
    built.service.delete_chat(deleted.id)
    built.index()
    assert _chats(_search(built, "redis")) == [private.id]


def test_title_hits_are_marked_when_no_message_matches(built: Builder) -> None:
    chat = built.add_chat("Authentication setup", "nothing", "here")
    built.index()
    (hit,) = _search(built, "setup authentication").chats
    assert (hit.chat_id, hit.title_matches, hit.hits, hit.more) == (chat.id, True, (), 0)
    assert hit.title is not None
    assert {hit.title[start:end] for start, end in hit.title_ranges} == {"Authentication", "setup"}


def test_three_hits_a_chat_and_how_many_more(built: Builder) -> None:
    built.add_chat(None, *[f"redis {number}" for number in range(8)])
    built.index()
    (chat,) = _search(built, "redis").chats
    assert (len(chat.hits), chat.more) == (3, 5)
    newest = _search(built, "redis", sort=Sort.NEWEST).chats[0].hits
    assert [hit.created_at for hit in newest] == sorted((hit.created_at for hit in newest), reverse=True)


def test_nothing_with_all_words_shows_the_best_with_some(built: Builder) -> None:
    chat = built.add_chat(None, "redis only")
    built.index()
    page = _search(built, "redis memcached")
    assert (page.is_partial, _chats(page)) == (True, [chat.id])


def test_highlights_are_ranges_and_text_stays_text(built: Builder) -> None:
    built.add_chat("<mark>Redis</mark>", "use <mark>redis</mark> or <b>Redis</b> \x02now\x03")
    built.index()
    (chat,) = _search(built, "redis").chats
    (hit,) = chat.hits
    assert "<mark>redis</mark>" in hit.excerpt
    assert [hit.excerpt[start:end] for start, end in hit.ranges] == ["redis", "Redis"]
    assert not re.search("[\x02\x03]", hit.excerpt)


@pytest.mark.parametrize("sort", list(Sort))
def test_paging_repeats_nothing_and_skips_nothing(built: Builder, sort: Sort) -> None:
    chats = {built.add_chat(f"Chat {number}", *["redis"] * (number % 3 + 1)).id for number in range(23)}
    built.add_chat("redis in a title only", "nothing")
    built.index()
    seen: list[int] = []
    cursor = None
    for page_number in range(10):
        page = _search(built, "redis", sort=sort, limit=5, cursor=cursor)
        assert page.total_chats >= 24
        seen += _chats(page)
        if page_number == 1:
            # What comes in between moves the scores, and a new chat may be missed, but nothing may repeat or vanish.
            built.add_chat("late", "redis " * 5, Said("redis"))
            built.index()
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert chats <= set(seen)


@pytest.mark.parametrize("cursor", ["nonsense", "W10", "é", "", "WyJuZXdlc3QiLFsxXV0"])
def test_a_foreign_cursor_is_refused_in_words(built: Builder, cursor: str) -> None:
    with pytest.raises(InvalidInputError, match="search again"):
        _search(built, "redis", cursor=cursor)


def test_coverage_is_stated(built: Builder) -> None:
    built.add_chat(None, "redis")
    assert _search(built, "redis").coverage.pending == 1
    built.index()
    assert _search(built, "redis").coverage.pending == 0


def test_a_typed_word_of_the_title_makes_no_hit_of_another_word(built: Builder) -> None:
    built.add_chat("Authentication setup", "the auth module")
    built.index()
    for typed in ("authentica", "authentication"):
        page = _search(built, typed)
        (chat,) = page.chats
        assert (chat.title_matches, chat.hits, page.total_messages) == (True, (), 0)


def test_only_what_matches_is_marked(built: Builder) -> None:
    built.add_chat(None, "authentication in the auth module")
    built.index()
    (hit,) = _search(built, "authentica").chats[0].hits
    assert [hit.excerpt[start:end] for start, end in hit.ranges] == ["authentication"]


def test_an_open_quote_is_text(built: Builder) -> None:
    chat = built.add_chat(None, "the state of theory")
    built.index()
    assert _chats(_search(built, '"state of th')) == [chat.id]
