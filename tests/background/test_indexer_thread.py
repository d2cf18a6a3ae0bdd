"""The indexer thread as the window will use it: a real QThread on a real file."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest
from pytestqt.qtbot import QtBot

from recall_app.background.indexer_thread import IndexerThread, IndexState
from recall_app.domain.consulting import SearchChatsInput, Viewer
from recall_app.domain.errors import CancelledError, ErrorKind, RecallError
from recall_app.service import RecallService, open_store
from recall_app.store import history
from recall_app.store.history import NewMessage

WAIT_MS = 10_000
LONG_SECONDS = 10.0


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "recall.db"


@pytest.fixture
def thread(qtbot: QtBot, store_path: Path) -> Iterator[IndexerThread]:
    running = IndexerThread(store_path)
    with qtbot.waitSignal(running.opened, timeout=WAIT_MS) as opened:
        running.start()
    assert opened.args == [None]
    yield running
    running.shutdown()


@pytest.fixture
def service(thread: IndexerThread, store_path: Path) -> Iterator[RecallService]:
    asked = RecallService(store_path, thread, wait_for_index=thread.wait_until_current)
    yield asked
    asked.release_thread()


def _found(service: RecallService, app_id: int, query: str) -> list[int]:
    result = service.search_chats(Viewer(app_id), SearchChatsInput(query=query))
    return [match.message_id for chat in result.results for match in chat.matches]


def test_a_message_is_searchable_as_soon_as_the_search_waited(service: RecallService) -> None:
    app = service.create_app("Shop")
    chat = service.create_chat(app.id, "Sessions")
    message = service.add_message(chat.id, "user", "Redis keeps the sessions.")
    assert _found(service, app.id, "redis") == [message.id]
    assert service.coverage(app.id).pending == 0


def test_the_state_comes_to_rest_and_says_so(qtbot: QtBot, thread: IndexerThread, service: RecallService) -> None:
    states: list[IndexState] = []
    thread.state_changed.connect(states.append)
    app = service.create_app("Shop")
    chat = service.create_chat(app.id)
    for number in range(200):
        service.add_message(chat.id, "user", f"message number {number}")
    assert thread.wait_until_current(LONG_SECONDS)
    qtbot.waitUntil(lambda: bool(states) and states[-1].pending == 0, timeout=WAIT_MS)
    assert any(state.pending_by_app == ((app.id, state.pending),) for state in states if state.pending)


def test_a_streaming_answer_settles_before_it_is_projected(thread: IndexerThread, service: RecallService) -> None:
    app = service.create_app("Shop")
    chat = service.create_chat(app.id)
    message = service.add_message(chat.id, "assistant", "")
    assert thread.wait_until_current(LONG_SECONDS)
    generation = _generation(service)
    for length in range(1, 30):
        service.update_message(message.id, "word " * length)
    assert _generation(service) == generation
    assert thread.wait_until_current(LONG_SECONDS)
    assert _found(service, app.id, "word") == [message.id]


def _generation(service: RecallService) -> int:
    connection = apsw.Connection(str(service.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        value = connection.execute("SELECT value FROM chat_search_meta WHERE key = 'generation'").get
    finally:
        connection.close()
    return int(value)


def test_paused_it_writes_but_does_not_index(qtbot: QtBot, thread: IndexerThread, service: RecallService) -> None:
    with qtbot.waitSignal(thread.state_changed, timeout=WAIT_MS, check_params_cb=lambda state: state.is_paused):
        thread.pause()
    app = service.create_app("Shop")
    message = service.add_message(service.create_chat(app.id).id, "user", "Redis")
    assert service.coverage(app.id).status.value == "indexing"
    assert not thread.wait_until_current(0.05)
    thread.resume()
    assert thread.wait_until_current(LONG_SECONDS)
    assert _found(service, app.id, "redis") == [message.id]


def test_many_threads_write_and_read_through_one_service(thread: IndexerThread, service: RecallService) -> None:
    app = service.create_app("Shop")
    chats = [service.create_chat(app.id, f"Chat {number}") for number in range(4)]

    def talk(chat_id: int) -> int:
        for number in range(25):
            service.add_message(chat_id, "user", f"Redis {number}")
        count = len(service.messages(chat_id))
        service.release_thread()
        return count

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(talk, [chat.id for chat in chats])) == [25] * 4
    assert thread.wait_until_current(LONG_SECONDS)
    assert service.coverage(app.id).pending == 0


def test_a_failing_command_keeps_nothing_and_tells_who_asked(thread: IndexerThread, service: RecallService) -> None:
    app = service.create_app("Shop")
    chat = service.create_chat(app.id)

    def write_and_fail(connection: apsw.Connection) -> None:
        history.add_message(connection, NewMessage(chat.id, "user", "half"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        thread.run(write_and_fail)
    assert service.messages(chat.id) == []


def test_shutdown_finishes_what_was_asked_and_leaves_no_log(qtbot: QtBot, store_path: Path) -> None:
    thread = IndexerThread(store_path)
    with qtbot.waitSignal(thread.opened, timeout=WAIT_MS):
        thread.start()
    thread.pause()
    app_id = thread.run(lambda connection: history.add_app(connection, "Shop"))
    chat_id = thread.run(lambda connection: history.add_chat(connection, app_id, None))
    futures = [
        thread.submit(lambda connection: history.add_message(connection, NewMessage(chat_id, "user", "Redis")))
        for _ in range(20)
    ]
    thread.shutdown()
    thread.shutdown()
    assert sorted(future.result(0) for future in futures) == list(range(1, 21))
    assert sorted(path.name for path in store_path.parent.iterdir()) == ["recall.db"]
    with pytest.raises(CancelledError):
        thread.run(lambda connection: None)
    with open_store(store_path) as store:
        assert store.service.coverage().pending == 20
        store.index()
        assert store.service.coverage().pending == 0


def test_a_store_that_cannot_be_opened_is_said_once_and_refuses_commands(qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    path.write_text("no database, but long enough to have a header " * 10)
    thread = IndexerThread(path)
    with qtbot.waitSignal(thread.opened, timeout=WAIT_MS) as opened:
        thread.start()
    assert isinstance(opened.args[0], RecallError)
    assert opened.args[0].kind is ErrorKind.DAMAGED
    with pytest.raises(RecallError, match="not a database"):
        thread.run(lambda connection: None)
    thread.shutdown()


def test_what_another_process_wrote_is_indexed_when_told(thread: IndexerThread, service: RecallService) -> None:
    app = service.create_app("Shop")
    chat = service.create_chat(app.id)
    assert thread.wait_until_current(LONG_SECONDS)
    with open_store(service.path) as other:
        other.service.add_message(chat.id, "user", "Redis, from next door")
    indexed = threading.Event()

    def look() -> None:
        thread.notify()
        if service.coverage(app.id).pending == 0:
            indexed.set()
        service.release_thread()

    for _ in range(200):
        runner = threading.Thread(target=look)
        runner.start()
        runner.join()
        if indexed.wait(0.05):
            break
    assert indexed.is_set()


def test_rebuild_projects_everything_anew(thread: IndexerThread, service: RecallService) -> None:
    app = service.create_app("Shop")
    message = service.add_message(service.create_chat(app.id).id, "user", "Redis")
    assert thread.wait_until_current(LONG_SECONDS)
    before = _generation(service)
    thread.rebuild().result(LONG_SECONDS)
    assert thread.wait_until_current(LONG_SECONDS)
    assert _generation(service) > before
    assert _found(service, app.id, "redis") == [message.id]
