"""From a query to what FTS5 is asked (contracts §4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_app.retrieval.ranking import rarest
from recall_app.retrieval.terms import (
    MOST_COUNTED_TERMS,
    Expression,
    Term,
    match_in,
    phrase_of,
    quoted,
    terms_of,
)


def written(query: str) -> list[str]:
    return [term.written for term in terms_of(query)]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What did we decide about the login page?", ["decide", "login", "page"]),
        ("the who", ["the", "who"]),
        ("login Login LOGIN", ["login"]),
        ("warum haben wir die Datenbank gewechselt", ["Datenbank", "gewechselt"]),
        ("¿por qué cambiamos la base?", ["cambiamos", "base"]),
        ("登录", ["登录"]),
        ("数据库迁移", ["数据", "据库", "库迁", "迁移"]),
        ("?!", []),
        ("\x00", []),
    ],
)
def test_terms_are_words_without_stopwords_unless_nothing_else_remains(query: str, terms: list[str]) -> None:
    assert written(query) == terms


def test_a_word_with_inner_borders_is_asked_in_pieces_and_joined() -> None:
    (term,) = terms_of("useChatStore")
    assert term == Term("useChatStore", ("use", "Chat", "Store"), "usechatstore")
    assert term.match == '("use Chat Store" OR "usechatstore")'


def test_of_too_many_words_the_longest_are_counted_in_order() -> None:
    words = [f"{'ab' * (1 + n % 20)}{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(90)]
    found = written(" ".join(words))
    assert len(found) == MOST_COUNTED_TERMS
    assert found == [word for word in words if word in found]
    assert min(map(len, found)) >= max(len(word) for word in words if word not in found)


def test_the_rarest_terms_are_kept_and_unknown_ones_left_out() -> None:
    counts = {Term(word, (word,)): documents for word, documents in {"a": 30, "b": 0, "c": 2, "d": 7}.items()}
    assert [term.written for term in rarest(counts, 2)] == ["c", "d"]


def test_the_phrase_keeps_stopwords_in_place() -> None:
    assert phrase_of("State of the Art") == ("State", "of", "the", "Art")


def test_an_expression_counts_more_than_it_selects() -> None:
    rare, common = Term("rare", ("rare",)), Term("Ab", ("A", "b"), "ab")
    every = Expression.any_of([rare, common], [rare, common])
    assert every.match == '(("rare") OR ("A b" OR "ab"))'
    assert every.places == {rare: (0,), common: (1, 2)}
    some = Expression.any_of([rare], [rare, common])
    assert some.match == '((("rare")) AND (("rare") OR ("A b" OR "ab")))'
    assert some.places == {rare: (1,), common: (2, 3)}


@given(st.text(max_size=20))
def test_quoted_text_is_one_string_whatever_is_in_it(text: str) -> None:
    inner = quoted(text)[1:-1]
    assert inner.replace('""', "").count('"') == 0
    assert inner.replace('""', '"') == text


def test_columns_are_named_inside_the_match() -> None:
    assert match_in(("title", "body"), '("x")') == '{title body} : ("x")'
