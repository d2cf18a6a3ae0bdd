from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.worlds import World, world


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as built:
        yield built
