"""Which words find which messages: identifiers, scripts, and queries that are no words at all (contracts §2 and §4)."""

import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.building import Builder, building

FOUND = [
    # identifiers, paths, versions, hashes
    ("src/lib/auth.ts", "the fix is in `src/lib/auth.ts`, line 3"),
    ("auth.ts", "the fix is in `src/lib/auth.ts`, line 3"),
    ("typescript", "We moved everything to TypeScript."),
    ("TypeScript", "we moved everything to typescript."),
    ("usechatstore", "call useChatStore() first"),
    ("useChatStore", "call usechatstore first"),
    ("chatStore", "call useChatStore.ts first"),
    ("store", "call useChatStore.ts first"),
    ("user_id", "the column user_id is null"),
    ("userId", "the field userId is null"),
    ("iOS", "crashes on ios only"),
    ("ios", "crashes on iOS only"),
    ("C++", "written in C++17 mostly"),
    ("C++17", "written in C++17 mostly"),
    ("C#", "the client is C#, the server is Go"),
    ("3f2a9bc7d1e0", "broken since commit 3f2a9bc7d1e0 on main"),
    ("v2.14.3", "pinned to v2.14.3 for now"),
    ("ECONNREFUSED", "it says ECONNREFUSED 127.0.0.1:5432 again"),
    ("@tanstack/react-query", "npm i @tanstack/react-query"),
    ("--no-verify", "committed with --no-verify"),
    ("don't", "please don’t do it"),
    # symbols
    ("🚀", "shipped 🚀 today"),
    ("done", "✓done with the list"),
    ("👨‍👩‍👧", "the 👨‍👩‍👧 icon"),
    # accents, forms
    ("cafe", "meet at the Café"),
    ("Café", "meet at the cafe"),
    (unicodedata.normalize("NFD", "Überprüfung"), "die Überprüfung lief"),
    ("Überprüfung", unicodedata.normalize("NFD", "die Überprüfung lief")),
    ("ＡＰＩ", "the API key"),
    ("decisions", "we decided on a decision"),
    # scripts without spaces, and glued particles: words inside sentences
    ("登录", "请修复登录问题"),
    ("修复登录问题", "请修复登录问题"),
    ("登录问题怎么修复？", "请修复登录问题"),
    ("我们为什么选择数据库迁移？", "上周决定进行数据库迁移"),
    ("検索", "全文検索を実装した"),
    ("ログイン", "ログイン画面を直した"),
    ("ログイン画面はどう直しましたか？", "ログイン画面を直した"),
    ("검색", "이제 검색을 구현했다"),
    ("데이터베이스는 왜 바꿨나요?", "데이터베이스를 바꿨다"),
    ("ค้นหา", "ระบบค้นหาข้อความทำงานแล้ว"),
    ("ทำไมต้องเปลี่ยนฐานข้อมูล", "เราตัดสินใจเปลี่ยนฐานข้อมูลเมื่อวาน"),
    # scripts with spaces
    ("मंदिर", "कल मंदिर गए थे"),
    ("база данных", "мы сменили базу данных на новую базу"),
    ("قاعدة البيانات", "غيّرنا قاعِدَة البيانات أمس"),
    ("מסד", "החלפנו מַסָּד נתונים"),
]


@pytest.mark.parametrize(("query", "text"), FOUND)
def test_a_query_finds_the_message_that_says_it(history: Builder, query: str, text: str) -> None:
    chat = history.add_chat(None, text)
    history.add_chats([(None, [f"something else altogether, number {n}"]) for n in range(3)])
    history.index()
    assert history.found(query) == [chat.id]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("C", "written in C++17 mostly"),
        ("की", "यह का है"),
        ("का", "यह की है"),
        ("登陆", "请修复登录问题"),
        ("3f2a9bc7d1e1", "broken since commit 3f2a9bc7d1e0 on main"),
        ("app1", "nothing to see"),
    ],
)
def test_a_query_does_not_find_what_only_looks_alike(history: Builder, query: str, text: str) -> None:
    history.add_chat(None, text)
    history.index()
    assert history.found(query) == []


def test_hindi_vowel_signs_tell_words_apart(history: Builder) -> None:
    with_ki, with_ka = (history.add_chat(None, f"राम {word} किताब").id for word in ("की", "का"))
    history.index()
    assert history.found("की") == [with_ki]
    assert history.found("का") == [with_ka]


def test_a_question_in_chinese_prefers_the_sentence_that_shares_words_over_single_signs(history: Builder) -> None:
    scattered = history.add_chat(None, "数字库存据点的迁徙和移动")
    together = history.add_chat(None, "我们最后把数据库迁移到了云端")
    history.index()
    assert history.found("数据库迁移")[0] == together.id
    assert scattered.id not in history.found("数据库迁移")[:1]


PAYLOADS = [
    "<think>xylophone</think>",
    '<dyad-write path="a.ts">const xylophone = 1</dyad-write>',
    '<dyad-search-replace path="a.ts">xylophone</dyad-search-replace>',
    "<dyad-execute-sql description='x'>select xylophone</dyad-execute-sql>",
    '<dyad-search-chats query="x">xylophone</dyad-search-chats>',
    '<dyad-read-chat chat-id="1">xylophone</dyad-read-chat>',
    "<dyad-unheard-of>xylophone</dyad-unheard-of>",
    "<think>xylophone",
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_stands_only_in_payloads_is_not_found(history: Builder, payload: str) -> None:
    chat = history.add_chat(None, "please", f"Done with the tangerine. {payload}")
    history.index()
    assert history.found("xylophone") == []
    assert history.found("tangerine") == [chat.id]


# --- queries that are no words, or look like FTS5's own language ------------------------------------------------------

SYNTAX = [
    "NEAR(tangerine palette, 5)",
    '"tangerine',
    'tangerine"',
    '""',
    "tangerine*",
    "*",
    "-tangerine",
    "body:tangerine",
    "title : tangerine",
    "tangerine AND",
    "AND",
    "tangerine OR NOT",
    "{title body} : tangerine",
    "{",
    "^tangerine",
    "tangerine + palette",
    "scope:app2",
    "(tangerine",
    "'; DROP TABLE chats; --",
    "tangerine\x00",
    "tangerine \x00 palette",
    "\x00",
    "\u202etangerine\u202c",
    "\u200b",
    "\ufffd",
]


@pytest.mark.parametrize("query", SYNTAX)
def test_fts_syntax_is_just_text(history: Builder, query: str) -> None:
    chat = history.add_chat("Colours", "the tangerine palette")
    history.add_chat("Others", "the secret of another app", app=history.add_app("Other"))
    history.index()
    assert history.found(query) == ([chat.id] if "tangerine" in query else [])


@pytest.mark.parametrize("query", ["?!…", "。、！", "---", "()", "„“", "_", "  .  ", "\u3000。"])
def test_punctuation_alone_finds_nothing(history: Builder, query: str) -> None:
    history.add_chat("?!…", "?!… --- () _ 。、！")
    history.index()
    assert history.found(query) == []


@pytest.mark.parametrize("query", ["to be or not to be", "the", "what is it", "的", "は", "और"])
def test_stopwords_alone_are_searched(history: Builder, query: str) -> None:
    chat = history.add_chat(None, "what is it: the question is to be or not to be, 我的 それは यह और वह")
    history.add_chat(None, "nothing")
    history.index()
    assert history.found(query) == [chat.id]


def test_stopwords_leave_when_something_else_is_asked_for(history: Builder) -> None:
    history.add_chat(None, "what did we do about this and that?")
    chat = history.add_chat(None, "tangerine")
    history.index()
    assert history.found("what did we do about the tangerine?") == [chat.id]


def test_words_that_nobody_wrote_do_not_matter(history: Builder) -> None:
    chat = history.add_chat(None, "the tangerine palette")
    history.index()
    assert history.found("zyzzyva tangerine qwertzuiop") == [chat.id]
    assert history.found("zyzzyva") == []


def test_the_rare_word_of_a_500_character_query_is_found(history: Builder) -> None:
    history.add_chats([(None, [f"common words fill every message of number {n}"]) for n in range(30)])
    chat = history.add_chat(None, "xylophone")
    history.index()
    query = " ".join(f"w{n}" for n in range(97)) + " common words fill every message xylophone"
    assert len(query) <= 500
    assert history.found(query)[0] == chat.id


@given(query=st.text(min_size=1, max_size=60).filter(lambda text: text.strip()))
def test_whatever_is_asked_a_message_is_found_by_its_own_text(echo: Builder, query: str) -> None:
    """Any query is answered; and if it holds a letter or digit, the message that says just this is found by it."""
    chat = echo.add_chat(None, query)
    echo.index()
    found = echo.found(query, 20)
    echo.service.delete_chat(chat.id)
    assert chat.id in found or not any(unicodedata.category(character)[0] in "LN" for character in query)


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    with building(tmp_path_factory.mktemp("echo") / "recall.db") as builder:
        yield builder
