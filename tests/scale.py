"""How many rounds a costly test takes: few by default, the full count under ``--all``."""

import os


def scaled(default: int, full: int) -> int:
    """``full`` in a run with ``--all`` (``RECALL_TEST_ALL=1``), else ``default``."""
    return full if os.environ.get("RECALL_TEST_ALL") == "1" else default
