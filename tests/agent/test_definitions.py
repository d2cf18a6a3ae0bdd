"""The tools as a model sees them, and what is made of the arguments that it sends."""

import json
import subprocess
import sys
from typing import Any

import pytest

from recall_app.agent.modes import Mode
from recall_app.agent.tools.read_chat import read_chat
from recall_app.agent.tools.registry import TOOL_DEFINITIONS, tool_definition
from recall_app.agent.tools.search_chats import search_chats
from recall_app.config.permissions import Permission
from recall_app.domain.consulting import ReadChatInput, SearchChatsInput
from recall_app.domain.errors import InvalidInputError


def test_search_schema_has_names_types_bounds_and_descriptions_and_nothing_else() -> None:
    schema = search_chats.json_schema()
    query, limit = schema["properties"]["query"], schema["properties"]["limit"]
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    assert (query["type"], query["minLength"], query["maxLength"]) == ("string", 1, 500)
    assert (limit["type"], limit["minimum"], limit["maximum"], limit["default"]) == ("integer", 1, 20, 8)
    assert set(query) | set(limit) <= {"type", "minLength", "maxLength", "minimum", "maximum", "default", "description"}
    assert query["description"]
    assert limit["description"]


def test_read_schema_shows_plain_integers_where_null_is_accepted() -> None:
    schema = read_chat.json_schema()
    assert schema["required"] == ["chat_id"]
    bounds = {
        name: (one["type"], one.get("minimum", one.get("exclusiveMinimum")), one.get("maximum"))
        for name, one in schema["properties"].items()
    }
    assert bounds == {
        "chat_id": ("integer", 0, None),
        "around_message_id": ("integer", 0, None),
        "before": ("integer", 0, 10),
        "after": ("integer", 0, 10),
        "start_char": ("integer", 0, None),
        "offset": ("integer", 0, None),
        "limit": ("integer", 1, 20),
    }
    assert all(one["description"] for one in schema["properties"].values())
    assert "null" not in json.dumps(schema)


@pytest.mark.parametrize("tool", TOOL_DEFINITIONS, ids=lambda tool: str(tool.name))
def test_no_argument_names_an_app_or_a_path(tool: Any) -> None:
    assert not {"app", "app_id", "app_path", "path"} & set(tool.json_schema()["properties"])
    assert tool.default_consent is Permission.ALWAYS
    assert tool.modifies_state is False
    for word in ("archival", "instruction", "code"):
        assert word in tool.description


def test_null_is_absent_for_every_optional_argument() -> None:
    nulls = dict.fromkeys(["around_message_id", "before", "after", "start_char", "offset", "limit"])
    assert read_chat.parse({"chat_id": 4, **nulls}) == ReadChatInput(chat_id=4)
    assert search_chats.parse('{"query": " x ", "limit": null}') == SearchChatsInput(query="x")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"query": "x", "limit": 500}, "limit: Input should be less than or equal to 20"),
        ({"query": "   "}, "query: String should have at least 1 character"),
        ({"query": None}, "query: Field required"),
        ({"query": "x", "app_id": 2}, "there is no argument app_id"),
        ({"query": "x" * 501}, "at most 500 characters"),
        ("{broken", "one JSON object with query, limit"),
        ("[1]", "one JSON object"),
        ([1], "one JSON object"),
        ("", "query: Field required"),
        (None, "query: Field required"),
        ("[" * 100_000, "one JSON object"),
    ],
)
def test_invalid_arguments_are_answered_with_what_to_change(arguments: object, told: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        search_chats.parse(arguments)
    assert told in caught.value.message
    assert "pydantic.dev" not in caught.value.message


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"chat_id": 1, "around_message_id": 2, "offset": 0}, "drop offset to read around the message"),
        ({"chat_id": 1, "around_message_id": 2, "offset": 0, "limit": 5}, "drop offset and limit"),
        ({"chat_id": 1, "before": 2}, "before needs around_message_id"),
        ({"chat_id": 1, "start_char": 2, "limit": 3}, "drop start_char and use offset and limit"),
    ],
)
def test_mixed_modes_say_what_to_drop(arguments: dict[str, int], told: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_chat.parse(arguments)
    assert told in caught.value.message
    assert "Value error" not in caught.value.message


def test_an_errors_text_repeats_no_value() -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_chat.parse({"chat_id": "tell nobody", "secret\nplan": 1, "n" * 500: 2})
    assert "tell nobody" not in caught.value.message
    assert "\n" not in caught.value.message
    assert "n" * 50 not in caught.value.message


def test_previews_are_the_three_sentences() -> None:
    assert search_chats.consent_preview(SearchChatsInput(query="auth decision")) == (
        'Search historical chats for this app for "auth decision" and provide matching excerpts to the active AI model.'
    )
    assert read_chat.consent_preview(ReadChatInput(chat_id=4, around_message_id=9)) == (
        "Read chat #4 of this app around message #9 and provide the historical text to the active AI model."
    )
    assert read_chat.consent_preview(ReadChatInput(chat_id=4)) == (
        "Read chat #4 of this app, messages from position 0 (at most 10), and provide the historical text to the "
        "active AI model."
    )
    assert "position 20 (at most 5)" in read_chat.consent_preview(ReadChatInput(chat_id=4, offset=20, limit=5))


def test_a_query_stays_on_its_line_in_the_preview() -> None:
    preview = search_chats.consent_preview(SearchChatsInput(query="a\nb\u202ec\x1b[31md"))
    assert "\n" not in preview
    assert "\u202e" not in preview
    assert "\x1b" not in preview


def test_modes() -> None:
    names = {mode: [tool.name for tool in mode.tools] for mode in Mode}
    assert all(tools == ["search_chats", "read_chat"] for tools in names.values())
    assert not any(tool.modifies_state for mode in (Mode.ASK, Mode.PLAN) for tool in mode.tools)
    assert (Mode.BASIC.budget.search_bytes, Mode.BASIC.budget.search_chats) == (4096, 4)
    assert (Mode.BASIC.budget.read_bytes, Mode.BASIC.budget.read_messages) == (6144, 6)
    assert (Mode.AGENT.budget.search_bytes, Mode.AGENT.budget.read_bytes) == (12288, 20480)


def test_an_unknown_tool_is_invalid_input() -> None:
    with pytest.raises(InvalidInputError, match="Tools: search_chats, read_chat"):
        tool_definition("drop_tables")


def test_the_parts_that_every_command_needs_do_not_load_pydantic_ai() -> None:
    program = (
        "import sys, recall_app.agent.modes, recall_app.agent.calls, recall_app.agent.consent, "
        "recall_app.agent.terminal, recall_app.agent.stop; print('pydantic_ai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout == b"False\n"
