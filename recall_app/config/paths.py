"""Where Recall keeps its files: all in one data folder, so that moving or deleting that moves or deletes everything."""

import os
from pathlib import Path

from platformdirs import user_data_path

from recall_app.domain.errors import ErrorKind, RecallError

DATA_DIR_VARIABLE = "RECALL_DATA_DIR"
FOLDER_MODE = 0o700
FILE_MODE = 0o600


def data_dir(override: Path | None = None) -> Path:
    """The data folder (``--data-dir``, else ``RECALL_DATA_DIR``, else the platform's), made with mode 0700 if need be.

    Raises:
        RecallError: the folder can't be made, or something else has its name.
    """
    chosen = override or os.environ.get(DATA_DIR_VARIABLE) or user_data_path("recall", appauthor=False)
    folder = Path(chosen).expanduser().absolute()
    _make_private(folder)
    return folder


def database_path(folder: Path) -> Path:
    return folder / "recall.db"


def settings_path(folder: Path) -> Path:
    return folder / "settings.json"


def log_dir(folder: Path) -> Path:
    """The folder of the log files, made (mode 0700) if it isn't there."""
    logs = folder / "logs"
    _make_private(logs)
    return logs


def _make_private(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    except FileExistsError as error:
        taken = error.filename
        raise RecallError(
            ErrorKind.STORE,
            f"{taken} is a file, not a folder: choose another data folder.",
        ) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RecallError(ErrorKind.STORE, f"The data folder {folder} can't be made: {reason}.") from error
