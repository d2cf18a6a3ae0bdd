"""Builds Dyad databases of every age, as Dyad writes them: WAL, seconds, a live writer in another process if asked."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

START = 1_750_000_000
"""The time (seconds) of the first app; later things are dated from here."""
SECRET = "s3cret-cookie"
TRANSCRIPT = "model-side transcript"


class Age(StrEnum):
    """The earliest columns, some that came on the way, and today's."""

    FIRST = "first"
    MIDDLE = "middle"
    TODAY = "today"


_APPS = {
    Age.FIRST: "",
    Age.MIDDLE: ", github_org TEXT, supabase_project_id TEXT",
    Age.TODAY: ", github_org TEXT, supabase_project_id TEXT, cookie_secret TEXT, is_favorite INTEGER DEFAULT 0",
}
_CHATS = {
    Age.FIRST: "",
    Age.MIDDLE: ", initial_commit_hash TEXT",
    Age.TODAY: ", initial_commit_hash TEXT, chat_mode TEXT, is_favorite INTEGER NOT NULL DEFAULT 0",
}
_MESSAGES = {
    Age.FIRST: "",
    Age.MIDDLE: ", approval_state TEXT, commit_hash TEXT, model TEXT",
    Age.TODAY: ", approval_state TEXT, commit_hash TEXT, model TEXT, ai_messages_json TEXT, "
    "is_compaction_summary INTEGER, request_id TEXT",
}


def schema(age: Age) -> str:
    """The tables of a Dyad database of this age; content comes before created_at, as at Dyad."""
    return f"""
        CREATE TABLE apps (
            id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL, path TEXT NOT NULL,
            created_at INTEGER DEFAULT (unixepoch()), updated_at INTEGER DEFAULT (unixepoch()){_APPS[age]}
        );
        CREATE TABLE chats (
            id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
            app_id INTEGER NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
            title TEXT, created_at INTEGER DEFAULT (unixepoch()){_CHATS[age]}
        );
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
            chat_id INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
            role TEXT NOT NULL, content TEXT, created_at INTEGER DEFAULT (unixepoch()){_MESSAGES[age]}
        );
    """


@dataclass
class DyadDatabase:
    """A Dyad database open for writing, as Dyad has it."""

    path: Path
    connection: apsw.Connection
    age: Age
    _columns: dict[str, set[str]] = field(default_factory=dict)

    def insert(self, table: str, **values: Any) -> int:
        """Insert a row, leaving out columns that this age lacks; returns its id."""
        if table not in self._columns:
            rows = self.connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = {str(name) for (name,) in rows}
        known = {name: value for name, value in values.items() if name in self._columns[table]}
        self.connection.execute(
            f"INSERT INTO {table} ({', '.join(known)}) VALUES ({', '.join('?' * len(known))})", tuple(known.values())
        )
        return self.connection.last_insert_rowid()

    def app(self, name: str = "shop", *, path: str | None = None, created_at: Any = START, **more: Any) -> int:
        return self.insert(
            "apps",
            name=name,
            path=path or name,
            created_at=created_at,
            updated_at=created_at,
            cookie_secret=SECRET,
            **more,
        )

    def chat(self, app_id: int, title: Any = "Login", *, created_at: Any = START, **more: Any) -> int:
        return self.insert("chats", app_id=app_id, title=title, created_at=created_at, **more)

    def message(self, chat_id: int, content: Any, *, role: Any = "user", created_at: Any = START, **more: Any) -> int:
        return self.insert(
            "messages",
            chat_id=chat_id,
            content=content,
            role=role,
            created_at=created_at,
            ai_messages_json=TRANSCRIPT,
            **more,
        )

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> None:
        self.connection.execute(sql, values).fetchall()


def create(path: Path, age: Age = Age.TODAY, *, journal: str = "wal") -> DyadDatabase:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode = {journal}").fetchall()
    connection.execute("PRAGMA synchronous = OFF")  # only the tests' speed
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(schema(age))
    return DyadDatabase(path, connection, age)


@contextmanager
def dyad(path: Path, age: Age = Age.TODAY, *, journal: str = "wal") -> Iterator[DyadDatabase]:
    """A new database, closed cleanly (checkpointed, no -wal left) at the end."""
    database = create(path, age, journal=journal)
    with closing(database.connection):
        yield database


@contextmanager
def reopened(path: Path) -> Iterator[DyadDatabase]:
    """An existing database for one more session of Dyad's."""
    with closing(apsw.Connection(str(path))) as connection:
        yield DyadDatabase(path, connection, Age.TODAY)


def fill(database: DyadDatabase, *, chats: int = 3, messages: int = 8) -> None:
    """One app with chats of alternating messages, ten seconds apart."""
    app = database.app()
    for number in range(chats):
        chat = database.chat(app, f"Chat {number}", created_at=START + number * 1000)
        for at in range(messages):
            database.message(
                chat,
                f"chat {number} message {at}",
                role="assistant" if at % 2 else "user",
                created_at=START + number * 1000 + at * 10,
            )


def snapshot(folder: Path) -> Mapping[str, tuple[int, str]]:
    """Every file of a folder with its modification time (ns) and the hash of its bytes."""
    return {
        str(file.relative_to(folder)): (file.stat().st_mtime_ns, sha256(file.read_bytes()).hexdigest())
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


_LIVE = """
import sys, sqlite3
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA wal_autocheckpoint = 0")
for line in sys.stdin:
    connection.execute(line)
    print("done", flush=True)
"""


class LiveDyad:
    """Another process that has the database open and writes on demand."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def execute(self, sql: str) -> None:
        """Run one statement (on one line) there and wait for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(sql + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def kill(self) -> None:
        """End it as a crash would: its -wal and -shm stay."""
        self._process.kill()
        self._process.wait()


@contextmanager
def live(path: Path) -> Iterator[LiveDyad]:
    with subprocess.Popen(
        [sys.executable, "-c", _LIVE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield LiveDyad(process)
        finally:
            process.kill()
