"""Normalising, cutting, showing and comparing text (contracts §1 and §6)."""

import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from recall_app.domain.text import (
    HIDDEN_MARK,
    cut,
    cut_head_bytes,
    cut_tail,
    cut_tail_bytes,
    fold,
    fold_with_offsets,
    isolate_bidi,
    normalise,
    one_line,
    original_range,
    replace_surrogates,
    shorten,
)

ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
ODD = (
    "ab Z\n\t\r\x00\x07\x1b[]m8;\\P\x9b\x9c\x9d\x85\x7f\u00ad\u200b\u200c\u200d\u2060\ufeff\ufff9\u202a\u202e\u202c"
    "\u2066\u2068\u2069\u200f\u2028\u2029\u3000\u00a0\ufe0f\U000e0100é\u0301\u0338=ßİıςŉ\u0345ǅŒĳﬁＡｶﾞが\u3099한\u1112"
    "\u1161\u11abกำขំ\u17d2\u1780कि्ष\u0d4dമمُـ\u0622שָׁ👩💻🏽🇩🇪\U000e0067\U000e007f\ud83d\ude00…’—①\u0600\u0e33"
)
TEXTS = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=[])), max_size=40)


def graphemes(text: str) -> list[str]:
    return regex.findall(r"\X", text)


# --- normalise ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text,\twith\nlines", "plain text,\twith\nlines"),
        ("a\r\nb\rc\x85d", "a\nb\nc\nd"),
        ("Cafe\u0301", "Café"),
        ("a\x00\x01\x9f\x7fb", "a\ufffdb"),
        ("a\u200b\u2060b\u200bc", "a\ufffdb\ufffdc"),
        ("hid\U000e0068\U000e0069den", "hid\ufffdden"),
        ("\ufeffstart", "start"),
        ("mid\ufeffdle", "mid\ufffddle"),
        ("co\u00adop", "coop"),
        ("e\u00ad\u0301", "é"),
        ("co\u00ad\x00op", "co\ufffdop"),
        ("ខ្ញុំ\u200bស្រលាញ់\u200b។ ภาษา\u200bไทย", "ខ្ញុំស្រលាញ់។ ภาษาไทย"),
        ("\x1b[1;31mred\x1b[0m", "\ufffdred\ufffd"),
        ("\x9b31mred", "\ufffdred"),
        ("\x1b]8;;https://evil.example\x07link\x1b]8;;\x1b\\ after", "\ufffdlink\ufffd after"),
        ("\x1b]0;title\x1b\\text", "\ufffdtext"),
        ("\x9d0;title\x9ctext", "\ufffdtext"),
        ("\x1b]8;;never closed\nnext line", "\ufffd8;;never closed\nnext line"),
        ("\x1bPdevice\x1b\\text \x1b_app\x1b\\text", "\ufffdtext \ufffdtext"),
        ("a\x1b(Bb\x1bcc\x1b", "a\ufffdb\ufffdc\ufffd"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\u200d b \u200cc", "a\ufffd b \ufffdc"),
        ("می\u200c\u200cخواهم", "می\ufffdخواهم"),
        ("ഞാന്\u200d ശ്രീ", "ഞാന്\u200d ശ്രീ"),
        ("👩\u200d💻 👩🏽\u200d💻 ❤️\u200d🔥", "👩\u200d💻 👩🏽\u200d💻 ❤️\u200d🔥"),
        ("❤️ ❤️️️", "❤️ ❤️\ufffd"),
        (f"{ENGLAND} 🏴\U000e0067\U000e0062\U000e007f", f"{ENGLAND} 🏴\ufffd"),
        ("\ud800x \ud83d\ude00", "\ufffdx 😀"),
        ("a\u202eb\u200fc", "a\u202eb\u200fc"),
        ("\ufffd kept", "\ufffd kept"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(TEXTS)
@example("=\u00ad\u0338\u200da")
@example("x\ufe0f\u00ad\ufe0f")
@example("\x1b\u00ad[31m")
@example("\u0e01\u200b\u00ad\u0e01")
def test_normalised_text_is_clean_and_stays_as_it_is(text: str) -> None:
    clean = normalise(text)
    assert normalise(clean) == clean
    assert unicodedata.is_normalized("NFC", clean)
    assert not regex.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u2060-\u2064\ufeff\ud800-\udfff]", clean)
    assert not regex.search("[\U000e0000-\U000e007f]", clean.replace(ENGLAND, ""))


@given(st.text(st.sampled_from("abc XYZ.,\n\x1b\x9d\x90]P_8;\x07\x9c\\"), max_size=40))
def test_an_unterminated_string_command_loses_no_line(text: str) -> None:
    assert normalise(f"{text}\nAnd the prose goes on.").endswith("And the prose goes on.")


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=40))
def test_ordinary_text_loses_nothing(text: str) -> None:
    assert normalise(text) == unicodedata.normalize("NFC", text)


def test_hidden_runs_of_a_long_text_are_marked_one_by_one() -> None:
    assert normalise("ab\u200b\u200b" * 5_000) == f"ab{HIDDEN_MARK}" * 5_000


# --- cuts ---------------------------------------------------------------------------------------------------------


@given(text=TEXTS, limit=st.integers(0, 45))
@example(text="🇩🇪" * 20, limit=33)
@example(text="x" + "क्" * 20, limit=20)
@example(text="\u0600" * 20 + "a", limit=20)
def test_cuts_fall_on_grapheme_borders(text: str, limit: int) -> None:
    parts = graphemes(text)
    head = ""
    for part in parts:
        if len(head + part) > limit:
            break
        head += part
    tail = ""
    for part in reversed(parts):
        if len(part + tail) > limit:
            break
        tail = part + tail
    assert cut(text, limit) == (head or text[:limit])
    assert cut_tail(text, limit) == (tail or text[len(text) - limit :])


@given(text=TEXTS, limit=st.integers(0, 90))
def test_byte_cuts_are_the_longest_that_fit(text: str, limit: int) -> None:
    def size(part: str) -> int:
        return len(part.encode("utf-8", "surrogatepass"))

    head, tail = cut_head_bytes(text, limit), cut_tail_bytes(text, limit)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert size(head) <= limit
    assert size(tail) <= limit
    parts = graphemes(text)
    whole, rest = 0, 0
    for part in parts:
        if size(text[: whole + len(part)]) > limit:
            break
        whole += len(part)
    for part in reversed(parts):
        if size(text[len(text) - rest - len(part) :]) > limit:
            break
        rest += len(part)
    assert len(head) == whole or whole == 0
    assert len(tail) == rest or rest == 0


def test_a_grapheme_is_cut_only_when_it_alone_is_too_long() -> None:
    assert cut("👩‍💻👩‍💻", 4) == "👩‍💻"
    assert cut_tail("👩‍💻👩‍💻", 4) == "👩‍💻"
    assert cut("👩‍💻", 2) == "👩\u200d"
    assert cut_tail("👩‍💻", 2) == "\u200d💻"
    assert cut_head_bytes("日本語", 7) == "日本"
    assert cut_tail_bytes("日本語", 7) == "本語"
    assert cut_head_bytes("日", 2) == cut_tail_bytes("日", 2) == ""
    assert cut("a" + "\u0301" * 50_000, 20_000) == "a" + "\u0301" * 19_999
    assert cut("ab" + "\u0301" * 50_000, 20_000) == "a"
    assert cut_tail("🇩🇪" * 20_000, 1_001) == "🇩🇪" * 500


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 5, "short"),
        ("hello brave new world", 16, "hello brave new…"),
        ("hello brave new world", 15, "hello brave…"),
        ("hello brave newer world", 15, "hello brave…"),
        ("a verylongwordwithoutend", 12, "a verylongw…"),
        ("修复登录问题", 4, "修复登…"),
        ("word   and", 8, "word…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_shorten(text: str, limit: int, expected: str) -> None:
    assert shorten(text, limit) == expected


@given(text=TEXTS, limit=st.integers(0, 45))
def test_shorten_keeps_within_the_limit(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit or (short == text and len(text) <= limit)
    assert short == text or text.startswith(short.removesuffix("…"))


# --- display ------------------------------------------------------------------------------------------------------


def test_one_line() -> None:
    assert one_line("  Fix\r\n\tlogin\u2028page\u2029now\x85\u00a0\u3000please ") == "Fix login page now please"
    assert one_line("evil\u202etxt.exe\u202c \u2066x\u2069\u200e\u061c") == "eviltxt.exe x"
    assert one_line("e\u200e\u0301") == "é"
    assert one_line("a\x1b[31m\x00b") == "a\ufffdb"
    assert one_line("hello brave new world", 16) == "hello brave new…"


@given(text=TEXTS, limit=st.integers(1, 45))
def test_one_line_is_one_safe_line(text: str, limit: int) -> None:
    line = one_line(text)
    assert one_line(line) == line
    assert len(line.splitlines()) <= 1
    assert line == line.strip()
    assert "  " not in line
    assert not regex.search("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", line)
    assert len(one_line(text, limit)) <= limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no controls\nשלום \u200f", "no controls\nשלום \u200f"),
        ("a\u202eb\nc", "\u2068a\u202eb\u202c\u2069\nc"),
        ("a\u2066b\u202ac\u2069d", "\u2068a\u2066b\u202ac\u202c\u2069d\u2069"),
        ("a\u202c\u2069b", "\u2068ab\u2069"),
        ("\u2066a\u202cb\u2069", "\u2068\u2066ab\u2069\u2069"),
        ("\u2068a\u2069", "\u2068a\u2069"),
        ("\u2068a\u2069\u2068b\u2069", "\u2068\u2068a\u2069\u2068b\u2069\u2069"),
        ("\u202ea\u2029b", "\u2068\u202ea\u202c\u2069\u2029b"),
    ],
)
def test_isolate_bidi(text: str, expected: str) -> None:
    assert isolate_bidi(text) == expected


@given(st.text(st.sampled_from("ab\n\u2028\u202a\u202b\u202d\u202e\u202c\u2066\u2067\u2068\u2069\u200f"), max_size=40))
def test_bidi_controls_are_confined_to_their_line(text: str) -> None:
    isolated = isolate_bidi(text)
    assert isolate_bidi(isolated) == isolated
    controls = r"[\u202a-\u202e\u2066-\u2069]"
    assert regex.sub(controls, "", isolated) == regex.sub(controls, "", text)
    for line in regex.split("[\n\u2028]", isolated):
        opened: list[str] = []
        for control in regex.findall(controls, line):
            if control in "\u202c\u2069":
                assert opened.pop() == control
            else:
                opened.append("\u2069" if control >= "\u2066" else "\u202c")
        assert opened == []
        assert not regex.search(controls, line) or (line[0] == "\u2068" and line[-1] == "\u2069")


def test_bidi_nesting_is_bounded() -> None:
    isolated = isolate_bidi("\u202e" * 10_000 + "x")
    assert isolated.count("\u202e") == isolated.count("\u202c") < 125


# --- comparing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Élan NAÏVE", "elan naive"),
        ("Zu\u0308rich", "zurich"),
        ("STRASSE", "Straße"),
        ("ΟΔΟΣ ΆΛΦΑ", "οδος αλφα"),
        ("Ёлка", "елка"),
        ("İSTANBUL", "istanbul"),
        ("ＡＢＣ１２３", "abc123"),
        ("ﬁle ĳs", "file ijs"),
        ("ﾛｸﾞｲﾝ", "ログイン"),
        ("か\u3099", "が"),
        ("\u1112\u1161\u11ab", "한"),
        ("مُحَمَّد كـتاب", "محمد كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("می‌خواهم", "میخواهم"),
        ("don’t “x” – y", 'don\'t "x" - y'),
        ("a\u00a0b\u3000c", "a b c"),
        ("✓️ co\u00adop", "✓ coop"),
        ("①²", "12"),
    ],
)
def test_fold_takes_for_equal_what_a_person_does(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("की", "का"), ("が", "か"), ("กำ", "กา"), ("أ", "ا"), ("한", "하"), ("a", "b"), ("a b", "ab"), ("ក្ម", "កម")],
)
def test_fold_keeps_apart_what_differs(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@given(TEXTS)
def test_fold_is_the_same_for_either_normal_form_and_again(text: str) -> None:
    folded = fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == folded == fold(unicodedata.normalize("NFC", text))
    assert fold(folded) == folded


@given(TEXTS)
def test_offsets_lead_back_to_the_original(text: str) -> None:
    folded, offsets = fold_with_offsets(text)
    assert folded == fold(text)
    assert len(offsets) == len(folded) + 1
    assert list(offsets) == sorted(offsets)
    assert offsets[-1] == len(text)
    for at in range(len(folded)):
        start, end = original_range(offsets, at, at + 1)
        assert start < end
        assert folded[at] in fold(text[start:end])


@pytest.mark.parametrize(
    ("text", "sought", "found"),
    [
        ("say HELLO", "hello", "HELLO"),
        ("die Straße hier", "strasse", "Straße"),
        ("die Straße hier", "s", "S"),
        ("un cafe\u0301 noir", "cafe", "cafe\u0301"),
        ("قال مُحَمَّدٌ هنا", "محمد", "مُحَمَّدٌ"),
        ("the ﬁle — “ok”", '"ok"', "“ok”"),
        ("新しいﾛｸﾞｲﾝ画面", "ログイン", "ﾛｸﾞｲﾝ"),
        ("a… b", ". b", "… b"),
    ],
)
def test_a_match_is_marked_where_it_stands(text: str, sought: str, found: str) -> None:
    folded, offsets = fold_with_offsets(text)
    at = folded.index(fold(sought))
    start, end = original_range(offsets, at, at + len(fold(sought)))
    assert text[start:end] == found


def test_an_empty_match_is_an_empty_range() -> None:
    assert original_range(fold_with_offsets("aé")[1], 1, 1) == (1, 1)


@given(TEXTS)
def test_replace_surrogates_makes_text_that_can_be_encoded(text: str) -> None:
    whole = replace_surrogates(text)
    whole.encode()
    assert whole == text or regex.search("[\ud800-\udfff]", text)
