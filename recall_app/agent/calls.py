"""Running one tool call, for whatever door: arguments, gate, reading, ledger; only then a result to hand on."""

import json
import time
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from recall_app.agent.consent import Consent, ConsentGate, ConsentRequest
from recall_app.agent.recipient import PERSON, Recipient
from recall_app.agent.sharing import (
    index_status,
    is_truncated,
    result_count,
    shared_texts,
    without_messages,
)
from recall_app.agent.tools.definition import ToolContext, ToolDefinition
from recall_app.agent.tools.registry import tool_definition
from recall_app.config.permissions import Permission
from recall_app.domain.consulting import FULL_BUDGET, Budget, HistoryResult, Viewer, to_json
from recall_app.domain.errors import ErrorKind, InvalidInputError, RecallError
from recall_app.domain.records import ConsultedMessage, Decision, NewConsultation, Outcome
from recall_app.service import RecallService

RECORDED_ARGUMENT_CHARACTERS = 2_000
"""Arguments that can't be parsed are kept in the ledger up to this length."""

DECLINED_TEXT = "The person declined this look into the history. Go on without it, and don't ask for it again."
NEVER_TEXT = "The person has turned this tool off. Go on without it."


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that is over and in the ledger. Either ``result`` is there, or ``error`` says why not."""

    tool: str
    arguments: BaseModel | None
    """None when they could not be parsed."""
    consultation_id: int
    decision: Decision
    outcome: Outcome
    result: HistoryResult | None
    error: RecallError | None
    elapsed_ms: float
    """Milliseconds spent reading: without the time that a person took to answer, and without the ledger's write."""

    @property
    def text(self) -> str:
        """What the caller is given: JSON from a serialiser, of the result or of the error."""
        if self.error is None and self.result is not None:
            return to_json(self.result)
        return json.dumps({"error": error_json(self.error)}, ensure_ascii=False)


def error_json(error: RecallError | None) -> dict[str, str]:
    """``{"kind", "message"}``, as models and machines see an error."""
    assert error is not None
    return {"kind": str(error.kind), "message": error.message}


@dataclass(slots=True)
class _Attempt:
    """What is known of a call while it runs; the ledger's row is made of it, however the call ends."""

    recorded_arguments: str
    arguments: BaseModel | None = None
    decision: Decision = Decision.NOT_ASKED
    outcome: Outcome = Outcome.FAILED
    result: HistoryResult | None = None
    error: RecallError | None = None
    elapsed_ms: float = 0.0


class CallRunner:
    """Runs calls of one viewer for one recipient.

    ``bytes`` in the ledger is the UTF-8 size of the result's JSON, to the byte what the model is given; 0 for a call
    that gave no history away (declined, never, failed), whose text only says so.
    """

    def __init__(
        self, service: RecallService, viewer: Viewer, recipient: Recipient, budget: Budget = FULL_BUDGET
    ) -> None:
        self._service = service
        self._viewer = viewer
        self._recipient = recipient
        self._context = ToolContext(service, viewer, budget)

    async def run_for_model(self, tool: ToolDefinition[Any], arguments: object, gate: ConsentGate) -> ToolCall:
        """A model's call. What the person, the arguments or the history don't allow comes back as ``error``.

        Raises:
            RecallError: the store failed, or the ledger can't be written; the model must not get anything then.
        """
        attempt = _Attempt(_recorded(arguments))
        try:
            await self._attempt_for_model(attempt, tool, arguments, gate)
        except BaseException as failure:
            # Stopped by the person, or broken: that belongs in the ledger as well, and nothing was given away.
            attempt.result = None
            attempt.outcome = Outcome.FAILED
            if not isinstance(failure, Exception):
                attempt.outcome = Outcome.CANCELLED
                attempt.decision = Decision.DECLINED
            self._record(tool, attempt)
            raise
        return self._record(tool, attempt)

    def run_for_person(self, tool: ToolDefinition[Any], arguments: object) -> ToolCall:
        """The person's own call: nobody is asked.

        Raises:
            RecallError: the store failed, or the ledger can't be written.
        """
        attempt = _Attempt(_recorded(arguments), decision=Decision.PERSON)
        try:
            if self._parse(attempt, tool, arguments):
                self._execute(attempt, tool)
        except BaseException:
            self._record(tool, attempt)
            raise
        return self._record(tool, attempt)

    def refuse(self, tool: ToolDefinition[Any], arguments: object, error: RecallError) -> ToolCall:
        """A model's call that isn't even tried: of a tool that it doesn't have, or beyond the number allowed."""
        decision = Decision.NEVER if error.kind is ErrorKind.NOT_PERMITTED else Decision.NOT_ASKED
        outcome = Outcome.DECLINED if error.kind is ErrorKind.NOT_PERMITTED else Outcome.FAILED
        return self._record(tool, _Attempt(_recorded(arguments), decision=decision, outcome=outcome, error=error))

    async def _attempt_for_model(
        self, attempt: _Attempt, tool: ToolDefinition[Any], arguments: object, gate: ConsentGate
    ) -> None:
        permission = gate.permission(tool, self._viewer.app_id)
        if permission is Permission.NEVER:
            self._close(attempt, Consent(Decision.NEVER))
            return
        if not self._parse(attempt, tool, arguments):
            return
        if permission is Permission.ALWAYS:
            attempt.decision = Decision.ALWAYS
            self._execute(attempt, tool)
            return
        # Reading comes before asking only where the person wants to see what would go: it stays in this process.
        review = gate.reviews
        if review and not self._execute(attempt, tool):
            return
        consent = await gate.ask(tool, self._request(attempt, tool, review=review))
        if not consent.is_given:
            self._close(attempt, consent)
            return
        attempt.decision = consent.decision
        if not review:
            self._execute(attempt, tool)
        elif attempt.result is not None and consent.withheld:
            self._withhold(attempt, consent.withheld)

    def _parse(self, attempt: _Attempt, tool: ToolDefinition[Any], arguments: object) -> bool:
        try:
            attempt.arguments = tool.parse(arguments)
        except InvalidInputError as error:
            attempt.error = error
            return False
        attempt.recorded_arguments = attempt.arguments.model_dump_json(exclude_unset=True)
        return True

    def _execute(self, attempt: _Attempt, tool: ToolDefinition[Any]) -> bool:
        """Read, and note how it went; False when it gave an error that the caller can do something about."""
        assert attempt.arguments is not None
        started = time.perf_counter()
        try:
            attempt.result = tool.execute(self._context, attempt.arguments)
        except RecallError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.INVALID_INPUT):
                raise
            attempt.error = error
            return False
        finally:
            attempt.elapsed_ms = (time.perf_counter() - started) * 1000
        attempt.outcome = Outcome.DONE if result_count(attempt.result) else Outcome.EMPTY
        return True

    def _withhold(self, attempt: _Attempt, withheld: frozenset[int]) -> None:
        """Leave out what the person kept back; all of it kept back is a "no"."""
        assert attempt.result is not None
        attempt.result = without_messages(attempt.result, withheld)
        if not result_count(attempt.result):
            self._close(attempt, Consent(Decision.DECLINED))

    def _close(self, attempt: _Attempt, consent: Consent) -> None:
        never = consent.decision is Decision.NEVER
        attempt.decision = consent.decision
        attempt.outcome = Outcome.DECLINED
        attempt.result = None
        attempt.error = RecallError(
            ErrorKind.NOT_PERMITTED if never else ErrorKind.DECLINED, NEVER_TEXT if never else DECLINED_TEXT
        )

    def _request(self, attempt: _Attempt, tool: ToolDefinition[Any], *, review: bool) -> ConsentRequest:
        source = tool.source_chat(attempt.arguments)
        most = tool.largest_result(self._context.budget)
        return ConsentRequest(
            tool=tool.name,
            sentence=tool.consent_preview(attempt.arguments),
            app_id=self._viewer.app_id,
            app_name=self._service.app(self._viewer.app_id).name,
            conversation_id=self._viewer.chat_id,
            chat_title=None if source is None else self._service.chat_title(self._viewer, source),
            max_bytes=most if attempt.result is None else len(to_json(attempt.result).encode()),
            where=self._recipient.words,
            texts=shared_texts(attempt.result) if review and attempt.result is not None else None,
        )

    def _record(self, tool: ToolDefinition[Any], attempt: _Attempt) -> ToolCall:
        """Commit the ledger's row; what is returned may be handed on."""
        given = attempt.result
        destination = self._recipient.destination
        number = self._service.record_consultation(
            NewConsultation(
                at=time.time_ns() // 1_000_000,
                app_id=self._viewer.app_id,
                chat_id=self._viewer.chat_id,
                message_id=self._viewer.message_id,
                tool=tool.name,
                arguments_json=attempt.recorded_arguments,
                decision=attempt.decision,
                provider=destination.provider,
                model=destination.model,
                is_local=destination.is_local,
                index_status=None if given is None else index_status(given),
                result_count=0 if given is None else result_count(given),
                bytes=0 if given is None else len(to_json(given).encode()),
                truncated=given is not None and is_truncated(given),
                duration_ms=round(attempt.elapsed_ms),
                outcome=attempt.outcome,
                messages=_consulted(given),
            )
        )
        return ToolCall(
            tool=tool.name,
            arguments=attempt.arguments,
            consultation_id=number,
            decision=attempt.decision,
            outcome=attempt.outcome,
            result=given,
            error=attempt.error,
            elapsed_ms=attempt.elapsed_ms,
        )


def run_person_call(service: RecallService, viewer: Viewer, name: str, arguments: object) -> ToolCall:
    """``recall tool``: exactly the agent's call, on a full budget, for the person (provider ``cli``).

    Raises:
        InvalidInputError: there is no such tool.
        RecallError: the store failed, or the ledger can't be written.
    """
    return CallRunner(service, viewer, PERSON).run_for_person(tool_definition(name), arguments)


def _consulted(result: HistoryResult | None) -> tuple[ConsultedMessage, ...]:
    if result is None:
        return ()
    return tuple(ConsultedMessage(shared.chat_id, shared.message_id, shared.text) for shared in shared_texts(result))


def _recorded(arguments: object) -> str:
    """Arguments as they came, bounded and as JSON whatever they are; replaced once they could be parsed."""
    try:
        given = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
        text = json.dumps({} if given is None else given, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(str(arguments)[:RECORDED_ARGUMENT_CHARACTERS], ensure_ascii=False)
    if len(text) > RECORDED_ARGUMENT_CHARACTERS:
        text = json.dumps(text[:RECORDED_ARGUMENT_CHARACTERS], ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()
