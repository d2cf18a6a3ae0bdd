"""What a tool is: how a model sees it, what the person is asked before it runs, and what running it does."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from recall_app.config.permissions import Permission
from recall_app.domain.consulting import (
    Budget,
    HistoryResult,
    ReadChatInput,
    ReadChatResult,
    SearchChatsInput,
    SearchChatsResult,
    Viewer,
)
from recall_app.domain.errors import InvalidInputError

Arguments = TypeVar("Arguments", bound=BaseModel)

NAME_CHARACTERS = 40
"""How much of an argument name that a model made up is repeated to it."""


class HistoryReader(Protocol):
    """All that a tool may do with the history: read it. ``RecallService`` is one."""

    def search_chats(self, viewer: Viewer, arguments: SearchChatsInput, budget: Budget = ...) -> SearchChatsResult: ...

    def read_chat(self, viewer: Viewer, arguments: ReadChatInput, budget: Budget = ...) -> ReadChatResult: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a call runs: whose eyes it has, and how much it may return. No argument of a tool can change either."""

    history: HistoryReader
    viewer: Viewer
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition(Generic[Arguments]):
    name: str
    description: str
    """For a model: when to use it, what it isn't for, what to do with the result."""
    input_model: type[Arguments]
    default_consent: Permission
    modifies_state: bool
    consent_preview: Callable[[Arguments], str]
    """One sentence for the person, from the arguments alone (contracts §7)."""
    source_chat: Callable[[Arguments], int | None]
    """The chat that the arguments name, whose title is shown beside the sentence."""
    largest_result: Callable[[Budget], int]
    """UTF-8 bytes that a result can have at most."""
    execute: Callable[[ToolContext, Arguments], HistoryResult]
    """Only reads. Raises ``NotFoundError`` when the arguments name what the viewer can't see."""

    def parse(self, arguments: object) -> Arguments:
        """The arguments as a model sent them: JSON text, or an object; nothing at all is an empty object.

        Raises:
            InvalidInputError: its text tells the model what to change, without repeating any value.
        """
        try:
            given = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
        except (ValueError, RecursionError):
            given = arguments
        if given is not None and not isinstance(given, dict):
            raise InvalidInputError(f"The arguments of {self.name} must be one JSON object with {self._arguments()}.")
        try:
            return self.input_model.model_validate(given or {})
        except ValidationError as error:
            problems = "; ".join(_problem(detail["loc"], detail["type"], detail["msg"]) for detail in _details(error))
            raise InvalidInputError(
                f"Invalid arguments for {self.name}: {problems}. It takes {self._arguments()}. "
                "Correct the arguments and call it again."
            ) from error

    def json_schema(self) -> dict[str, Any]:
        """The input's JSON schema as providers get it: names, types, bounds and descriptions, nothing else.

        Optional arguments have their plain type; a model that sends null for one means "absent", and that is
        accepted although the schema doesn't advertise it.
        """
        schema = self.input_model.model_json_schema()
        return {
            "type": "object",
            "properties": {name: _plain(property_) for name, property_ in schema["properties"].items()},
            "required": schema.get("required", []),
            "additionalProperties": False,
        }

    def _arguments(self) -> str:
        return ", ".join(self.input_model.model_fields)


def _plain(property_: dict[str, Any]) -> dict[str, Any]:
    """One property without pydantic's titles and without ``anyOf`` null, which small models misread."""
    variants = [variant for variant in property_.get("anyOf", []) if variant != {"type": "null"}]
    merged = {**property_, **variants[0]} if len(variants) == 1 else property_
    hidden = {"title", "anyOf"} if len(variants) == 1 else {"title"}
    return {
        key: value for key, value in merged.items() if key not in hidden and not (key == "default" and value is None)
    }


def _details(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_context=False, include_input=False))


def _problem(location: tuple[int | str, ...], kind: str, text: str) -> str:
    name = json.dumps(".".join(str(step) for step in location)[:NAME_CHARACTERS], ensure_ascii=True)[1:-1]
    if kind == "extra_forbidden":
        return f"there is no argument {name}"
    plain = text.removeprefix("Value error, ").rstrip(".")
    return f"{name}: {plain}" if name else plain
