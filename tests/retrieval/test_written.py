"""Words and phrases as they stand in indexed texts."""

import pytest

from recall_app.domain.word_breaks import index_text
from recall_app.retrieval.terms import phrase_of, terms_of
from recall_app.retrieval.written import STEM_MATE, WrittenForms


def forms(query: str) -> WrittenForms:
    return WrittenForms(terms_of(query), phrase_of(query))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("login", "the LOGIN page"),
        ("useChatStore", "call useChatStore()"),
        ("useChatStore", "call usechatstore"),
        ("typescript", "in TypeScript"),
        ("C++", "in C++17"),
        ("登录", "请修复登录问题"),
        ("user", "user_id"),
        ("Überprüfung", "ÜBERPRÜFUNG"),
    ],
)
def test_a_word_as_written_is_worth_all(query: str, text: str) -> None:
    assert forms(query).weigh([2.0], index_text(text)) == [2.0]
    assert forms(query).is_verbatim("", index_text(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("university", "the universe"),
        ("useChatStore", "use chat store"),
        ("log", "login"),
        ("organization", "organs"),
        ("policy", "police"),
        ("登录", "登 录"),
    ],
)
def test_what_only_shares_stem_or_pieces_is_worth_less(query: str, text: str) -> None:
    assert forms(query).weigh([2.0], index_text(text)) == [2.0 * STEM_MATE]
    assert not forms(query).is_verbatim("", index_text(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("decide", "decided"),
        ("decided", "deciding"),
        ("migrations", "migration"),
        ("stop", "stopped"),
        ("stopping", "stops"),
        ("policies", "policy"),
        ("applied", "apply"),
        ("class", "classes"),
        ("errors", "an error"),
    ],
)
def test_a_plain_inflection_stands_for_a_single_word(query: str, text: str) -> None:
    assert forms(query).weigh([2.0], text) == [2.0 * STEM_MATE]
    assert forms(query).is_verbatim("", text)


@pytest.mark.parametrize(
    ("query", "title", "body", "stands"),
    [
        ("state of the art", "", "the State-of-the-Art, again", True),
        ("state of the art", "State of the art", "", True),
        ("state of the art", "", "state of art", False),
        ("state of the art", "", "the state of the arts", False),
        ("use chat store", "", "useChatStore", True),
        ("src/lib/auth.ts", "", "in src/lib/auth.ts:3", True),
        ("数据库迁移", "", "我们的数据库迁移了", True),
        ("数据库迁移", "", "迁移数据库", False),
        ("state art", "state", "art", False),
    ],
)
def test_several_terms_stand_there_as_a_phrase_with_their_stopwords(
    query: str, title: str, body: str, stands: bool
) -> None:
    assert forms(query).is_verbatim(index_text(title), index_text(body)) is stands
