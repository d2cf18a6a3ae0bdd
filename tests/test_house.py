"""The house's habits that no linter holds: sizes, exemptions, and the lock."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
LONGEST_MODULE = 500
LONGEST_FUNCTION = 60


def modules(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function's name and how many lines it takes, docstring and decorators aside."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            yield node.name, (node.end_lineno or first.lineno) - first.lineno + 1


def test_no_module_is_longer_than_500_lines() -> None:
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules("recall_app", "packaging")}
    assert sizes
    assert {str(path): lines for path, lines in sizes.items() if lines > LONGEST_MODULE} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {name} ({lines} lines)"
        for path in modules("recall_app", "packaging")
        for name, lines in functions(path)
        if lines > LONGEST_FUNCTION
    ]
    assert long == []


def test_no_linter_or_type_checker_is_told_to_look_away() -> None:
    # Spelled in pieces, so that this file is not its own finding.
    exemption = re.compile("|".join(("# *" + "noqa", "# *type: *" + "ignore", "# *pragma: *" + "no cover")))
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in modules("recall_app", "packaging", "tests")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if exemption.search(line)
    ]
    assert found == []


def project() -> dict[str, object]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        table: dict[str, object] = tomllib.load(file)["project"]
    return table


def locked() -> dict[str, Requirement]:
    lines = (ROOT / "packaging" / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(one.name): one for one in map(Requirement, lines)}


def test_the_lock_pins_each_package_exactly() -> None:
    loose = [str(one) for one in locked().values() if not re.fullmatch(r"==[\w.]+", str(one.specifier))]
    assert loose == []


def wanted() -> list[Requirement]:
    """What ``pyproject.toml`` asks for, the developer's tools included."""
    table = project()
    direct, extra = table["dependencies"], table["optional-dependencies"]
    assert isinstance(direct, list)
    assert isinstance(extra, dict)
    return [Requirement(line) for line in (*direct, *extra["dev"])]


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_the_lock_satisfies(requirement: Requirement) -> None:
    pinned = locked()[canonicalize_name(requirement.name)]
    version = str(pinned.specifier).removeprefix("==")
    assert requirement.specifier.contains(Version(version), prereleases=True)
    assert pinned.marker is None or pinned.marker.evaluate()


def test_the_broken_pyside_is_excluded() -> None:
    pyside = next(one for one in wanted() if one.name == "PySide6-Essentials")
    assert not pyside.specifier.contains("6.12.0")
