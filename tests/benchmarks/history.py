"""A large, realistic chat history as a real Dyad database, and what is known to stand in it.

The same shape and seed give the same history. Words follow Zipf's law over 30,000 of them, so a query of common words
matches half of all messages; a third of the assistant's messages carry a payload of 5 to 10 KB that no search should
find; one message in seven is not English. Sixty *needles* are planted, each findable by its query.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Self

import apsw

from tests.benchmarks.vocabulary import (
    COMMON_WORDS,
    FOLDERS,
    HAND_PLANTED,
    LANGUAGES,
    NOUNS,
    SMALL_WORDS,
    VERBS,
    Planted,
)

VERSION = 2
"""Raise it with every change of what is generated: kept histories are then made anew."""
APP_SHARES = (0.60, 0.20, 0.10, 0.06, 0.04)
FIRST_APP = "Project 1"
WORDS = 30_000
COMMON = 24
"""So many words at the head of the vocabulary are *common*: each in 10 to 30 % of all messages."""
MID = slice(300, 1_500)
"""Where in the vocabulary *mid* words stand: each in 0.2 to 1 % of all messages."""
RARE_WORDS = 240
RARE_PLACES = 5
"""Each rare word stands in about so many messages of the first app, whatever the size of the history."""
IDENTIFIERS = 4_000
FIRST_SECOND = 1_672_531_200
SPAN_SECONDS = 3 * 365 * 86_400

_SCHEMA = """
    CREATE TABLE apps (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, path TEXT NOT NULL,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
    CREATE TABLE chats (id INTEGER PRIMARY KEY AUTOINCREMENT, app_id INTEGER NOT NULL, title TEXT,
        created_at INTEGER NOT NULL, chat_mode TEXT, is_favorite INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, chat_id INTEGER NOT NULL, role TEXT NOT NULL,
        content TEXT NOT NULL, created_at INTEGER NOT NULL, model TEXT, ai_messages_json TEXT,
        is_compaction_summary INTEGER);
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a history is. A chat has from ``shortest`` to ``longest`` messages."""

    messages: int
    shortest: int = 4
    longest: int = 90
    seed: int = 7

    @classmethod
    def one_chat(cls, messages: int) -> Self:
        """All in one chat of the first app."""
        return cls(messages, messages, messages)

    @property
    def name(self) -> str:
        """A file name that no other shape has."""
        return f"v{VERSION}-{self.messages}-{self.shortest}-{self.longest}-{self.seed}"


@dataclass(frozen=True, slots=True)
class Needle:
    """A planted message: its chat's id in the Dyad database, and what is asked."""

    kind: str
    query: str
    chat_id: int


@dataclass(slots=True)
class Truth:
    """What stands in a history. Word lists are of the first app, whose Dyad id is 1."""

    messages: int = 0
    raw_bytes: int = 0
    """UTF-8 of all messages' contents."""
    common: list[str] = field(default_factory=list)
    mid: list[str] = field(default_factory=list)
    rare: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    """Three words that stand side by side somewhere."""
    identifiers: list[str] = field(default_factory=list)
    unspaced: list[str] = field(default_factory=list)
    """Chinese, Japanese and Thai words."""
    payload_words: list[str] = field(default_factory=list)
    needles: list[Needle] = field(default_factory=list)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        kept = json.loads(path.read_text(encoding="utf-8"))
        kept["needles"] = [Needle(**needle) for needle in kept["needles"]]
        return cls(**kept)


def generate(shape: Shape, path: Path) -> Truth:
    """Write the history as a Dyad database to ``path``, which must not exist."""
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        connection.execute(_SCHEMA)
        truth = _Generator(shape, connection).run()
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()
    return truth


def made_up_words(chance: random.Random, count: int, endings: Sequence[str] = ("",)) -> list[str]:
    """Different words that no language has, longer ones later."""
    onsets = (*"bdfgklmnprstvz", "br", "dr", "gl", "kr", "pl", "st", "tr", "sk")
    vowels = (*"aeiou", "ai", "ou")
    found: dict[str, None] = {}
    while len(found) < count:
        syllables = 2 if len(found) < count // 3 else 3
        word = "".join(chance.choice(onsets) + chance.choice(vowels) for _ in range(syllables))
        found[word + chance.choice("nrlkmx") + chance.choice(endings)] = None
    return list(found)


class _Generator:
    """One run: draws everything from one source of chance, in one order."""

    def __init__(self, shape: Shape, connection: apsw.Connection) -> None:
        self._shape = shape
        self._connection = connection
        self._chance = random.Random(shape.seed)
        self._truth = Truth()
        self._content_words = [*COMMON_WORDS, *made_up_words(self._chance, WORDS - len(COMMON_WORDS))]
        self._words, self._cumulative = self._zipf()
        self._identifiers = [self._identifier() for _ in range(IDENTIFIERS)]
        self._rare = made_up_words(self._chance, RARE_WORDS, ("quix", "zurf", "wymb"))
        self._payload_words = made_up_words(self._chance, 8, ("vlotchk",))
        self._code = self._code_lines(4_000)
        self._payload_pool = self._payload_text()
        self._rare_share = min(0.3, RARE_WORDS * RARE_PLACES / (APP_SHARES[0] * shape.messages))
        self._needles = self._place_needles()
        self._message_id = 0

    def _zipf(self) -> tuple[list[str], list[float]]:
        """Words and cumulated weights: small words a third of all, then 1 / (rank + 10)."""
        weights = [0.35 / len(SMALL_WORDS)] * len(SMALL_WORDS)
        content = [1 / (rank + 10) for rank in range(len(self._content_words))]
        total = sum(content)
        weights += [0.65 * weight / total for weight in content]
        return [*SMALL_WORDS, *self._content_words], list(accumulate(weights))

    def _identifier(self) -> str:
        chance = self._chance
        name = chance.choice(VERBS) + "".join(chance.choices(NOUNS, k=chance.randint(2, 3)))
        kind = chance.random()
        if kind < 0.3:
            return f"{chance.choice(FOLDERS)}/{name}.ts"
        return f"{name}{chance.randint(2, 99)}" if kind < 0.4 else name

    def _code_lines(self, count: int) -> list[str]:
        """Lines of code, SQL and logs in the words of the history."""
        chance = self._chance
        lines = []
        for number in range(count):
            words = chance.choices(self._words, cum_weights=self._cumulative, k=5)
            identifier = chance.choice(self._identifiers)
            lines.append(
                chance.choice(
                    (
                        f"  const {words[0]} = {identifier}({words[1]}, {number});",
                        f"  return <{words[2]} className=`{words[3]} {words[4]}` onClick={{{words[0]}}} />;",
                        f"INSERT INTO {words[1]} ({words[2]}, {words[3]}) VALUES ({number}, '{words[4]}');",
                        f"[2025-03-0{number % 9 + 1} 12:00:{number % 60:02}] ERROR {words[0]} {words[1]} {identifier}",
                    )
                )
            )
        return lines

    def _payload_text(self) -> str:
        """Half a megabyte of code that holds the payload words; payloads are cut out of it."""
        lines = self._code_lines(9_000)
        for number, line in enumerate(range(0, len(lines), 150)):
            lines[line] += f"  // {self._payload_words[number % len(self._payload_words)]}"
        return "\n".join(lines)

    def _place_needles(self) -> dict[int, Planted]:
        """Each needle by the number of the first app's chat that it goes into: old ones early, new ones late."""
        chance = self._chance
        middle = self._content_words[MID.start : MID.stop]
        planted = list(HAND_PLANTED)
        for kind in ("old", "new"):
            for _ in range(5):
                name, (first, second) = made_up_words(chance, 1, ("quay",))[0], chance.sample(middle, 2)
                sentence = f"We settled on {name} for the {first} {second}, everything else was too slow."
                planted.append(Planted(kind, f"{name} {first}", sentence))
            for _ in range(5):
                three = chance.sample(middle, 3)
                sentence = f"The {three[0]} goes before the {three[1]} and never after the {three[2]}."
                planted.append(Planted(kind, " ".join(three), sentence))
        chats = self._chats_of_first_app()
        between = range(chats // 20 + 12, chats - chats // 20 - 18)
        if len(between) < len(HAND_PLANTED):
            return {}
        numbers = chance.sample(between, len(HAND_PLANTED))
        numbers += [*range(10), *range(chats - 15, chats - 5)]
        return dict(zip(numbers, planted, strict=True))

    def _chats_of_first_app(self) -> int:
        """At least so many chats has the first app."""
        average = (self._shape.shortest + self._shape.longest) / 2
        return int(0.9 * APP_SHARES[0] * self._shape.messages / average)

    def run(self) -> Truth:
        self._connection.executemany(
            "INSERT INTO apps (id, name, path, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
            [(n, f"Project {n}", f"/home/dev/project-{n}", FIRST_SECOND, FIRST_SECOND) for n in self._app_ids()],
        )
        written = chat_id = of_first_app = 0
        app_ids, shares = list(self._app_ids()), list(accumulate(APP_SHARES))
        while written < self._shape.messages:
            chat_id += 1
            length = self._chance.randint(self._shape.shortest, self._shape.longest)
            length = min(length, self._shape.messages - written)
            app_id = 1 if self._is_one_chat else self._chance.choices(app_ids, cum_weights=shares)[0]
            planted = self._needles.get(of_first_app) if app_id == 1 else None
            of_first_app += app_id == 1
            if planted is not None:
                self._truth.needles.append(Needle(planted.kind, planted.query, chat_id))
            # Two shapes hold no chat of the same id and time, so that one store can take both.
            start = FIRST_SECOND + self._shape.longest + SPAN_SECONDS * written // self._shape.messages
            self._write_chat(chat_id, app_id, start, length, planted)
            written += length
        return self._finished()

    @property
    def _is_one_chat(self) -> bool:
        return self._shape.shortest == self._shape.messages

    def _app_ids(self) -> range:
        return range(1, len(APP_SHARES) + 1)

    def _finished(self) -> Truth:
        truth = self._truth
        truth.messages = self._shape.messages
        truth.common = self._content_words[:COMMON]
        truth.mid = self._content_words[MID]
        truth.rare = self._rare
        truth.payload_words = self._payload_words
        truth.unspaced = [
            word
            for code in ("zh", "ja", "th")
            for word in LANGUAGES[code].words
            if len(word) > 1 and not word.isascii()
        ]
        return truth

    def _write_chat(self, chat_id: int, app_id: int, start: int, length: int, planted: Planted | None) -> None:
        chance = self._chance
        title = None if chance.random() < 0.1 else " ".join(self._prose_words(chance.randint(2, 5))).capitalize()
        self._connection.execute(
            "INSERT INTO chats (id, app_id, title, created_at, chat_mode) VALUES (?, ?, ?, ?, 'build')",
            (chat_id, app_id, title, start),
        )
        self._connection.executemany(
            "INSERT INTO messages (id, chat_id, role, content, created_at, model, is_compaction_summary) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            self._rows(chat_id, app_id, start, length, planted),
        )

    def _rows(
        self, chat_id: int, app_id: int, start: int, length: int, planted: Planted | None
    ) -> Iterator[tuple[int, int, str, str, int, str | None, int]]:
        chance = self._chance
        at = start
        needle_at = chance.randrange(length) if planted else -1
        # One in seven chats is held in another language, but every chat mixes in English and code.
        language = chance.choice(list(LANGUAGES)) if chance.random() < 0.15 else None
        summary_at = length * 2 // 3 if length > 40 else -1
        for number in range(length):
            at += chance.randint(20, 900)
            self._message_id += 1
            is_summary = number == summary_at
            is_user = number % 2 == 0 and not is_summary
            text = self._sentences(chance.randint(8, 50) if is_user else chance.randint(40, 110), language, app_id)
            if number == needle_at and planted is not None:
                text = f"{text}\n\n{planted.sentence}"
            if is_summary:
                text = f'<dyad-compaction title="Conversation compacted" state="finished">\n{text}\n</dyad-compaction>'
            elif not is_user:
                text = self._with_tags(text)
            self._truth.raw_bytes += len(text) if text.isascii() else len(text.encode())
            yield (
                self._message_id,
                chat_id,
                "user" if is_user else "assistant",
                text,
                at,
                None if is_user else "claude-sonnet-4",
                int(is_summary),
            )

    def _prose_words(self, count: int) -> list[str]:
        return self._chance.choices(self._words, cum_weights=self._cumulative, k=count)

    def _sentences(self, count: int, language: str | None, app_id: int) -> str:
        """Prose of ``count`` words, in sentences of twelve; some with a name or, in the first app, a rare word."""
        chance = self._chance
        if language is not None and chance.random() < 0.8:
            return self._foreign(language, count // 2)
        words = self._prose_words(count)
        if app_id == 1:
            if chance.random() < self._rare_share:
                words.insert(count // 2, chance.choice(self._rare))
            elif len(self._truth.phrases) < 200 and chance.random() < 0.02:
                self._note_phrase(words)
        if chance.random() < 0.15:
            name = chance.choice(self._identifiers)
            words[count // 3] = f"`{name}`"
            if app_id == 1 and len(self._truth.identifiers) < 200:
                self._truth.identifiers.append(name)
        for first in range(0, len(words), 12):
            words[first] = words[first].capitalize()
            last = min(first + 11, len(words) - 1)
            words[last] += "?" if chance.random() < 0.1 else "."
        return " ".join(words)

    def _note_phrase(self, words: Sequence[str]) -> None:
        """Remember three neighbouring words of one sentence, none of them a small or a repeated one."""
        three = words[3:6]
        if len(set(three).difference(SMALL_WORDS)) == len(three) == 3:
            self._truth.phrases.append(" ".join(three))

    def _foreign(self, code: str, count: int) -> str:
        language = LANGUAGES[code]
        between = " " if language.spaced else ""
        sentences = [
            between.join(self._chance.choices(language.words, k=8)) + language.full_stop for _ in range(0, count, 8)
        ]
        return between.join(sentences)

    def _with_tags(self, text: str) -> str:
        """An assistant's message: thoughts, small tags, and in a third of them a bulky payload."""
        chance = self._chance
        kind = chance.random()
        pool = self._payload_pool
        if kind < 1 / 3:
            size = chance.randint(5_000, 10_000)
            start = chance.randrange(len(pool) - size)
            payload = pool[start : start + size]
            path = chance.choice(self._identifiers)
            tag = chance.random()
            if tag < 0.7:
                return f'{text}\n\n<dyad-write path="{path}" description="{text[:60]}">\n{payload}\n</dyad-write>'
            if tag < 0.85:
                return f'{text}\n<dyad-execute-sql description="{text[:60]}">\n{payload}\n</dyad-execute-sql>'
            return f'{text}\n<dyad-read-logs type="server" level="error">\n{payload}\n</dyad-read-logs>\nDone.'
        if kind < 0.55:
            start = chance.randrange(len(pool) - 600)
            return f"<think>{pool[start : start + 500]}</think>\n{text}"
        if kind < 0.75:
            path = chance.choice(self._identifiers)
            start = chance.randrange(len(self._code) - 6)
            code = "\n".join(self._code[start : start + 6])
            return f'<dyad-read path="{path}"></dyad-read>\n{text}\n\n```ts\n{code}\n```\n'
        return text
