"""The plain records that travel between the floors: frozen, no behaviour beyond derived values.

Times are Unix milliseconds UTC unless a name says otherwise; ``iso_time`` is their outside form.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

Role = Literal["user", "assistant"]


def iso_time(milliseconds: int) -> str:
    """``2026-07-12T18:30:00.000Z`` for Unix milliseconds; years outside 1–9999 are clamped to that range."""
    clamped = min(max(milliseconds, -62_135_596_800_000), 253_402_300_799_999)
    seconds, rest = divmod(clamped, 1000)
    moment = datetime.fromtimestamp(0, UTC).timestamp() + seconds
    stamp = datetime.fromtimestamp(moment, UTC).replace(tzinfo=None)
    return f"{stamp.isoformat(timespec='seconds')}.{rest:03d}Z"


@dataclass(frozen=True, slots=True)
class App:
    """One project whose chats belong together: the hard boundary of what an agent may see."""

    id: int
    name: str
    path: str | None
    created_at: int
    updated_at: int
    chat_count: int = 0
    message_count: int = 0


@dataclass(frozen=True, slots=True)
class Chat:
    """One conversation of an app. ``title`` is as stored: untrusted text, possibly long or many lines."""

    id: int
    app_id: int
    title: str | None
    created_at: int
    source: str | None
    source_key: str | None
    parent_chat_id: int | None
    mode: str | None
    model: str | None
    is_private: bool
    is_favorite: bool
    last_read_at: int | None
    deleted_at: int | None
    last_message_at: int | None = None
    message_count: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One user or assistant entry of a chat, with its content as stored (tags and all)."""

    id: int
    chat_id: int
    role: Role
    content: str
    model: str | None
    is_compaction_summary: bool
    branch: str | None
    created_at: int
    source_key: str | None


class IndexStatus(StrEnum):
    """Coverage in one word (contracts §2): paused with something pending is ``indexing`` too."""

    READY = "ready"
    INDEXING = "indexing"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of an app (or, with ``app_id`` None, of everything) the index holds; counts are messages."""

    app_id: int | None
    total: int
    pending: int
    failed: int

    @property
    def status(self) -> IndexStatus:
        return IndexStatus.INDEXING if self.pending else IndexStatus.READY


@dataclass(frozen=True, slots=True)
class FailedMessage:
    """A message whose projection failed: its id and the error's class, never its text."""

    message_id: int
    chat_id: int
    error_class: str
    failed_at: int


class Decision(StrEnum):
    """How a consultation came to be allowed, or not (``consultations.decision``)."""

    ALWAYS = "always"
    ALLOWED_ONCE = "allowed once"
    DECLINED = "declined"
    NEVER = "never"
    NOT_ASKED = "not asked"
    """The call failed before it came to that: arguments that can't be taken, nothing there, too many calls."""
    PERSON = "person"
    """The person's own call from the command line: nobody was asked."""


class Outcome(StrEnum):
    """How a consultation ended (``consultations.outcome``)."""

    DONE = "done"
    EMPTY = "nothing found"
    DECLINED = "declined"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where retrieved text goes: the provider and model of the request, and whether that stays here."""

    provider: str
    model: str | None
    is_local: bool


@dataclass(frozen=True, slots=True)
class ConsultedMessage:
    """One message whose text a consultation gave away; ``excerpt`` is None once its chat is forgotten."""

    chat_id: int
    message_id: int
    excerpt: str | None


@dataclass(frozen=True, slots=True)
class NewConsultation:
    """A row for the ledger (contracts §8). ``bytes`` is UTF-8 of the JSON that the model was given."""

    at: int
    app_id: int
    chat_id: int | None
    message_id: int | None
    tool: str
    arguments_json: str
    decision: str
    provider: str
    model: str | None
    is_local: bool
    index_status: str | None
    result_count: int
    bytes: int
    truncated: bool
    duration_ms: int
    outcome: str
    messages: tuple[ConsultedMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Consultation:
    """A row of the ledger under its number."""

    id: int
    entry: NewConsultation


@dataclass(frozen=True, slots=True)
class SourceApp:
    """A project as its source knows it. ``source_key`` is the source's own id; ``path`` its working folder."""

    source_key: str
    name: str
    path: str | None = None
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class SourceChat:
    """A chat as its source knows it; the messages that follow it in a reader's stream belong to it."""

    source_key: str
    app: SourceApp
    title: str | None
    created_at: int | None
    mode: str | None = None
    model: str | None = None
    is_favorite: bool = False
    is_private: bool = False
    parent_source_key: str | None = None


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A message as its source knows it; None in ``created_at`` takes the neighbour's or the chat's time."""

    source_key: str
    role: Role
    content: str
    created_at: int | None
    model: str | None = None
    is_compaction_summary: bool = False
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """Something a reader could not take: where (file, line or row), and why, in words without its text."""

    place: str
    reason: str


SourceItem = SourceApp | SourceChat | SourceMessage | SkippedRecord
