"""How the built-in assistant shows what it found: plain text in Markdown block quotes, each with its source line."""

from collections.abc import Iterable, Sequence

import regex

from recall_app.agent.offline_answer import Passage
from recall_app.agent.offline_language import PHRASES, Language, Phrases
from recall_app.domain.attribution import source_line
from recall_app.domain.text import one_line

TITLE_CHARACTERS = 80

# Well-formed code and bold on one line show as what they are and can do nothing else.
_KEPT = regex.compile(
    r"(?<!`)`(?=[^\s`])[^`\n]*(?<=[^\s`])`(?!`)"
    r"|(?<![*\p{L}\p{N}])\*\*(?=[\p{L}\p{N}])[^*`\[\]<>|\\&_~\n]*(?<=[\p{L}\p{N}.:])\*\*(?![*\p{L}\p{N}])"
)
_ACTING = regex.compile(r"([\\`*\[\]|]|~(?=~)|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}]))")
_ENTITY = regex.compile(r"&(?=#?\w+;)")
_LINE_START = regex.compile(r"^(\s*)(?!- [\p{L}\p{N}`*])([#>+=-])", regex.MULTILINE)


def quoted_answer(passages: Sequence[Passage], language: Language, *, notes: Iterable[str] = ()) -> str:
    """The answer as Markdown: newest passage first, and its day said where passages of several days answer."""
    phrases = PHRASES[language]
    newest_first = sorted(passages, key=lambda p: (p.source.created_at[:10], p.score), reverse=True)
    days = [passage.source.created_at[:10] for passage in newest_first]
    is_sure = any(passage.is_sure for passage in passages)
    blocks = [f"{phrases.who} {phrases.quoting if is_sure else phrases.unsure}", *notes]
    said = None
    for passage, day in zip(newest_first, days, strict=True):
        if len(set(days)) > 1 and day != said:
            blocks.append(f"**{(phrases.earlier if said else phrases.newest).format(day)}**")
            said = day
        blocks.append(_quote(passage, phrases))
    return "\n\n".join(blocks)


def as_plain_markdown(text: str) -> str:
    """``text`` so that Markdown shows it as it is: what would act there, HTML included, is escaped.

    Names like ``snake_case`` and paths stay as they are, and so do code spans, simple bold words and list items.
    """
    shown = []
    at = 0
    for kept in _KEPT.finditer(text):
        shown += [_escaped(text[at : kept.start()]), kept[0]]
        at = kept.end()
    shown.append(_escaped(text[at:]))
    return _LINE_START.sub(r"\1\\\2", "".join(shown))


def _escaped(text: str) -> str:
    return _ENTITY.sub("&amp;", _ACTING.sub(r"\\\1", text)).replace("<", "&lt;")


def _quote(passage: Passage, phrases: Phrases) -> str:
    # Two spaces at a line's end keep the break; a line without text would end the paragraph.
    lines = [line.rstrip() for line in passage.text.split("\n")]
    shown = "  \n".join(f"> {as_plain_markdown(line)}" for line in lines if line)
    title = as_plain_markdown(one_line(passage.source.chat_title or "", TITLE_CHARACTERS)) or phrases.untitled
    number = phrases.message.format(passage.source.message_id)
    return f"{shown}\n>\n> {source_line(title, passage.source.created_at[:10], number)}"
