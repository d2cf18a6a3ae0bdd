"""The word breaks of contracts §2, asked of a real FTS5 table with the migration's tokenizer."""

import unicodedata
from collections.abc import Callable, Iterator

import apsw
import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from recall_app.domain.word_breaks import (
    BREAK,
    FORM_CHARACTERS,
    FORMS,
    LONG_FORM_CHARACTERS,
    LONG_FORMS,
    fold_for_index,
    index_document,
    index_forms,
    index_text,
    query_words,
    without_breaks,
)

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co So' tokenchars '+#'"

Found = Callable[[str, str], bool]
Tokens = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def connection() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    connection.execute(f'CREATE VIRTUAL TABLE documents USING fts5 (body, forms, tokenize = "{TOKENIZER}")')
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def tokens(connection: apsw.Connection) -> Tokens:
    options = ["unicode61", "remove_diacritics", "2", "categories", "L* M* N* Co So", "tokenchars", "+#"]
    tokenizer = connection.fts5_tokenizer("porter", options)

    def tokens_of(text: str) -> list[str]:
        found = tokenizer(
            text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )
        return [str(token) for token in found]

    return tokens_of


@pytest.fixture(scope="module")
def found(connection: apsw.Connection) -> Found:
    """Whether a document of the text matches all words of the query, each asked in pieces and joined."""

    def is_found(query: str, text: str) -> bool:
        words = query_words(query)
        if not words:
            return False
        asked = []
        for word in words:
            phrases = [" ".join(word.pieces)] + ([word.joined] if word.joined else [])
            asked.append("(" + " OR ".join(f'"{phrase}"' for phrase in phrases) + ")")
        connection.execute("DELETE FROM documents")
        connection.execute("INSERT INTO documents (body, forms) VALUES (?, ?)", index_document(text))
        matches = connection.execute("SELECT count(*) FROM documents WHERE documents MATCH ?", (" AND ".join(asked),))
        return matches.fetchall() == [(1,)]

    return is_found


def shown(text: str) -> str:
    return index_text(text).replace(BREAK, "|")


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("修复登录", "修|复|登|录"),
        ("使用useChatStore管理", "使|用|use|Chat|Store|管|理"),
        ("검색을", "검|색|을"),
        ("กำลัง", "กำ|ลั|ง"),
        ("がｶﾞー々", "が|ガ|ー|々"),
        ("useChatStore.ts", "use|Chat|Store.ts"),
        ("XMLHttpRequest", "XML|Http|Request"),
        ("URLs, APIs and IDs", "URLs, APIs and IDs"),
        ("ÄrgerÜber École ÉCOLE", "Ärger|Über École ÉCOLE"),
        ("ПроверкаВхода вход", "Проверка|Входа вход"),
        ("iOS17 x² №5", "i|OS|17 x|² №|5"),
        ("go🚀now ✓done │x", "go|🚀|now ✓|done │|x"),
        ("👍🏽x 👩‍💻 ❤️", "👍|🏽|x 👩‍💻 ❤"),
        ("₿5", "₿|5"),
        ("C++17 c++ C#8 F#x f# C+++", "C++|17 c++ C#|8 F#|x f# C++|+"),
        ("ABC++ i++ a+b #1 ## D#", "ABC|+|+ i|+|+ a|+|b #|1 #|# D|#"),
        ("用C++写", "用|C++|写"),
        ("pass\ufffdword", "pass|\ufffd|word"),
        ("می‌خواهم", "می‌خواهم"),
        ("don't snake_case src/lib/auth.ts\n\tx  y", "don't snake_case src/lib/auth.ts\n\tx  y"),
        ("don’t — plain “words” naïve Straße слово की שלום", "don’t — plain “words” naïve Straße слово की שלום"),
    ],
)
def test_breaks_stand_exactly_at_inner_borders(text: str, broken: str) -> None:
    assert shown(text) == broken


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("e\u0301 \u1112\u1161\u11ab", "é 한"),
        ("ＡＢＣ１２３！ ﾊﾟｿｺﾝ", "ABC123! パソコン"),
        ("ﬁle oﬀ ĳs", "file off ijs"),
        ("مُحَمَّد كـتاب ﻛﺘﺎﺏ", "محمد كتاب كتاب"),
        ("آإأ", "آإأ"),
        ("שָׁלוֹם", "שלום"),
        ("co\u00adoperate a\u200bb x\u2060y \u202eevil\u202c ✓\ufe0f \ufeffz", "cooperate ab xy evil ✓ z"),
        ("e\u00ad\u0301", "é"),
        ("\ud800x \ud83d\ude80", "\ufffdx 🚀"),
        ("Ⅷ ① İ ß\r\n\t x", "Ⅷ ① İ ß\r\n\t x"),
    ],
)
def test_fold_for_index(text: str, folded: str) -> None:
    assert fold_for_index(text) == folded


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("登录", "修复登录问题"),
        ("store", "see useChatStore.ts"),
        ("chatStore", "see useChatStore.ts"),
        ("usechatstore", "see useChatStore.ts"),
        ("useChatStore", "see usechatstore.ts"),
        ("useChatStore", "这里useChatStore管理"),
        ("usechatstore", "这里useChatStore管理"),
        ("검색", "검색을 고쳤다"),
        ("C++", "written in C++."),
        ("C++", "a C++17 project"),
        ("c++17", "a C++17 project"),
        ("C#", "both C# and F#"),
        ("f#", "both C# and F#"),
        ("3f2a9bc7d1e0", "at commit 3f2a9bc7d1e0, fixed"),
        ("🚀", "go🚀now"),
        ("done", "✓done"),
        ("👍", "👍🏽"),
        ("👍🏽", "yes👍🏽yes"),
        ("👩‍💻", "the👩‍💻works"),
        ("❤️", "with ❤"),
        ("❤", "with ❤️"),
        ("🇩🇪", "in🇩🇪now"),
        ("🫨", "new🫨emoji"),
        ("की", "राम की किताब"),
        ("กำลัง", "ฉันกำลังเขียนโปรแกรม"),
        ("ログイン", "新しいログイン画面を作る"),
        ("ログイン", "ﾛｸﾞｲﾝ画面"),
        ("2026年", "于2026年7月"),
        ("第3章", "见第 3 章"),
        ("iphone15手机", "新iPhone15手机"),
        ("Zürich", "Zu\u0308rich"),
        ("Zu\u0308rich", "Zürich"),
        ("typescript", "moved to TypeScript"),
        ("TypeScript", "moved to typescript"),
        ("iOS", "for ios"),
        ("ios", "for iOS"),
        ("ⅷ", "chapter Ⅷ"),
        ("①", "see ①next"),
        ("file", "the ﬁle"),
        ("ﬁle", "the file"),
        ("abc123", "ＡＢＣ１２３"),
        ("ABC", "ＡＢＣ１２３"),
        ("محمد", "قال مُحَمَّد"),
        ("مُحَمَّد", "قال محمد"),
        ("שלום", "שָׁלוֹם עולם"),
        ("שָׁלוֹם", "שלום עולם"),
        ("می‌خواهم", "من میخواهم"),
        ("میخواهم", "من می‌خواهم"),
        ("istanbul2", "İstanbul2"),
        ("İstanbul", "istanbul"),
        ("GROẞeStraße", "großestraße"),
        ("ΟΔΟΣ2", "οδος2"),
        ("password", "pass\ufffdword"),
        ("API", "the APIs"),
        ("auth.ts", "src/lib/auth.ts"),
        ("don't", "I don’t"),
        ("5", "₿5"),
    ],
)
def test_is_found(found: Found, query: str, text: str) -> None:
    assert found(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("C", "a C++17 project in C++ and C#"),
        ("C++", "plain C"),
        ("C#", "plain C, not F#"),
        ("की", "राम का घर"),
        ("登陆", "登录陆地"),
        ("🇪🇩", "in🇩🇪now"),
        ("かき", "がき"),
        ("chatUse", "useChatStore"),
    ],
)
def test_is_not_found(found: Found, query: str, text: str) -> None:
    assert not found(query, text)


def test_forms_are_joined_words_once_in_order() -> None:
    text = "useChatStore.ts iOS, C++17; 3f2a9bc7d1e0 使用iPhone15手机 修复登录 plain iOS ✓done a+b C++ Ab2\ufffd3"
    assert index_forms(text) == "usechatstore ios c++17 3f2a9bc7d1e0 iphone15 ab23"


def test_forms_of_blobs_are_bounded() -> None:
    short = [f"a{n}" for n in range(2 * FORMS)]
    long = [f"b{n:04}".ljust(LONG_FORM_CHARACTERS + 1, "x") for n in range(2 * LONG_FORMS)]
    too_long = "x1" * (FORM_CHARACTERS // 2)
    forms = index_forms(" ".join([too_long + "y", too_long, *long, *short])).split(" ")
    assert forms[0] == too_long
    assert forms[1:LONG_FORMS] == long[: LONG_FORMS - 1]
    assert forms[LONG_FORMS:] == short[:FORMS]


@pytest.mark.parametrize(
    "query", ["", " \n", "?!…", "\"'*()-+", "# + ##", "\ufffd", "\u200b\u200d", "\u0308", "+\u0308", "—«»。、"]
)
def test_punctuation_holds_no_words(query: str) -> None:
    assert query_words(query) == []


def test_query_words() -> None:
    def seen(query: str) -> list[tuple[str, str, str | None]]:
        return [(word.written, " ".join(word.pieces), word.joined) for word in query_words(query)]

    assert seen("src/lib/auth.ts don't") == [(w, w, None) for w in ("src", "lib", "auth", "ts", "don", "t")]
    assert seen("useChatStore C++17 c#") == [
        ("useChatStore", "use Chat Store", "usechatstore"),
        ("C++17", "C++ 17", "c++17"),
        ("c#", "c#", None),
    ]
    assert seen("登录useAuth页面 3D打印 第3章") == [
        ("登录", "登 录", None),
        ("useAuth", "use Auth", "useauth"),
        ("页面", "页 面", None),
        ("3D", "3 D", "3d"),
        ("打印", "打 印", None),
        ("第3章", "第 3 章", None),
    ]
    assert seen("go🚀now👩‍💻👍🏽🇩🇪🇫🇷") == [
        ("go", "go", None),
        ("🚀", "🚀", None),
        ("now", "now", None),
        ("👩‍💻", "👩 💻", None),
        ("👍🏽", "👍 🏽", None),
        ("🇩🇪", "🇩 🇪", None),
        ("🇫🇷", "🇫 🇷", None),
    ]
    assert seen("می‌خواهم pass\ufffdword") == [
        ("می‌خواهم", "می خواهم", "میخواهم"),
        ("pass\ufffdword", "pass \ufffd word", "password"),
    ]
    assert seen("x1" * 60)[0][2] is None


def test_symbols_and_punctuation_of_any_unicode_version_never_hang_on_to_a_word(tokens: Tokens) -> None:
    others = regex.findall(r"[^\p{L}\p{M}\p{N}\p{Co}\p{Cn}\p{Cs}\s]", "".join(map(chr, range(1, 0x110000))))
    composed = [other for other in others if other not in "+#" and unicodedata.is_normalized("NFC", other)]
    seen = tokens(index_text(" ".join(f"x{other}y" for other in composed)))
    glued = [token for token in seen if len(token) > 1 and token != "xy"]
    assert glued == []


# --- laws ---------------------------------------------------------------------------------------------------------

ODD = (
    "aZ9+#C.' \n_-éßİςÅ\u0301\u0327\u0345\u20e3登录カｶﾞが\u3099ーกำ\u0e49လ်မြ\u1039བོད་한\u1112\u1161\u11ab\u115f"
    "कि्षष\u200d\u200cمُـﻻשָׁ🚀✓👩🏽🇩🇪\ufe0f\u20bf①Ⅷ²ﬁǅĳ\ufffd\u200b\u00ad\u2060\u202e\u2066\ufeff\ue000"
    "\U000e0067\U000e007f\U0001fae8\ud800\udc00\x00\x1b\u00a0’—。\u3000ᙖ᙭\u0378\uffff\U00010400"
)
TEXTS = st.text(st.one_of(st.sampled_from(ODD), st.characters()), max_size=30)


@given(TEXTS)
def test_laws_of_folding_and_breaking(text: str) -> None:
    folded, broken = fold_for_index(text), index_text(text)
    assert fold_for_index(folded) == folded
    assert without_breaks(broken) == folded
    assert index_text(broken) == broken == index_text(folded)
    assert index_document(text) == (broken, index_forms(text))
    broken.encode()


@given(st.text("abYZ09+#Cs", min_size=1, max_size=12))
def test_an_identifier_is_broken_alike_inside_any_script(word: str) -> None:
    assert index_text(f"登{word}録") == BREAK.join(["登", index_text(word), "録"])


@given(text=TEXTS)
@example(text="¦\u03360A")
@example(text="\u0abc0A")
def test_every_piece_is_one_token_and_phrases_stand_in_the_document(tokens: Tokens, text: str) -> None:
    document = tokens(index_text(text))
    forms = tokens(index_forms(text))
    for word in query_words(text):
        phrase = [token for piece in word.pieces for token in tokens(piece)]
        assert len(phrase) == len(word.pieces) > 0
        assert any(document[at : at + len(phrase)] == phrase for at in range(len(document)))
        if word.joined is not None:
            assert tokens(word.joined)[0] in forms


@given(text=TEXTS)
def test_no_token_spans_a_border(tokens: Tokens, text: str) -> None:
    """Breaks and tokenizer agree on what is part of a word: nothing that is broken off hangs on to a token."""
    pieces = [piece for word in query_words(text) for piece in word.pieces]
    spoken = [token for token in tokens(index_text(text)) if regex.search(r"[\p{L}\p{N}]", token)]
    asked = [token for piece in pieces for token in tokens(piece) if regex.search(r"[\p{L}\p{N}]", token)]
    assert asked == spoken


@given(before=TEXTS, word=TEXTS, after=TEXTS)
def test_a_word_is_found_wherever_it_stands(found: Found, before: str, word: str, after: str) -> None:
    for part in query_words(word):
        assert found(part.written, f"{before} {part.written} {after}")


@given(
    before=st.text(st.sampled_from("登录が한กำ ab9C+。"), max_size=6),
    word=st.text(st.sampled_from("登录問가กลัฉកマーร"), min_size=1, max_size=5),
    after=st.text(st.sampled_from("登录が한ก ab9C+。"), max_size=6),
)
def test_unspaced_words_are_found_inside_their_sentence(found: Found, before: str, word: str, after: str) -> None:
    graphemes = regex.findall(r"\X", before + word + after)
    starts = {sum(map(len, graphemes[:n])) for n in range(len(graphemes) + 1)}
    if {len(before), len(before + word)} <= starts:
        assert found(word, before + word + after)


@given(
    parts=st.lists(
        st.sampled_from(["use", "Chat", "HTTP", "Ä", "über", "17", "ios", "X", "٣", "вход", "ΟΣ", "İ", "Ⅷ"]),
        min_size=1,
        max_size=12,
    )
)
def test_case_of_an_identifier_does_not_matter(found: Found, parts: list[str]) -> None:
    word = "".join(parts)
    for other in (word.lower(), word.upper()):
        assert found(word, f"see {other}.")
        assert found(other, f"see {word}.")


@pytest.mark.parametrize(
    "unit",
    ["a", "aA", "A", "+", "\u0301", "a\u0301", "A\u0301", "ก\u0e48", "🚀", "🇩", "1第", "a\ufffd", "ب\u200c", "C++"],
)
def test_hostile_runs_come_through_whole(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    body, forms = index_document(text)
    assert without_breaks(body) == fold_for_index(text)
    assert len(forms) <= FORM_CHARACTERS
