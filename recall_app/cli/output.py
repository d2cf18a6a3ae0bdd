"""Everything that the command line prints. History is hostile text: it is shown literally, never as markup, and
without what could steer a terminal."""

import json
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recall_app.domain.records import iso_time
from recall_app.domain.text import isolate_bidi, normalise, one_line

PIPE_WIDTH = 160
"""Columns of a table that goes into a file or another program, where no terminal says how many there are."""

# Valid inside JSON strings as they are, but commands to some terminals.
_TERMINAL_COMMANDS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}

Cell = str | int | None | Text


def console(*, to_stderr: bool = False) -> Console:
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def one_line_to_stderr(text: str) -> None:
    print(f"recall: {one_line(text)}", file=sys.stderr, flush=True)


def print_json(value: object) -> None:
    """One line of JSON: as UTF-8 text where the stream can hold it, else with escapes."""
    readable = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    write_line(json.dumps(value, ensure_ascii=not readable))


def write_line(text: str) -> None:
    """One line of machine output, at once."""
    sys.stdout.write(text.translate(_TERMINAL_COMMANDS) + "\n")
    sys.stdout.flush()


def print_text(text: str | Text = "", style: str = "") -> None:
    """Text of possibly many lines. A plain string is untrusted and made safe; a ``Text`` is taken as it is."""
    out = console()
    out.print(text if isinstance(text, Text) else Text(safe(text), style=style), soft_wrap=not out.is_terminal)
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str) -> None:
    """A calm table; a column whose name begins with ``#`` is for numbers. Without rows, the sentence ``empty``."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column.removeprefix("#"), justify="right" if column.startswith("#") else "left")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    if table.row_count:
        console().print(table)
    else:
        console().print(Text(empty))
    sys.stdout.flush()


def safe(text: str) -> str:
    """Untrusted text of any length for a terminal: no controls, bidi isolated, line breaks kept."""
    return isolate_bidi(normalise(text))


def when(milliseconds: int | None) -> str:
    """Date and time in UTC, to the minute; a dash for never."""
    return "–" if milliseconds is None else iso_time(milliseconds)[:16].replace("T", " ")


def iso(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else iso_time(milliseconds)


def _cell(cell: Cell) -> Text:
    if isinstance(cell, Text):
        return cell
    if isinstance(cell, int):
        return Text(f"{cell:,}")
    return Text("–" if cell is None else one_line(cell))
