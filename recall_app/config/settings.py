"""The person's settings: typed, stored as one JSON file that is replaced whole, and safe to change from two processes.

What a newer Recall wrote and this one doesn't know is kept. A damaged file is set aside, never overwritten, and the
history tools then ask before each call: which choice stood in the file is unknown, and it may have been ``never``.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recall_app.config.paths import FILE_MODE
from recall_app.config.permissions import Permission, Permissions
from recall_app.domain.consulting import HISTORY_TOOLS
from recall_app.domain.errors import ErrorKind, RecallError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

log = logging.getLogger(__name__)


class Settings(BaseModel):
    """All settings. Frozen: ``SettingsStore.update`` is the way to change them."""

    model_config = ConfigDict(frozen=True, extra="allow")

    permissions: Permissions = Field(default_factory=Permissions)


AFTER_DAMAGE = Settings(permissions=Permissions(everywhere=dict.fromkeys(HISTORY_TOOLS, Permission.ASK)))


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """``warning`` is one line for the person when a damaged file was set aside just now, else None."""

    settings: Settings
    warning: str | None = None


class SettingsStore:
    """The settings file. Usable from any thread and process; nothing is cached, so every ``load`` is current."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> LoadedSettings:
        """The settings as they are in the file now; defaults when there is none.

        Raises:
            RecallError: the file can't be read (rights, a folder in its place).
        """
        try:
            found = self._read()
        except _DamagedError:
            with self._locked():
                return self._set_aside()
        return LoadedSettings(found if found is not None else Settings())

    def update(self, change: Callable[[Settings], Settings]) -> Settings:
        """Apply ``change`` to what the file holds now and store the result; another process's change is not lost.

        Raises:
            RecallError: the file can't be read or written; it is then as it was.
        """
        with self._locked():
            try:
                current = self._read() or Settings()
            except _DamagedError:
                current = self._set_aside().settings
            changed = change(current)
            self._write(changed)
            return changed

    def _read(self) -> Settings | None:
        try:
            stored = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(self.path, "read", error) from error
        try:
            return Settings.model_validate(json.loads(stored))
        except (ValueError, RecursionError) as error:
            # A ValidationError is a ValueError, and so is text that isn't UTF-8 or JSON.
            raise _DamagedError(_what_is_wrong(error)) from error

    def _set_aside(self) -> LoadedSettings:
        """Rename the damaged file and store cautious settings; called with the lock held."""
        try:
            repaired = self._read()
        except _DamagedError as damage:
            aside = self.path.with_name(f"{self.path.stem}.damaged-{time.time_ns() // 1_000_000}{self.path.suffix}")
            try:
                self.path.replace(aside)
            except OSError as error:
                raise _unusable(self.path, "set aside", error) from error
            self._write(AFTER_DAMAGE)
            warning = (
                f"The settings file was damaged ({damage}) and has been set aside as {aside.name}. "
                "Agents now ask before each look into your history."
            )
            log.warning("%s", warning)
            return LoadedSettings(AFTER_DAMAGE, warning)
        # Another process was faster.
        return LoadedSettings(repaired if repaired is not None else Settings())

    def _write(self, settings: Settings) -> None:
        text = json.dumps(settings.model_dump(mode="json"), ensure_ascii=False, indent=2) + "\n"
        temporary: Path | None = None
        try:
            with NamedTemporaryFile("wb", dir=self.path.parent, prefix=".settings-", delete=False) as file:
                temporary = Path(file.name)
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(FILE_MODE)
            temporary.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            raise _unusable(self.path, "written", error) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One change at a time, over threads and processes. The lock file stays: removing it would let two in."""
        try:
            handle = os.open(
                self.path.with_name(f"{self.path.name}.lock"),
                os.O_RDWR | os.O_CREAT,
                FILE_MODE,
            )
        except OSError as error:
            raise _unusable(self.path, "written", error) from error
        try:
            _lock(handle)
            yield
        finally:
            os.close(handle)


class _DamagedError(Exception):
    """The file holds something that isn't our settings; the text says what, without what was in it."""


def _what_is_wrong(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"][:2])
        return f"{place} is not as it should be" if place else "it is not an object"
    return "it is not JSON"


def _unusable(path: Path, done: str, error: OSError) -> RecallError:
    reason = error.strerror or type(error).__name__
    return RecallError(ErrorKind.STORE, f"The settings file {path} can't be {done}: {reason}.")


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        # Tries ten times, a second apart, then raises OSError; closing the handle unlocks.
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)

    def _sync_folder(folder: Path) -> None:
        """Windows has no handle on a folder that could be synced."""

else:

    def _lock(handle: int) -> None:
        # Closing the handle unlocks.
        fcntl.flock(handle, fcntl.LOCK_EX)

    def _sync_folder(folder: Path) -> None:
        """A rename is durable once its folder is on the disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
