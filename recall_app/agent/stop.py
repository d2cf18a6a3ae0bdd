"""Stopping a turn from another thread."""

import threading
from collections.abc import Callable


class StopSignal:
    """Set once, for good, from any thread. Each turn has its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._reactions: list[Callable[[], None]] = []

    @property
    def stopped(self) -> bool:
        with self._lock:
            return self._stopped

    def stop(self) -> None:
        """Stop the turn. It ends soon afterwards, with what it has written so far kept."""
        with self._lock:
            reactions = [] if self._stopped else self._reactions
            self._stopped = True
        for react in reactions:
            react()

    def on_stop(self, react: Callable[[], None]) -> None:
        """Have ``react`` called by whoever stops; at once if that has happened. It must be safe on any thread."""
        with self._lock:
            if not self._stopped:
                self._reactions.append(react)
                return
        react()
