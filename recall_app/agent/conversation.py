"""What a model is told of the conversation so far.

Each turn sends the chat's earlier messages as plain text: what the person wrote, and the assistant's own words, without
what tools gave it then. So text retrieved for one model never reaches another one by way of the chat.
"""

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from recall_app.domain.projection import ChatSearchProjectionInput, project_chat_message_for_reading
from recall_app.domain.text import shorten
from recall_app.service import RecallService

EARLIER_MESSAGES = 20
EARLIER_CHARACTERS = 4_000
"""Of each message."""


def earlier_messages(service: RecallService, chat_id: int) -> list[ModelMessage]:
    """The chat's last messages, oldest first."""
    told: list[ModelMessage] = []
    for message in service.messages(chat_id)[-EARLIER_MESSAGES:]:
        stored = ChatSearchProjectionInput(message.role, message.content, message.is_compaction_summary)
        text = shorten(project_chat_message_for_reading(stored), EARLIER_CHARACTERS)
        if not text:
            continue
        if message.role == "user":
            told.append(ModelRequest(parts=[UserPromptPart(text)]))
        else:
            told.append(ModelResponse(parts=[TextPart(text)]))
    return told
