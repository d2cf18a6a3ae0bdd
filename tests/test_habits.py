"""Each habit of ``conftest.py`` shown at work: a test that breaks it fails, in a pytest of its own."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent

BREAKING = """
import logging, socket, threading, warnings
import pytest
from PySide6.QtCore import QThread, QTimer, qWarning
from PySide6.QtWidgets import QWidget

kept = []

@pytest.fixture(scope="module", autouse=True)
def _let_go():
    yield
    release.set()
    for thing in kept:
        if isinstance(thing, QThread):
            thing.quit()
            thing.wait()

release = threading.Event()

def test_leaks_thread():
    threading.Thread(target=release.wait).start()

def test_leaks_qthread(qapp):
    kept.append(QThread())
    kept[-1].start()

def test_leaks_timer(qapp):
    kept.append(QTimer())
    kept[-1].start(60_000)

def test_leaks_widget(qapp):
    kept.append(QWidget())

def test_logs_a_warning():
    logging.getLogger("recall_app.somewhere").warning("the disk is %s", "odd")

def test_misses_an_expected_log(log_watch):
    log_watch.expect(logging.WARNING, "never written")

def test_qt_warning(qapp):
    qWarning("odd widget")

def test_python_warning():
    warnings.warn("old way", DeprecationWarning)

def test_reaches_out():
    with socket.socket() as outside:
        outside.settimeout(0.2)
        outside.connect(("192.0.2.1", 80))

def test_thread_dies():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
"""

KEEPING = """
import logging, os, socket, threading
from pathlib import Path
from PySide6.QtCore import QThread, QTimer
from PySide6.QtWidgets import QWidget

def test_ends_its_thread():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()

def test_ends_qt_things(qtbot):
    timer = QTimer()
    timer.start(60_000)
    timer.stop()
    thread = QThread()
    thread.start()
    thread.quit()
    thread.wait()
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()

def test_expects_its_warning(log_watch):
    log_watch.expect(logging.WARNING, "disk is odd$")
    logging.getLogger("recall_app.somewhere").warning("the disk is %s", "odd")

def test_talks_to_itself():
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())

def test_sees_nothing_of_the_person():
    assert "person" not in str(Path.home())
    assert "person" not in os.environ["RECALL_DATA_DIR"]
    assert "person" not in os.environ["XDG_CONFIG_HOME"]
    assert "OPENAI_API_KEY" not in os.environ
"""

SAID = {
    "test_leaks_thread": "thread left behind: <Thread(",
    "test_leaks_qthread": "QThread left behind: <PySide6.QtCore.QThread",
    "test_leaks_timer": "QTimer left behind: <PySide6.QtCore.QTimer",
    "test_leaks_widget": "top-level widget left behind: <PySide6.QtWidgets.QWidget",
    "test_logs_a_warning": "unexpected log record: WARNING recall_app.somewhere: the disk is odd",
    "test_misses_an_expected_log": "expected log record did not come: WARNING /never written/",
    "test_qt_warning": "QtWarningMsg: odd widget",
    "test_python_warning": "DeprecationWarning: old way",
    "test_reaches_out": 'A test tried to use socket.socket.connect() with host "192.0.2.1"',
    "test_thread_dies": "PytestUnhandledThreadExceptionWarning",
}


@pytest.fixture
def habits(pytester: pytest.Pytester) -> pytest.Pytester:
    """An empty project with our settings and our conftest."""
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (pytester.path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    return pytester


def run(project: pytest.Pytester, tests: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider", "-rfE", project.makepyfile(tests))


def test_what_breaks_a_habit_fails(habits: pytest.Pytester) -> None:
    result = run(habits, BREAKING)
    failed = {line.split("::")[1].split(" ")[0] for line in result.outlines if line.startswith(("FAILED", "ERROR "))}
    assert failed == set(SAID)
    assert {name: text for name, text in SAID.items() if text not in result.stdout.str()} == {}


def test_an_unknown_mark_fails(habits: pytest.Pytester) -> None:
    result = run(habits, "import pytest\n@pytest.mark.unheard_of\ndef test_it(): pass\n")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert "'unheard_of' not found in `markers`" in result.stdout.str()


def test_what_keeps_the_habits_passes(habits: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE", "RECALL_DATA_DIR", "XDG_CONFIG_HOME", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, str(habits.mkdir(f"person-{name}")))
    run(habits, KEEPING).assert_outcomes(passed=5)
