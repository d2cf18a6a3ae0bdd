"""``RecallService``: the one object that window, agent and command line ask.

Reading goes through a read-only connection of the calling thread, writing through the ``Writer`` it was given, so any
thread may call any method. Everything an agent may see goes through ``search_chats`` and ``read_chat``.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from recall_app.domain.consulting import (
    FULL_BUDGET,
    Budget,
    ReadChatInput,
    ReadChatResult,
    SearchChatsInput,
    SearchChatsResult,
    Viewer,
)
from recall_app.domain.errors import ErrorKind, InvalidInputError, NotFoundError, RecallError
from recall_app.domain.person_search import Found, SearchPage, SearchRequest
from recall_app.domain.records import App, Chat, Consultation, Coverage, FailedMessage, Message, NewConsultation, Role
from recall_app.indexing.indexer import ChatSearchIndexer, IndexProgress
from recall_app.retrieval.find import find_in_chat
from recall_app.retrieval.read_chat import read_chat
from recall_app.retrieval.search_chats import ChatSearch
from recall_app.retrieval.search_history import HistorySearch
from recall_app.retrieval.statistics import AppStatistics
from recall_app.store import (
    forgetting,
    history,
    ledger,
    maintenance,
    person_queries,
    reading,
    search_index,
    search_queries,
)
from recall_app.store.connection import (
    Connection,
    close_writer,
    open_reader,
    open_writer,
    read_snapshot,
    translate_errors,
)
from recall_app.store.history import NewMessage
from recall_app.store.maintenance import Health
from recall_app.store.writer import InlineWriter, Writer

INDEX_WAIT_SECONDS = 1.0
"""How long a search waits for a batch that runs or is due (contracts §4)."""


class RecallService:
    """Asks and changes one store. ``wait_for_index`` waits at most so many seconds for an index batch under way."""

    def __init__(
        self, path: Path, writer: Writer, *, wait_for_index: Callable[[float], object] = lambda seconds: None
    ) -> None:
        self._path = path
        self._writer = writer
        self._wait_for_index = wait_for_index
        self._statistics = AppStatistics()
        self._of_thread = threading.local()
        self._hidden: set[int] = set()

    @property
    def path(self) -> Path:
        """The store's file."""
        return self._path

    def release_thread(self) -> None:
        """Close the calling thread's connection; its next question opens one again."""
        connection: Connection | None = getattr(self._of_thread, "connection", None)
        if connection is not None:
            connection.close()
            del self._of_thread.connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with translate_errors(self._path):
            yield self._connection()

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = open_reader(self._path)
            search_queries.register(connection)
            person_queries.register(connection)
            self._of_thread.connection = connection
        return connection

    # --- the agent's two tools ------------------------------------------------------------------------------------

    def search_chats(
        self, viewer: Viewer, arguments: SearchChatsInput, budget: Budget = FULL_BUDGET
    ) -> SearchChatsResult:
        """Search the viewer's app (contracts §4). Only reads."""
        with self._reading() as connection:
            if search_index.pending_for_agent(connection, viewer.app_id, viewer.chat_id):
                self._wait_for_index(INDEX_WAIT_SECONDS)
            with read_snapshot(connection):
                return ChatSearch(connection, self._statistics).search(viewer, arguments, budget)

    def read_chat(self, viewer: Viewer, arguments: ReadChatInput, budget: Budget = FULL_BUDGET) -> ReadChatResult:
        """Read a chat of the viewer's app (contracts §5). Only reads.

        Raises:
            NotFoundError: missing, of another app, private, deleted or mismatched.
        """
        with self._reading() as connection:
            return read_chat(connection, viewer, arguments, budget)

    def chat_title(self, viewer: Viewer, chat_id: int) -> str | None:
        """The title of a chat that the viewer may read, for the consent question; None also when it may not."""
        with self._reading() as connection:
            located = reading.locate(connection, viewer, chat_id)
            return None if located is None else located.title

    # --- the person's search --------------------------------------------------------------------------------------

    def search_history(self, request: SearchRequest) -> SearchPage:
        """Search as a person, over one app or all (contracts §4a).

        Raises:
            InvalidInputError: no word to look for, or something in the request can't be understood.
        """
        with self._reading() as connection, read_snapshot(connection):
            return HistorySearch(connection, lambda name: self.app(name).id).search(request)

    def find_in_chat(self, chat_id: int, text: str) -> list[Found]:
        """Every place of a chat that shows ``text``, in order, whatever its case and accents (contracts §4a)."""
        with self._reading() as connection, read_snapshot(connection):
            return find_in_chat(connection, chat_id, text)

    # --- apps, chats, messages ------------------------------------------------------------------------------------

    def apps(self) -> list[App]:
        """All apps, by name."""
        with self._reading() as connection:
            return history.apps(connection)

    def app(self, reference: int | str) -> App:
        """An app by its id or its name (case aside; an exact name goes first, then a number as id).

        Raises:
            NotFoundError: there is none. InvalidInputError: several have this name.
        """
        apps = self.apps()
        wanted = str(reference).strip()
        named = [app for app in apps if app.name == wanted] or [
            app for app in apps if app.name.casefold() == wanted.casefold()
        ]
        if isinstance(reference, int) or not named:
            named = [app for app in apps if str(app.id) == wanted]
        if not named:
            raise NotFoundError("There is no such app: “recall apps” lists them.")
        if len(named) > 1:
            ids = ", ".join(str(app.id) for app in named)
            raise InvalidInputError(f"Several apps have this name: give one of their ids ({ids}).")
        return named[0]

    def create_app(self, name: str, path: str | None = None) -> App:
        """A new app of Recall's own."""
        app_id = self._writer.run(lambda connection: history.add_app(connection, name, path))
        return self.app(app_id)

    def chats(self, app_id: int) -> list[Chat]:
        """The chats of an app, the one with the newest message first."""
        with self._reading() as connection:
            return history.chats(connection, app_id)

    def chat(self, chat_id: int) -> Chat:
        """Raises NotFoundError when there is none."""
        with self._reading() as connection:
            return history.chat(connection, chat_id)

    def is_chat_of(self, chat_id: int, app_id: int) -> bool:
        """Is there such a chat in this app?"""
        with self._reading() as connection:
            return history.is_chat_of(connection, chat_id, app_id)

    def messages(self, chat_id: int, *, offset: int = 0, limit: int = -1) -> list[Message]:
        """Messages of a chat in order; a negative limit means all."""
        with self._reading() as connection:
            return history.messages(connection, chat_id, offset=offset, limit=limit)

    def create_chat(
        self, app_id: int, title: str | None = None, mode: str | None = None, model: str | None = None
    ) -> Chat:
        """A new chat of Recall's own."""
        chat_id = self._writer.run(
            lambda connection: history.add_chat(connection, app_id, title, mode=mode, model=model)
        )
        return self.chat(chat_id)

    def add_message(
        self,
        chat_id: int,
        role: Role,
        content: str,
        *,
        model: str | None = None,
        is_compaction_summary: bool = False,
        created_at: int | None = None,
    ) -> Message:
        """Append a message to a chat."""
        new = NewMessage(chat_id, role, content, model, is_compaction_summary, created_at)

        def add(connection: Connection) -> Message:
            return history.message(connection, history.add_message(connection, new))

        return self._writer.run(add)

    def update_message(self, message_id: int, content: str, ai_messages_json: str | None = None) -> None:
        """Replace what a message says, and keep its turn's model-side transcript."""

        def update(connection: Connection) -> None:
            history.set_content(connection, message_id, content)
            if ai_messages_json is not None:
                history.set_transcript(connection, message_id, ai_messages_json)

        self._writer.run(update)

    def rename_chat(self, chat_id: int, title: str | None) -> None:
        self._writer.run(lambda connection: history.rename_chat(connection, chat_id, title))

    def set_private(self, chat_id: int, is_private: bool) -> None:
        """Keep a chat out of agent recall (its own agent aside), or let it back in."""
        self._writer.run(lambda connection: history.set_private(connection, chat_id, is_private))

    def move_chat(self, chat_id: int, app_id: int) -> None:
        """Move a chat to another app by hand."""
        self._writer.run(lambda connection: history.move_chat(connection, chat_id, app_id))

    # --- forgetting -----------------------------------------------------------------------------------------------

    def delete_chat(self, chat_id: int) -> None:
        """Hide a chat everywhere at once; ``restore_chat`` undoes it for ten seconds, ``purge_deleted`` ends it."""
        self._writer.run(lambda connection: forgetting.hide(connection, chat_id))
        self._hidden.add(chat_id)

    def restore_chat(self, chat_id: int) -> None:
        """Undo ``delete_chat``.

        Raises:
            NotFoundError: it is not there any more, or was deleted more than ten seconds ago.
        """
        self._writer.run(lambda connection: forgetting.restore(connection, chat_id))

    def purge_deleted(self, *, at_exit: bool = False) -> int:
        """Delete for good what was deleted more than ten seconds ago, and ``at_exit`` all that was deleted through this
        object, since nobody else offers to undo it; returns how many chats went."""
        with self._reading() as connection:
            purged = forgetting.due(connection, at_once=self._hidden if at_exit else ())
        if purged:
            self._purge(purged)
        return len(purged)

    def purge_if_possible(self, *, at_exit: bool = False) -> None:
        """``purge_deleted``, put off where there is no room for it or another process is writing."""
        try:
            self.purge_deleted(at_exit=at_exit)
        except RecallError as error:
            if error.kind not in (ErrorKind.DISK_FULL, ErrorKind.BUSY):
                raise

    def _purge(self, chat_ids: Sequence[int]) -> None:
        """In short transactions: the chats are hidden already, and a next start goes on where this one was cut off.

        What is left of a chat until all of its text is gone from the file is a row that says nothing but that.
        """
        for chat_id in chat_ids:
            self._writer.run(partial(forgetting.remove_traces, chat_id=chat_id))
            while self._writer.run(partial(forgetting.delete_messages, chat_id=chat_id)):
                pass
        self._writer.rewrite()
        for chat_id in chat_ids:
            self._writer.run(partial(forgetting.delete_chat, chat_id=chat_id))

    # --- the index ------------------------------------------------------------------------------------------------

    def coverage(self, app_id: int | None = None) -> Coverage:
        """How much of an app, or of everything, is indexed."""
        with self._reading() as connection, read_snapshot(connection):
            return search_index.coverage(connection, app_id)

    def failed_messages(self, app_id: int | None = None) -> Sequence[FailedMessage]:
        """The messages that could not be indexed."""
        with self._reading() as connection:
            return search_index.failed_messages(connection, app_id)

    # --- the file -------------------------------------------------------------------------------------------------

    def backup(self, target: Path) -> int:
        """Write a consistent copy of the store; returns its size in bytes.

        Raises:
            RecallError: the target exists already or can't be written.
        """
        return maintenance.backup(self._path, target)

    def examine(self) -> Health:
        """Check the whole file: versions, FTS5, integrity."""
        with self._reading() as connection:
            return maintenance.examine(connection, self._path)

    # --- the ledger -----------------------------------------------------------------------------------------------

    def record_consultation(self, entry: NewConsultation) -> int:
        """Add to the ledger; committed when this returns."""
        return self._writer.run(lambda connection: ledger.record(connection, entry))

    def consultations(
        self, *, app_id: int | None = None, chat_id: int | None = None, limit: int = -1
    ) -> list[Consultation]:
        """What was consulted, the newest first."""
        with self._reading() as connection, read_snapshot(connection):
            return ledger.consultations(connection, app_id=app_id, chat_id=chat_id, limit=limit)

    def consultations_of_message(self, message_id: int) -> list[Consultation]:
        """Which consultations gave this message's text away."""
        with self._reading() as connection, read_snapshot(connection):
            return ledger.consultations_of_message(connection, message_id)

    def is_genuine_card(self, consultation_id: int, message_id: int) -> bool:
        """Has the ledger this card's consultation for this very message (contracts §9)?"""
        with self._reading() as connection:
            return ledger.is_of_message(connection, consultation_id, message_id)

    def erase_ledger(self, *, app_id: int | None = None, chat_id: int | None = None) -> int:
        """Erase consultations of one app, one asking chat, or all; returns how many went."""
        return self._writer.run(lambda connection: ledger.erase(connection, app_id=app_id, chat_id=chat_id))


class LocalStore:
    """A store opened by one process that does everything on one thread: the command line, tests."""

    def __init__(self, connection: Connection, path: Path) -> None:
        writer = InlineWriter(connection)
        self.service = RecallService(path, writer)
        self.writer = writer
        self.indexer = ChatSearchIndexer(connection)

    def index(
        self,
        *,
        rebuild: bool = False,
        progress: Callable[[IndexProgress], None] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> int:
        """Repair, then index all that is queued; returns the number of messages done."""
        self.indexer.start()
        if rebuild:
            self.indexer.rebuild()
        return self.indexer.drain(progress=progress, cancelled=cancelled)


@contextmanager
def open_store(path: Path) -> Iterator[LocalStore]:
    """Open (creating, migrating) the store at ``path``, and end the deletions whose ten seconds are over.

    Another process may still undo its fresh ones; those made here end with it. A full disk keeps nobody out: the chats
    stay hidden till next time.

    Raises:
        RecallError: the file can't be opened or is not ours.
    """
    connection = open_writer(path)
    try:
        store = LocalStore(connection, path)
        try:
            store.service.purge_if_possible()
            yield store
            store.service.purge_if_possible(at_exit=True)
        finally:
            store.service.release_thread()
    finally:
        close_writer(connection)
