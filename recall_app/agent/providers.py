"""Models by name: what ``--model P:NAME`` means."""

from dataclasses import dataclass

from pydantic_ai.models import Model

from recall_app.agent.offline_model import offline_model
from recall_app.agent.recipient import BUILT_IN, OFFLINE_PROVIDER, Recipient
from recall_app.domain.errors import ErrorKind, RecallError


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model to run, and who thereby gets what is retrieved."""

    model: Model
    recipient: Recipient


def choose_model(name: str | None = None) -> ChosenModel:
    """The model called ``name`` (``provider:model``); the built-in assistant for None and ``offline``.

    Raises:
        RecallError: the provider isn't known.
    """
    if name is None or name.partition(":")[0] == OFFLINE_PROVIDER:
        return ChosenModel(offline_model(), BUILT_IN)
    raise RecallError(ErrorKind.MODEL, 'This version has one model, the built-in assistant: use "offline".')
