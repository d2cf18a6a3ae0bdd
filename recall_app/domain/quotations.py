"""Finding, in what an agent wrote elsewhere, what it took from a chat that is being forgotten (contracts §8)."""

import json
import re
from collections.abc import Iterable, Iterator

from recall_app.domain.cards import HISTORY_TAGS, SEARCH_TAG
from recall_app.domain.markup import TagBlock, decode_entities, encode_attribute, encode_entities, parse_blocks
from recall_app.domain.projection import ChatSearchProjectionInput, project_chat_message_for_reading
from recall_app.domain.text import normalise, one_line
from recall_app.domain.word_breaks import BREAK, index_text

_QUOTED_WORDS = 5
"""A line of an answer that has so many words in a row from the chat is a quotation."""
_SHORTEST_TITLE = 3
_WORDS = re.compile(rf"[^\W_]+|{BREAK}")
_LETTER = re.compile(r"[A-Za-z0-9_]")
_JSON_TEXT = re.compile(r'(?P<key>"(?:excerpt|text|query)"\s*:\s*)(?P<value>"(?:[^"\\]|\\.)*")')
_QUERY_ATTRIBUTE = re.compile(r'(?P<key>\squery=")(?P<value>[^"]*)')


class Quotations:
    """Recognises lines that were taken word for word from a chat, and its title. ``stub`` takes their place."""

    def __init__(self, title: str | None, messages: Iterable[ChatSearchProjectionInput], stub: str) -> None:
        self._stub = stub
        # Hashes of word sequences: all that is asked of them is whether they occur, and a long chat has very many.
        self._runs: set[int] = set()
        self._lines: set[int] = set()
        for message in messages:
            text = project_chat_message_for_reading(message)
            self._runs.update(_runs(_words(text)))
            self._lines.update(hash(tuple(words)) for line in text.splitlines() if len(words := _words(line)) > 1)
        self._title = _title_pattern(title) if title else None

    def removed_from(self, text: str) -> str:
        """Plain text with each quoting line, and each mention of the title, replaced by the stub."""
        return self._without_title("".join(map(self._without_quotation, text.splitlines(keepends=True))))

    def removed_from_message(self, content: str) -> str:
        """``removed_from`` for an assistant message. Of history cards only what they quote of *other* chats is looked
        at (an answer there can quote this chat, too); titles of other chats stay."""
        parts: list[str] = []
        at = 0
        for block in parse_blocks(content):
            if isinstance(block, TagBlock) and block.name in HISTORY_TAGS:
                parts += [self.removed_from(content[at : block.start]), self._removed_from_card(block, content)]
                at = block.end
        return "".join((*parts, self.removed_from(content[at:])))

    def removed_from_arguments(self, arguments_json: str) -> str:
        """A call's arguments, with what its query says of the chat replaced."""
        return _JSON_TEXT.sub(self._removed_from_json_text, arguments_json)

    def _removed_from_card(self, block: TagBlock, content: str) -> str:
        card = content[block.start : block.end]
        if block.name == SEARCH_TAG:
            card = _QUERY_ATTRIBUTE.sub(self._removed_from_attribute, card, count=1)
        body = block.raw_body
        if body.lstrip().startswith("{"):
            cleaned = _JSON_TEXT.sub(self._removed_from_escaped_json_text, body)
            card = cleaned.join(card.rsplit(body, 1)) if cleaned != body else card
        return card

    def _removed_from_attribute(self, match: re.Match[str]) -> str:
        value = decode_entities(match["value"]).replace("&quot;", '"')
        cleaned = self.removed_from(value)
        return match[0] if cleaned == value else match["key"] + encode_attribute(cleaned)

    def _removed_from_escaped_json_text(self, match: re.Match[str]) -> str:
        value = decode_entities(match["value"])
        cleaned = self._removed_from_json_string(value)
        return match[0] if cleaned == value else match["key"] + encode_entities(cleaned)

    def _removed_from_json_text(self, match: re.Match[str]) -> str:
        return match["key"] + self._removed_from_json_string(match["value"])

    def _removed_from_json_string(self, literal: str) -> str:
        try:
            text: str = json.loads(literal)
        except ValueError:
            return json.dumps(self._stub)
        cleaned = self.removed_from(text)
        return literal if cleaned == text else json.dumps(cleaned, ensure_ascii=False)

    def _without_title(self, text: str) -> str:
        return self._title.sub(lambda _: self._stub, text) if self._title else text

    def _without_quotation(self, line: str) -> str:
        words = _words(line)
        if hash(tuple(words)) not in self._lines and self._runs.isdisjoint(_runs(words)):
            return line
        lead = re.match(r"[\s>]*", line)
        end = "\n" if line.endswith("\n") else ""
        return f"{lead[0] if lead else ''}{self._stub}{end}"


def _title_pattern(title: str) -> re.Pattern[str] | None:
    """Any spelling of the title that other texts may hold, in any case, but not inside a longer word."""
    forms = sorted(
        (form for form in {title, normalise(title), one_line(title)} if len(form) >= _SHORTEST_TITLE),
        key=len,
        reverse=True,
    )
    if not forms:
        return None
    return re.compile(
        "|".join(
            ("(?<![A-Za-z0-9_])" if _LETTER.match(form[0]) else "")
            + re.escape(form)
            + ("(?![A-Za-z0-9_])" if _LETTER.match(form[-1]) else "")
            for form in forms
        ),
        re.IGNORECASE,
    )


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(index_text(text)) if word != BREAK]


def _runs(words: list[str]) -> Iterator[int]:
    return (hash(tuple(words[at : at + _QUOTED_WORDS])) for at in range(len(words) - _QUOTED_WORDS + 1))
