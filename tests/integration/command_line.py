"""Running the command line: in this process where that is enough, else as a program of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What a command that succeeded has printed."""
        assert (self.code, self.err) == (0, "")
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The same for JSON lines."""
        assert (self.code, self.err) == (0, "")
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def failure(self) -> str:
        """The one line on standard error that a failed command leaves, and nothing else."""
        assert self.code in (1, 2)
        assert self.out == ""
        assert self.err.startswith("recall: ")
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        return self.err.removeprefix("recall: ").strip()


Recall = Callable[..., Ran]


def start(*arguments: str, **variables: str) -> "subprocess.Popen[bytes]":
    """Start the command as a program, with pipes to all its streams and no terminal. To be used with ``with``."""
    return subprocess.Popen(
        [sys.executable, "-m", "recall_app", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
