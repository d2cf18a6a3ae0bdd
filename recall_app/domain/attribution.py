"""The source line under a quotation of the built-in assistant: ``— title · 2026-07-12 · message 18``.

One place writes it, knows it again in a stored answer, and takes such quotations out of what is indexed.
"""

import re

_LINE = r"— .+ · \d{4}-\d\d-\d\d · \D+\d+\s*"
_AT_LINE_END = re.compile(_LINE + "$", re.MULTILINE)
_QUOTED = re.compile("> " + _LINE)


def source_line(title: str, day: str, message: str) -> str:
    """``day`` is ``YYYY-MM-DD``, ``message`` its number in words that end with it (``message 18``)."""
    return f"— {title} · {day} · {message}"


def holds_source_line(text: str) -> bool:
    """Does a line of the text end in one?"""
    return _AT_LINE_END.search(text) is not None


def without_attributed_quotes(text: str) -> str:
    """Text without block quotes that end in a source line.

    They are copies of history: indexed, they would be found in place of what they quote.
    """
    if "> — " not in text:
        return text
    kept: list[str] = []
    quote_starts: int | None = None
    for line in text.split("\n"):
        if not line.startswith(">"):
            quote_starts = None
        elif quote_starts is None:
            quote_starts = len(kept)
        kept.append(line)
        if quote_starts is not None and _QUOTED.fullmatch(line):
            del kept[quote_starts:]
            quote_starts = None
    return "\n".join(kept)
