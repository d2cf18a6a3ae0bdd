"""A store to fill, for every test here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.building import Builder, building


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Builder]:
    with building(tmp_path / "recall.db") as builder:
        yield builder
