"""What search and reading keep of a message (contracts §3): deterministic, pure, without markup or payloads.

Assistant text is parsed *before* it is normalised. The other way round, removing a terminal sequence could remove the
opening tag inside it and leave the body, and NFC could merge a tag's ``>`` with a combining mark. Where normalising
changes what is left it is parsed once more, in case that has made a tag.
"""

import re
from dataclasses import dataclass, field

from recall_app.domain.attachments import file_name_only, reduce_attachment_paths
from recall_app.domain.attribution import without_attributed_quotes
from recall_app.domain.markup import (
    StrayClose,
    TagBlock,
    TagState,
    TextBlock,
    decode_entities,
    mentioned_tags,
    parse_blocks,
)
from recall_app.domain.records import Role
from recall_app.domain.tags import (
    ATTRIBUTE_CHARACTERS,
    READING_ATTRIBUTES,
    RESULT_CHARACTERS,
    Body,
    Policy,
    Shown,
    TagRule,
    rule_for,
)
from recall_app.domain.text import cut, cut_head_bytes, cut_tail_bytes, normalise, one_line

CHAT_SEARCH_PROJECTION_VERSION: int = 1
"""Raise it with every change of what the search projection yields: all documents are then rebuilt."""

PROJECTION_BYTES = 64 * 1024
HEAD_BYTES = 48 * 1024
TAIL_BYTES = 12 * 1024
OMISSION_MARKER = "\n\n[…]\n\n"
"""Stands between head and tail; it holds no word, so that no search finds it."""

_DEEPEST = 4
"""Kept tags inside kept tags are followed this far; what lies deeper is dropped."""
_BACKUP_NOTE = re.compile("backup file at", re.IGNORECASE)
_LONGEST_BACKUP_NOTE = 1_000
_SENTENCE_START = re.compile(r"\n|(?<=[.!?。！？])\s")
_TAG_OPENER = re.compile(r"</?(?=dyad-|think)")
_ADDRESS = re.compile(r'https?://[^\s<>"]+')
_QUESTION_EDGE = re.compile(r'<(?:(?P<close>/qa\s*)|qa(?=[\s>])(?P<rest>(?:[^"<>]++|"[^"]*+")*+))>')
_QUESTION = re.compile(r'\squestion\s*=\s*"([^"]*)"')


@dataclass(frozen=True, slots=True)
class ChatSearchProjectionInput:
    """One message as stored."""

    role: Role
    content: str
    is_compaction_summary: bool


@dataclass(frozen=True, slots=True)
class ChatSearchProjection:
    """At most 64 KiB of UTF-8; ``truncated`` if the middle was left out."""

    text: str
    truncated: bool


def project_chat_message_for_search(message: ChatSearchProjectionInput) -> ChatSearchProjection:
    """The text that is indexed. Over 64 KiB: 48 KiB of head, ``OMISSION_MARKER``, 12 KiB of tail."""
    text = _project(message, reading=False)
    if len(text) * 4 <= PROJECTION_BYTES or len(text.encode()) <= PROJECTION_BYTES:
        return ChatSearchProjection(text, truncated=False)
    head, tail = cut_head_bytes(text, HEAD_BYTES), cut_tail_bytes(text, TAIL_BYTES)
    return ChatSearchProjection(head + OMISSION_MARKER + tail, truncated=True)


def project_chat_message_for_reading(message: ChatSearchProjectionInput) -> str:
    """The text that ``read_chat`` pages through: the same policy, with short results, exit states and counts kept."""
    return _project(message, reading=True)


def _project(message: ChatSearchProjectionInput, reading: bool) -> str:
    if message.role == "user":
        return reduce_attachment_paths(normalise(message.content))
    projector = _Projector(reading)
    text = projector.project(message.content)
    if not reading:
        text = without_attributed_quotes(text)
    if message.is_compaction_summary:
        text = _without_backup_note(text)
    clean = normalise(text)
    # Soft hyphens go without a mark: what they had kept from being a tag is one now.
    return clean if clean == text else normalise(projector.project(clean))


def _without_backup_note(text: str) -> str:
    """A summary without the sentence at its end that says where the whole conversation is kept."""
    at = -1
    for note in _BACKUP_NOTE.finditer(text, max(0, len(text) - _LONGEST_BACKUP_NOTE)):
        at = note.start()
    if at < 0:
        return text
    start = 0
    for found in _SENTENCE_START.finditer(text, max(0, at - _LONGEST_BACKUP_NOTE), at):
        start = found.start()
    return text[:start].rstrip()


@dataclass(frozen=True, slots=True)
class _Piece:
    order: int
    text: str
    own_lines: bool


@dataclass(slots=True)
class _Assembly:
    """Gathers what is kept, and takes back what a stray closing tag shows to be the tail of a payload."""

    pieces: list[_Piece] = field(default_factory=list)
    _orders: int = 0
    _edges: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Tag name → where a payload of that name may last have begun to leak: order of the piece, offset in it."""

    def add_text(self, text: str) -> None:
        order = self._add(text, own_lines=False)
        for name, at in mentioned_tags(text):
            self._edges[name] = order, at

    def add_tag(self, name: str, shown: str) -> None:
        order = self._add(shown, own_lines=bool(shown))
        self._edges[name] = order, len(shown)

    def take_back(self, name: str) -> None:
        """A closing tag that nothing opened: drop back to the last tag or mention of that name.

        Thoughts without a beginning are known from models whose template swallows it: then all before goes.
        """
        edge = self._edges.get(name, (0, 0) if name in ("think", "thinking") else None)
        if edge is None:
            return
        order, at = edge
        while self.pieces and self.pieces[-1].order > order:
            self.pieces.pop()
        if self.pieces and self.pieces[-1].order == order:
            last = self.pieces.pop()
            self.pieces.append(_Piece(order, last.text[:at], last.own_lines))

    def _add(self, text: str, own_lines: bool) -> int:
        self._orders += 1
        self.pieces.append(_Piece(self._orders, text, own_lines))
        return self._orders

    def join(self) -> str:
        """One text: no words joined, no run of blank lines where a tag was, prose and code otherwise as written."""
        parts: list[str] = []
        gap = ""
        after_line = False
        for piece in self.pieces:
            text = piece.text.strip()
            if not text:
                gap += piece.text
                continue
            lead = piece.text[: len(piece.text) - len(piece.text.lstrip())]
            gap += lead
            if parts:
                parts.append(_separator(gap.count("\n"), after_line, piece.own_lines))
            indent = lead.rpartition("\n")[2] if "\n" in lead else ""
            parts.append(indent + text)
            gap = piece.text[len(piece.text.rstrip()) :]
            after_line = piece.own_lines
        return "".join(parts)


def _separator(line_ends: int, after_line: bool, before_line: bool) -> str:
    if after_line and before_line:
        return "\n"
    if line_ends >= 2:
        return "\n\n"
    return "\n" if line_ends or after_line or before_line else " "


@dataclass(frozen=True, slots=True)
class _Projector:
    reading: bool

    def project(self, text: str, depth: int = 0, encoded: bool = False) -> str:
        """Text without its tags. ``encoded``: it is a tag's body, in which ``&lt;`` is written for ``<``.

        Such a body is parsed as it is and again after decoding, so that neither real nor escaped tags in it survive.
        """
        if depth > _DEEPEST:
            return ""
        assembly = _Assembly()
        for block in parse_blocks(text):
            match block:
                case TextBlock(plain):
                    decoded = decode_entities(plain) if encoded else plain
                    if decoded == plain:
                        assembly.add_text(plain)
                    else:
                        assembly.add_text(_with_edges(plain, self.project(decoded, depth + 1)))
                case StrayClose(name):
                    assembly.take_back(name)
                case TagBlock(name):
                    assembly.add_tag(name, self._tag(block, depth))
        return assembly.join()

    def _tag(self, block: TagBlock, depth: int) -> str:
        rule = rule_for(block.name)
        if rule.policy is Policy.DROP:
            return ""
        line = self._line(block, rule)
        body = self._body(block, rule, depth)
        return "\n".join(part for part in (line, body) if part)

    def _line(self, block: TagBlock, rule: TagRule) -> str:
        shown = rule.shown
        if self.reading:
            known = {item.attribute for item in shown}
            shown += tuple(item for item in READING_ATTRIBUTES if item.attribute not in known)
        values = "".join(_shown(block, item) for item in shown)
        # A kept body speaks for itself, and an unknown tag without attributes says nothing.
        is_bare = not values and (rule.policy is Policy.KEEP or not rule.is_known)
        return "" if is_bare else (rule.verb + values).strip(" ,:\n")

    def _body(self, block: TagBlock, rule: TagRule, depth: int) -> str:
        # What a broken or unclosed tag has swallowed may be anything.
        if block.state is not TagState.COMPLETE or not block.well_formed:
            return ""
        match rule.body:
            case Body.TEXT:
                limit = rule.reading_body_characters if self.reading else rule.body_characters
                text = self.project(block.raw_body, depth + 1, encoded=True)
                return text if limit is None else cut(text, limit)
            case Body.SUMMARY:
                return _without_backup_note(self.project(block.raw_body, depth + 1, encoded=True))
            case Body.ANSWERS:
                return self._answers(block, depth)
            case Body.URL:
                found = _ADDRESS.match(block.body.strip())
                return cut(found.group(), ATTRIBUTE_CHARACTERS) if found else ""
            case Body.NONE if self.reading and rule.reading_keeps_result:
                text = self.project(block.raw_body, depth + 1, encoded=True)
                return text if len(text) <= RESULT_CHARACTERS else ""
        return ""

    def _answers(self, block: TagBlock, depth: int) -> str:
        """``question: answer`` lines; a questionnaire without answers is kept as text."""
        source = self.project(block.raw_body, depth + 1)
        lines: list[str] = []
        question: str | None = None
        at = 0
        for edge in _QUESTION_EDGE.finditer(source):
            if question is not None:
                lines.append(self._answer(question, source[at : edge.start()], depth))
            found = None if edge.group("close") else _QUESTION.search(edge.group("rest"))
            question = None if edge.group("close") else (found.group(1) if found else "")
            at = edge.end()
        if question is not None:
            lines.append(self._answer(question, source[at:], depth))
        return "\n".join(lines) if lines else self.project(source, depth + 1, encoded=True)

    def _answer(self, question: str, answer: str, depth: int) -> str:
        asked = one_line(self.project(question.replace("&quot;", '"'), depth + 1, encoded=True))
        given = self.project(answer, depth + 1, encoded=True)
        return ": ".join(part for part in (asked, given) if part)


def _with_edges(plain: str, projected: str) -> str:
    """``projected`` between the white space that stood around ``plain``."""
    lead = plain[: len(plain) - len(plain.lstrip())]
    return lead + projected + plain[len(plain.rstrip()) :] if projected else lead


def _shown(block: TagBlock, item: Shown) -> str:
    """One attribute as part of the metadata line, or nothing."""
    value = block.attributes.get(item.attribute, "")
    if block.name == "dyad-attachment":
        value = file_name_only(value)
    limit = RESULT_CHARACTERS if item.attribute == "error" else ATTRIBUTE_CHARACTERS
    value = one_line(_TAG_OPENER.sub("", value), limit)
    return item.form.format(value) if value else ""
