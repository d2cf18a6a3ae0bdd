"""What a reader of another program's history is: it finds it, recognises it and yields what is in it.

A reader never writes, neither at the source nor in our store; ``importing.import_source`` alone stores what it yields.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from recall_app.domain.records import SourceItem


@dataclass(frozen=True, slots=True)
class SourceSize:
    """How many messages are about to come, where the reader can tell beforehand (for progress only)."""

    messages: int


@dataclass(frozen=True, slots=True)
class SourceNote:
    """One line that the person should read beside the counts."""

    text: str


StreamItem = SourceItem | SourceSize | SourceNote


class SourceReader(Protocol):
    """One kind of history."""

    @property
    def kind(self) -> str:
        """The name in the store and on the command line: lower case, digits and hyphens."""
        ...

    @property
    def label(self) -> str:
        """The name for people."""
        ...

    @property
    def counts_ids(self) -> bool:
        """Are ids of apps and chats counted within one history, so that two histories can use the same id for
        different things? Then an app or chat is the same only if its time of creation is the same too."""
        ...

    def detect(self, path: Path) -> bool:
        """Is there such a history at ``path`` (file or folder)? Never raises."""
        ...

    def discover(self) -> Sequence[Path]:
        """The histories of this kind in their usual places on this computer."""
        ...

    def read(self, path: Path) -> Iterator[StreamItem]:
        """Yield all of the history at ``path`` in bounded memory: each chat, then all its messages in their order.

        What can't be taken is yielded as ``SkippedRecord``; the rest still comes. A generator is closed when the import
        stops early.

        Raises:
            RecallError: of kind ``Source``, when nothing can be read at all.
        """
        ...
