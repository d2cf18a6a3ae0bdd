import io
import sys
from pathlib import Path

import pytest

from recall_app.cli.entry import main
from recall_app.config import paths
from recall_app.service import open_store
from tests.integration.command_line import Ran, Recall


@pytest.fixture
def recall(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Recall:
    """``recall("apps", "--json")``, in this process; ``stdin`` is what it can read."""

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        code = main(arguments)
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


@pytest.fixture
def shop() -> Path:
    """A store in the usual data folder: the apps Shop (#1; chats #1, #2, private #3) and 2024 (#2; chat #4)."""
    file = paths.database_path(paths.data_dir())
    with open_store(file) as store:
        service = store.service
        app = service.create_app("Shop", "/home/someone/shop")
        login = service.create_chat(app.id, "Authentication setup")
        service.add_message(login.id, "user", "What should we use for login?")
        service.add_message(login.id, "assistant", "We decided to use session cookies for login.")
        untitled = service.create_chat(app.id)
        service.add_message(untitled.id, "user", "登录问题 ☃")
        private = service.create_chat(app.id, "Salaries")
        service.add_message(private.id, "user", "login of the salary sheet")
        service.set_private(private.id, True)
        other = service.create_chat(service.create_app("2024").id, "Elsewhere")
        service.add_message(other.id, "user", "login in the other app")
        store.index()
    return file
