"""The tools of one turn as pydantic-ai sees them: every call goes through the gate and into the ledger."""

from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition as OfferedTool
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from recall_app.agent.calls import CallRunner, ToolCall
from recall_app.agent.consent import ConsentGate
from recall_app.agent.tools.definition import ToolDefinition
from recall_app.domain.errors import ErrorKind, InvalidInputError, RecallError

CALLS_PER_TURN = 12
NO_MORE_CALLS = f"The {CALLS_PER_TURN} tool calls of this turn are used up. Answer with what you have."
NOT_OFFERED = "This tool is not available here. Go on without it."

_SENT = "sent"


class _AsSent:
    """Takes arguments as they are, broken JSON included: parsing is a part of the call, so that the ledger has it."""

    def validate_json(self, *sent: Any, **_: Any) -> dict[str, Any]:
        return {_SENT: sent[0]}

    def validate_python(self, *sent: Any, **_: Any) -> dict[str, Any]:
        return {_SENT: sent[0]}


class RecallToolset(AbstractToolset[None]):
    """``tools`` of one turn. ``calls`` has those that are over, by the id that the model gave them."""

    def __init__(self, tools: tuple[ToolDefinition[Any], ...], runner: CallRunner, gate: ConsentGate, app_id: int):
        self._tools = tools
        self._runner = runner
        self._gate = gate
        self._app_id = app_id
        self.calls: dict[str, ToolCall] = {}

    @property
    def id(self) -> str:
        return "recall"

    async def get_tools(self, ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        """Asked before each request: a tool whose permission has become ``never`` is not offered any more."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                # One call at a time: consent is asked for one thing, and cards stand in the order of the calls.
                tool_def=OfferedTool(
                    name=tool.name,
                    description=tool.description,
                    parameters_json_schema=tool.json_schema(),
                    sequential=True,
                ),
                max_retries=0,
                args_validator=_AsSent(),
            )
            for tool in self._gate.offered(self._tools, self._app_id)
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> str:
        """What goes wrong with a call is its result, never a retry: retries would abort the turn after a few."""
        definition = next(definition for definition in self._tools if definition.name == name)
        if len(self.calls) >= CALLS_PER_TURN:
            call = self._runner.refuse(definition, tool_args[_SENT], InvalidInputError(NO_MORE_CALLS))
        else:
            call = await self._runner.run_for_model(definition, tool_args[_SENT], self._gate)
        self.calls[ctx.tool_call_id or str(len(self.calls))] = call
        return call.text

    def refuse_unoffered(self, name: str, arguments: object, call_id: str) -> None:
        """Note a call of one of our tools that the model was not offered; pydantic-ai has turned it down already."""
        for definition in self._tools:
            if definition.name == name:
                error = RecallError(ErrorKind.NOT_PERMITTED, NOT_OFFERED)
                self.calls[call_id] = self._runner.refuse(definition, arguments, error)
