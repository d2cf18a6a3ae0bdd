"""The generated history is the same every time, and holds what it says: nothing here is timed."""

from pathlib import Path

import apsw
import pytest

from recall_app.service import open_store
from recall_app.sources.dyad import DyadReader
from recall_app.sources.importing import import_source
from tests.benchmarks.history import FIRST_APP, Shape, Truth, generate
from tests.benchmarks.search_latency import search


def rows(path: Path) -> list[object]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute("SELECT * FROM messages JOIN chats ON chats.id = chat_id"))
    finally:
        connection.close()


def test_a_shape_gives_the_same_history_every_time(tmp_path: Path) -> None:
    first, second = (generate(Shape(600), tmp_path / name) for name in ("first.db", "second.db"))
    assert first == second
    assert rows(tmp_path / "first.db") == rows(tmp_path / "second.db")
    generate(Shape(600, seed=8), tmp_path / "other.db")
    assert rows(tmp_path / "other.db") != rows(tmp_path / "first.db")


def test_the_truth_is_kept_whole(tmp_path: Path) -> None:
    truth = generate(Shape(600), tmp_path / "history.db")
    truth.save(tmp_path / "truth.json")
    assert Truth.load(tmp_path / "truth.json") == truth


@pytest.mark.parametrize("shape", [Shape(300), Shape.one_chat(300)])
def test_it_is_a_dyad_history_of_just_so_many_messages(shape: Shape, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    generate(shape, path)
    assert DyadReader().detect(path)
    assert len(rows(path)) == shape.messages


def test_every_needle_is_found_and_no_word_of_a_payload(tmp_path: Path) -> None:
    truth = generate(Shape(10_000), tmp_path / "history.db")
    assert len(truth.needles) == 60
    with open_store(tmp_path / "recall" / "recall.db") as store:
        import_source(DyadReader(), tmp_path / "history.db", store.writer)
        store.index()
        app_id = store.service.app(FIRST_APP).id
        ids = {chat.source_key: chat.id for chat in store.service.chats(app_id)}
        missed = [
            needle.query
            for needle in truth.needles
            if ids[str(needle.chat_id)]
            not in [chat.chat_id for chat in search(store.service, app_id, needle.query).results]
        ]
        assert missed == []
        assert [word for word in truth.payload_words if search(store.service, app_id, word).results] == []
