"""One turn: the person's question, the model's answer with the tools it calls, and what of it is kept.

The assistant's message is stored as text and cards in the order in which they happened, text escaped so that no model
can forge a card. It is stored again after each tool call, so a crash leaves a readable chat.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic_ai import Agent
from pydantic_ai.agent import AgentRunEvents
from pydantic_ai.exceptions import AgentRunError, RunCancelled, UsageLimitExceeded, UserError
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessagesTypeAdapter,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.usage import UsageLimits

from recall_app.agent.calls import CallRunner, ToolCall
from recall_app.agent.consent import ConsentGate
from recall_app.agent.content import AnswerContent
from recall_app.agent.conversation import earlier_messages
from recall_app.agent.modes import Mode
from recall_app.agent.prompts import system_prompt
from recall_app.agent.providers import ChosenModel, choose_model
from recall_app.agent.sharing import SharedText, shared_texts
from recall_app.agent.stop import StopSignal
from recall_app.agent.toolset import CALLS_PER_TURN, RecallToolset
from recall_app.domain.consulting import Viewer
from recall_app.domain.errors import CancelledError, ErrorKind, InvalidInputError, NotFoundError, RecallError
from recall_app.domain.records import Message
from recall_app.domain.text import one_line
from recall_app.service import RecallService

TITLE_CHARACTERS = 60
UNKNOWN_TOOL_CALLS = 4
"""So many calls of tools that don't exist end a turn."""

# pydantic-ai greets its users on the terminal; these are ours.
os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")


@dataclass(frozen=True, slots=True)
class TurnStarted:
    chat_id: int
    user_message_id: int
    message_id: int


@dataclass(frozen=True, slots=True)
class TextAdded:
    """A piece of the model's text, as it came: untrusted, not yet escaped."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    call_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    call_id: str
    call: ToolCall


TurnEvent = TurnStarted | TextAdded | CallStarted | CallEnded


@dataclass(frozen=True, slots=True)
class TurnResult:
    chat_id: int
    user_message_id: int
    message_id: int
    answer: str
    """The model's text alone, without cards."""
    calls: tuple[ToolCall, ...]

    @property
    def consulted(self) -> tuple[SharedText, ...]:
        """Every message whose text the model was given, once, in the order of the calls."""
        texts: dict[int, SharedText] = {}
        for call in self.calls:
            for shared in shared_texts(call.result) if call.result is not None else ():
                texts[shared.message_id] = shared
        return tuple(texts.values())


async def run_turn(
    service: RecallService,
    gate: ConsentGate,
    *,
    app_id: int,
    question: str,
    chat_id: int | None = None,
    mode: Mode = Mode.AGENT,
    chosen: ChosenModel | None = None,
    on_event: Callable[[TurnEvent], None] = lambda event: None,
    stop: StopSignal | None = None,
) -> TurnResult:
    """Answer ``question`` in a chat of the app, a new one if ``chat_id`` is None; the built-in assistant by default.

    ``on_event`` is called on this thread, in order.

    Raises:
        InvalidInputError: there is no question.
        NotFoundError: the app has no such chat.
        CancelledError: stopped; what was written so far is kept, marked as stopped.
        RecallError: the model or the store failed. The message then says so in one line.
    """
    if not question.strip():
        raise InvalidInputError("There is no question.")
    model = chosen or choose_model()
    if chat_id is None:
        chat = service.create_chat(app_id, title=title_of(question), mode=mode, model=model.recipient.name)
    else:
        chat = service.chat(chat_id)
        if chat.app_id != app_id:
            raise NotFoundError
    earlier = earlier_messages(service, chat.id)
    asked = service.add_message(chat.id, "user", question)
    answer = service.add_message(chat.id, "assistant", "", model=model.recipient.name)
    on_event(TurnStarted(chat.id, asked.id, answer.id))
    viewer = Viewer(app_id, chat.id, answer.id)
    toolset = RecallToolset(mode.tools, CallRunner(service, viewer, model.recipient, mode.budget), gate, app_id)
    agent = Agent(
        model.model,
        instructions=system_prompt(mode, frozenset(tool.name for tool in gate.offered(mode.tools, app_id))),
        toolsets=[toolset],
        deps_type=type(None),
        name="recall",
        retries={"tools": UNKNOWN_TOOL_CALLS, "output": 2},
    )
    agent.instrument = False
    turn = _Turn(service, answer, toolset, on_event)
    limits = UsageLimits(request_limit=CALLS_PER_TURN + UNKNOWN_TOOL_CALLS, tool_calls_limit=2 * CALLS_PER_TURN)
    async with agent.run_stream_events(question, message_history=earlier, usage_limits=limits) as events:
        (stop or StopSignal()).on_stop(events.cancel)
        await turn.follow(events)
    return TurnResult(chat.id, asked.id, answer.id, turn.content.answer, tuple(toolset.calls.values()))


def title_of(question: str) -> str:
    """A new chat's title."""
    return one_line(question, TITLE_CHARACTERS)


@dataclass(slots=True)
class _Turn:
    """Follows the run's events and keeps the stored message up with them."""

    service: RecallService
    message: Message
    toolset: RecallToolset
    on_event: Callable[[TurnEvent], None]
    content: AnswerContent = field(default_factory=AnswerContent)

    async def follow(self, events: AgentRunEvents[str]) -> None:
        """Until the end, whichever way it comes; the message is stored complete in every case."""
        try:
            async for event in events:
                self._take(event)
        except RunCancelled as error:
            self._end(events, "warning", CancelledError().message)
            raise CancelledError from error
        except UsageLimitExceeded as error:
            line = f"The model went on calling tools after {CALLS_PER_TURN} calls, so the turn was ended."
            self._end(events, "error", line)
            raise RecallError(ErrorKind.MODEL, line) from error
        except AgentRunError as error:
            line = f"The model failed ({type(error).__name__}). Try again, or choose another model."
            self._end(events, "error", line)
            raise RecallError(ErrorKind.MODEL, line) from error
        except RecallError as error:
            self._end(events, "error", error.message)
            raise
        except Exception:
            self._end(events, "error", "The turn was ended by an error.")
            raise
        except BaseException:
            self._end(events, "warning", CancelledError().message)
            raise
        self._store(events)

    def _take(self, event: AgentStreamEvent | AgentRunResultEvent[str]) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                self.content.begin_text()
                self._add_text(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._add_text(text)
            case FunctionToolCallEvent(part=part, args_valid=valid):
                self.on_event(CallStarted(part.tool_call_id, part.tool_name))
                if not valid:
                    # Our own validator takes everything, so this is a tool that wasn't offered.
                    self.toolset.refuse_unoffered(part.tool_name, part.args, part.tool_call_id)
            case FunctionToolResultEvent(tool_call_id=call_id) if call_id in self.toolset.calls:
                call = self.toolset.calls[call_id]
                self.content.add_call(call)
                self.service.update_message(self.message.id, self.content.stored())
                self.on_event(CallEnded(call_id, call))
            case _:
                pass

    def _add_text(self, text: str) -> None:
        if text:
            self.content.add_text(text)
            self.on_event(TextAdded(text))

    def _end(self, events: AgentRunEvents[str], kind: str, line: str) -> None:
        self.content.add_end(kind, line)
        self._store(events)

    def _store(self, events: AgentRunEvents[str]) -> None:
        try:
            transcript = ModelMessagesTypeAdapter.dump_json(events.new_messages()).decode()
        except UserError:
            # The run had not begun.
            transcript = None
        self.service.update_message(self.message.id, self.content.stored(), ai_messages_json=transcript)
