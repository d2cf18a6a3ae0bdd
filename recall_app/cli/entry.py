"""The way in, and the only place where an error becomes a line and an exit code."""

import contextlib
import io
import sys
from collections.abc import Sequence

import typer

from recall_app.cli import asking, demo, histories, importing, searching, tools, upkeep
from recall_app.cli.faults import describe_fault
from recall_app.cli.options import DataDir, Invocation
from recall_app.cli.output import one_line_to_stderr
from recall_app.domain.errors import ErrorKind, RecallError

FAILED = 1
STOPPED = 130
"""What shells give a program that Ctrl+C ended: 128 + SIGINT."""

commands = typer.Typer(
    name="recall",
    help="Find what was said in earlier chats, and see what your agent looked up in them.",
    epilog="Every command has --help, --json and --data-dir.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group in (demo, importing, histories, searching, asking, tools, upkeep):
    group.add_to(commands)


@commands.callback(invoke_without_command=True)
def window(context: typer.Context, *, data_dir: DataDir = None) -> None:
    """Find what was said in earlier chats, and see what your agent looked up in them."""
    if context.invoked_subcommand is None:
        raise RecallError(ErrorKind.UNSUPPORTED, "The window is not there yet; see `recall demo` and `recall --help`.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (``sys.argv`` without ``arguments``); the exit code: 0, 1 failed, 2 usage, 130 stopped."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that can't take a character gets a "?", never a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    invocation = Invocation()
    try:
        outcome = commands(args=arguments, prog_name="recall", standalone_mode=False, obj=invocation)
    except typer.TyperException as error:
        # What typer found wrong with the words of the command.
        one_line_to_stderr(error.format_message())
        return error.exit_code
    except RecallError as error:
        one_line_to_stderr(error.message)
        return STOPPED if error.kind is ErrorKind.CANCELLED else FAILED
    except (typer.Abort, KeyboardInterrupt):
        outcome = STOPPED
    except Exception as error:
        one_line_to_stderr(describe_fault(error, invocation.data_dir))
        return FAILED
    if outcome == STOPPED:
        with contextlib.suppress(OSError):
            one_line_to_stderr("Stopped.")
    return outcome if isinstance(outcome, int) else 0
