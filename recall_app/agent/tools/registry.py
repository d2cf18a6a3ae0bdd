"""All tools that an agent of Recall can have, in the order in which a model sees them."""

from typing import Any

from recall_app.agent.tools.definition import ToolDefinition
from recall_app.agent.tools.read_chat import read_chat
from recall_app.agent.tools.search_chats import search_chats
from recall_app.domain.errors import InvalidInputError

TOOL_DEFINITIONS: tuple[ToolDefinition[Any], ...] = (search_chats, read_chat)


def tool_definition(name: str) -> ToolDefinition[Any]:
    """The tool called ``name``.

    Raises:
        InvalidInputError: there is none.
    """
    for definition in TOOL_DEFINITIONS:
        if definition.name == name:
            return definition
    known = ", ".join(definition.name for definition in TOOL_DEFINITIONS)
    raise InvalidInputError(f"There is no such tool. Tools: {known}.")
