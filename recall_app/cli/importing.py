"""``recall import`` and ``recall sources``: histories of other programs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from recall_app.cli.histories import drain, progress_bar
from recall_app.cli.options import AsJson, DataDir, encodable, opened
from recall_app.cli.output import print_json, print_table, print_text
from recall_app.service import LocalStore
from recall_app.sources.importing import Counts, ImportProgress, ImportReport, import_source
from recall_app.sources.reader import SourceReader
from recall_app.sources.registry import READERS, reader_of

SHOWN_SKIPS = 5


def add_to(commands: typer.Typer) -> None:
    commands.command("import")(import_history)
    commands.command("sources")(sources)


def import_history(
    kind: Annotated[str, typer.Argument(help="What kind of history it is; “recall sources” lists them.")],
    path: Annotated[Path, typer.Argument(help="Its file or folder, which is only read.")],
    *,
    app: Annotated[
        str | None,
        typer.Option("--app", help="Put all of it into this app.", callback=encodable, show_default=False),
    ] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Import one history, or what is new in it, and index it."""
    reader = reader_of(kind)
    with opened(data_dir) as store:
        report = bring_in(store, reader, path, app)
        indexed = drain(store)
        coverage = store.service.coverage()
    if as_json:
        print_json(
            {
                "kind": kind,
                "path": str(path),
                **asdict(report),
                "indexed_now": indexed,
                "index_status": coverage.status.value,
                "pending_messages": coverage.pending,
            }
        )
    else:
        print_text(f"{reader.label}: {path}\n")
        print_report(report)
        print_text(f"\n{indexed:,} messages indexed.")


def bring_in(store: LocalStore, reader: SourceReader, path: Path, app: str | None = None) -> ImportReport:
    """Import with a progress bar where somebody watches."""
    with _import_progress() as progress:
        return import_source(reader, path, store.writer, app_name=app, progress=progress)


@contextmanager
def _import_progress() -> Iterator[Callable[[ImportProgress], None]]:
    with progress_bar() as bar:
        task = bar.add_task("Importing", total=None, rate="")

        def show(progress: ImportProgress) -> None:
            rate = f"{progress.rate:,.0f} messages/s"
            bar.update(task, completed=progress.done, total=progress.total, rate=rate)

        yield show


def print_report(report: ImportReport) -> None:
    """Counts, then what the person should know of."""
    print_table(
        ("", "#new", "#changed", "#unchanged", "#skipped", "#failed"),
        (_row("chats", report.chats), _row("messages", report.messages)),
        empty="",
    )
    for note in report.notes:
        print_text(note)
    for record in report.skipped_records[:SHOWN_SKIPS]:
        print_text(f"Skipped {record.place}: {record.reason}")
    more = len(report.skipped_records) - SHOWN_SKIPS
    if more > 0:
        print_text(f"and {more:,} more; --json lists up to a hundred.")


def _row(name: str, counts: Counts) -> tuple[str, int, int, int, int, int]:
    return name, counts.new, counts.changed, counts.unchanged, counts.skipped, counts.failed


def sources(*, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List the kinds of history that can be imported, and what was found on this computer."""
    found: list[dict[str, Any]] = [
        {"kind": kind, "label": reader.label, "found": [str(path) for path in reader.discover()]}
        for kind, reader in READERS.items()
    ]
    if as_json:
        print_json(found)
    else:
        print_table(
            ("kind", "history of", "found on this computer"),
            ((source["kind"], source["label"], path) for source in found for path in source["found"] or [None]),
            empty="",
        )
