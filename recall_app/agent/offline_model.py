"""The built-in assistant: a model for pydantic-ai that needs no network, no key and no language model.

It plans ``search_chats``, then ``read_chat`` around the best hits, and answers by quoting what it read. Each request
is answered from the messages alone, so it keeps no state and serves any number of turns at once.
"""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from recall_app.agent.offline_answer import asks_the_same, best_passages, is_own_answer
from recall_app.agent.offline_language import PHRASES, Language, fewer_words, language_of, query_of, subject_words
from recall_app.agent.offline_quotes import as_plain_markdown, quoted_answer
from recall_app.agent.recipient import OFFLINE_PROVIDER
from recall_app.agent.sharing import SharedText, shared_texts
from recall_app.domain.consulting import READ_CHAT, SEARCH_CHATS, ReadChatResult, SearchChatsResult
from recall_app.domain.errors import ErrorKind
from recall_app.domain.text import one_line

CHATS = 12
"""Asked of a search: more than a model's default, since earlier answers of this assistant are passed over."""
READS = 4
"""Chats that are opened at once; the two best hits of the best chat count as two."""
ROUNDS = 2
"""How often more chats are opened when what was read says nothing."""


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    arguments: dict[str, int | str]


@dataclass(slots=True)
class _Progress:
    """What this turn has asked for and got so far."""

    question: str
    words: tuple[str, ...]
    searches: list[SearchChatsResult | None] = field(default_factory=list)
    """None for one that gave an error."""
    reads: list[ReadChatResult] = field(default_factory=list)
    asked_to_read: set[int] = field(default_factory=set)
    """Message ids that were to be read around, also where that failed."""
    refused: set[str] = field(default_factory=set)
    """Tools that the person declined or turned off."""

    @property
    def sought(self) -> tuple[str, ...]:
        """The words of the last search."""
        return fewer_words(self.words) if len(self.searches) > 1 else self.words

    @property
    def found(self) -> SearchChatsResult | None:
        """The last search that gave a result."""
        return next((result for result in reversed(self.searches) if result is not None), None)


def offline_model() -> FunctionModel:
    """The built-in assistant."""
    return FunctionModel(_respond, stream_function=_stream, model_name=OFFLINE_PROVIDER)


async def _respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    step = _next_step(messages, {tool.name for tool in info.function_tools})
    if isinstance(step, str):
        return ModelResponse(parts=[TextPart(step)])
    return ModelResponse(parts=[ToolCallPart(call.tool, call.arguments) for call in step])


async def _stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    step = _next_step(messages, {tool.name for tool in info.function_tools})
    if isinstance(step, str):
        for block in step.splitlines(keepends=True):
            yield block
    else:
        yield {
            index: DeltaToolCall(name=call.tool, json_args=json.dumps(call.arguments, ensure_ascii=False))
            for index, call in enumerate(step)
        }


def _next_step(messages: Sequence[ModelMessage], tools: set[str]) -> Sequence[_Call] | str:
    """The next tool calls, or the answer."""
    progress = _progress(messages)
    phrases = PHRASES[language_of(progress.question)]
    if SEARCH_CHATS in progress.refused:
        return f"{phrases.who} {phrases.declined}"
    if SEARCH_CHATS not in tools:
        return f"{phrases.who} {phrases.no_tools}"
    if not progress.words:
        return _answer(progress)
    if not progress.searches:
        return [_search(progress.words)]
    if len(progress.searches) == 1 and not _candidates(progress):
        fewer = fewer_words(progress.words)
        if query_of(fewer) != query_of(progress.words):
            return [_search(fewer)]
    if READ_CHAT in tools and READ_CHAT not in progress.refused:
        reads = list(_reads(progress))
        if reads:
            return reads
    return _answer(progress)


def _progress(messages: Sequence[ModelMessage]) -> _Progress:
    """Read the current turn (from its prompt on) out of the messages."""
    prompts = [
        (index, part.content)
        for index, message in enumerate(messages)
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart) and isinstance(part.content, str)
    ]
    start, question = prompts[-1] if prompts else (0, "")
    # "And why?" is about what was asked before.
    subjects = (subject_words(asked) for _, asked in reversed(prompts))
    progress = _Progress(question, next((words for words in subjects if words), ()))
    for message in messages[start:]:
        for part in message.parts:
            if isinstance(part, ToolCallPart) and part.tool_name == READ_CHAT:
                around = part.args_as_dict().get("around_message_id")
                progress.asked_to_read.update([around] if isinstance(around, int) else [])
            elif isinstance(part, ToolReturnPart):
                _take(progress, part.tool_name, str(part.content))
    return progress


def _take(progress: _Progress, tool: str, text: str) -> None:
    """Note one tool result: its JSON, or an error's."""
    try:
        if tool == SEARCH_CHATS:
            progress.searches.append(SearchChatsResult.model_validate_json(text))
        elif tool == READ_CHAT:
            progress.reads.append(ReadChatResult.model_validate_json(text))
    except ValidationError:
        if tool == SEARCH_CHATS:
            progress.searches.append(None)
        if _error_kind(text) in (ErrorKind.DECLINED, ErrorKind.NOT_PERMITTED):
            progress.refused.add(tool)


def _error_kind(text: str) -> str | None:
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    error = answer.get("error") if isinstance(answer, dict) else None
    return str(error.get("kind")) if isinstance(error, dict) else None


def _search(words: tuple[str, ...]) -> _Call:
    return _Call(SEARCH_CHATS, {"query": query_of(words), "limit": CHATS})


def _candidates(progress: _Progress) -> list[list[SharedText]]:
    """The hits by chat, best chat first; without those that are this question, or an answer of this assistant."""
    if progress.found is None:
        return []
    chats: dict[int, list[SharedText]] = {}
    for hit in shared_texts(progress.found):
        if not is_own_answer(hit.text) and not asks_the_same(hit.text, progress.question):
            chats.setdefault(hit.chat_id, []).append(hit)
    return list(chats.values())


def _reads(progress: _Progress) -> Iterator[_Call]:
    """What to open next; nothing when what was read answers, or enough was opened."""
    rounds = -(-len(progress.asked_to_read) // READS)
    if rounds == ROUNDS or _has_sure_passage(progress):
        return
    chats = _candidates(progress)
    hits = [hits[0] for hits in chats]
    if chats:
        # The best chat may answer in two places.
        hits[1:1] = chats[0][1:]
    fresh = [hit for hit in hits if hit.message_id not in progress.asked_to_read]
    for hit in fresh[:READS]:
        yield _Call(READ_CHAT, {"chat_id": hit.chat_id, "around_message_id": hit.message_id})


def _has_sure_passage(progress: _Progress) -> bool:
    passages = best_passages(progress.question, progress.sought, _read_texts(progress))
    return any(passage.is_sure for passage in passages)


def _read_texts(progress: _Progress) -> list[SharedText]:
    """What was read, each message once."""
    texts = {shared.message_id: shared for read in progress.reads for shared in shared_texts(read)}
    return sorted(texts.values(), key=lambda shared: (shared.chat_id, shared.created_at, shared.message_id))


def _answer(progress: _Progress) -> str:
    language = language_of(progress.question)
    phrases = PHRASES[language]
    notes = []
    if progress.found is not None and progress.found.index_status == "indexing":
        notes.append(phrases.indexing.format(progress.found.pending_messages or 0))
    texts = _read_texts(progress)
    passages = best_passages(progress.question, progress.sought, texts)
    if not passages:
        excerpts = [hit for hits in _candidates(progress) for hit in hits]
        passages = best_passages(progress.question, progress.sought, excerpts)
        if passages and not texts:
            notes.insert(0, phrases.excerpts_only)
    if passages:
        return quoted_answer(passages, language, notes=notes)
    return _nothing(progress, language, notes)


def _nothing(progress: _Progress, language: Language, notes: Sequence[str]) -> str:
    phrases = PHRASES[language]
    looked_for = as_plain_markdown(one_line(" ".join(progress.words))) or "–"
    return "\n\n".join([f"{phrases.who} {phrases.nothing.format(looked_for)}", *notes])
