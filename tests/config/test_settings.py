import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from recall_app.config.permissions import Permission
from recall_app.config.settings import Settings, SettingsStore
from recall_app.domain.consulting import HISTORY_TOOLS
from recall_app.domain.errors import RecallError
from tests.conftest import LogWatch


@pytest.fixture
def store(tmp_path: Path) -> SettingsStore:
    return SettingsStore(tmp_path / "settings.json")


def allow(tool: str, permission: Permission, app_id: int | None = None) -> Callable[[Settings], Settings]:
    def change(settings: Settings) -> Settings:
        now = settings.permissions
        then = now.with_everywhere(tool, permission) if app_id is None else now.with_app(tool, app_id, permission)
        return settings.model_copy(update={"permissions": then})

    return change


def effective(store: SettingsStore, tool: str, app_id: int = 1) -> Permission:
    return store.load().settings.permissions.effective(tool, app_id, Permission.ALWAYS)


def test_without_a_file_there_are_defaults_and_no_file_is_made(
    store: SettingsStore,
) -> None:
    loaded = store.load()
    assert loaded.settings == Settings()
    assert loaded.warning is None
    assert not store.path.exists()


def test_what_is_stored_is_read_by_another_store(store: SettingsStore) -> None:
    store.update(allow("read_chat", Permission.NEVER, 7))
    other = SettingsStore(store.path)
    assert effective(other, "read_chat", 7) is Permission.NEVER
    assert effective(other, "read_chat", 8) is Permission.ALWAYS
    other.update(allow("search_chats", Permission.ASK))
    assert effective(store, "search_chats") is Permission.ASK
    assert effective(store, "read_chat", 7) is Permission.NEVER


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_the_file_is_private_and_nothing_temporary_stays(store: SettingsStore) -> None:
    store.update(allow("read_chat", Permission.ASK))
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert {entry.name for entry in store.path.parent.iterdir()} == {
        "settings.json",
        "settings.json.lock",
    }


def test_what_a_newer_recall_wrote_survives(store: SettingsStore) -> None:
    store.path.write_text(
        json.dumps(
            {
                "appearance": {"text_size": 120},
                "permissions": {
                    "everywhere": {"fetch_page": "ask"},
                    "apps": {},
                    "quiet_hours": [22, 7],
                },
            }
        )
    )
    store.update(allow("read_chat", Permission.NEVER))
    stored = json.loads(store.path.read_text())
    assert stored["appearance"] == {"text_size": 120}
    assert stored["permissions"]["quiet_hours"] == [22, 7]
    assert stored["permissions"]["everywhere"] == {
        "fetch_page": "ask",
        "read_chat": "never",
    }


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"permissions": {"everywhere": {"read_chat": "sometimes"}}}',
        b'{"permissions": {"apps": {"seven": {}}}}',
        b'{"permissions": {"review_before_sharing": {}}}',
        b"[" * 200_000,
    ],
)
def test_a_damaged_file_is_set_aside_and_the_tools_ask(
    store: SettingsStore, damage: bytes, log_watch: LogWatch
) -> None:
    log_watch.expect(logging.WARNING, "settings file was damaged")
    store.path.write_bytes(damage)
    loaded = store.load()
    assert loaded.warning is not None
    assert "\n" not in loaded.warning
    kept = [entry for entry in store.path.parent.iterdir() if ".damaged-" in entry.name]
    assert [entry.read_bytes() for entry in kept] == [damage]
    assert kept[0].name in loaded.warning
    # What the person had chosen is unknown and may have been "never": nothing goes out unasked.
    assert [effective(store, tool) for tool in HISTORY_TOOLS] == [
        Permission.ASK,
        Permission.ASK,
    ]
    assert store.load().warning is None


def test_a_change_upon_a_damaged_file_sets_it_aside_too(store: SettingsStore, log_watch: LogWatch) -> None:
    log_watch.expect(logging.WARNING, "settings file was damaged")
    store.path.write_text("{")
    store.update(allow("read_chat", Permission.ALWAYS))
    assert effective(store, "read_chat") is Permission.ALWAYS
    assert effective(store, "search_chats") is Permission.ASK
    assert any(".damaged-" in entry.name for entry in store.path.parent.iterdir())


def test_a_change_that_fails_leaves_the_file_as_it_was(store: SettingsStore) -> None:
    store.update(allow("read_chat", Permission.NEVER))
    before = store.path.read_bytes()

    def fails(settings: Settings) -> Settings:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.update(fails)
    assert store.path.read_bytes() == before
    store.update(allow("search_chats", Permission.NEVER))
    assert effective(store, "read_chat") is Permission.NEVER


def test_changes_from_several_threads_are_all_kept(store: SettingsStore) -> None:
    def work(first: int) -> None:
        for app_id in range(first, first + 10):
            store.update(allow("read_chat", Permission.NEVER, app_id))

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 101, 201, 301)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.load().settings.permissions.apps) == 40


def test_changes_from_another_process_are_kept(store: SettingsStore) -> None:
    program = (
        "import sys; from pathlib import Path; from recall_app.config.settings import SettingsStore\n"
        "from recall_app.config.permissions import Permission\n"
        "store = SettingsStore(Path(sys.argv[1]))\n"
        "for app in range(1, 31):\n"
        "    store.update(lambda s: s.model_copy(update={'permissions':"
        " s.permissions.with_app('read_chat', app, Permission.ASK)}))\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program, str(store.path)])
    for app_id in range(101, 131):
        store.update(allow("read_chat", Permission.NEVER, app_id))
    assert other.wait(60) == 0
    apps = store.load().settings.permissions.apps
    assert sorted(apps) == [*range(1, 31), *range(101, 131)]


def test_a_folder_in_the_files_place_is_one_clear_line(store: SettingsStore) -> None:
    store.path.mkdir()
    with pytest.raises(RecallError, match="can't be read"):
        store.load()
    with pytest.raises(RecallError, match="can't be read"):
        store.update(allow("read_chat", Permission.ASK))


def test_a_missing_folder_is_one_clear_line(tmp_path: Path) -> None:
    store = SettingsStore(tmp_path / "gone" / "settings.json")
    with pytest.raises(RecallError, match="can't be written"):
        store.update(allow("read_chat", Permission.ASK))
