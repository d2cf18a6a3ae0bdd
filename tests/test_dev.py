"""``packaging/dev.py``: when the environment counts as made, and what a person is told when it can't be."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

DEV = Path(__file__).parent.parent / "packaging" / "dev.py"


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, working on a checkout of its own that has an environment with two packages."""
    spec = importlib.util.spec_from_file_location("recall_dev", DEV)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    moved = {name: value for name, value in vars(module).items() if isinstance(value, Path) and name != "ROOT"}
    for name, path in moved.items():
        monkeypatch.setattr(module, name, tmp_path / path.relative_to(module.ROOT))
    monkeypatch.setattr(module, "ROOT", tmp_path)
    site_packages = tmp_path / ".venv" / module.SITE_PACKAGES.replace("*", "3.11")
    for folder in (
        module.SCRIPTS,
        module.LOCK.parent,
        site_packages / "one-1.0.dist-info",
        site_packages / "two-2.dist-info",
    ):
        folder.mkdir(parents=True)
    module.PYTHON.touch()
    module.LOCK.write_text("one==1.0\ntwo==2\n")
    module.PROJECT.write_text("[project]\n")
    return module


def test_an_environment_without_a_stamp_was_never_finished(dev: ModuleType) -> None:
    assert not dev.stamp_is_current()
    dev.write_stamp()
    assert dev.stamp_is_current()


@pytest.mark.parametrize("stamp", ["", "{", "[]", "null", '{"environment": 1}'])
def test_a_damaged_stamp_is_none(dev: ModuleType, stamp: str) -> None:
    dev.STAMP.write_text(stamp)
    assert not dev.stamp_is_current()


@pytest.mark.parametrize("changed", ["LOCK", "PROJECT"])
def test_a_changed_file_makes_it_out_of_date(dev: ModuleType, changed: str) -> None:
    dev.write_stamp()
    getattr(dev, changed).write_text("another = 1\n")
    assert not dev.stamp_is_current()


def test_a_package_that_is_gone_makes_it_broken(dev: ModuleType) -> None:
    dev.write_stamp()
    next(dev.VENV.glob(f"{dev.SITE_PACKAGES}/two-*")).rmdir()
    assert not dev.stamp_is_current()


def test_a_package_that_someone_added_does_no_harm(dev: ModuleType) -> None:
    dev.write_stamp()
    (dev.VENV / dev.SITE_PACKAGES.replace("*", "3.11") / "three-3.dist-info").mkdir()
    assert dev.stamp_is_current()


def test_an_interpreter_that_is_gone_makes_it_broken(dev: ModuleType) -> None:
    dev.write_stamp()
    dev.PYTHON.unlink()
    assert not dev.stamp_is_current()


def test_a_moved_checkout_needs_a_new_one(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    dev.write_stamp()
    monkeypatch.setattr(dev, "ROOT", dev.ROOT / "elsewhere")
    assert not dev.stamp_is_current()


def test_an_old_python_is_told_so(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "OLDEST_PYTHON", (99, 1))
    assert dev.main(["run"]) == 1
    assert capsys.readouterr().err.startswith("Recall needs Python 99.1 or newer; this is 3.")


def test_a_python_without_venv_is_told_what_to_install(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert dev.main(["run"]) == 1
    assert "apt-get install python3-venv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", "the disk is full."),
        ("WARNING: Retrying ... NewConnectionError(...)", "the package index can't be reached: check the network."),
        ("notice\nERROR: No matching distribution found for one==1.0\nnotice", "ERROR: No matching distribution"),
        ("", "exit code 3"),
    ],
)
def test_a_failing_step_is_one_line(dev: ModuleType, printed: str, told: str) -> None:
    program = f"import sys; print({printed!r}, file=sys.stderr); sys.exit(3)"
    with pytest.raises(dev.DevError, match=r"^the environment can't be made: ") as raised:
        dev.checked([sys.executable, "-c", program])
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_two_runs_do_not_make_one_environment_at_once(dev: ModuleType) -> None:
    waiter = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(DEV.parent)!r})
import dev
dev.GUARD = Path({str(dev.GUARD)!r})
with dev.only_one():
    print(Path({str(dev.STAMP)!r}).read_text())
"""
    with dev.only_one():
        waiting = subprocess.Popen(
            [sys.executable, "-c", waiter], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr is not None
        assert "waiting for it" in waiting.stderr.readline()
        dev.STAMP.write_text("made by the first")
    assert waiting.communicate()[0] == "made by the first\n"


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["no-such"], 2), (["--help"], 0)])
def test_usage(arguments: list[str], code: int) -> None:
    done = subprocess.run([sys.executable, DEV, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "dev.py test [--all]" in (done.stderr if code else done.stdout)
