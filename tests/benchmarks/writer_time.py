"""How long each write transaction of a connection lasts, from its BEGIN to the end of its COMMIT."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw


@contextmanager
def transactions_of(connection: apsw.Connection) -> Iterator[list[float]]:
    """Collects the transactions that end inside the block, in milliseconds, checkpoints at their end included."""
    held: list[float] = []
    began = 0.0

    def note(event: dict[str, Any]) -> None:
        nonlocal began
        match event["sql"]:
            case "BEGIN IMMEDIATE":
                began = time.perf_counter()
            case "COMMIT":
                held.append((time.perf_counter() - began) * 1000)

    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    try:
        yield held
    finally:
        connection.trace_v2(0, None)
