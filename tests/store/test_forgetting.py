"""Deleting a chat: hidden at once, whole again within ten seconds, then without a trace in any byte of the folder."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw
import pytest

from recall_app.domain.cards import CardState, history_cards, read_card, search_card
from recall_app.domain.consulting import SEARCH_CHATS, ReadChatInput, SearchChatsInput, Viewer, to_json
from recall_app.domain.errors import NotFoundError, RecallError
from recall_app.domain.records import ConsultedMessage, Message, NewConsultation
from recall_app.service import LocalStore, open_store
from recall_app.store import forgetting, history
from recall_app.store.connection import open_reader
from recall_app.store.forgetting import STUB
from tests.building import Builder, BuiltChat
from tests.checking import assert_current, documents, is_secure
from tests.scale import scaled

SENTENCE = "Zebraquartz says the vault opens with marmalade at midnight"
PAYLOAD = "quaggapayload"
TITLE = "Okapititle of the vault"
PLANTED = ("zebraquartz", "marmalad", "quaggapayload", "okapititl")
"""As Porter stems them: parts of the words as written, too. Lower-cased, since all is searched in lower case."""


def traces(folder: Path) -> set[str]:
    """Which planted words are in any byte of the folder's files."""
    found = set()
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes().lower()
            found |= {f"{word} in {file.name}" for word in PLANTED if word.encode() in data}
    return found


@dataclass
class Shop:
    folder: Path
    built: Builder
    secret: BuiltChat
    other: BuiltChat

    @property
    def connection(self) -> apsw.Connection:
        return self.built.store.writer.connection

    def forget(self) -> None:
        self.built.service.delete_chat(self.secret.id)
        self.built.service.purge_deleted(at_exit=True)

    def consult(self, chat: BuiltChat, answer: str = "", query: str = "vault") -> int:
        """What a turn in ``chat`` that searches and reads leaves: cards, transcript, ledger. Returns its answer."""
        service = self.built.service
        message_id = self.built.say(chat, "What do we know?", "")[1]
        viewer = Viewer(self.built.app, chat.id, message_id)
        found = service.search_chats(viewer, SearchChatsInput(query=query))
        read = service.read_chat(viewer, ReadChatInput(chat_id=found.results[0].chat_id))
        ids = []
        for tool, given, texts in (
            (SEARCH_CHATS, found, [(c.chat_id, m.message_id, m.excerpt) for c in found.results for m in c.matches]),
            ("read_chat", read, [(read.chat.chat_id, m.message_id, m.text) for m in read.messages]),
        ):
            sources = tuple(ConsultedMessage(*text) for text in texts)
            ids.append(service.record_consultation(consultation(chat, message_id, tool, query, sources)))
            assert given.archival_content
        content = search_card(query, CardState.DONE, ids[0], found) + read_card(
            read.chat.chat_id, CardState.DONE, ids[1], read
        )
        transcript = json.dumps([{"parts": [{"content": to_json(found)}, {"content": to_json(read)}]}])
        service.update_message(message_id, f"{content}\n{answer}", transcript)
        return message_id


def message(shop: Shop, message_id: int) -> Message:
    return history.message(shop.connection, message_id)


def consultation(
    chat: BuiltChat, message_id: int, tool: str, query: str, sources: tuple[ConsultedMessage, ...]
) -> NewConsultation:
    return NewConsultation(
        at=history.now_ms(),
        app_id=chat.app_id,
        chat_id=chat.id,
        message_id=message_id,
        tool=tool,
        arguments_json=json.dumps({"query": query}),
        decision="always",
        provider="anthropic",
        model="claude-test",
        is_local=False,
        index_status="ready",
        result_count=len(sources),
        bytes=100,
        truncated=False,
        duration_ms=5,
        outcome="done",
        messages=sources,
    )


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with open_store(tmp_path / "data" / "recall.db") as store:
        built = Builder(store)
        other = built.add_chat("Lions", "The lions sleep", "The lions were asleep near the vault tonight")
        secret = built.add_chat(
            TITLE,
            f"{SENTENCE}. What then?",
            f"Noted: {SENTENCE}.\n<dyad-write path='x.ts'>{PAYLOAD} {PAYLOAD}Store.ts</dyad-write>",
        )
        built.service.update_message(secret.messages[1], f"Noted: {SENTENCE}. {PAYLOAD}", f'["{SENTENCE}"]')
        built.index()
        yield Shop(tmp_path / "data", built, secret, other)


# --- hiding and undoing -----------------------------------------------------------------------------------------------


def test_a_deleted_chat_is_hidden_from_every_door(shop: Shop) -> None:
    service, secret = shop.built.service, shop.secret
    answer = shop.consult(shop.other)
    service.delete_chat(secret.id)
    assert [chat.id for chat in service.chats(shop.built.app)] == [shop.other.id]
    assert service.messages(secret.id) == []
    assert shop.built.found("zebraquartz") == []
    for ask in (
        lambda: service.chat(secret.id),
        lambda: shop.built.read(secret),
        lambda: service.add_message(secret.id, "user", "more"),
        lambda: service.rename_chat(secret.id, "more"),
        lambda: service.set_private(secret.id, True),
        lambda: service.delete_chat(secret.id),
    ):
        with pytest.raises(NotFoundError):
            ask()
    excerpts = [source.excerpt for row in service.consultations() for source in row.entry.messages]
    assert excerpts
    assert not any("ebraquartz" in (excerpt or "") for excerpt in excerpts)
    assert service.consultations_of_message(answer) == []


def test_undo_brings_a_chat_back_whole(shop: Shop) -> None:
    service = shop.built.service
    answer = shop.consult(shop.other)
    tables = ("chats", "messages", "consultations", "consulted_messages", "chat_search_fts")
    everything = [shop.connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    service.delete_chat(shop.secret.id)
    assert service.purge_deleted() == 0
    service.restore_chat(shop.secret.id)
    assert [shop.connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables] == everything
    assert service.purge_deleted(at_exit=True) == 0
    assert "ebraquartz" in service.messages(shop.other.id)[-1].content
    assert service.messages(shop.other.id)[-1].id == answer
    assert shop.built.found("zebraquartz") == [shop.secret.id]


def test_after_ten_seconds_there_is_no_undo(shop: Shop) -> None:
    service = shop.built.service
    service.delete_chat(shop.secret.id)
    shop.built.execute("UPDATE chats SET deleted_at = deleted_at - 10000 WHERE id = ?", shop.secret.id)
    with pytest.raises(NotFoundError):
        service.restore_chat(shop.secret.id)
    assert service.purge_deleted() == 1
    assert traces(shop.folder) == set()


def test_just_before_the_ten_seconds_are_over_there_is(shop: Shop) -> None:
    service = shop.built.service
    service.delete_chat(shop.secret.id)
    shop.built.execute("UPDATE chats SET deleted_at = deleted_at - 8000 WHERE id = ?", shop.secret.id)
    assert service.purge_deleted() == 0
    service.restore_chat(shop.secret.id)


def test_a_clock_that_was_set_back_does_not_keep_a_deleted_chat(shop: Shop) -> None:
    shop.built.service.delete_chat(shop.secret.id)
    shop.built.execute("UPDATE chats SET deleted_at = deleted_at + 86400000 WHERE id = ?", shop.secret.id)
    assert shop.built.service.purge_deleted() == 1
    assert traces(shop.folder) == set()


def test_a_chat_restored_while_it_is_about_to_be_purged_stays(shop: Shop) -> None:
    """Another process saw it as due a moment ago."""
    shop.built.service.delete_chat(shop.secret.id)
    shop.built.service.restore_chat(shop.secret.id)
    run = shop.built.store.writer.run
    run(lambda connection: forgetting.remove_traces(connection, shop.secret.id))
    assert run(lambda connection: forgetting.delete_messages(connection, shop.secret.id)) is False
    run(lambda connection: forgetting.delete_chat(connection, shop.secret.id))
    assert len(shop.built.service.messages(shop.secret.id)) == 2


def test_closing_ends_the_time_to_undo(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    with open_store(path) as store:
        secret = Builder(store).add_chat(TITLE, SENTENCE)
        store.service.delete_chat(secret.id)
    assert traces(tmp_path) == set()
    with open_store(path) as again, pytest.raises(NotFoundError):
        again.service.restore_chat(secret.id)


def test_another_process_does_not_end_the_time_to_undo(shop: Shop) -> None:
    shop.built.service.delete_chat(shop.secret.id)
    with open_store(shop.folder / "recall.db") as next_door:
        assert next_door.service.purge_deleted(at_exit=True) == 0
    shop.built.service.restore_chat(shop.secret.id)
    assert len(shop.built.service.messages(shop.secret.id)) == 2


# --- no trace ---------------------------------------------------------------------------------------------------------


def test_what_is_searched_for_would_be_found(shop: Shop) -> None:
    """Else the tests below could not fail."""
    shop.consult(shop.other)
    assert {trace.split()[0] for trace in traces(shop.folder)} == set(PLANTED)


def test_no_byte_of_a_deleted_chat_is_left(shop: Shop) -> None:
    shop.forget()
    assert traces(shop.folder) == set()
    shop.built.index()
    assert_current(shop.connection)
    assert traces(shop.folder) == set()


def test_not_in_what_others_consulted_either(shop: Shop) -> None:
    answer = f"It says: {SENTENCE}.\nThat was in “{TITLE}”.\n> {SENTENCE}\nLions sleep, says our zoo.\n"
    asking = shop.built.add_chat("Questions")
    message_id = shop.consult(asking, answer)
    shop.consult(asking, query="the vault opens with marmalade at midnight")
    shop.built.index()
    shop.forget()
    assert traces(shop.folder) == set()
    content = message(shop, message_id).content
    assert "Lions sleep, says our zoo." in content
    searched, read = history_cards(content)
    assert searched.state is CardState.DONE
    assert {entry.title for entry in searched.entries} == {"Lions", STUB}
    assert any("near the vault" in entry.text for entry in searched.entries)
    rows = shop.built.service.consultations(chat_id=asking.id)
    assert len(rows) == 4
    excerpts = {source.chat_id: source.excerpt for row in rows for source in row.entry.messages}
    assert excerpts[shop.secret.id] is None
    assert read.chat_id in (shop.secret.id, shop.other.id)
    shop.built.index()
    assert_current(shop.connection)
    assert traces(shop.folder) == set()


def test_not_even_if_the_ledger_was_erased_before(shop: Shop) -> None:
    shop.consult(shop.other, SENTENCE)
    shop.built.service.erase_ledger()
    shop.forget()
    assert traces(shop.folder) == set()


def test_not_in_a_transcript_whose_cards_are_gone(shop: Shop) -> None:
    """The person deleted the cards from the answer, and the ledger; the transcript still has the results."""
    message_id = shop.consult(shop.other)
    shop.built.execute("UPDATE messages SET content = 'plain' WHERE id = ?", message_id)
    shop.built.service.erase_ledger()
    shop.forget()
    assert traces(shop.folder) == set()


def test_not_at_second_hand(shop: Shop) -> None:
    """A third chat consulted the answer that quotes the deleted one."""
    shop.consult(shop.other, f"Our notes say: {SENTENCE}.")
    shop.built.index()
    third = shop.built.add_chat("Third", "hello", "hello")
    shop.consult(third, query="notes say vault opens")
    shop.built.index()
    shop.forget()
    assert traces(shop.folder) == set()


def test_what_a_person_wrote_stays(shop: Shop) -> None:
    shop.consult(shop.other)
    mine = shop.built.service.add_message(shop.other.id, "user", f"I remember: {SENTENCE}")
    shop.forget()
    assert message(shop, mine.id).content == f"I remember: {SENTENCE}"


def test_titles_and_words_of_others_stay(shop: Shop) -> None:
    namesake = shop.built.add_chat("API", "Nothing about the vault", "The vault is empty")
    doomed = shop.built.add_chat("API", "Something else of the vault altogether, I think", "Well")
    shop.built.index()
    message_id = shop.consult(shop.other, "Use the RAPID path of APIs.")
    shop.built.service.delete_chat(doomed.id)
    shop.built.service.purge_deleted(at_exit=True)
    content = message(shop, message_id).content
    assert "RAPID path of APIs" in content
    titles = {entry.chat_id: entry.title for card in history_cards(content) for entry in card.entries}
    assert titles[namesake.id] == "API"
    assert titles[doomed.id] == STUB


def test_what_the_deleted_chat_consulted_goes_too(shop: Shop) -> None:
    shop.consult(shop.secret, query="lions")
    shop.forget()
    assert shop.built.service.consultations() == []
    assert shop.connection.execute("SELECT count(*) FROM consulted_messages").get == 0


def test_a_call_that_ends_after_the_purge_brings_nothing_back(shop: Shop) -> None:
    shop.forget()
    source = ConsultedMessage(shop.secret.id, shop.secret.messages[0], SENTENCE)
    entry = consultation(shop.other, shop.other.messages[1], SEARCH_CHATS, "vault", (source,))
    shop.built.service.record_consultation(entry)
    ((kept,),) = [row.entry.messages for row in shop.built.service.consultations()]
    assert kept == ConsultedMessage(shop.secret.id, shop.secret.messages[0], None)
    assert traces(shop.folder) == set()


def test_a_chat_imported_from_dyad_goes_from_dyad_s_cards_too(shop: Shop) -> None:
    """Those name chats by Dyad's ids."""
    shop.built.execute("UPDATE chats SET source = 'dyad', source_key = '815' WHERE id = ?", shop.secret.id)
    shop.built.execute("UPDATE chats SET source = 'dyad', source_key = '816' WHERE id = ?", shop.other.id)
    text = f"#815 {TITLE} 2026-07-12\n  - {SENTENCE}\n#7 Tigers 2026-07-13\n  - tigers in the vault"
    card = f'<dyad-search-chats query="vault" count="2">{text}</dyad-search-chats>'
    shop.built.service.update_message(shop.other.messages[1], card)
    shop.built.index()
    shop.forget()
    assert traces(shop.folder) == set()
    assert "tigers in the vault" in message(shop, shop.other.messages[1]).content


def test_a_tombstone_keeps_an_import_from_bringing_it_back(shop: Shop) -> None:
    shop.built.execute("UPDATE chats SET source = 'dyad', source_key = '815' WHERE id = ?", shop.secret.id)
    shop.forget()
    assert shop.connection.execute("SELECT source, source_key FROM tombstones").fetchall() == [("dyad", "815")]


def test_ids_of_a_forgotten_chat_are_not_used_again(shop: Shop) -> None:
    shop.forget()
    chat = shop.built.add_chat("new", "hello")
    assert chat.id > shop.secret.id
    assert chat.messages[0] > shop.secret.messages[1]


# --- stores of some size ----------------------------------------------------------------------------------------------

START = "zqxjv"
SYLLABLES = [a + b for a in ("ba", "ce", "di", "fo", "gu", "ka", "le") for b in ("lar", "ten", "mix", "dog", "run")]


def fill(store: LocalStore, chat_ids: list[int], planted: int, count: int, seed: int) -> list[str]:
    """Messages of many sizes in many chats, among them some of chat ``planted`` with words of its own, in many
    segments of the index; answers grow as if they were streamed. Returns the planted words."""
    random_ = random.Random(seed)
    words = []
    for start in range(0, count, 200):
        with store.writer.connection as connection:
            for number in range(start, min(start + 200, count)):
                text = " ".join(random_.choices(SYLLABLES, k=random_.choice([4, 30, 300])))
                chat_id = random_.choice(chat_ids)
                if random_.random() < 0.1:
                    chat_id = planted
                    words.append(f"{START}{''.join(random_.choices('abdefgiklmnoptu', k=9))}")
                    text = f"{text} {words[-1]} {text[:30]}"
                connection.execute(
                    "INSERT INTO messages (chat_id, role, content, created_at) VALUES (?, 'assistant', ?, ?)",
                    (chat_id, text[: len(text) // 2], number),
                )
                id_ = connection.last_insert_rowid()
                connection.execute("UPDATE messages SET content = ? WHERE id = ?", (text, id_))
        if random_.random() < 0.7:
            store.index()
    store.index()
    return words


@pytest.mark.parametrize("seed", range(1, scaled(2, 13)))
@pytest.mark.parametrize("is_long", [False, True])
def test_nothing_is_left_among_thousands_of_messages(tmp_path: Path, seed: int, is_long: bool) -> None:
    """FTS5 keeps words in its segments and starts of words between their pages, SQLite in free pages and gaps."""
    with open_store(tmp_path / "recall.db") as store:
        app = store.service.create_app("Shop").id
        chats = [store.service.create_chat(app, f"chat {number}").id for number in range(20)]
        planted = store.service.create_chat(app, f"{START}titleword").id
        words = [*fill(store, chats, planted, 4_000 if is_long else 2_000, seed), f"{START}titleword"]
        store.service.rename_chat(planted, f"{START}secondtitle")
        store.index()
        files = [tmp_path / name for name in ("recall.db", "recall.db-wal")]
        before = b"".join(file.read_bytes() for file in files)
        assert all(word[len(START) + 2 :].encode() in before for word in words)
        store.service.delete_chat(planted)
        store.service.purge_deleted(at_exit=True)
        after = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert START.encode() not in after
        # Index pages hold the end of a word without the beginning it shares with the one before.
        assert [word for word in words if word[len(START) + 2 :].encode() in after] == []
        assert is_secure(store.writer.connection)
        assert_current(store.writer.connection)


def test_a_rebuild_under_way_does_not_hold_words_back(tmp_path: Path) -> None:
    """In the middle of one, old words linger in the index until it is merged: the purge sees to that."""
    with open_store(tmp_path / "recall.db") as store:
        built = Builder(store)
        built.add_chats([(f"chat {number}", ["okapi", "lion"] * 40) for number in range(20)])
        secret = built.add_chat(TITLE, SENTENCE, PAYLOAD)
        built.index()
        built.execute("UPDATE messages SET content = content || ' again'")
        while is_secure(store.writer.connection):
            assert store.indexer.run_batch(settled=False)
        built.service.delete_chat(secret.id)
        built.service.purge_deleted(at_exit=True)
        assert traces(tmp_path) == set()
        built.index()
        assert_current(store.writer.connection)


def test_a_purge_that_was_cut_off_goes_on_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "recall.db"
    for steps in range(4):
        with open_store(path) as store:
            built = Builder(store)
            secret = built.add_chat(TITLE, *[SENTENCE] * 30)
            other = built.add_chat("Lions", "roar", "roar")
            built.index()
            built.service.delete_chat(secret.id)
            run = store.writer.run
            run(lambda connection: connection.execute("UPDATE chats SET deleted_at = deleted_at - 11000 WHERE id > 0"))
            if steps:
                run(partial(forgetting.remove_traces, chat_id=secret.id))
            for _ in range(steps - 1):
                run(partial(forgetting.delete_messages, chat_id=secret.id))
            assert len(store.service.messages(other.id)) == 2
            with pytest.raises(RecallError):
                store.service.chat(secret.id)
            # As if the process had ended here: what open_store does at the end must not be what helps.
            with open_store(path) as again:
                assert traces(tmp_path) <= {f"{word} in recall.db-wal" for word in PLANTED}
                assert again.service.purge_deleted(at_exit=True) == 0
        assert traces(tmp_path) == set()


def test_somebody_who_still_reads_does_not_hold_the_purge_up(tmp_path: Path) -> None:
    """What the reader may still see stays in the log until it is done; then it goes with the last connection."""
    path = tmp_path / "recall.db"
    with open_store(path) as store:
        secret = Builder(store).add_chat(TITLE, SENTENCE, PAYLOAD)
        store.index()
        with closing(open_reader(path)) as reader:
            reader.execute("BEGIN")
            assert len(documents(reader)) == 2
            store.service.delete_chat(secret.id)
            assert store.service.purge_deleted(at_exit=True) == 1
            assert len(documents(reader)) == 2
    assert traces(tmp_path) == set()
