"""Which passages of what was read answer a question best: by its words, in any script, and by simple signs.

No understanding is claimed. A passage is a sentence, with what directly follows it, verbatim.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import regex

from recall_app.agent.offline_language import PHRASES
from recall_app.agent.sharing import SharedText
from recall_app.domain.attribution import holds_source_line
from recall_app.domain.tags import TAG_RULES, Policy
from recall_app.domain.text import fold

QUOTES = 4
"""At most this many passages in an answer."""
QUOTES_OF_A_CHAT = 2
"""What another chat says later must have room."""
SENTENCES_IN_A_QUOTE = 3
QUOTE_CHARACTERS = 600
GOOD_ENOUGH = 0.5
"""A passage is quoted if it scores at least this share of the best one."""
SURE, POSSIBLE = 0.45, 0.3
"""Which share of the question's words, weighted, a passage's message and title must hold to count as an answer, and to
be shown at all."""

_SENTENCE_END = regex.compile(r"(?<=[.!?…][\"'”’)\]]*)\s+(?=[^\p{Ll}])|(?<=[。！？؟।])\s*|\s*\n\s*")
_HEADING_MARK = regex.compile(r"#{1,6}\s+")
_TELLING = regex.compile(r"(?!\d{1,3}[.)]\s*$)[\p{L}\p{N}]")
_TOKENS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}ー]|[\p{L}\p{M}\p{N}_]+")
_SPACELESS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}ー]")
_FENCE = regex.compile(r"^\s*(?:```|~~~)", regex.MULTILINE)
_BREAK = regex.compile(r"\n\s*\n|#|```|~~~")
_CODE = regex.compile(
    r"^(?:diff |index |\+\+\+|---|@@|[|$<>{}]|(?:import|const|let|var|def|class|return|select)\b)|[;{]$"
)
_VERBS = sorted({rule.verb for rule in TAG_RULES.values() if rule.policy is Policy.LINE}, key=len, reverse=True)
_EVENT = regex.compile(rf"^(?:{'|'.join(map(regex.escape, _VERBS))})(?=[ :,\"]|$)")
"""A metadata line of the projection: what an agent did, not what it said."""
_QUESTION = regex.compile(
    r"[?？؟][\"'”’)\]]*$|[か吗呢][。]?$"
    r"|^(?:how|what|which|why|when|where|who|should|can|could|do|does|did|is|are|wie|was|welche[rsn]?|warum|wann|wo|wer|"
    r"soll\w*|cómo|qué|cuál|por qué|cuándo|dónde|quién)\b",
    regex.IGNORECASE,
)
_ANNOUNCEMENT = regex.compile(r"^(?:let me|let's|i(?:'|’)ll|i will|ich (?:schaue|sehe|lese)|voy a)\b", regex.IGNORECASE)
_REASON_ASKED = regex.compile(
    r"\b(?:why|reason|warum|wieso|weshalb|por qu[eé])\b|为什么|なぜ|理由|لماذا", regex.IGNORECASE
)
_REASON = regex.compile(
    r"\b(?:because|since|so that|weil|denn|damit|porque|ya que)\b|因为|ため|ので|لأن", regex.IGNORECASE
)
_DECISION = regex.compile(
    r"\b(?:decid\w+|decision|chose|chosen|settled|agreed|going with|go with|went with|we(?:'|’)?ll use|"
    r"switch(?:ed|ing)|instead|final(?:ly)?|root cause|fixed|because|"
    r"entschieden|entscheidung|beschlossen|gewählt|stattdessen|weil|"
    r"decisión|elegimos|acordamos|porque|en lugar)\b|决定|选择|改用|最终|因为|決定|決め|採用|理由|"
    r"قررنا|القرار|اخترنا|بدلا|لأن",
    regex.IGNORECASE,
)
_SELF = frozenset(phrases.who for phrases in PHRASES.values())

_OWN, _MESSAGE, _TITLE, _NEIGHBOUR = 1.0, 0.35, 0.35, 0.2
"""How much a word of the question counts where it stands: in the sentence, elsewhere in its message, in the chat's
title, in the message before."""
_SIGN = 0.6
"""How much a sign of a decision, or of a reason that was asked for, counts: as a part of the weightiest word."""
_ASKING, _CODING, _TELLING_NOTHING, _LONG = 0.25, 0.3, 0.5, 0.7
"""What is left of the score of a question, of code and metadata, of an
announcement or a word or two, and of a wall of text."""
_SHORTEST_STEM = 4


@dataclass(frozen=True, slots=True)
class Passage:
    """Neighbouring sentences of one message, verbatim. ``is_sure``: enough of the question's words are around."""

    source: SharedText
    text: str
    score: float
    is_sure: bool


@dataclass(frozen=True, slots=True)
class _Sentence:
    source: SharedText
    order: int
    """Its place among the sentences of its message."""
    start: int
    end: int
    """Its range of characters in its message."""
    score: float
    coverage: float

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> tuple[int, int]:
        return self.source.message_id, self.order


def best_passages(question: str, words: Sequence[str], sources: Iterable[SharedText]) -> tuple[Passage, ...]:
    """The passages that answer ``question`` best, best first; empty when none has anything to do with ``words``.

    Left out: what asks the same itself, and what this assistant quoted in an earlier answer, which is no source.
    ``sources`` come in the order of their chats, so that the message before one is known.
    """
    read = [source for source in sources if not is_own_answer(source.text)]
    ranked = sorted(_scored(question, words, read), key=lambda s: (-s.score, s.source.created_at, s.place))
    following = {sentence.place: sentence for sentence in ranked}
    passages: list[Passage] = []
    chats: Counter[int] = Counter()
    for sentence in ranked:
        if len(passages) == QUOTES or sentence.score < GOOD_ENOUGH * ranked[0].score:
            break
        if sentence.place not in following or chats[sentence.source.chat_id] == QUOTES_OF_A_CHAT:
            continue
        if any(sentence.text in passage.text for passage in passages):
            continue
        end = _taken(sentence, following)
        chats[sentence.source.chat_id] += 1
        text = sentence.source.text[sentence.start : end]
        passages.append(Passage(sentence.source, text, sentence.score, sentence.coverage >= SURE))
    return tuple(passages)


def is_own_answer(text: str) -> bool:
    """Whether ``text`` is (an excerpt of) an answer of this assistant."""
    return holds_source_line(text) or any(who in text for who in _SELF)


def asks_the_same(text: str, question: str) -> bool:
    """Whether ``text`` is ``question``, or begins it, case and punctuation apart."""
    return bool(asked := _plain(text)) and _plain(question).startswith(asked)


@dataclass(frozen=True, slots=True)
class _Words:
    """A text made ready for asking which words it holds."""

    folded: str
    tokens: frozenset[str]


def _words(text: str) -> _Words:
    folded = fold(text)
    return _Words(folded, frozenset(_TOKENS.findall(folded)))


def _scored(question: str, words: Sequence[str], sources: Sequence[SharedText]) -> list[_Sentence]:
    """Every sentence that has to do with ``words``; rarer words weigh more."""
    split = [
        (source, [(*span, _words(source.text[slice(*span)])) for span in _spans(source.text)]) for source in sources
    ]
    weights = _weights(words, [held for _, sentences in split for _, _, held in sentences])
    wants_reason = _REASON_ASKED.search(question) is not None
    scored: list[_Sentence] = []
    before: dict[int, float] = {}
    for source, sentences in split:
        title = _words(source.chat_title or "")
        message, whole = _words(source.text), _words(f"{source.chat_title or ''}\n{source.text}")
        coverage = _share(whole, weights) / (sum(weights.values()) or 1)
        in_message = _share(message, weights)
        around = in_message * _MESSAGE + _share(title, weights) * _TITLE
        around += before.get(source.chat_id, 0.0) * _NEIGHBOUR
        before[source.chat_id] = in_message
        fences = [fence.start() for fence in _FENCE.finditer(source.text)]
        for order, (start, end, held) in enumerate(sentences):
            text = source.text[start:end]
            score = _share(held, weights) * _OWN + around
            if coverage < POSSIBLE or score == 0 or asks_the_same(text, question):
                continue
            signs = bool(_DECISION.search(text)) + (wants_reason and bool(_REASON.search(text)))
            score += signs * _SIGN * max(weights.values()) * min(1.0, score)
            is_fenced = sum(fence <= start for fence in fences) % 2 == 1
            is_code = is_fenced or _CODE.search(text) or (source.role == "assistant" and _EVENT.search(text))
            score *= _worth(text, is_code=bool(is_code))
            scored.append(_Sentence(source, order, start, end, score, coverage))
    return scored


def _weights(words: Sequence[str], sentences: Sequence[_Words]) -> dict[str, float]:
    """How much each word of the question tells, by how few of the sentences hold it."""
    return {
        term: math.log(1 + len(sentences) / (1 + sum(_holds(held, term) > 0 for held in sentences))) + 0.1
        for term in dict.fromkeys(fold(word) for word in words)
    }


def _worth(text: str, *, is_code: bool) -> float:
    """How much a sentence of this kind tells, from 0 to 1."""
    worth = 1.0
    if _QUESTION.search(text):
        worth *= _ASKING
    if is_code:
        worth *= _CODING
    if _ANNOUNCEMENT.search(text) or (len(text) < 12 and not _SPACELESS.search(text)):
        worth *= _TELLING_NOTHING
    return worth * (_LONG if len(text) > 300 else 1.0)


def _share(held: _Words, weights: dict[str, float]) -> float:
    return sum(weight * _holds(held, term) for term, weight in weights.items())


def _holds(held: _Words, term: str) -> float:
    """1 when ``term`` is one of the words, less for a kindred form or a part of an unspaced run."""
    if _SPACELESS.search(term):
        pairs = [term[start : start + 2] for start in range(max(1, len(term) - 1))]
        found = sum(pair in held.folded for pair in pairs) / len(pairs)
        return 1.0 if term in held.folded else 0.8 * found
    if not term.isalnum():
        parts = _TOKENS.findall(term)
        if term in held.folded or not parts:
            return float(term in held.folded)
        return 0.8 * sum(_holds(held, part) for part in parts if part.isalnum()) / len(parts)
    if term in held.tokens:
        return 1.0
    return 0.8 if any(_are_kindred(token, term) for token in held.tokens) else 0.0


def _are_kindred(token: str, term: str) -> bool:
    """Whether the two begin alike for most of the shorter one: ``renamed`` and ``rename``."""
    if token[:_SHORTEST_STEM] != term[:_SHORTEST_STEM]:
        return False
    shorter = min(len(token), len(term))
    stem = max(_SHORTEST_STEM, math.ceil(0.7 * shorter))
    return shorter >= stem and token[:stem] == term[:stem]


def _spans(text: str) -> list[tuple[int, int]]:
    """The ranges of the sentences of ``text``, without the marks of headings."""
    spans: list[tuple[int, int]] = []
    start = 0
    for border in [*_SENTENCE_END.finditer(text), None]:
        end = len(text) if border is None else border.start()
        start += len(text[start:end]) - len(text[start:end].lstrip())
        mark = _HEADING_MARK.match(text, start, end)
        first = start if mark is None else mark.end()
        if _TELLING.search(text, first, end) and not _FENCE.match(text, first, end):
            spans.append((first, end))
        start = end if border is None else border.end()
    return spans


def _taken(sentence: _Sentence, following: dict[tuple[int, int], _Sentence]) -> int:
    """Take ``sentence`` and what follows it (the reason, the exception) out of ``following``; where that ends."""
    last = following.pop(sentence.place)
    text = sentence.source.text
    for step in range(1, SENTENCES_IN_A_QUOTE):
        after = following.get((sentence.source.message_id, sentence.order + step))
        if after is None or after.end - sentence.start > QUOTE_CHARACTERS:
            break
        if _QUESTION.search(after.text) or _CODE.search(after.text) or _EVENT.search(after.text):
            break
        # A paragraph's end is an end, unless it announces what comes.
        if _BREAK.search(text[last.end : after.start]) and not last.text.endswith((":", "：")):
            break
        last = following.pop(after.place)
    return last.end


def _plain(text: str) -> str:
    return " ".join(_TOKENS.findall(fold(text)))
