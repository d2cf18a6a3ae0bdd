"""The options that many commands share, and opening the store for a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from recall_app.config import paths
from recall_app.domain.text import replace_surrogates
from recall_app.service import LocalStore, open_store


@dataclass(slots=True)
class Invocation:
    """What the way in has to know of a command that failed."""

    data_dir: Path | None = None


def _note_data_dir(context: typer.Context, value: Path | None) -> Path | None:
    """Given before the command's name, it holds for the command; given after it, it goes first."""
    invocation = context.find_object(Invocation)
    if invocation is None:
        return value
    invocation.data_dir = value or invocation.data_dir
    return invocation.data_dir


def encodable(value: str | None) -> str | None:
    """Bytes on the command line that are no text become U+FFFD."""
    return value if value is None else replace_surrogates(value)


DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Use this data folder.", callback=_note_data_dir, show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
AppName = Annotated[str, typer.Option("--app", help="The app, by id or name.", callback=encodable)]
AnyApp = Annotated[
    str | None,
    typer.Option("--app", help="Only this app, by id or name.", callback=encodable, show_default=False),
]

ChatId = Annotated[int | None, typer.Option("--chat", help="The chat, by id.", show_default=False)]


@contextmanager
def opened(data_dir: Path | None) -> Iterator[LocalStore]:
    """The store in the chosen data folder; both are made if they aren't there.

    Raises:
        RecallError: the folder or its store can't be used.
    """
    with open_store(paths.database_path(paths.data_dir(data_dir))) as store:
        yield store
