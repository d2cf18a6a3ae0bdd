"""The developer's one door: makes the environment that ``requirements.lock`` describes, and runs things in it.

Only the standard library, and one file: it runs before anything is installed, on any Python that can parse it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OLDEST_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
SCRIPTS = VENV / ("Scripts" if sys.platform == "win32" else "bin")
PYTHON = SCRIPTS / ("python.exe" if sys.platform == "win32" else "python")
SITE_PACKAGES = "Lib/site-packages" if sys.platform == "win32" else "lib/python*/site-packages"
LOCK = ROOT / "packaging" / "requirements.lock"
PROJECT = ROOT / "pyproject.toml"
STAMP = VENV / "recall-stamp.json"
GUARD = ROOT / ".venv.lock"
STOPPED = 130

USAGE = """\
python3 packaging/dev.py run [ARGS]            run Recall; ARGS go to the recall command
python3 packaging/dev.py test [--all] [ARGS]   run the tests (--all: with full counts); ARGS go to pytest
python3 packaging/dev.py lint                  ruff, mypy and the import contracts
python3 packaging/dev.py bench [ARGS]          print the benchmark tables, all or one"""

# Variables that would let the person's own Recall, keys or Python leak into a test run.
PERSONAL_PREFIXES = ("RECALL_", "ANTHROPIC_", "OPENAI_", "GOOGLE_", "GEMINI_", "OLLAMA_", "XDG_", "QT_")

# What pip writes when it can't get on, and what that means for the person.
PIP_TROUBLE = (
    ("No space left on device", "the disk is full."),
    ("NewConnectionError", "the package index can't be reached: check the network."),
    ("NameResolutionError", "the package index can't be reached: check the network."),
    ("ConnectTimeoutError", "the package index does not answer: check the network."),
    ("ProxyError", "the proxy does not answer: check the network."),
    ("SSLError", "the package index's certificate is not trusted: check the network."),
    ("(from versions: none)", "no package index could be reached: check the network."),
    ("Permission denied", "files in .venv can't be written: check the rights of the folder."),
)


class DevError(Exception):
    """What is wrong and what to do, in one line."""


def main(arguments: list[str]) -> int:
    if sys.version_info < OLDEST_PYTHON:
        found, needed = sys.version.split()[0], ".".join(str(part) for part in OLDEST_PYTHON)
        print(f"Recall needs Python {needed} or newer; this is {found}.", file=sys.stderr)
        return 1
    commands: dict[str, Callable[[list[str]], int]] = {"run": run, "test": test, "lint": lint, "bench": bench}
    if not arguments or arguments[0] not in commands:
        asked = bool(arguments) and arguments[0] in ("-h", "--help")
        print(USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    try:
        return commands[arguments[0]](arguments[1:])
    except KeyboardInterrupt:
        return STOPPED
    except DevError as error:
        print(f"dev.py: {error}", file=sys.stderr)
        return 1


def run(arguments: list[str]) -> int:
    ensure_environment()
    if not arguments:
        print("The window is not there yet. This is Recall's main job in the terminal (recall demo):", flush=True)
        arguments = ["demo"]
    return hand_over(["-m", "recall_app", *arguments], environment())


def test(arguments: list[str]) -> int:
    ensure_environment()
    variables = {
        name: value
        for name, value in environment().items()
        if not name.startswith(PERSONAL_PREFIXES) and name != "PYTEST_ADDOPTS"
    }
    variables["QT_QPA_PLATFORM"] = "offscreen"
    if "--all" in arguments:
        arguments = [argument for argument in arguments if argument != "--all"]
        variables["RECALL_TEST_ALL"] = "1"
    os.chdir(ROOT)
    return hand_over(["-m", "pytest", "-n", "auto", "--dist", "worksteal", *arguments], variables)


def lint(arguments: list[str]) -> int:
    if arguments:
        raise DevError("lint takes no arguments.")
    ensure_environment()
    checks = (
        ("ruff check", [str(PYTHON), "-m", "ruff", "check"]),
        ("ruff format", [str(PYTHON), "-m", "ruff", "format", "--check"]),
        ("mypy", [str(PYTHON), "-m", "mypy"]),
        ("import contracts", [str(SCRIPTS / "lint-imports")]),
    )
    failed = []
    for name, command in checks:
        print(f"== {name}", flush=True)
        if subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode:
            failed.append(name)
    print(f"Failed: {', '.join(failed)}" if failed else "All clean.", flush=True)
    return 1 if failed else 0


def bench(arguments: list[str]) -> int:
    ensure_environment()
    os.chdir(ROOT)
    return hand_over(["-m", "tests.benchmarks", *arguments], environment())


def environment() -> dict[str, str]:
    """The person's variables without those that would make the environment load packages from elsewhere."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def hand_over(arguments: list[str], variables: dict[str, str]) -> int:
    """Become the environment's Python, so that signals, terminal and exit code are its own.

    Windows has no such call; there it is a child, and Ctrl+C reaches both.
    """
    command = [str(PYTHON), *arguments]
    if sys.platform != "win32":
        os.execve(PYTHON, command, variables)
    with subprocess.Popen(command, env=variables) as child:
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                return child.wait()


def ensure_environment() -> None:
    """Make ``.venv`` what the lock says, if it isn't already. Quick when nothing changed: no process, no network."""
    if stamp_is_current():
        return
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            raise DevError(f"this Python has no {module} module (Debian and Ubuntu: apt-get install python3-venv).")
    try:
        with only_one():
            make_environment()
    except OSError as error:
        reason = f"{error.strerror or error} ({error.filename or VENV})"
        raise DevError(f"the environment can't be made: {reason}.") from error


def make_environment() -> None:
    stamp = read_stamp()
    if stamp.get("environment") != environment_hash() or not packages_are_there(stamp):
        print("Making the environment in .venv (once; it takes a minute or two) ...", file=sys.stderr, flush=True)
        if VENV.exists():
            shutil.rmtree(VENV)
        # The base interpreter, for this one may be the environment that was just removed.
        base = getattr(sys, "_base_executable", sys.executable)
        checked([base, "-m", "venv", str(VENV)])
        pip("--no-deps", "--requirement", str(LOCK))
    elif stamp.get("project") == project_hash():
        return  # another dev.py made it while this one waited
    pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    write_stamp()


def pip(*arguments: str) -> None:
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    checked([*command, *arguments])


def checked(command: list[str]) -> None:
    """Run a step quietly; what it printed is shown in one line if it fails."""
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    output = f"{done.stdout}\n{done.stderr}"
    for sign, meaning in PIP_TROUBLE:
        if sign in output:
            raise DevError(f"the environment can't be made: {meaning}")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    reason = (errors or lines or [f"exit code {done.returncode}"])[-1]
    raise DevError(f"the environment can't be made: {reason}")


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Hold the guard file, so that two runs at a time don't make one environment; the system frees it if we die."""
    with GUARD.open("a+b") as guard:
        if sys.platform == "win32":
            while True:
                with contextlib.suppress(OSError):
                    msvcrt.locking(guard.fileno(), msvcrt.LK_LOCK, 1)
                    break
        else:
            try:
                fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("Another dev.py is making the environment; waiting for it ...", file=sys.stderr, flush=True)
                fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def environment_hash() -> str:
    """What the installed packages depend on: the lock, this kind of Python, and where the checkout lies."""
    place = f"{sys.implementation.cache_tag} {sys.platform} {ROOT}\n"
    return hashlib.sha256(place.encode() + LOCK.read_bytes()).hexdigest()


def project_hash() -> str:
    return hashlib.sha256(PROJECT.read_bytes()).hexdigest()


def installed_packages() -> list[str]:
    """The names of the installed packages' metadata folders: cheap to list, and gone when a package is."""
    return sorted(path.name for path in VENV.glob(f"{SITE_PACKAGES}/*.dist-info"))


def packages_are_there(stamp: dict[str, object]) -> bool:
    recorded = stamp.get("packages")
    return PYTHON.exists() and isinstance(recorded, list) and set(recorded) <= set(installed_packages())


def read_stamp() -> dict[str, object]:
    """What was made, written last of all: a half-made environment has none."""
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def write_stamp() -> None:
    stamp = {"environment": environment_hash(), "project": project_hash(), "packages": installed_packages()}
    fresh = STAMP.with_suffix(".new")
    fresh.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
    fresh.replace(STAMP)


def stamp_is_current() -> bool:
    stamp = read_stamp()
    return (
        stamp.get("environment") == environment_hash()
        and stamp.get("project") == project_hash()
        and packages_are_there(stamp)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
