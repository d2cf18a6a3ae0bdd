"""Short pieces around what matched; what matched is told in ranges, never in the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_app.retrieval.excerpts import Excerpt, excerpt, first_sentence, mark_written, read_marks
from recall_app.retrieval.terms import terms_of
from recall_app.store.search_queries import MARK_CLOSE, MARK_OPEN


def marked(text: str) -> Excerpt:
    """``[`` and ``]`` stand for the marks."""
    return read_marks(text.replace("[", MARK_OPEN).replace("]", MARK_CLOSE))


def shown(piece: Excerpt) -> list[str]:
    return [piece.text[start:end] for start, end in piece.ranges]


@pytest.mark.parametrize(
    ("highlighted", "text", "ranges"),
    [
        ("the [login] page", "the login page", ["login"]),
        ("[use]\u200b[Chat]\u200b[Store].ts", "useChatStore.ts", ["useChatStore"]),
        ("  a\n\n [b]\t c ", "a b c", ["b"]),
        ("请修复[登]\u200b[录]问题", "请修复登录问题", ["登录"]),
        ("nothing", "nothing", []),
        ("", "", []),
    ],
)
def test_marks_become_ranges_and_breaks_and_white_space_go(highlighted: str, text: str, ranges: list[str]) -> None:
    found = marked(highlighted)
    assert (found.text, shown(found)) == (text, ranges)


def test_what_matched_only_joined_is_looked_up() -> None:
    found = mark_written(marked("we moved to TypeScript, to typescript"), terms_of("typescript"))
    assert shown(found) == ["TypeScript", "typescript"]
    already = marked("a [typescript] TypeScript")
    assert mark_written(already, terms_of("typescript")) == already


def test_a_short_text_is_shown_whole() -> None:
    found = marked("a [b] c")
    assert excerpt(found, 5) == found


def test_the_window_stands_where_most_different_words_stand() -> None:
    text = "[a] " + "x " * 300 + "[a] [b] [c] " + "x " * 300 + "[a] [a] [a] [a]"
    assert shown(excerpt(marked(text), 100)) == ["a", "b", "c"]


def test_without_a_match_the_head_is_shown() -> None:
    assert excerpt(marked("word " * 100), 20).text == "word word word wor…"


@given(
    parts=st.lists(st.tuples(st.text(max_size=60), st.text(min_size=1, max_size=8)), max_size=12),
    limit=st.integers(20, 320),
)
def test_an_excerpt_is_bounded_and_its_ranges_lie_in_it(parts: list[tuple[str, str]], limit: int) -> None:
    clean = [(before.translate({2: None, 3: None}), word.translate({2: None, 3: None})) for before, word in parts]
    whole = read_marks("".join(f"{before}{MARK_OPEN}{word}{MARK_CLOSE}" for before, word in clean))
    piece = excerpt(whole, limit)
    assert len(piece.text) <= limit
    assert MARK_OPEN not in piece.text
    assert MARK_CLOSE not in piece.text
    assert piece.text.removeprefix("…").removesuffix("…") in whole.text
    assert all(0 <= start <= end <= len(piece.text) for start, end in piece.ranges)
    assert list(piece.ranges) == sorted(piece.ranges)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("We start with the header. Then the footer.", "We start with the header."),
        ("OK. Sure! We start with the header.", "We start with the header."),
        ("好的。我们先把登录页面的问题全部修复好再说。", "我们先把登录页面的问题全部修复好再说。"),
        ("Use auth.ts v2.1 for it, please", "Use auth.ts v2.1 for it, please"),
        ("OK", "OK"),
        ("", ""),
        ("first line without end\nsecond line", "first line without end"),
    ],
)
def test_the_first_sentence_that_says_something(body: str, sentence: str) -> None:
    assert first_sentence(body, 320).text == sentence


@given(body=st.text(max_size=2_000), limit=st.integers(20, 320))
def test_a_first_sentence_is_bounded_and_one_line(body: str, limit: int) -> None:
    found = first_sentence(body, limit)
    assert len(found.text) <= limit
    assert "\n" not in found.text
    assert found.ranges == ()
