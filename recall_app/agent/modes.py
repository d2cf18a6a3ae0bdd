"""The ways an agent can work: which tools it has, and how much they may return (contracts §7)."""

from enum import StrEnum
from typing import Any

from recall_app.agent.tools.definition import ToolDefinition
from recall_app.agent.tools.registry import TOOL_DEFINITIONS
from recall_app.domain.consulting import BASIC_BUDGET, FULL_BUDGET, HISTORY_TOOLS, Budget


class Mode(StrEnum):
    AGENT = "agent"
    ASK = "ask"
    PLAN = "plan"
    BASIC = "basic"

    @property
    def tools(self) -> tuple[ToolDefinition[Any], ...]:
        """The tools of this mode, before anyone's permissions: those can only take away."""
        match self:
            case Mode.AGENT:
                return TOOL_DEFINITIONS
            case Mode.ASK | Mode.PLAN:
                return tuple(definition for definition in TOOL_DEFINITIONS if not definition.modifies_state)
            case Mode.BASIC:
                return tuple(definition for definition in TOOL_DEFINITIONS if definition.name in HISTORY_TOOLS)

    @property
    def budget(self) -> Budget:
        return BASIC_BUDGET if self is Mode.BASIC else FULL_BUDGET
