"""The reader of the sample workspace: hand-written chats in plain text (``resources/sample/README.md`` has the format).

One folder an app (``app.toml``), one ``.chat`` file a chat: TOML between ``+++`` lines, then messages, each under a
head such as ``@@ assistant 2026-07-12T18:29:00Z model=claude-sonnet compaction``. One file at a time is in memory.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from recall_app.domain.records import SkippedRecord, SourceApp, SourceChat, SourceItem, SourceMessage

APP_FILE = "app.toml"
LARGEST_FILE = 4 * 1024 * 1024
"""Bytes; a longer file was not written by hand and is skipped."""
LONGEST_REPEAT = 100_000

_FENCE = "+++"
_HEAD_START = re.compile(r"@@ [a-z]")
_HEAD = re.compile(r"@@ (?P<role>user|assistant) (?P<time>\S+)(?P<marks>(?: \S+)*)")
_NUMBER = re.compile(r"^\d+-")
_ESCAPE = re.compile(r"\\u\{([0-9a-fA-F]{1,6})(?:\*([0-9]{1,6}))?\}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FormatError(ValueError):
    """A file or message that does not follow the format; the text says why and holds none of its content."""


class SampleReader:
    """Yields apps, chats and messages of one folder of samples; what is damaged is skipped, the rest comes in."""

    kind: ClassVar[str] = "sample"
    label: ClassVar[str] = "Sample workspace"
    counts_ids: ClassVar[bool] = False

    def detect(self, path: Path) -> bool:
        """Whether ``path`` is a folder with at least one app folder in it."""
        return path.is_dir() and any(path.glob(f"*/{APP_FILE}"))

    def discover(self) -> list[Path]:
        """The workspace that comes with Recall, unless this installation left it out."""
        return [folder for folder in _bundled_folders() if self.detect(folder)][:1]

    def read(self, path: Path) -> Iterator[SourceItem]:
        """Apps by folder name, their chats by file name, the messages of a chat in the file's order.

        A message that can't be read keeps its number, so that the keys of the others don't depend on it.
        """
        for app_file in sorted(path.glob(f"*/{APP_FILE}")):
            try:
                app = _read_app(app_file)
            except (OSError, ValueError) as error:
                yield SkippedRecord(_place(app_file), _reason(error))
                continue
            yield app
            for chat_file in sorted(app_file.parent.glob("*.chat")):
                yield from _read_chat(chat_file, app)


def _bundled_folders() -> tuple[Path, Path]:
    """Where the samples lie in an installed Recall, and in a checkout."""
    package = Path(__file__).resolve().parent.parent
    return package / "_resources" / "sample", package.parent / "resources" / "sample"


def _read_app(file: Path) -> SourceApp:
    table = _parse_toml(_read_text(file))
    name = _text(table, "name")
    if name is None:
        raise FormatError("name is missing")
    return SourceApp(
        source_key=file.parent.name, name=name, path=_text(table, "path"), created_at=_moment(table, "created_at")
    )


def _read_chat(file: Path, app: SourceApp) -> Iterator[SourceItem]:
    try:
        front, body, first_line = _split_front(_read_text(file))
        table = _parse_toml(front)
        escapes = _flag(table, "escapes")
        chat = _chat_of(table, app, f"{app.source_key}/{_NUMBER.sub('', file.stem)}", escapes)
    except (OSError, ValueError) as error:
        yield SkippedRecord(_place(file), _reason(error))
        return
    yield chat
    sections, stray = _sections(body, first_line)
    if stray is not None:
        yield SkippedRecord(f"{_place(file)}:{stray}", "text before the first message")
    for number, section in enumerate(sections, 1):
        try:
            yield section.message(chat, number, escapes)
        except ValueError as error:
            yield SkippedRecord(f"{_place(file)}:{section.line}", _reason(error))


def _chat_of(table: dict[str, Any], app: SourceApp, key: str, escapes: bool) -> SourceChat:
    title = _text(table, "title")
    return SourceChat(
        source_key=key,
        app=app,
        title=decode_escapes(title) if title is not None and escapes else title,
        created_at=_moment(table, "created_at"),
        mode=_text(table, "mode"),
        model=_text(table, "model"),
        is_favorite=_flag(table, "favorite"),
        is_private=_flag(table, "private"),
    )


@dataclass(frozen=True, slots=True)
class _Section:
    """A message as it stands in the file: its head, the number of the head's line (from 1), and its text."""

    head: str
    line: int
    text: str

    def message(self, chat: SourceChat, number: int, escapes: bool) -> SourceMessage:
        head = _HEAD.fullmatch(self.head)
        if head is None:
            raise FormatError("the head is not '@@ user TIME' or '@@ assistant TIME'")
        role, model, compaction = head["role"], None, False
        for mark in head["marks"].split():
            if mark == "compaction":
                compaction = True
            elif mark.startswith("model="):
                model = mark.removeprefix("model=")
            else:
                raise FormatError("the head has an unknown mark")
        answer = role == "assistant"
        return SourceMessage(
            source_key=f"{chat.source_key}#{number}",
            role="assistant" if answer else "user",
            content=decode_escapes(self.text) if escapes else self.text,
            created_at=_milliseconds(_parse_time(head["time"])),
            model=model or (chat.model if answer else None),
            is_compaction_summary=compaction,
        )


def _sections(body: list[str], first_line: int) -> tuple[list[_Section], int | None]:
    """The messages of a body, and the line of a text that stands before the first of them, if there is one."""
    heads = [index for index, line in enumerate(body) if _HEAD_START.match(line)]
    before = body[: heads[0]] if heads else body
    stray = next((first_line + index for index, line in enumerate(before) if line.strip()), None)
    ends = [*heads[1:], len(body)]
    sections = [
        _Section(body[start].rstrip(), first_line + start, "\n".join(body[start + 1 : end]).strip("\n"))
        for start, end in zip(heads, ends, strict=True)
    ]
    return sections, stray


def _split_front(text: str) -> tuple[str, list[str], int]:
    """The front matter, the lines after it, and the number (from 1) of the first of these."""
    # Only line feeds count: U+2028 and its like are part of a message's text.
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        raise FormatError("no +++ in the first line")
    end = next((index for index, line in enumerate(lines) if index and line.rstrip() == _FENCE), None)
    if end is None:
        raise FormatError("the front matter has no closing +++")
    return "\n".join(lines[1:end]), lines[end + 1 :], end + 2


def decode_escapes(text: str) -> str:
    r"""``\u{1b}`` becomes that code point, ``\u{61*2000}`` that code point 2,000 times; all else stays as it is.

    Raises:
        FormatError: no such code point, or more than ``LONGEST_REPEAT`` times.
    """
    return _ESCAPE.sub(_decode_escape, text)


def _decode_escape(escape: re.Match[str]) -> str:
    code, times = int(escape[1], 16), int(escape[2] or 1)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise FormatError("an escape names no character")
    if times > LONGEST_REPEAT:
        raise FormatError("an escape repeats too often")
    return chr(code) * times


def _read_text(file: Path) -> str:
    with file.open("rb") as stream:
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise FormatError("longer than 4 MiB")
    return content.decode("utf-8-sig").replace("\r\n", "\n")


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # Its own text can quote the file.
        raise FormatError("not valid TOML") from error


def _text(table: dict[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise FormatError(f"{key} is not a text")
    return value


def _flag(table: dict[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise FormatError(f"{key} is not true or false")
    return value


def _moment(table: dict[str, Any], key: str) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise FormatError(f"{key} is not a time with its zone")
    return _milliseconds(value)


def _parse_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise FormatError("the head's time is not ISO 8601") from error
    if moment.tzinfo is None:
        raise FormatError("the head's time has no zone")
    return moment


def _milliseconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _place(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
