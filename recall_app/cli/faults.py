"""What a person is told of our own bugs: a class name and a file, never a traceback and never a message's text."""

import os
import platform
import time
import traceback
from importlib import metadata
from pathlib import Path

from recall_app.config import paths
from recall_app.domain.errors import RecallError
from recall_app.domain.records import iso_time

FILE_NAME = "errors.log"


def describe_fault(error: BaseException, data_dir: Path | None) -> str:
    """One line for the person; where the fault happened is added to ``logs/errors.log`` of the data folder."""
    name = type(error).__name__
    try:
        file = paths.log_dir(paths.data_dir(data_dir)) / FILE_NAME
        _append(file, fault_details(error))
    except (OSError, RecallError):
        return f"Something went wrong inside Recall ({name}); its details could not be written."
    return f"Something went wrong inside Recall ({name}); where it happened is written in {file}."


def fault_details(error: BaseException) -> str:
    """Classes and places of an exception and of those that led to it. Their texts may hold history: they stay out."""
    lines = [f"Recall {recall_version()}, Python {platform.python_version()}, {platform.platform()}"]
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        lines.append(f"{type(current).__module__}.{type(current).__qualname__}")
        lines += [
            f"  {frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(current.__traceback__)
        ]
        current = current.__cause__ or current.__context__
    return "\n".join(lines) + "\n"


def recall_version() -> str:
    """The installed version; ``unknown`` for a checkout that was never installed."""
    try:
        return metadata.version("recall-app")
    except metadata.PackageNotFoundError:
        return "unknown"


def _append(file: Path, details: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, paths.FILE_MODE)
    with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as log:
        log.write(f"{iso_time(time.time_ns() // 1_000_000)} {details}\n")
