import os
import stat
from pathlib import Path

import pytest

from recall_app.config.paths import (
    DATA_DIR_VARIABLE,
    data_dir,
    database_path,
    log_dir,
    settings_path,
)
from recall_app.domain.errors import RecallError


def test_option_wins_over_variable_and_variable_over_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv(DATA_DIR_VARIABLE, raising=False)
    platform = data_dir()
    assert tmp_path in platform.parents
    monkeypatch.setenv(DATA_DIR_VARIABLE, str(tmp_path / "variable"))
    assert data_dir() == tmp_path / "variable"
    assert data_dir(tmp_path / "option") == tmp_path / "option"


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_folders_are_private_and_an_existing_one_is_left_alone(tmp_path: Path) -> None:
    folder = data_dir(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(log_dir(folder).stat().st_mode) == 0o700
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    shared.chmod(0o755)
    assert stat.S_IMODE(data_dir(shared).stat().st_mode) == 0o755


def test_files_lie_in_the_folder(tmp_path: Path) -> None:
    folder = data_dir(tmp_path)
    assert database_path(folder) == tmp_path / "recall.db"
    assert settings_path(folder) == tmp_path / "settings.json"


def test_a_file_in_the_folders_place_is_one_clear_line(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("x")
    with pytest.raises(RecallError, match="is a file, not a folder"):
        data_dir(taken)
    with pytest.raises(RecallError, match=r"taken is a file, not a folder"):
        data_dir(taken / "below")
    assert taken.read_text() == "x"
