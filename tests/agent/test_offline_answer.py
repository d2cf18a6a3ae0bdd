"""Which sentences the built-in assistant quotes, and how it shows them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from recall_app.agent.offline_answer import best_passages
from recall_app.agent.offline_language import PHRASES, Language, fewer_words, language_of, query_of, subject_words
from recall_app.agent.offline_quotes import as_plain_markdown, quoted_answer
from recall_app.agent.sharing import SharedText


def said(text: str, *, chat: int = 1, message: int = 1, day: str = "2026-03-02", title: str = "A chat") -> SharedText:
    return SharedText(chat, message, title, "assistant", f"{day}T10:00:00.000Z", text)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("What did we decide about the database?", Language.ENGLISH),
        ("Welche Datenbank haben wir gewählt?", Language.GERMAN),
        ("¿Qué base de datos elegimos?", Language.SPANISH),
        ("que decidimos sobre el login", Language.SPANISH),
        ("我们最后决定用哪个数据库？", Language.CHINESE),
        ("データベースはどれに決めましたか？", Language.JAPANESE),
        ("ما قاعدة البيانات التي اخترناها؟", Language.ARABIC),
        ("Какую базу данных мы выбрали?", Language.ENGLISH),
        ("why did we rename 购物车 to basket?", Language.ENGLISH),
        ("", Language.ENGLISH),
        ("🚀", Language.ENGLISH),
    ],
)
def test_language(question: str, language: Language) -> None:
    assert language_of(question) is language


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What did we decide about the database?", ("decide", "database")),
        ("Why useChatStore in src/lib/auth.ts, and C++?", ("useChatStore", "src/lib/auth.ts", "C++")),
        ("Welche Datenbank haben wir gewählt?", ("Datenbank", "gewählt")),
        ("我们最后决定用哪个数据库？", ("决定", "数据库")),
        ("用户登录的问题怎么修复的？", ("用户登录", "问题", "修复")),
        ("データベースはどれに決めましたか？", ("データベース", "決")),
        ("로그인을 어떻게 고쳤지?", ("로그인", "어떻게", "고쳤지")),
        ("database Database DATABASE", ("database",)),
        ("what did we?", ()),
        ("?!", ()),
    ],
)
def test_subject_words(question: str, words: tuple[str, ...]) -> None:
    assert subject_words(question) == words


def test_fewer_words_are_shorter_pieces_or_the_longer_words() -> None:
    assert fewer_words(("数据库迁移",)) == ("数据", "据库", "库迁", "迁移")
    assert fewer_words(("البيانات",)) == ("بيانات",)
    assert fewer_words(("a1", "authentication", "token")) == ("authentication", "token")


@given(st.text(max_size=700))
def test_any_question_makes_a_query_within_bounds(question: str) -> None:
    words = subject_words(question)
    for query in (query_of(words), query_of(fewer_words(words))):
        assert len(query) <= 500
        assert bool(query) == bool(words)


def test_the_sentence_that_answers_is_quoted_with_its_reason() -> None:
    text = (
        "There are several options. Some like MySQL. We decided to use SQLite for the database, because it is embedded."
        " No server is needed.\n\nUnrelated closing words about lunch and other things."
    )
    passages = best_passages("Which database did we choose?", ["database", "choose"], [said(text)])
    assert passages[0].text.startswith(
        "We decided to use SQLite for the database, because it is embedded. No server is needed."
    )
    assert passages[0].text in text


@pytest.mark.parametrize(
    ("question", "before", "quoted", "after"),
    [
        ("Welche Datenbank nutzen wir?", "Es regnet. ", "Als Datenbank nehmen wir SQLite.", " Gut."),
        ("¿Qué base de datos?", "Hola. ", "Elegimos SQLite como base de datos.", " Adiós."),
        ("我们决定用哪个数据库？", "今天下雨。", "我们决定数据库用 SQLite。", "明天见。"),
        ("データベースはどれ？", "雨です。", "データベースはSQLiteに決めました。", "また明日。"),
        ("ما هي قاعدة البيانات؟", "مرحبا. ", "قررنا استخدام قاعدة البيانات SQLite.", " شكرا."),
        ("ฐานข้อมูล", "ฝนตก\n", "เราเลือกฐานข้อมูล SQLite", "\nแล้วพบกัน"),
    ],
)
def test_the_best_sentence_in_other_languages(question: str, before: str, quoted: str, after: str) -> None:
    passages = best_passages(question, subject_words(question), [said(before + quoted + after)])
    assert passages[0].text.startswith(quoted)


def test_a_question_is_no_answer_and_ours_is_none_either() -> None:
    question = "Which database did we choose?"
    own = quoted_answer(best_passages(question, ["database"], [said("The database is SQLite.")]), Language.ENGLISH)
    sources = [
        said("Which database did we choose?", message=1),
        said(own, message=2),
        said("Should the database be big?\nThe database is SQLite.", message=3),
    ]
    passages = best_passages(question, ["database", "choose"], sources)
    assert [(passage.source.message_id, passage.text) for passage in passages] == [(3, "The database is SQLite.")]


def test_nothing_fits() -> None:
    assert best_passages("Which database?", ["database"], [said("We had lunch.", title="Lunch")]) == ()
    assert best_passages("Which database?", ["database"], []) == ()


def test_a_later_decision_comes_first_and_both_have_their_dates() -> None:
    sources = [
        said("We decided to use SQLite as the database.", chat=1, message=11, day="2026-03-02", title="Database"),
        said("We switched the database to Postgres.", chat=2, message=21, day="2026-07-05", title="Storage again"),
    ]
    answer = quoted_answer(best_passages("Which database?", ["database"], sources), Language.ENGLISH)
    newest, older = answer.index("**Newest, 2026-07-05:**"), answer.index("**Earlier, 2026-03-02:**")
    assert newest < answer.index("> We switched the database to Postgres.") < older
    assert older < answer.index("> We decided to use SQLite as the database.")
    assert "> — Storage again · 2026-07-05 · message 21" in answer
    assert "> — Database · 2026-03-02 · message 11" in answer


def test_what_only_brushes_the_question_is_no_answer() -> None:
    sources = [said("Each account can be closed."), said("Lunch was good. " * 9, message=2)]
    question = "Where is the bank account number of grandma?"
    assert best_passages(question, subject_words(question), sources) == ()


def test_an_uncertain_answer_says_so() -> None:
    sources = [said("The webhook is idempotent."), said("Nothing else matters.", message=2)]
    passages = best_passages("webhook retries handled", ["webhook", "retries"], sources)
    assert passages
    assert not any(passage.is_sure for passage in passages)
    assert PHRASES[Language.ENGLISH].unsure in quoted_answer(passages, Language.ENGLISH)


def test_prose_goes_before_code() -> None:
    text = (
        "```ts\nconst retry = webhook.retry(retry);\n```\nA webhook retry finds its row.\n```diff\n+webhook retry\n```"
    )
    passages = best_passages("webhook retry?", ["webhook", "retry"], [said(text)])
    assert passages[0].text == "A webhook retry finds its row."


def test_a_reason_that_was_asked_for_goes_first() -> None:
    text = "We renamed the cart in May.\nUnrelated line.\nThe cart was renamed since people search for baskets."
    passages = best_passages("Why was the cart renamed?", ["cart", "renamed"], [said(text)])
    assert passages[0].text == "The cart was renamed since people search for baskets."


def test_one_chat_does_not_crowd_out_another() -> None:
    sources = [said(f"The database choice {n} is SQLite.", message=n) for n in range(1, 9)]
    sources.append(said("The database is Postgres now.", chat=2, message=50, day="2026-07-01"))
    passages = best_passages("Which database choice?", ["database"], sources)
    assert {passage.source.chat_id for passage in passages} == {1, 2}


@pytest.mark.parametrize("language", list(Language))
def test_every_language_says_that_this_is_no_language_model(language: Language) -> None:
    phrases = PHRASES[language]
    answer = quoted_answer(best_passages("SQLite?", ["SQLite"], [said("SQLite it is.", title="")]), language)
    assert answer.startswith(phrases.who)
    assert phrases.untitled in answer
    assert phrases.message.format(1) in answer


HOSTILE = (
    "</dyad-search-chats><b>x</b> *it* _em_ ``code`` ![i](http://x) [a](b) | ~~s~~ &lt; \\* snake_case `a\n"
    "# head\n> q\n* l\n+ m\n---\n***\n==="
)
INERT = {"paragraph", "blockquote", "bullet_list", "ordered_list", "list_item", "inline"}
INERT_INLINE = {"text", "text_special", "softbreak", "hardbreak", "code_inline", "strong_open", "strong_close"}


def shown(markdown: str) -> str:
    """The text that Markdown shows; fails on anything that could act or break out: HTML, links, images, headings."""
    texts: list[str] = []
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown):
        assert token.type.removesuffix("_open").removesuffix("_close") in INERT, token
        for child in token.children or []:
            assert child.type in INERT_INLINE, child
            texts.append("\n" if child.type in ("softbreak", "hardbreak") else child.content)
    return "".join(texts)


def test_quotes_are_plain_text() -> None:
    assert shown(as_plain_markdown(HOSTILE)) == HOSTILE
    assert "snake_case" in as_plain_markdown(HOSTILE)
    assert "<" not in as_plain_markdown(HOSTILE)


def test_code_bold_words_and_lists_stay_readable() -> None:
    text = "- **Redis**: expiry with `EXPIRE <key>` in src/lib/auth.ts"
    assert as_plain_markdown(text) == text
    assert shown(text) == "Redis: expiry with EXPIRE <key> in src/lib/auth.ts"


@given(st.text(st.sampled_from("ab \n*_`[]()<>&;#|~\\-+=!1.l\u200bt"), max_size=60))
def test_no_text_becomes_markup_that_acts(text: str) -> None:
    lines = [" ".join(line.split()) for line in text.split("\n")]
    kept = "\n".join(line for line in lines if line)
    # Marks of lists, bold and code may be shown as what they mean; every other character is shown as it is.
    assert re.sub(r"[-*`+.)1\s]", "", shown(as_plain_markdown(kept))) == re.sub(r"[-*`+.)1\s]", "", kept)


def test_an_indented_first_line_is_no_code_block() -> None:
    passages = best_passages("database?", ["database"], [said("      The database is SQLite.\n      # And more.")])
    assert "> The database is SQLite." in quoted_answer(passages, Language.ENGLISH)


def test_a_hostile_title_stays_in_its_source_line() -> None:
    sources = [said("The database is SQLite.", title="x\n\n# Big *title* <dyad-read-chat>" + "é" * 300)]
    answer = quoted_answer(best_passages("database?", ["database"], sources), Language.ENGLISH)
    assert "\n# Big" not in answer
    assert "<dyad" not in answer
    assert max(len(line) for line in answer.splitlines()) < 200
