"""What there is and how much of it is indexed: ``apps``, ``chats``, ``index``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from recall_app.cli.options import AppName, AsJson, DataDir, opened
from recall_app.cli.output import console, iso, print_json, print_table, when
from recall_app.domain.records import App, Chat, Coverage
from recall_app.indexing.indexer import IndexProgress
from recall_app.service import LocalStore


def add_to(commands: typer.Typer) -> None:
    commands.command("index")(index)
    commands.command("apps")(apps)
    commands.command("chats")(chats)


def index(
    *,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the whole index anew.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Bring the search index up to date; prints how much of each app it holds."""
    with opened(data_dir) as store:
        done = drain(store, rebuild=rebuild)
        coverage = [(app, store.service.coverage(app.id)) for app in store.service.apps()]
        total = store.service.coverage()
        if as_json:
            print_json(
                {
                    "indexed_now": done,
                    **_coverage_json(total),
                    "apps": [{"id": app.id, "name": app.name, **_coverage_json(held)} for app, held in coverage],
                }
            )
        else:
            print_coverage(coverage)


def print_coverage(coverage: list[tuple[App, Coverage]]) -> None:
    print_table(
        ("#id", "app", "index", "#messages", "#pending", "#failed"),
        (
            (Text(str(app.id)), app.name, held.status.value, held.total, held.pending, held.failed)
            for app, held in coverage
        ),
        empty="There is no app yet: “recall import” brings one in.",
    )


def _coverage_json(held: Coverage) -> dict[str, Any]:
    return {
        "index_status": held.status.value,
        "messages": held.total,
        "pending_messages": held.pending,
        "failed_messages": held.failed,
    }


def drain(store: LocalStore, *, rebuild: bool = False) -> int:
    """Index all that is queued, with a progress bar where somebody watches; how many messages were done."""
    with _index_progress() as progress:
        return store.index(rebuild=rebuild, progress=progress)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on standard error; nothing at all where that is no terminal."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console(to_stderr=True),
        disable=not console(to_stderr=True).is_terminal,
        transient=True,
    ) as bar:
        yield bar


@contextmanager
def _index_progress() -> Iterator[Callable[[IndexProgress], None]]:
    with progress_bar() as bar:
        task = bar.add_task("Indexing", total=None, rate="")

        def show(progress: IndexProgress) -> None:
            bar.update(
                task,
                completed=progress.done,
                total=progress.done + progress.pending,
                rate=f"{progress.rate:,.0f} messages/s",
            )

        yield show


def apps(*, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List the apps."""
    with opened(data_dir) as store:
        rows = store.service.apps()
        if as_json:
            print_json([_app_json(app) for app in rows])
        else:
            print_table(
                ("#id", "app", "#chats", "#messages", "folder"),
                ((Text(str(app.id)), app.name, app.chat_count, app.message_count, app.path) for app in rows),
                empty="There is no app yet: “recall import” brings one in.",
            )


def _app_json(app: App) -> dict[str, Any]:
    return {
        "id": app.id,
        "name": app.name,
        "path": app.path,
        "created_at": iso(app.created_at),
        "updated_at": iso(app.updated_at),
        "chats": app.chat_count,
        "messages": app.message_count,
    }


def chats(*, app: AppName, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List the chats of an app, the one with the newest message first."""
    with opened(data_dir) as store:
        rows = store.service.chats(store.service.app(app).id)
        if as_json:
            print_json([_chat_json(chat) for chat in rows])
        else:
            print_table(
                ("#id", "last message (UTC)", "#messages", "", "title"),
                (
                    (
                        Text(str(chat.id)),
                        when(chat.last_message_at),
                        chat.message_count,
                        _marks(chat),
                        chat.title or "untitled",
                    )
                    for chat in rows
                ),
                empty="This app has no chat.",
            )


def _marks(chat: Chat) -> str:
    marks = [word for word, there in (("private", chat.is_private), ("favourite", chat.is_favorite)) if there]
    return ", ".join(marks)


def _chat_json(chat: Chat) -> dict[str, Any]:
    return {
        "id": chat.id,
        "app_id": chat.app_id,
        "title": chat.title,
        "created_at": iso(chat.created_at),
        "last_message_at": iso(chat.last_message_at),
        "messages": chat.message_count,
        "source": chat.source,
        "source_key": chat.source_key,
        "mode": chat.mode,
        "model": chat.model,
        "is_private": chat.is_private,
        "is_favorite": chat.is_favorite,
    }
