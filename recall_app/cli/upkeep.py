"""``recall backup`` and ``recall doctor``: a copy of everything, and what state everything is in."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from recall_app.cli.faults import recall_version
from recall_app.cli.options import AsJson, DataDir, opened
from recall_app.cli.output import print_json, print_table, print_text
from recall_app.config import paths
from recall_app.domain.errors import RecallError

UNSOUND = 1
"""Exit code of a doctor who found something."""


def add_to(commands: typer.Typer) -> None:
    commands.command("backup")(backup)
    commands.command("doctor")(doctor)


def backup(
    file: Annotated[Path, typer.Argument(help="The new file to write.")],
    *,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Write a consistent copy of the store, also while Recall is running."""
    with opened(data_dir) as store:
        size = store.service.backup(file)
    if as_json:
        print_json({"file": str(file.absolute()), "bytes": size})
    else:
        print_text(f"{file}: {size:,} bytes. Settings are not in it.")


def doctor(*, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Check the store; prints versions, its state and where the files are. Exit code 1 if something is wrong."""
    folder = paths.data_dir(data_dir)
    report: dict[str, Any] = {
        "recall_version": recall_version(),
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "data_dir": str(folder),
        "database": str(paths.database_path(folder)),
        "settings": str(paths.settings_path(folder)),
        "logs": str(paths.log_dir(folder)),
    }
    try:
        with opened(folder) as store:
            report |= asdict(store.service.examine())
            failed = store.service.failed_messages()
            report["failed_messages"] = [
                {"message_id": one.message_id, "chat_id": one.chat_id, "error_class": one.error_class} for one in failed
            ]
    except RecallError as error:
        report["problems"] = [error.message]
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    if report["problems"]:
        raise typer.Exit(UNSOUND)


def _print_report(report: dict[str, Any]) -> None:
    lists = ("problems", "failed_messages")
    print_table(
        ("what", "value"),
        ((name.replace("_", " "), _words(value)) for name, value in report.items() if name not in lists),
        empty="",
    )
    print_text()
    for failed in report.get("failed_messages", ()):
        print_text(f"Message #{failed['message_id']} could not be indexed ({failed['error_class']}).")
    for problem in report["problems"]:
        print_text(f"Problem: {problem}")
    if not report["problems"]:
        print_text("All is well.")


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
