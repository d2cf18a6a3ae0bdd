"""The reader of Dyad's own database, ``sqlite.db``, of any age, live or copied, with or without its ``-wal``.

The columns are looked at first, since early databases lack some. Nothing but what is imported is ever selected:
``apps`` holds secrets, ``messages.ai_messages_json`` the model-side transcript. Dyad's order of a chat is
(created_at, id), its times are Unix seconds.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import ClassVar

from platformdirs import user_config_path

from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.domain.records import Role, SkippedRecord, SourceApp, SourceChat, SourceMessage
from recall_app.domain.text import one_line
from recall_app.sources.reader import SourceNote, SourceSize, StreamItem
from recall_app.store.foreign import DamagedPagesError, ForeignDatabase, Value, open_foreign

DATABASE = "sqlite.db"
DERIVED_TITLE_CHARACTERS = 80
_OPENING_MESSAGES = 4
"""A chat without a title is named after the first prompt among so many messages."""
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_LOWEST_ID, _HIGHEST_ID = -(2**63), 2**63 - 1
_NEEDED = {"messages": ("id", "chat_id", "role", "content"), "chats": ("id", "app_id")}
_OURS = "app_sources"
"""A table by which a file of Recall's own is known: it has the others too."""
_MILLISECONDS_FROM = 100_000_000_000
"""A number this large counts milliseconds: as seconds it would be a date after the year 5000."""
_LATEST_MS = 253_402_300_799_999

Key = tuple[int, int, int | None]
"""A message's chat id, id and time (milliseconds)."""
Row = tuple[Value, ...]


class DyadReader:
    kind: ClassVar[str] = "dyad"
    label: ClassVar[str] = "Dyad"
    counts_ids: ClassVar[bool] = True

    def detect(self, path: Path) -> bool:
        """Is ``path`` a database with Dyad's tables, or a folder with such a ``sqlite.db``?"""
        try:
            with open_foreign(_database(path)) as database:
                is_ours = bool(database.columns(_OURS))
                return not is_ours and all(
                    database.columns(table).issuperset(needed) for table, needed in _NEEDED.items()
                )
        except RecallError:
            return False

    def discover(self) -> list[Path]:
        """Dyad's database on this computer, then its backups."""
        folder = data_folder()
        found = [folder / DATABASE, *sorted(folder.glob(f"backups/*/{DATABASE}"))]
        return [path for path in found if _is(path, Path.is_file)]

    def read(self, path: Path) -> Generator[StreamItem, None, None]:
        """Every chat, in the order of ids, followed by its messages in Dyad's order.

        Raises:
            RecallError: nothing is there, it can't be opened, or it is not a Dyad history.
        """
        path = _database(path)
        with open_foreign(path) as database:
            history = _History(database)
            if database.is_wal_missing and not path.resolve().is_relative_to(data_folder().resolve()):
                yield SourceNote(
                    f"{path} has no “{DATABASE}-wal” beside it: if it is a copy, made while Dyad was open, "
                    "its newest messages may be missing."
                )
            yield from history.items()


def data_folder() -> Path:
    """Where Dyad keeps its data: under %APPDATA%, ~/Library/Application Support or ~/.config."""
    return user_config_path("dyad", appauthor=False, roaming=True)


def _database(path: Path) -> Path:
    if not _is(path, Path.is_dir):
        return path
    if not _is(path / DATABASE, Path.is_file):
        raise RecallError(ErrorKind.SOURCE, f"{path} is a folder without Dyad's “{DATABASE}”.")
    return path / DATABASE


def _is(path: Path, question: Callable[[Path], bool]) -> bool:
    """No, where the rights of a folder above don't let us know."""
    try:
        return question(path)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of one table: what an early database lacks is selected as NULL."""

    names: frozenset[str]

    def text(self, name: str) -> str:
        return f"CAST({name} AS BLOB)" if name in self.names else "NULL"

    def number(self, name: str) -> str:
        return f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name} END" if name in self.names else "NULL"


class _History:
    """All of one opened database."""

    def __init__(self, database: ForeignDatabase) -> None:
        self._database = database
        if database.columns(_OURS):
            raise RecallError(ErrorKind.SOURCE, f"{database.path} is a file of Recall's own, not a Dyad history.")
        columns = {table: database.columns(table) for table in ("apps", "chats", "messages")}
        for table, needed in _NEEDED.items():
            if not columns[table]:
                raise RecallError(
                    ErrorKind.SOURCE, f"{database.path} is not a Dyad history: it has no table “{table}”."
                )
            for column in needed:
                if column not in columns[table]:
                    raise RecallError(
                        ErrorKind.SOURCE,
                        f"{database.path} is not a Dyad history: its table “{table}” has no column “{column}”.",
                    )
        self._app_columns = _Columns(columns["apps"])
        self._chat_columns = _Columns(columns["chats"])
        self._message_columns = _Columns(columns["messages"])
        self._damage: list[SkippedRecord] = []

    def items(self) -> Iterator[StreamItem]:
        """Chats and message keys come in the same order, so that neither is held in memory as a whole."""
        yield from self._size()
        apps = self._apps()
        groups = groupby(self._keys(), key=lambda key: key[0])
        group = next(groups, None)
        for chat_id, chat in self._chats(apps):
            while group is not None and group[0] < chat_id:
                yield _orphans(*group)
                group = next(groups, None)
            keys: list[Key] = []
            if group is not None and group[0] == chat_id:
                keys = list(group[1])
                group = next(groups, None)
            yield from self._chat(chat, keys)
            yield from self._reported()
        while group is not None:
            yield _orphans(*group)
            group = next(groups, None)
        yield from self._reported()

    def _reported(self) -> Iterator[SkippedRecord]:
        yield from self._damage
        self._damage.clear()

    def _size(self) -> Iterator[SourceSize]:
        try:
            for (count,) in self._database.rows("SELECT count(*) FROM messages"):
                if isinstance(count, int):
                    yield SourceSize(count)
        except DamagedPagesError:
            return

    def _apps(self) -> dict[int, SourceApp]:
        """The apps by id: few enough, since Dyad shows them in one list."""
        columns = self._app_columns
        apps: dict[int, SourceApp] = {}
        if "id" not in columns.names:
            return apps
        selected = f"id, {columns.text('name')}, {columns.text('path')}, {columns.number('created_at')}"
        for id_, (name, path, created_at) in self._readable("apps", selected):
            apps[id_] = SourceApp(
                source_key=str(id_),
                name=one_line(self._text(name) or "") or f"Dyad app {id_}",
                path=self._text(path) or None,
                created_at=_milliseconds(created_at),
            )
        return apps

    def _chats(self, apps: dict[int, SourceApp]) -> Iterator[tuple[int, SourceChat]]:
        columns = self._chat_columns
        selected = (
            f"id, {columns.number('app_id')}, {columns.text('title')}, {columns.number('created_at')}, "
            f"{columns.text('chat_mode')}, {columns.number('is_favorite')}"
        )
        for id_, (app_id, title, created_at, mode, is_favorite) in self._readable("chats", selected):
            app_number = app_id if isinstance(app_id, int) else 0
            # A missing app isn't known by its id alone: another history's app of this id is another app.
            missing_app = SourceApp(source_key=f"missing {app_number}", name=f"Dyad app {app_number}")
            yield (
                id_,
                SourceChat(
                    source_key=str(id_),
                    app=apps.get(app_number, missing_app),
                    title=one_line(self._text(title) or "") or None,
                    created_at=_milliseconds(created_at),
                    mode=self._text(mode) or None,
                    is_favorite=is_favorite == 1,
                ),
            )

    def _keys(self) -> Iterator[Key]:
        """The keys of all messages, by chat. Without their content they are small enough for SQLite to sort."""
        columns = self._message_columns
        selected = f"id, {columns.number('chat_id')} AS chat, {columns.number('created_at')}"
        try:
            # Sorting reads every row before the first one comes, so damage shows before anything is yielded.
            for id_, *rest in self._database.rows(f"SELECT {selected} FROM messages ORDER BY chat, id"):
                yield from self._key(id_, rest)
        except DamagedPagesError:
            readable = self._readable("messages", selected)
            yield from sorted((key for id_, rest in readable for key in self._key(id_, rest)), key=lambda key: key[:2])

    def _key(self, id_: Value, rest: Sequence[Value]) -> Iterator[Key]:
        chat_id, created_at = rest
        if isinstance(id_, int) and isinstance(chat_id, int):
            yield chat_id, id_, _milliseconds(created_at)
        else:
            self._damage.append(SkippedRecord(_place(id_), "it belongs to no chat"))

    def _readable(self, table: str, selected: str) -> Iterator[tuple[int, Row]]:
        """The rows of a table by id, each as (id, other columns); damaged pages are noted and stepped over."""
        last = _LOWEST_ID
        query = f"SELECT {selected} FROM {table} NOT INDEXED WHERE id > ? ORDER BY id"
        while True:
            try:
                for id_, *rest in self._database.rows(query, (last,)):
                    if isinstance(id_, int) and id_ > last:
                        last = id_
                        yield id_, tuple(rest)
                return
            except DamagedPagesError:
                beyond = self._next_readable(f"{query} LIMIT 1", last)
                after = f" after {last}" if last != _LOWEST_ID else ""
                self._damage.append(SkippedRecord(f"{table}{after}", "damaged pages, rows lost"))
                if beyond is None:
                    return
                last = beyond

    def _next_readable(self, query: str, last: int) -> int | None:
        """An id behind the damage that follows ``last``; None when all the rest is damaged."""
        last = max(last, 0)  # Dyad counts from 1
        damaged, step = 0, 1
        while not self._can_read(query, last + step):
            damaged, step = step, step * 2
            if last + step > _HIGHEST_ID:
                return None
        while step - damaged > 1:
            middle = (damaged + step) // 2
            if self._can_read(query, last + middle):
                step = middle
            else:
                damaged = middle
        return last + step

    def _can_read(self, query: str, after: int) -> bool:
        try:
            for _ in self._database.rows(query, (after,)):
                pass
        except DamagedPagesError:
            return False
        return True

    def _chat(self, chat: SourceChat, keys: list[Key]) -> Iterator[StreamItem]:
        messages = self._messages(_in_order(keys, chat.created_at))
        opening = list(islice(messages, _OPENING_MESSAGES)) if chat.title is None else []
        prompts = (
            one_line(item.content, DERIVED_TITLE_CHARACTERS)
            for item in opening
            if isinstance(item, SourceMessage) and item.role == "user"
        )
        yield replace(chat, title=chat.title or next(filter(None, prompts), None))
        yield from opening
        yield from messages

    def _messages(self, keys: Sequence[Key]) -> Iterator[SourceMessage | SkippedRecord]:
        columns = self._message_columns
        query = (
            f"SELECT {columns.text('role')}, typeof(content), {columns.text('content')}, {columns.text('model')}, "
            f"{columns.number('is_compaction_summary')} FROM messages WHERE id = ?"
        )
        for _, id_, created_at in keys:
            try:
                for row in self._database.rows(query, (id_,)):
                    yield self._message(id_, created_at, row)
            except DamagedPagesError:
                yield SkippedRecord(_place(id_), "its pages are damaged")

    def _message(self, id_: int, created_at: int | None, row: Row) -> SourceMessage | SkippedRecord:
        role_text, kind, content, model, is_summary = row
        role = _ROLES.get(self._text(role_text) or "")
        if role is None:
            return SkippedRecord(_place(id_), "its role is neither user nor assistant")
        if not isinstance(content, bytes):
            return SkippedRecord(_place(id_), "it has no content")
        if kind == "blob" and not self._database.is_text(content):
            return SkippedRecord(_place(id_), "its content is not text")
        return SourceMessage(
            source_key=str(id_),
            role=role,
            content=self._database.decode(content),
            created_at=created_at,
            model=self._text(model) or None,
            is_compaction_summary=is_summary == 1,
        )

    def _text(self, value: Value) -> str | None:
        return self._database.decode(value) if isinstance(value, bytes) else None


def _in_order(keys: list[Key], chat_created_at: int | None) -> list[Key]:
    """Dyad's order, (created_at, id); a message without a time takes that of the one before it, or the chat's."""
    time = chat_created_at
    timed: list[Key] = []
    for chat_id, id_, created_at in keys:
        time = created_at if created_at is not None else time
        timed.append((chat_id, id_, time))
    return sorted(timed, key=lambda key: (key[2] or 0, key[1]))


def _milliseconds(value: Value) -> int | None:
    """Dyad's seconds (or milliseconds) as milliseconds; None for what is no time."""
    if not isinstance(value, int | float) or not 0 <= value <= _LATEST_MS:
        return None
    return int(value) if value >= _MILLISECONDS_FROM else int(value * 1000)


def _orphans(chat_id: int, keys: Iterator[Key]) -> SkippedRecord:
    return SkippedRecord(f"chat {chat_id}", f"it has no record of its own; messages left out: {sum(1 for _ in keys)}")


def _place(message_id: Value) -> str:
    return f"message {message_id}" if isinstance(message_id, int) else "a message"
