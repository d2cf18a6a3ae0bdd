"""The one gate that every call for a model passes (contracts §7): what the person chose, and else what they answer."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from recall_app.agent.sharing import SharedText
from recall_app.agent.tools.definition import ToolDefinition
from recall_app.config.permissions import Permission, Permissions
from recall_app.config.settings import Settings, SettingsStore
from recall_app.domain.records import Decision

ANSWER_SECONDS = 300
"""Nobody answering for this long is a "no"."""


class Choice(StrEnum):
    """What a person can answer."""

    ALLOW_ONCE = "allow once"
    ALWAYS_IN_APP = "always in this app"
    ALWAYS_EVERYWHERE = "always everywhere"
    DECLINE = "decline"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentRequest:
    """One question to the person. Titles and texts are untrusted: show them as plain text, titles on one line."""

    tool: str
    sentence: str
    app_id: int
    app_name: str
    conversation_id: int | None
    """The chat in which the agent works."""
    chat_title: str | None
    """Title of the chat to be read: its own labelled line, never part of the sentence."""
    max_bytes: int
    where: str
    """``to Anthropic · claude-…`` or ``stays on this computer``."""
    texts: tuple[SharedText, ...] | None = None
    """With review before sharing: what would go, each to be kept back if the person wishes; else None."""


@dataclass(frozen=True, slots=True)
class ConsentAnswer:
    """``withheld`` are the message ids that the person unticked."""

    choice: Choice
    withheld: frozenset[int] = frozenset()


DECLINED = ConsentAnswer(Choice.DECLINE)


class Asker(Protocol):
    """Whoever can put a question to the person: a terminal, the window's banner.

    ``ask`` is cancelled when the turn is stopped or time is up; it takes its question away then.
    """

    async def ask(self, request: ConsentRequest) -> ConsentAnswer: ...


class NoOneToAsk:
    """Without a person, ``ask`` means no."""

    async def ask(self, request: ConsentRequest) -> ConsentAnswer:
        return DECLINED


@dataclass(frozen=True, slots=True)
class Consent:
    decision: Decision
    withheld: frozenset[int] = frozenset()

    @property
    def is_given(self) -> bool:
        return self.decision in (Decision.ALWAYS, Decision.ALLOWED_ONCE)


class ConsentGate:
    """Permissions are read from the settings file at every question, so a change counts from the next call on."""

    def __init__(self, settings: SettingsStore, asker: Asker, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._settings = settings
        self._asker = asker
        self._answer_seconds = answer_seconds

    def permission(self, tool: ToolDefinition[Any], app_id: int) -> Permission:
        return self._permissions().effective(tool.name, app_id, tool.default_consent)

    def offered(self, tools: Iterable[ToolDefinition[Any]], app_id: int) -> tuple[ToolDefinition[Any], ...]:
        """The tools that a model may be told of: ``never`` takes one off the list."""
        permissions = self._permissions()
        return tuple(
            tool
            for tool in tools
            if permissions.effective(tool.name, app_id, tool.default_consent) is not Permission.NEVER
        )

    @property
    def reviews(self) -> bool:
        """Whether the person wants to see what would go before it goes (only asked with ``ask``)."""
        return self._permissions().review_before_sharing

    async def ask(self, tool: ToolDefinition[Any], request: ConsentRequest) -> Consent:
        """Put ``request`` to the person; "always" is stored. A ``never`` chosen meanwhile beats their answer."""
        try:
            async with asyncio.timeout(self._answer_seconds):
                answer = await self._asker.ask(request)
        except TimeoutError:
            return Consent(Decision.DECLINED)
        if self.permission(tool, request.app_id) is Permission.NEVER:
            return Consent(Decision.NEVER)
        match answer.choice:
            case Choice.DECLINE:
                return Consent(Decision.DECLINED)
            case Choice.ALLOW_ONCE:
                return Consent(Decision.ALLOWED_ONCE, answer.withheld)
            case Choice.ALWAYS_IN_APP | Choice.ALWAYS_EVERYWHERE:
                self._remember(tool.name, request.app_id, everywhere=answer.choice is Choice.ALWAYS_EVERYWHERE)
                return Consent(Decision.ALWAYS, answer.withheld)

    def _permissions(self) -> Permissions:
        return self._settings.load().settings.permissions

    def _remember(self, tool: str, app_id: int, *, everywhere: bool) -> None:
        def always(settings: Settings) -> Settings:
            now = settings.permissions
            then = (
                now.with_everywhere(tool, Permission.ALWAYS, clearing_app=app_id)
                if everywhere
                else now.with_app(tool, app_id, Permission.ALWAYS)
            )
            return settings.model_copy(update={"permissions": then})

        self._settings.update(always)
