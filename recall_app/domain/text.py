"""Text as Recall keeps, cuts, shows and compares it.

Characters are Unicode code points. Every length is counted in them, and every cut falls on a grapheme border, unless
one grapheme alone exceeds the limit (contracts §1). Any ``str`` is taken, lone surrogates included.
"""

import re
import unicodedata
from array import array
from collections.abc import Sequence
from itertools import accumulate, chain, repeat

import regex

HIDDEN_MARK = "\ufffd"
"""Stands where ``normalise`` took hidden characters out, one for each run of them (contracts §6)."""

ELLIPSIS = "…"
VOWEL_MARKS = (
    "\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"  # Arabic
    "\u0640\u08ca-\u08e1\u08e3-\u08ff"  # tatweel, extended Arabic
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew
)
"""The vowel marks of Arabic and Hebrew and the Arabic tatweel, for a character class: written or not, the word is the
same. Hamza and madda above and below (U+0653 to U+0655) make other letters and are not among them."""
BIDI_CONTROLS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
VARIATION_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"

# --- hidden characters (§6) -------------------------------------------------------------------------------------------

# Format characters that show nothing and carry no text: zero-width space, word joiner and invisible operators, the
# deprecated formats, BOM, annotation, shorthand and musical controls, tags and the unassigned rest of their block.
_INVISIBLE = (
    "\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_SUSPECT = re.compile(f"[{_CONTROL}\u00ad\u200c\u200d{_INVISIBLE}\ud800-\udfff]")
_STACKED_SELECTORS = re.compile(f"[{VARIATION_SELECTORS}]{{2}}")
_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEW_LINE = re.compile("\r\n?|\u0085")

# Scripts that use U+200B to show where words end: there it goes without a mark.
_ZERO_WIDTH_SPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
# The three flags that Unicode recommends. Any other tag sequence shows a plain black flag and could hide text.
_FLAG = (
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
# A string command (OSC, DCS, SOS, PM, APC) goes with its payload up to its terminator on the same line; without one
# only the introducer goes, so no prose is lost. A payload ends before the next escape, which keeps this linear.
_STRING_COMMAND = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x90\x98\x9c-\x9f\n]*+(?:\x07|\x1b\\|\x9c))?+"
_ESCAPE = (
    rf"(?:{_STRING_COMMAND}"
    r"|(?:\x1b\[|\x9b)[0-?]{0,64}+[ -/]{0,4}+[@-~]?+"  # CSI
    r"|\x1b(?:[ -/]{1,4}+[0-~]|[0-~])?+)"  # any other
)
_JOINED = r"\p{L}\p{M}\p{Extended_Pictographic}\U0001f3fb-\U0001f3ff"
_HIDDEN = regex.compile(
    rf"""(?P<flag>{_FLAG})
    |(?P<run>(?:
        {_ESCAPE}
        |[{_CONTROL}\u00ad]
        |(?!{_FLAG})[{_INVISIBLE}]
        |(?<=[{VARIATION_SELECTORS}])[{VARIATION_SELECTORS}]
        # A joiner stays between letters or emoji, and after a virama, where it shapes the letter before it.
        |(?!(?<=[{_JOINED}]).(?=[{_JOINED}])|(?<=\p{{ccc=9}})\u200d(?![\u200c\u200d]))[\u200c\u200d]
    )++)
    """,
    regex.VERSION0 | regex.VERBOSE,
)
_SOFT_HYPHENS = re.compile("\u00ad+")
_SOFT_HYPHENS_AND_SPACES = re.compile("[\u00ad\u200b]+")
_BESIDE_ZERO_WIDTH_SPACE = re.compile(f"[{_ZERO_WIDTH_SPACED}]")


def replace_surrogates(text: str) -> str:
    """Surrogate pairs become their character, lone ones U+FFFD: after this the text can be encoded."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _mark_hidden(match: "regex.Match[str]") -> str:
    run = match["run"]
    if run is None:
        return match[0]
    if _SOFT_HYPHENS.fullmatch(run):
        return ""
    if _SOFT_HYPHENS_AND_SPACES.fullmatch(run):
        neighbours = (
            match.string[max(match.start() - 1, 0) : match.start()] + match.string[match.end() : match.end() + 1]
        )
        if _BESIDE_ZERO_WIDTH_SPACE.search(neighbours):
            return ""
    return HIDDEN_MARK


def normalise(text: str) -> str:
    """NFC text with ``\\n`` line ends and without hidden characters, as contracts §6 asks. Idempotent.

    Out go controls (except line end and tab), escape sequences of terminals (a hyperlink's text stays), tag characters,
    zero-width spaces, BOMs and other format characters that carry no text, joiners that join nothing and all but the
    first of neighbouring variation selectors. Each run of them leaves one HIDDEN_MARK; without a mark go a BOM at the
    very start, soft hyphens, and zero-width spaces beside Thai, Lao, Khmer and Myanmar letters. Bidi controls stay
    (``isolate_bidi`` and ``one_line`` see to them), and so do the flags of England, Scotland and Wales.
    """
    if text.isascii():
        if _ASCII_CONTROL.search(text) is None:
            return text
    elif _SUSPECT.search(text) is None and _STACKED_SELECTORS.search(text) is None:
        return unicodedata.normalize("NFC", text)
    text = _NEW_LINE.sub("\n", replace_surrogates(text).removeprefix("\ufeff"))
    # Taking out what leaves no mark can bring together what then composes or counts as hidden: until nothing changes.
    while (cleaned := _HIDDEN.sub(_mark_hidden, unicodedata.normalize("NFC", text))) != text:
        text = cleaned
    return text


# --- cuts -------------------------------------------------------------------------------------------------------------

# Flags apart: for each of them \X counts back to the start of their row.
_GRAPHEME = regex.compile(r"\p{RI}{1,2}+[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}]*+|\X")
# From such a character on, all later grapheme borders are known without what lies before it.
_KNOWN = regex.compile(r"(?r)[^\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=Regional_Indicator}]")
_FARTHEST_BACK = 65_536


def _border_before(text: str, at: int) -> int:
    """The last grapheme border at or before ``at`` (0 ≤ at ≤ len); looks back at most 65,536 characters."""
    if at <= 0 or at >= len(text):
        return min(max(at, 0), len(text))
    back = 8
    while True:
        bottom = max(at - _FARTHEST_BACK, 0)
        known = _KNOWN.search(text, bottom, max(at - back, bottom))
        begin = known.start() if known else bottom
        border = begin
        for grapheme in _GRAPHEME.finditer(text, begin, at + 1):
            border = grapheme.start()
        if border > begin or begin == bottom:
            return border
        back *= 8


def cut(text: str, limit: int) -> str:
    """The head of at most ``limit`` characters."""
    if len(text) <= limit:
        return text
    return text[: _border_before(text, limit) or max(limit, 0)]


def cut_tail(text: str, limit: int) -> str:
    """The tail of at most ``limit`` characters."""
    at = len(text) - limit
    if at <= 0:
        return text
    if limit <= 0:
        return ""
    border = _border_before(text, at)
    if border < at:
        grapheme = _GRAPHEME.match(text, border)
        border = grapheme.end() if grapheme else at
    return text[border:] or text[at:]


def cut_head_bytes(text: str, limit: int) -> str:
    """The head of at most ``limit`` bytes of UTF-8."""
    head = text[: max(limit, 0)]
    data = head.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return cut(text, len(head))
    end = limit
    while data[end] & 0xC0 == 0x80:
        end -= 1
    return cut(text, len(data[:end].decode("utf-8", "surrogatepass")))


def cut_tail_bytes(text: str, limit: int) -> str:
    """The tail of at most ``limit`` bytes of UTF-8."""
    if limit <= 0:
        return ""
    data = text[-limit:].encode("utf-8", "surrogatepass")
    begin = max(len(data) - limit, 0)
    while begin < len(data) and data[begin] & 0xC0 == 0x80:
        begin += 1
    return cut_tail(text, len(data[begin:].decode("utf-8", "surrogatepass")))


_LAST_WORD = re.compile(r"\s+\S*\Z")


def shorten(text: str, limit: int) -> str:
    """The text, or its head with a trailing … when it is longer than ``limit`` characters (… included).

    Ends after a whole word when that gives up no more than a third of the room.
    """
    if len(text) <= limit:
        return text
    if limit <= 0:
        return ""
    head = cut(text, limit - 1)
    if not text[len(head)].isspace():
        floor = len(head) * 2 // 3
        last_word = _LAST_WORD.search(head, floor)
        if last_word and last_word.start() > 0:
            head = head[: last_word.start()]
    return head.rstrip() + ELLIPSIS


# --- display ----------------------------------------------------------------------------------------------------------

_BIDI = re.compile(f"[{BIDI_CONTROLS}]")


def one_line(text: str, limit: int | None = None) -> str:
    """A single line that is safe to show anywhere (titles, previews, consent): normalised, white space of any kind as
    single spaces, no bidi controls, at most ``limit`` characters with a trailing … when cut."""
    line = " ".join(normalise(_BIDI.sub("", text)).split())
    return line if limit is None else shorten(line, limit)


_EMBEDDING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_LINES = re.compile("[^\n\u2028\u2029]+")
_POP_EMBEDDING, _POP_ISOLATE, _FIRST_STRONG = "\u202c", "\u2069", "\u2068"
_DEEPEST = 60
"""Deeper nesting is dropped: renderers give up at 61 to 125 levels, each in its own way."""


class _Balance:
    """Substitutes the bidi controls of one line so that they balance."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self.closed_at = -1
        """Where the control that was opened first was closed, in the line as given; -1 while it isn't."""

    def replace(self, match: re.Match[str]) -> str:
        control = match[0]
        if control == _POP_EMBEDDING:
            return self._close_embedding(match.end())
        if control == _POP_ISOLATE:
            return self._close_isolate(match.end())
        if len(self._open) >= _DEEPEST:
            return ""
        self._open.append(_POP_ISOLATE if control >= "\u2066" else _POP_EMBEDDING)
        return control

    def _close_embedding(self, at: int) -> str:
        if not self._open or self._open[-1] != _POP_EMBEDDING:
            return ""
        self._open.pop()
        return self._note_closed(_POP_EMBEDDING, at)

    def _close_isolate(self, at: int) -> str:
        if _POP_ISOLATE not in self._open:
            return ""
        closers = ""
        while True:
            closer = self._open.pop()
            closers += closer
            if closer == _POP_ISOLATE:
                return self._note_closed(closers, at)

    def _note_closed(self, closers: str, at: int) -> str:
        if not self._open and self.closed_at < 0:
            self.closed_at = at
        return closers

    def rest(self) -> str:
        return "".join(reversed(self._open))


def _isolate_line(match: re.Match[str]) -> str:
    line = match[0]
    if _EMBEDDING.search(line) is None:
        return line
    balance = _Balance()
    balanced = _EMBEDDING.sub(balance.replace, line) + balance.rest()
    if line.startswith(_FIRST_STRONG) and balance.closed_at in (-1, len(line)):
        return balanced
    return f"{_FIRST_STRONG}{balanced}{_POP_ISOLATE}"


def isolate_bidi(text: str) -> str:
    """Body text whose bidi embeddings, overrides and isolates end with their line and reach nothing around it.

    In a line that holds any, unclosed ones are closed, stray closers removed, and the line is isolated as a whole.
    Other text is returned as it is. Idempotent.
    """
    return text if _EMBEDDING.search(text) is None else _LINES.sub(_isolate_line, text)


# --- comparing --------------------------------------------------------------------------------------------------------

_ACCENTS = re.compile("[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_ACCENTED_SCRIPT = regex.compile(r"[\p{Latin}\p{Greek}\p{Cyrillic}]")
_UNSEEN = re.compile(
    f"[{VOWEL_MARKS}{BIDI_CONTROLS}{VARIATION_SELECTORS}\u00ad\u034f\u180e\u200b-\u200d\u2060-\u206f\ufeff]"
)
_ALIKE = str.maketrans(
    {**dict.fromkeys("‘’‚‛′", "'"), **dict.fromkeys("“”„‟″", '"'), **dict.fromkeys("‐‑‒–—−", "-"), "ı": "i"}
)


def _fold_character(character: str) -> str:
    if character.isascii():
        return character.lower()
    if _UNSEEN.match(character) or _ACCENTS.match(character):
        return ""
    if character.isspace():
        return " "
    folded = unicodedata.normalize("NFKC", character)
    if folded.startswith(" "):  # a spacing accent
        return character
    for _ in range(2):  # lower-casing can bring new marks (İ), taking them off new capitals
        if _ACCENTED_SCRIPT.search(folded):
            folded = _ACCENTS.sub("", unicodedata.normalize("NFKD", folded))
        folded = _UNSEEN.sub("", folded.casefold())
    return folded.translate(_ALIKE)


class _FoldTable(dict[int, str]):
    """Folded characters by code point, filled as they are met (at most as many as Unicode has)."""

    def __missing__(self, code_point: int) -> str:
        folded = self[code_point] = _fold_character(chr(code_point))
        return folded


_FOLDED = _FoldTable()
# Half-width kana whose voicing marks are characters of their own: composed before anything else.
_HALF_WIDTH = re.compile("[\uff66-\uff9f]+")


def _compose(text: str) -> str:
    return unicodedata.normalize("NFC", _HALF_WIDTH.sub(lambda kana: unicodedata.normalize("NFKC", kana[0]), text))


def fold(text: str) -> str:
    """The text for comparing as a person would: case, width, ligatures and kinds of quotes, dashes and spaces apart.

    Accents go from Latin, Greek and Cyrillic letters, vowel marks from Arabic and Hebrew; the vowel signs of other
    scripts, which tell words apart, stay. Invisible characters go. NFC and NFD are the same.
    """
    if text.isascii():
        return text.lower()
    return _compose(text).translate(_FOLDED)


def fold_with_offsets(text: str) -> tuple[str, Sequence[int]]:
    """``fold(text)`` and, for each of its characters and its end, the offset in ``text`` that it comes from.

    ``original_range`` maps a match back.
    """
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    composed = _compose(text)
    if composed == text:
        if all(len(_FOLDED[ord(character)]) == 1 for character in set(text)):
            return text.translate(_FOLDED), range(len(text) + 1)
        parts: Sequence[str] = text
        folded = [_FOLDED[ord(character)] for character in text]
    else:
        parts = _GRAPHEME.findall(text)
        folded = [_compose(part).translate(_FOLDED) for part in parts]
    offsets = array("L")
    begins = accumulate(map(len, parts), initial=0)
    offsets.extend(chain.from_iterable(map(repeat, begins, map(len, folded))))
    offsets.append(len(text))
    return "".join(folded), offsets


def original_range(offsets: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """The range of the original text that the range of folded text comes from; whole characters, accents included."""
    if end <= start:
        return offsets[start], offsets[start]
    last = end
    while last < len(offsets) - 1 and offsets[last] == offsets[end - 1]:
        last += 1
    return offsets[start], offsets[last]
