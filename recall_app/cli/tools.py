"""``recall tool``: exactly the call that an agent makes, made by the person."""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from recall_app.agent.calls import run_person_call
from recall_app.cli.faults import describe_fault
from recall_app.cli.options import AnyApp, AsJson, ChatId, DataDir, opened
from recall_app.cli.output import write_line
from recall_app.domain.consulting import Viewer
from recall_app.domain.errors import InvalidInputError, NotFoundError, RecallError
from recall_app.domain.text import replace_surrogates
from recall_app.service import RecallService

INTERNAL = "Internal"
"""``error.kind`` of a call that failed by a bug of ours; every other kind is an ``ErrorKind``."""

STANDARD_INPUT = "-"


def add_to(commands: typer.Typer) -> None:
    commands.command("tool")(tool)


def tool(
    name: Annotated[str | None, typer.Argument(help="search_chats or read_chat.", show_default=False)] = None,
    arguments: Annotated[
        str | None, typer.Argument(metavar="ARGS_JSON", help="Its arguments, as a JSON object.", show_default=False)
    ] = None,
    *,
    app: AnyApp = None,
    chat: ChatId = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="FILE",
            help='Answer each line {"tool", "app", "chat", "args"} of this file (-: standard input) at once.',
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Make one of the agent's tool calls yourself; prints the JSON that the agent would get."""
    if batch is not None:
        if name is not None or arguments is not None:
            raise typer.BadParameter("--batch takes tools and arguments from its lines, not from the command.")
        with opened(data_dir) as store, _batch_lines(batch) as lines:
            answer_batch(store.service, lines, app, chat, data_dir)
        return
    if name is None or app is None:
        raise typer.BadParameter("a tool's name and --app are needed (or --batch).")
    with opened(data_dir) as store:
        call = run_person_call(
            store.service, viewer(store.service, app, chat), name, replace_surrogates(arguments or "{}")
        )
    if call.error is not None:
        raise call.error
    write_line(call.text)


def viewer(service: RecallService, app: int | str, chat: int | None) -> Viewer:
    """Whose eyes a call has.

    Raises:
        RecallError: no such app, or no such chat in it.
    """
    app_id = service.app(app).id
    if chat is not None and not service.is_chat_of(chat, app_id):
        raise NotFoundError
    return Viewer(app_id, chat)


class _BatchLine(BaseModel):
    """One call of a batch; ``app`` and ``chat`` may come from the command instead."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tool: str
    app: int | str | None = None
    chat: int | None = None
    args: Any = None


def answer_batch(
    service: RecallService, lines: Iterable[bytes], app: str | None, chat: int | None, data_dir: Path | None
) -> None:
    """One answer a line, in order, each written before the next line is read. Empty lines are passed over."""
    for line in lines:
        if line.strip():
            write_line(json.dumps(_answer(service, line, app, chat, data_dir), ensure_ascii=False))


def _answer(
    service: RecallService, line: bytes, app: str | None, chat: int | None, data_dir: Path | None
) -> dict[str, Any]:
    try:
        asked = _parse(line)
        chosen = app if asked.app is None else asked.app
        if chosen is None:
            raise InvalidInputError('The line needs an "app", by id or name.')
        eyes = viewer(service, chosen, chat if asked.chat is None else asked.chat)
        call = run_person_call(service, eyes, asked.tool, asked.args)
    except RecallError as error:
        return _failed(str(error.kind), error.message, 0.0)
    except Exception as error:
        return _failed(INTERNAL, describe_fault(error, data_dir), 0.0)
    elapsed = round(call.elapsed_ms, 3)
    if call.error is not None:
        return _failed(str(call.error.kind), call.error.message, elapsed)
    return {"ok": True, "result": json.loads(call.text), "elapsed_ms": elapsed}


def _failed(kind: str, message: str, elapsed_ms: float) -> dict[str, Any]:
    return {"ok": False, "error": {"kind": kind, "message": message}, "elapsed_ms": elapsed_ms}


def _parse(line: bytes) -> _BatchLine:
    try:
        return _BatchLine.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidInputError(f"Not a batch line: {place + ': ' if place else ''}{first['msg']}.") from None


@contextmanager
def _batch_lines(file: str) -> Iterator[Iterable[bytes]]:
    if file == STANDARD_INPUT:
        yield typer.get_binary_stream("stdin")
        return
    with ExitStack() as stack:
        try:
            lines = stack.enter_context(Path(file).open("rb"))
        except OSError as error:
            raise InvalidInputError(f"{file} can't be read ({error.strerror}).") from error
        yield lines
