"""The habits that every test keeps: it leaves no thread, timer or window behind, logs nothing unexpected, stays off
the network (pytest-socket, see ``pyproject.toml``) and never sees the person's own files or settings.

``tests/test_habits.py`` proves each of them.
"""

import gc
import logging
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from PySide6.QtCore import QCoreApplication, QEvent, QThread, QTimer
from PySide6.QtWidgets import QApplication, QWidget

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

FULL = os.environ.get("RECALL_TEST_ALL") == "1"
GRACE_SECONDS = 1.0
"""How long a thread that was told to stop may take to be gone."""

PERSONAL_PREFIXES = ("RECALL_", "ANTHROPIC_", "OPENAI_", "GOOGLE_", "GEMINI_", "OLLAMA_", "CLAUDE_", "CODEX_")
OWN_VARIABLES = frozenset({"RECALL_TEST_ALL"})

Startable = TypeVar("Startable", QTimer, QThread)

# In CI a failure must be the change's fault: the same examples every time. At home they differ from run to run.
IN_CI = bool(os.environ.get("CI"))
settings.register_profile(
    "default", deadline=None, derandomize=IN_CI, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("all", parent=settings.get_profile("default"), max_examples=500)
settings.load_profile("all" if FULL else "default")


@pytest.fixture(autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home, data folder and settings of the test's own; no key or host of the person's."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(PERSONAL_PREFIXES) and name not in OWN_VARIABLES:
            monkeypatch.delenv(name)
    folders = {
        "HOME": home,
        "USERPROFILE": home,
        "APPDATA": home / "AppData" / "Roaming",
        "LOCALAPPDATA": home / "AppData" / "Local",
        "RECALL_DATA_DIR": home / "recall",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
        "XDG_RUNTIME_DIR": home / "run",
    }
    (home / "run").mkdir(mode=0o700)
    for name, folder in folders.items():
        monkeypatch.setenv(name, str(folder))


class LogWatch(logging.Handler):
    """Collects records of WARNING and above, and knows which of them the test expects."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._records: list[logging.LogRecord] = []
        self._expected: list[tuple[int, re.Pattern[str]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)

    def expect(self, level: int, pattern: str) -> None:
        """At least one record of just this level whose message matches ``pattern`` must come in this test."""
        self._expected.append((level, re.compile(pattern)))

    def problems(self) -> list[str]:
        """Each unexpected record, and each expectation that no record met, in one line."""
        unexpected = [record for record in self._records if not any(_meets(record, *one) for one in self._expected)]
        missing = [one for one in self._expected if not any(_meets(record, *one) for record in self._records)]
        return [f"unexpected log record: {r.levelname} {r.name}: {r.getMessage()}" for r in unexpected] + [
            f"expected log record did not come: {logging.getLevelName(level)} /{pattern.pattern}/"
            for level, pattern in missing
        ]


def _meets(record: logging.LogRecord, level: int, pattern: re.Pattern[str]) -> bool:
    return record.levelno == level and pattern.search(record.getMessage()) is not None


@pytest.fixture(autouse=True)
def log_watch() -> Iterator[LogWatch]:
    """Fails the test on log records of WARNING or above, but for those that ``log_watch.expect`` names."""
    watch = LogWatch()
    logging.getLogger().addHandler(watch)
    yield watch
    logging.getLogger().removeHandler(watch)
    problems = watch.problems()
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


@pytest.fixture(autouse=True)
def _no_leaks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails the test that leaves a Python thread, QThread, running QTimer or top-level widget behind."""
    threads = set(threading.enumerate())
    windows = set(_windows())
    started_timers: weakref.WeakSet[QTimer] = weakref.WeakSet()
    started_threads: weakref.WeakSet[QThread] = weakref.WeakSet()
    _note_starts(monkeypatch, QTimer, started_timers)
    _note_starts(monkeypatch, QThread, started_threads)
    yield
    if QCoreApplication.instance() is not None:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    checks: dict[str, Callable[[], list[object]]] = {
        "thread": lambda: [t for t in threading.enumerate() if t not in threads and _is_python_thread(t)],
        "QThread": lambda: [thread for thread in list(started_threads) if _is_alive(thread.isRunning)],
        "QTimer": lambda: [timer for timer in list(started_timers) if _is_alive(timer.isActive)],
        "top-level widget": lambda: [window for window in _windows() if window not in windows],
    }
    left = [f"{kind} left behind: {thing!r}" for kind, find in checks.items() for thing in _still_there(find)]
    if left:
        pytest.fail("\n".join(left), pytrace=False)


def _still_there(find: Callable[[], list[object]]) -> list[object]:
    """What ``find`` still finds after a grace and after cycles have been collected."""
    if not find():
        return []
    gc.collect()
    end = time.monotonic() + GRACE_SECONDS
    while (found := find()) and time.monotonic() < end:
        threading.Event().wait(0.01)
    return found


def _note_starts(monkeypatch: pytest.MonkeyPatch, kind: type[Startable], started: weakref.WeakSet[Startable]) -> None:
    original: Callable[..., None] = kind.start

    def start(self: Startable, *arguments: object) -> None:
        started.add(self)
        original(self, *arguments)

    monkeypatch.setattr(kind, "start", start)


def _is_alive(question: Callable[[], bool]) -> bool:
    """The object's answer; no, when Qt has deleted it already."""
    try:
        return question()
    except RuntimeError:
        return False


def _is_python_thread(thread: threading.Thread) -> bool:
    # A Qt thread that ran Python code stays listed as a dummy after its end; QThreads are watched by themselves.
    return thread.is_alive() and not isinstance(thread, threading._DummyThread)


def _windows() -> list[QWidget]:
    return QApplication.topLevelWidgets() if QApplication.instance() is not None else []
