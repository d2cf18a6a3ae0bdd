"""Asking for consent on a terminal."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from recall_app.agent.consent import DECLINED, Asker, Choice, ConsentAnswer, ConsentRequest, NoOneToAsk
from recall_app.agent.sharing import SharedText
from recall_app.domain.text import one_line

QUESTION = "Allow? [y] once, [a] always in this app, [e] always everywhere, [N] no: "
KEEP_BACK = "Numbers to keep back (Enter: share all): "

_CHOICES = {"y": Choice.ALLOW_ONCE, "a": Choice.ALWAYS_IN_APP, "e": Choice.ALWAYS_EVERYWHERE}


class TerminalAsker:
    """One question at a time; end of input, an empty line or anything but y, a and e is a "no"."""

    def __init__(self, source: TextIO, target: TextIO) -> None:
        self._source = source
        self._target = target
        self._turn = asyncio.Lock()
        self._deserted = False

    async def ask(self, request: ConsentRequest) -> ConsentAnswer:
        async with self._turn:
            if self._deserted:
                return DECLINED
            self._show(request)
            withheld = await self._withheld(request.texts) if request.texts else frozenset[int]()
            if withheld is None:
                return DECLINED
            choice = _CHOICES.get((await self._line(QUESTION)).strip().casefold())
            return DECLINED if choice is None else ConsentAnswer(choice, withheld)

    def close(self) -> None:
        """Close both files, but for a read that was given up: it holds its file until the process ends."""
        if not self._deserted:
            self._source.close()
            self._target.close()

    def _show(self, request: ConsentRequest) -> None:
        lines = [f"{request.tool} wants to look into your history.", f"  {request.sentence}"]
        if request.chat_title is not None:
            lines.append(f"  Chat: {one_line(request.chat_title)}")
        lines += [f"  App: {one_line(request.app_name)}", f"  At most {request.max_bytes:,} bytes"]
        lines.append(f"  Where the text goes: {request.where}")
        for number, shared in enumerate(request.texts or (), 1):
            title = one_line(shared.chat_title or "untitled")
            lines.append(f"  {number}. {title}, {shared.created_at[:10]}: {one_line(shared.text)}")
        self._target.write("\n".join(lines) + "\n")

    async def _withheld(self, texts: tuple[SharedText, ...]) -> frozenset[int] | None:
        """The message ids behind the numbers typed; None when that wasn't a list of numbers of the list shown."""
        typed = (await self._line(KEEP_BACK)).replace(",", " ").split()
        if not all(word.isdecimal() and 1 <= int(word) <= len(texts) for word in typed):
            self._target.write("That is not a list of those numbers: nothing is shared.\n")
            return None
        return frozenset(texts[int(word) - 1].message_id for word in typed)

    async def _line(self, prompt: str) -> str:
        """One typed line, read on a thread of its own: nothing can wake a blocked read when the turn is stopped.

        A read that is given up goes on to swallow the next line, so after that nobody is asked any more.
        """
        self._target.write(prompt)
        self._target.flush()
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()

        def settle(line: str) -> None:
            if not answered.done():
                answered.set_result(line)

        def read() -> None:
            try:
                line = self._source.readline()
            except (OSError, ValueError):
                line = ""
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, line)

        threading.Thread(target=read, name="consent", daemon=True).start()
        try:
            return await answered
        except asyncio.CancelledError:
            self._deserted = True
            raise


@contextmanager
def terminal_asker() -> Iterator[Asker]:
    """The person at the controlling terminal, or at a standard input that is one; else nobody."""
    with ExitStack() as files:
        yield _asker(files)


def _asker(files: ExitStack) -> Asker:
    terminal = Path("/dev/tty")
    try:
        # A text file can't be read and written at once, so the two directions are two files.
        source, target = terminal.open(encoding="utf-8"), terminal.open("w", encoding="utf-8")
    except OSError:
        if sys.stdin is not None and sys.stdin.isatty():
            return TerminalAsker(sys.stdin, sys.stderr)
        return NoOneToAsk()
    asker = TerminalAsker(source, target)
    files.callback(asker.close)
    return asker
