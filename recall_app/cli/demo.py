"""``recall demo``: Recall's main job from beginning to end, on the sample workspace."""

import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from rich.text import Text

from recall_app.agent.consent import NoOneToAsk
from recall_app.cli.asking import consultation_json, print_consultations, print_turn, take_turn, turn_json
from recall_app.cli.histories import drain
from recall_app.cli.importing import bring_in
from recall_app.cli.options import AsJson, DataDir, opened
from recall_app.cli.output import print_json, print_text
from recall_app.domain.errors import ErrorKind, RecallError
from recall_app.sources.registry import reader_of

SAMPLE = "sample"
APP = "Storefront"
QUESTION = "Why did we drop refresh tokens?"


def add_to(commands: typer.Typer) -> None:
    commands.command("demo")(demo)


def demo(*, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show the main job on a sample workspace: index it, ask one question, see what was consulted.

    All of it happens in a folder that is thrown away afterwards; --data-dir says where that folder is made.
    """
    reader = reader_of(SAMPLE)
    found = reader.discover()
    if not found:
        raise RecallError(ErrorKind.SOURCE, "The sample workspace is not part of this installation.")
    with TemporaryDirectory(prefix="recall-demo-", dir=data_dir) as folder, opened(Path(folder)) as store:
        started = time.perf_counter()
        report = bring_in(store, reader, found[0])
        drain(store)
        seconds = time.perf_counter() - started
        app = store.service.app(APP)
        if not as_json:
            apps = " and ".join(each.name for each in store.service.apps())
            print_text(f"The sample workspace: {apps}, {report.chats.new:,} chats, {report.messages.new:,} messages,")
            print_text(f"imported and indexed in {seconds:.1f} s.\n")
            print_text(Text.assemble((f"{app.name}: ", "dim"), (QUESTION, "bold")))
            print_text()
        result = take_turn(store, Path(folder), NoOneToAsk(), app.id, QUESTION)
        rows = store.service.consultations()
        if as_json:
            print_json(
                {
                    "chats": asdict(report.chats),
                    "messages": asdict(report.messages),
                    "app": app.name,
                    "question": QUESTION,
                    **turn_json(result),
                    "ledger": [consultation_json(row) for row in rows],
                }
            )
        else:
            print_turn(result)
            print_text("\nWhat the assistant looked up, as the ledger keeps it:\n")
            print_consultations(rows)
