"""``recall ask`` and ``recall consulted``: a turn from the terminal, and the ledger of what turns looked up."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from recall_app.agent.consent import Asker, ConsentGate
from recall_app.agent.modes import Mode
from recall_app.agent.terminal import terminal_asker
from recall_app.cli.options import AnyApp, AppName, AsJson, ChatId, DataDir, encodable, opened
from recall_app.cli.output import iso, print_json, print_table, print_text, when
from recall_app.config import paths
from recall_app.config.settings import SettingsStore
from recall_app.domain.records import Consultation, NewConsultation
from recall_app.domain.text import one_line
from recall_app.service import LocalStore

if TYPE_CHECKING:
    from recall_app.agent.turn import TurnResult

ARGUMENT_CHARACTERS = 60
BUILT_IN_MODEL = "offline"


def add_to(commands: typer.Typer) -> None:
    commands.command("ask")(ask)
    commands.command("consulted")(consulted)


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.", callback=encodable)],
    *,
    app: AppName,
    mode: Annotated[Mode, typer.Option("--mode", help="Which tools the assistant has.")] = Mode.AGENT,
    model: Annotated[str, typer.Option("--model", help="So far only the built-in assistant.")] = BUILT_IN_MODEL,
    chat: ChatId = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Ask the assistant about an app; prints the answer and the chats that it consulted."""
    folder = paths.data_dir(data_dir)
    with opened(folder) as store, terminal_asker() as asker:
        app_id = store.service.app(app).id
        result = take_turn(store, folder, asker, app_id, question, chat_id=chat, mode=mode, model=model)
        if as_json:
            print_json(turn_json(result))
        else:
            print_turn(result)


def take_turn(
    store: LocalStore,
    folder: Path,
    asker: Asker,
    app_id: int,
    question: str,
    *,
    chat_id: int | None = None,
    mode: Mode = Mode.AGENT,
    model: str = BUILT_IN_MODEL,
) -> "TurnResult":
    """One turn, to its end.

    Raises:
        RecallError: no such chat or model, or the turn failed.
    """
    # pydantic-ai takes over a second to import; only commands that take a turn wait for it.
    from recall_app.agent.providers import choose_model
    from recall_app.agent.turn import run_turn

    gate = ConsentGate(SettingsStore(paths.settings_path(folder)), asker)
    chosen = choose_model(model)
    turn = run_turn(store.service, gate, app_id=app_id, question=question, chat_id=chat_id, mode=mode, chosen=chosen)
    try:
        return asyncio.run(turn)
    finally:
        # The question and its answer are history now.
        store.indexer.drain()


def print_turn(result: "TurnResult") -> None:
    """The answer, then the chats behind it, then where the look-ups are kept."""
    print_text(result.answer)
    print_text()
    messages: dict[int, list[int]] = {}
    titles: dict[int, str | None] = {}
    for source in result.consulted:
        messages.setdefault(source.chat_id, []).append(source.message_id)
        titles[source.chat_id] = source.chat_title
    print_table(
        ("#chat", "consulted", "messages"),
        (
            (Text(str(chat_id)), titles[chat_id] or "untitled", ", ".join(f"#{number}" for number in sorted(numbers)))
            for chat_id, numbers in messages.items()
        ),
        empty="No chat was consulted.",
    )
    for call in result.calls:
        if call.error is not None:
            print_text(f"{call.tool}: {call.error.message}", style="dim")


def turn_json(result: "TurnResult") -> dict[str, Any]:
    return {
        "chat_id": result.chat_id,
        "user_message_id": result.user_message_id,
        "message_id": result.message_id,
        "answer": result.answer,
        "consulted": [
            {
                "chat_id": source.chat_id,
                "title": source.chat_title,
                "message_id": source.message_id,
                "created_at": source.created_at,
                "text": source.text,
            }
            for source in result.consulted
        ],
        "calls": [
            {
                "consultation_id": call.consultation_id,
                "tool": call.tool,
                "arguments": None if call.arguments is None else call.arguments.model_dump(exclude_unset=True),
                "decision": call.decision,
                "outcome": call.outcome,
                "elapsed_ms": round(call.elapsed_ms, 3),
            }
            for call in result.calls
        ],
    }


def consulted(
    *,
    chat: ChatId = None,
    app: AnyApp = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """The ledger: what was looked up, when, by whom, and where the text went."""
    with opened(data_dir) as store:
        app_id = None if app is None else store.service.app(app).id
        rows = store.service.consultations(chat_id=chat, app_id=app_id)
        if as_json:
            print_json([consultation_json(row) for row in rows])
        else:
            print_consultations(rows)


def print_consultations(rows: Sequence[Consultation]) -> None:
    """Three lines a look-up: what and when, how much went where, and from which chats."""
    for row in rows:
        entry = row.entry
        head = Text(f"#{row.id}  {when(entry.at)} UTC  ")
        head.append(f"{one_line(entry.tool)}  {one_line(_asked_for(entry), ARGUMENT_CHARACTERS)}", style="bold")
        print_text(head)
        amount = f"{entry.result_count:,} results, {entry.bytes:,} bytes"
        print_text(f"    {entry.outcome}: {amount}; permission: {entry.decision}; {_where(entry)}")
        for chat_id, messages in _by_chat(entry).items():
            print_text(f"    from chat #{chat_id}: {', '.join(f'#{number}' for number in messages)}", style="dim")
    if not rows:
        print_text("Nothing has been consulted yet.")


def _by_chat(entry: NewConsultation) -> dict[int, list[int]]:
    chats: dict[int, list[int]] = {}
    for source in entry.messages:
        chats.setdefault(source.chat_id, []).append(source.message_id)
    return chats


def _asked_for(entry: NewConsultation) -> str:
    """The query, or the chat that was read; else the arguments as they came."""
    try:
        arguments = json.loads(entry.arguments_json)
        if isinstance(arguments, dict) and "query" in arguments:
            return str(arguments["query"])
        if isinstance(arguments, dict) and "chat_id" in arguments:
            around = arguments.get("around_message_id")
            return f"chat #{arguments['chat_id']}" + (f" around message #{around}" if around is not None else "")
    except ValueError:
        pass
    return entry.arguments_json


def _where(entry: NewConsultation) -> str:
    if entry.is_local:
        return "stays on this computer"
    return f"to {entry.provider}" if entry.model is None else f"to {entry.provider} · {entry.model}"


def consultation_json(row: Consultation) -> dict[str, Any]:
    return {"id": row.id, **asdict(row.entry), "at": iso(row.entry.at)}
