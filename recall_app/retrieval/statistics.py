"""How many documents of an app hold a term: exact counts, kept for as long as the documents do not change."""

import threading

from recall_app.store import search_index, search_queries
from recall_app.store.connection import Connection

_MOST_KEPT = 20_000


class AppStatistics:
    """Counts by app and expression. May be shared between threads; each caller brings its own connection.

    The counts are of the app alone, so that another app's text changes neither order nor cost (contracts §4).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._counts: dict[tuple[int, str], int] = {}

    def app_documents(self, connection: Connection, app_id: int) -> int:
        """Documents of the app."""
        return self._count(connection, app_id, "", f'scope : "{search_index.scope_token(app_id)}"')

    def documents(self, connection: Connection, app_id: int, expression: str) -> int:
        """Documents of the app that match the expression."""
        return self._count(connection, app_id, expression, search_queries.scoped(app_id, expression))

    def _count(self, connection: Connection, app_id: int, expression: str, match: str) -> int:
        generation = search_index.meta(connection, "generation")
        with self._lock:
            if generation != self._generation or len(self._counts) > _MOST_KEPT:
                self._generation = generation
                self._counts.clear()
            known = self._counts.get((app_id, expression))
        if known is not None:
            return known
        count = search_queries.count_documents(connection, match)
        with self._lock:
            if generation == self._generation:
                self._counts[(app_id, expression)] = count
        return count
