"""The kinds of history that Recall can import."""

from collections.abc import Mapping
from types import MappingProxyType

from recall_app.domain.errors import InvalidInputError
from recall_app.sources.dyad import DyadReader
from recall_app.sources.reader import SourceReader
from recall_app.sources.sample import SampleReader

_READERS: tuple[SourceReader, ...] = (DyadReader(), SampleReader())
READERS: Mapping[str, SourceReader] = MappingProxyType({reader.kind: reader for reader in _READERS})
"""The readers by kind, in the order in which they are listed."""


def reader_of(kind: str) -> SourceReader:
    """Raises InvalidInputError, naming the kinds there are, when there is no such kind."""
    reader = READERS.get(kind)
    if reader is None:
        raise InvalidInputError(f"There is no such kind of history: choose one of {', '.join(READERS)}.")
    return reader
