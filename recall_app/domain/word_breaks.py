"""Where a word can be cut for the index: what FTS5's ``unicode61`` is given, and what is asked of it (contracts §2).

unicode61 knows no words inside an unspaced run. So a zero-width space, which it takes for a separator, is put
wherever such a run has an inner border. Document and query go through the same function, hence a quoted query word
becomes a phrase of pieces that matches any text in which the same pieces stand side by side.

Laws, for any text:

- ``without_breaks(index_text(text)) == fold_for_index(text)``,
- ``fold_for_index`` and ``index_text`` are idempotent, and ``index_text(fold_for_index(text)) == index_text(text)``,
- every piece of ``query_words`` is exactly one token of the tokenizer in the migration.

A *word* is a run of letters, marks and digits (``C++``, ``C#`` and ``F#`` included), a run of graphemes of an unspaced
script with its digits (``第3章``), or one emoji. Its inner breaks are BREAK, ZWNJ, ZWJ and the mark U+FFFD that
``text.normalise`` leaves; joined and lower-cased it is its *form*.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

from recall_app.domain.text import BIDI_CONTROLS, VARIATION_SELECTORS, VOWEL_MARKS, replace_surrogates

BREAK = "\u200b"

FORM_CHARACTERS = 100
"""A longer form is left out: nobody types it, and base64 is made of them."""
LONG_FORM_CHARACTERS = 40
"""Up to here (a git hash) a form is a name somebody may ask for; longer ones are mostly blobs."""
FORMS = 1_000
LONG_FORMS = 50
"""At most so many short and so many long forms a message, in order of first appearance: with the two lengths above,
45,000 characters at the very worst. Beyond it a word is still found by its pieces, only not in its joined form."""

# --- character classes (regex set syntax, version 1) ------------------------------------------------------------------

_UNSPACED = (
    r"[[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}"
    r"\p{scx=Myanmar}\p{scx=Tibetan}]&&[\p{L}\p{M}\p{N}]]"
)
# SQLite's tables are those of Unicode 6.1, and unicode61 takes what they don't know for letters. Hence symbols,
# punctuation and format characters that came later (currency signs, skin tones, …) must stand alone as So does.
_LATER = (
    r"[[\u0605\u061d\u07fe\u07ff\u0888-\u08e2\u09fd-\u0a76\u0c77-\u0c84\u1b4e\u1b4f\u1b7d-\u1b7f\u20ba-\u20cf\u2e3c-\u2e7f"
    r"\ua8fc\uab5b-\uab6b\ufbc2\U0001056f\U00010af0-\U00010af6\U00010b99-\U00010f89\U000110cd\U00011174\U00011175"
    r"\U000111cd-\U00011fff\U00012474-\U0001cfff\U0001da87-\U0001eeef\U0001f3fb-\U0001f8ff]"
    r"&&[\p{P}\p{S}\p{Z}\p{Cf}]]"
)
# U+166D was punctuation then, hence a separator, and is So now.
_SYMBOL = rf"[[\p{{So}}{_LATER}]--[\u166d]]"
_UPPER = r"[\p{Lu}\p{Lt}]"
_MARK = rf"[\p{{M}}--{_UNSPACED}]"
_DIGIT = rf"[\p{{N}}--{_UNSPACED}]"
_UNCASED = rf"[[\p{{Ll}}\p{{Lo}}\p{{Lm}}\p{{M}}\p{{Co}}\p{{Cn}}]--[{_UNSPACED}{_SYMBOL}]]"
_WORD = rf"[{_UPPER}{_UNCASED}{_DIGIT}]"
_TOKEN = rf"[{_WORD}{_UNSPACED}{_SYMBOL}+#]"
_INNER_MARKS = "\u200b\u200c\u200d\ufffd"
_INNER = f"[{_INNER_MARKS}]"

# --- folding ----------------------------------------------------------------------------------------------------------

# Full-width and half-width forms, Latin ligatures and the Dutch digraph, Arabic letters as fonts shape them (in PDFs).
_COMPATIBILITY = re.compile(
    "[\uff01-\uffbe\uffc2-\uffdc\uffe0-\uffee\ufb00-\ufb06\u0132\u0133\ufb50-\ufdfb\ufe70-\ufefc]+"
)
_INVISIBLE = "\u00ad\u034f\u17b4\u17b5\u180e\u200b\u2060-\u206f\ufeff\U000e0000-\U000e007f"
_DROPPED = re.compile(f"[{_INVISIBLE}{BIDI_CONTROLS}{VARIATION_SELECTORS}{VOWEL_MARKS}]+")


def _compatible(match: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", match[0])


def fold_for_index(text: str) -> str:
    """NFC, full-width forms and ligatures unfolded, Arabic and Hebrew vowel marks and invisible separators dropped.

    A lone surrogate, which no file can hold, becomes U+FFFD. Case, accents and white space stay.
    """
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFC", _COMPATIBILITY.sub(_compatible, replace_surrogates(text)))
    kept = _DROPPED.sub("", folded)
    return folded if len(kept) == len(folded) else unicodedata.normalize("NFC", kept)


def without_breaks(text: str) -> str:
    """Index text (or an excerpt of it) without the marks that ``index_text`` put in."""
    return text.replace(BREAK, "")


# --- breaking ---------------------------------------------------------------------------------------------------------

# A run that may have inner borders. Runs are made of what unicode61 may take for parts of a word: ASCII, and all the
# rest but the commonest punctuation (the finer patterns below sort it out). Runs that are plainly one word are passed
# over. The lookbehind makes a run be tried once, the possessive quantifiers keep that linear.
_RUN_CHARACTERS = (
    "[A-Za-z0-9+#\u0080-\u009f\u00a1-\u00aa\u00ac-\u00ba\u00bc-\u200f\u2060-\u2fff\u3004-\u3007\u3012-\U0010ffff]"
)
_PLAIN_UPPER = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a1\u03a3-\u03a9\u0400-\u042f]"
_PLAIN_LOWER = (  # Latin, Greek, Cyrillic; then letters without case: Hebrew, Arabic, Devanagari with its vowel signs
    "[a-z\u00df-\u00f6\u00f8-\u00ff\u03b1-\u03c9\u0430-\u045f"
    "\u05d0-\u05ea\u0620-\u063f\u0641-\u064a\u0671-\u06d3\u0901-\u0939\u093c-\u094d\u0958-\u0963]"
)
_CANDIDATE = re.compile(
    rf"(?<!{_RUN_CHARACTERS})(?!(?:{_PLAIN_UPPER}?+{_PLAIN_LOWER}++|[A-Z]++|[0-9]++|[+#])(?!{_RUN_CHARACTERS}))"
    rf"{_RUN_CHARACTERS}++"
)
# An acronym keeps its plural s ("APIs", "URLs"), else it ends before the capital of the next word ("XML|Http").
_ASCII_PIECE = re.compile(
    r"(?<![A-Za-z0-9])(?:[Cc]\+\+|[CcFf]#)|[+#]|[0-9]++|[A-Z]{2,}+s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]*+[a-z]++|[A-Z]++"
)
_PIECE = regex.compile(
    rf"""(?={_UNSPACED})\X
    |{_SYMBOL}\p{{M}}*+
    |(?<!{_WORD})(?:[Cc]\+\+|[CcFf]\#)
    |[+\#]\p{{M}}*+
    |{_DIGIT}[{_DIGIT}{_MARK}]*+
    |{_UPPER}{_MARK}*+{_UPPER}[{_UPPER}{_MARK}]*+s(?![\p{{Ll}}\p{{M}}])
    |{_UPPER}[{_UPPER}{_MARK}]*(?={_UPPER}{_MARK}*+\p{{Ll}})
    |[{_UPPER}{_MARK}]*+{_UNCASED}++
    |[{_UPPER}{_MARK}]++
    """,
    regex.VERSION1 | regex.VERBOSE,
)
_TOKENS = regex.compile(rf"{_TOKEN}{{2,}}+", regex.VERSION1)
# In broken text a + or # that touches a letter belongs to it, and a mark that touches a symbol to that: all others have
# a break before them. Marks alone are no word.
_WORD_START = rf"(?<![{_WORD}{_SYMBOL}+\#])(?!{_MARK}++(?!{_WORD}))"
_FORM = regex.compile(rf"{_WORD_START}{_WORD}++[+#]*+(?:{_INNER}++{_WORD}++[+#]*+)++", regex.VERSION1)


def _break_tokens(match: "regex.Match[str]") -> str:
    return BREAK.join(_PIECE.findall(match[0]))


def _break_run(run: str) -> str:
    if run.isascii():
        return BREAK.join(_ASCII_PIECE.findall(run))
    return _TOKENS.sub(_break_tokens, run)


_WITHOUT_INNER = dict.fromkeys(map(ord, _INNER_MARKS))


def _joined(word: str) -> str:
    """The word's form: lower-case as unicode61 folds, which is to single characters, the dotted capital İ too."""
    return word.translate(_WITHOUT_INNER).replace("İ", "i").lower()


def index_text(text: str) -> str:
    """``fold_for_index`` of the text with BREAK at every inner border (contracts §2).

    (a) around graphemes of scripts written without spaces or with glued particles, (b) at camelCase, acronym and
    letter–digit borders, (c) around symbols, (d) around ``+`` and ``#``, except those of ``C++``, ``C#``, ``F#`` in
    either case. A capital after a letter without case starts a new piece like one after a small letter (``بال|API``).
    Breaks stand only between two characters that unicode61 reads as parts of a word.
    """
    return _CANDIDATE.sub(lambda match: _break_run(match[0]), fold_for_index(text))


def index_forms(text: str) -> str:
    """The forms of the words that have inner breaks, separated by spaces, each once, bounded as the constants say."""
    return index_document(text)[1]


def index_document(text: str) -> tuple[str, str]:
    """``(index_text(text), index_forms(text))`` in one pass: the body and forms of one document."""
    found: dict[str, None] = {}

    def break_and_collect(match: re.Match[str]) -> str:
        run = match[0]
        broken = _break_run(run)
        if broken.isascii():
            return broken
        if "+" not in run and "#" not in run and run.isascii():
            found[run.lower()] = None
        else:
            for word in _FORM.findall(broken):
                found[_joined(word)] = None
        return broken

    body = _CANDIDATE.sub(break_and_collect, fold_for_index(text))
    return body, " ".join(_bounded(found))


def _bounded(forms: Iterable[str]) -> Iterator[str]:
    room = {"short": FORMS, "long": LONG_FORMS}
    for form in forms:
        length = "long" if len(form) > LONG_FORM_CHARACTERS else "short"
        if room[length] and len(form) <= FORM_CHARACTERS:
            room[length] -= 1
            yield form


# --- queries ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a query. ``written`` is the word folded for the index, without breaks; ``pieces`` are its tokens in
    order, to be asked as one phrase; ``joined`` is its form, asked as well, or None when it has no inner breaks (or is
    too long to be in any document's forms)."""

    written: str
    pieces: tuple[str, ...]
    joined: str | None


# Digits beside an unspaced script belong to its word (2026年), unless letters follow them (章3D).
_QUERY_WORD = regex.compile(
    rf"""(?P<unspaced>
        (?:{_DIGIT}[{_DIGIT}{_MARK}]*+\u200b(?={_UNSPACED}))?+
        {_UNSPACED}[{_UNSPACED}\p{{M}}]*+
        (?:\u200b(?:{_UNSPACED}[{_UNSPACED}\p{{M}}]*+
            |{_DIGIT}[{_DIGIT}{_MARK}]*+(?![{_INNER}{_MARK}]*{_WORD})))*+
    )
    |(?P<word>{_WORD_START}{_WORD}++[+\#]*+(?:{_INNER}++{_WORD}++[+\#]*+)*+)
    |(?P<symbol>[\U0001f1e6-\U0001f1ff]\u200b[\U0001f1e6-\U0001f1ff]
        |[{_SYMBOL}--[\ufffd]]\p{{M}}*+(?:\u200b?[\U0001f3fb-\U0001f3ff]|\u200d\u200b?{_SYMBOL}\p{{M}}*+)*+)
    """,
    regex.VERSION1 | regex.VERBOSE,
)
_PIECES = regex.compile(rf"{_TOKEN}++", regex.VERSION1)


_HAS_INNER = re.compile(_INNER)


def query_words(text: str) -> list[QueryWord]:
    """The words of a query, in order, repeated ones too; none when it is all punctuation."""
    words = []
    for match in _QUERY_WORD.finditer(index_text(text)):
        broken = match[0]
        joined = _joined(broken) if match["word"] and _HAS_INNER.search(broken) else None
        if joined is not None and len(joined) > FORM_CHARACTERS:
            joined = None
        words.append(QueryWord(without_breaks(broken), tuple(_PIECES.findall(broken)), joined))
    return words
