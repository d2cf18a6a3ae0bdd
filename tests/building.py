"""Fills a real store quickly: whole chats in one transaction, indexed by the real indexer.

What is added later is newer: every message stands a minute after the one added before it, unless it says when.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from recall_app.domain.consulting import (
    FULL_BUDGET,
    Budget,
    ReadChatInput,
    ReadChatResult,
    SearchChatsInput,
    SearchChatsResult,
    Viewer,
)
from recall_app.domain.records import Role
from recall_app.service import LocalStore, RecallService, open_store
from recall_app.store import history
from recall_app.store.history import NewMessage

START = 1_750_000_000_000
"""Unix milliseconds of the first message: 15 June 2025."""
MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class Said:
    """A message to add. Plain strings are taken for the user's and the assistant's in turns."""

    text: str
    role: Role = "user"
    is_compaction_summary: bool = False
    at: int | None = None


@dataclass(frozen=True, slots=True)
class BuiltChat:
    """A chat that was added, with the ids of its messages in the order given."""

    id: int
    app_id: int
    messages: Sequence[int]


class Builder:
    """A store under construction. ``app`` is where chats go, and who asks, unless another is named."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self._now = START
        self.app = self.add_app("Shop")

    @property
    def service(self) -> RecallService:
        return self.store.service

    def add_app(self, name: str) -> int:
        return self.service.create_app(name).id

    def add_chat(self, title: str | None, *said: str | Said, app: int | None = None) -> BuiltChat:
        return self.add_chats([(title, said)], app=app)[0]

    def add_chats(
        self, chats: Iterable[tuple[str | None, Sequence[str | Said]]], app: int | None = None
    ) -> list[BuiltChat]:
        """Chats of title and messages, all in one transaction."""
        app_id = self.app if app is None else app

        def add(connection: apsw.Connection) -> list[BuiltChat]:
            built = []
            for title, said in chats:
                chat_id = history.add_chat(connection, app_id, title)
                ids = [history.add_message(connection, new) for new in self._messages(chat_id, said)]
                built.append(BuiltChat(chat_id, app_id, ids))
            return built

        return self.store.writer.run(add)

    def say(self, chat: BuiltChat, *said: str | Said) -> list[int]:
        """Add messages to a chat that is there; returns their ids."""
        new = list(self._messages(chat.id, said))
        return self.store.writer.run(lambda connection: [history.add_message(connection, each) for each in new])

    def _messages(self, chat_id: int, said: Iterable[str | Said]) -> Iterator[NewMessage]:
        roles: tuple[Role, Role] = ("user", "assistant")
        for index, each in enumerate(said):
            self._now += MINUTE
            one = Said(each, roles[index % 2]) if isinstance(each, str) else each
            at = self._now if one.at is None else one.at
            yield NewMessage(chat_id, one.role, one.text, None, one.is_compaction_summary, at)

    def index(self) -> None:
        self.store.index()

    def execute(self, sql: str, *values: object) -> None:
        """A change that no door offers, such as a tombstoned or an odd row."""
        self.store.writer.run(lambda connection: connection.execute(sql, values))

    def search(
        self, query: str, limit: int = 8, *, viewer: Viewer | None = None, budget: Budget = FULL_BUDGET
    ) -> SearchChatsResult:
        """``search_chats`` as an agent of ``app`` calls it."""
        asked = SearchChatsInput(query=query, limit=limit)
        return self.service.search_chats(viewer or Viewer(self.app), asked, budget)

    def found(self, query: str, limit: int = 8) -> list[int]:
        """Ids of the chats that ``search`` finds, the best first."""
        return [chat.chat_id for chat in self.search(query, limit).results]

    def read(
        self,
        chat: BuiltChat | int,
        *,
        viewer: Viewer | None = None,
        budget: Budget = FULL_BUDGET,
        **arguments: int | None,
    ) -> ReadChatResult:
        """``read_chat`` as an agent of ``app`` calls it."""
        chat_id = chat if isinstance(chat, int) else chat.id
        asked = ReadChatInput.model_validate({"chat_id": chat_id, **arguments})
        return self.service.read_chat(viewer or Viewer(self.app), asked, budget)


@contextmanager
def building(path: Path) -> Iterator[Builder]:
    """An empty store at ``path`` with one app."""
    with open_store(path) as store:
        yield Builder(store)
