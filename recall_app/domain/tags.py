"""The tag policy: one row a tag, read by both projections and by the window's cards (contracts §3).

A tag without a row fails closed: its body is dropped and only allow-listed short attributes are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

ATTRIBUTE_CHARACTERS = 200
RESULT_CHARACTERS = 500
"""Reading keeps tool results and error messages up to this length each."""


class Policy(StrEnum):
    """What a projection keeps of a tag's body."""

    KEEP = "keep the body"
    LINE = "one metadata line"
    DROP = "drop"


class Body(StrEnum):
    """How a body is read where some of it is kept."""

    TEXT = "text"
    SUMMARY = "summary"
    """Text whose closing boilerplate about a backup file goes."""
    ANSWERS = "answers"
    """``<qa question= type=>answer</qa>`` elements, as lines ``question: answer``."""
    URL = "address"
    """Only a web address that the body begins with."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Shown:
    """An allow-listed attribute and how it joins the metadata line."""

    attribute: str
    form: str = " {}"


@dataclass(frozen=True, slots=True)
class TagRule:
    """How one tag is projected.

    ``verb`` begins the metadata line; ``label`` is the card's title. ``body_characters`` bounds a kept body, in code
    points; ``reading_keeps_result`` says that the body is a tool's result, which reading keeps when it is short.
    """

    name: str
    policy: Policy
    label: str
    verb: str = ""
    shown: tuple[Shown, ...] = ()
    body: Body = Body.NONE
    body_characters: int | None = None
    reading_body_characters: int | None = None
    reading_keeps_result: bool = False
    is_known: bool = True


_DETAIL = ": {}"
_PATH_AND_DESCRIPTION = (Shown("path"), Shown("description", _DETAIL))
_QUERY_AND_FILES = (Shown("query", ' "{}"'), Shown("files", " in {}"))
_SCHEMA = (Shown("provider"), Shown("table"))
_SERVER_AND_TOOL = (Shown("server"), Shown("tool"))

READING_ATTRIBUTES: tuple[Shown, ...] = (
    Shown("state", ", {}"),
    Shown("status", ", {}"),
    Shown("outcome", ", {}"),
    Shown("exit-code", ", exit code {}"),
    Shown("count", ", {} results"),
    Shown("result-count", ", {} results"),
    Shown("total", ", {} in total"),
    Shown("passed", ", {} passed"),
    Shown("failed", ", {} failed"),
    Shown("error", ", error: {}"),
)
"""What reading adds to a metadata line, unless the line has it already: exit states, counts, errors."""

UNKNOWN_ATTRIBUTES: tuple[Shown, ...] = (
    Shown("path"),
    Shown("from"),
    Shown("to", " to {}"),
    Shown("name"),
    Shown("title"),
    Shown("type"),
    Shown("query", ' "{}"'),
    Shown("description", _DETAIL),
)


def _keep(name: str, label: str, verb: str = "", *shown: Shown, body: Body = Body.TEXT) -> TagRule:
    return TagRule(f"dyad-{name}", Policy.KEEP, label, verb, shown, body)


def _line(name: str, label: str, verb: str, *shown: Shown, result: bool = False) -> TagRule:
    return TagRule(f"dyad-{name}", Policy.LINE, label, verb, shown, reading_keeps_result=result)


def _web_line(name: str, label: str, verb: str) -> TagRule:
    return TagRule(f"dyad-{name}", Policy.LINE, label, verb, body=Body.URL, body_characters=ATTRIBUTE_CHARACTERS)


_KEPT = (
    _keep("chat-summary", "Chat summary"),
    _keep("compaction", "Earlier conversation, summarised", body=Body.SUMMARY),
    _keep("security-finding", "Security finding", "security finding", Shown("level", ", {}"), Shown("title", _DETAIL)),
    _keep("questionnaire", "Questions and answers", body=Body.ANSWERS),
    _keep("write-plan", "Plan", "plan", Shown("title", _DETAIL), Shown("summary", "\n{}")),
    _keep("exit-plan", "Plan accepted", "plan accepted", Shown("notes", _DETAIL)),
    _keep(
        "app-blueprint",
        "App blueprint",
        "app blueprint",
        Shown("app-name"),
        Shown("template", ", template {}"),
        Shown("theme", ", theme {}"),
        Shown("design-direction", _DETAIL),
    ),
    TagRule(
        "dyad-output",
        Policy.KEEP,
        "Output",
        "output",
        (Shown("type"), Shown("message", _DETAIL)),
        Body.TEXT,
        body_characters=RESULT_CHARACTERS,
        reading_body_characters=RESULT_CHARACTERS,
    ),
)

_LINES = (
    _line("write", "File written", "write", *_PATH_AND_DESCRIPTION),
    _line("edit", "File edited", "edit", *_PATH_AND_DESCRIPTION),
    _line("search-replace", "File edited", "search-replace", *_PATH_AND_DESCRIPTION),
    _line("generate-test", "Test generated", "generate-test", *_PATH_AND_DESCRIPTION),
    _line("copy", "File copied", "copy", Shown("from"), Shown("to", " to {}"), *_PATH_AND_DESCRIPTION),
    _line("delete", "File deleted", "delete", *_PATH_AND_DESCRIPTION),
    _line("rename", "File renamed", "rename", Shown("from"), Shown("to", " to {}")),
    _line("add-dependency", "Packages added", "add dependency", Shown("packages"), result=True),
    _line("execute-sql", "SQL run", "execute SQL", Shown("description", _DETAIL)),
    _line("read-logs", "Logs read", "read logs", Shown("type"), Shown("level", ", level {}")),
    _line(
        "add-integration", "Integration", "add integration", Shown("provider"), Shown("outcome", _DETAIL), result=True
    ),
    _line("enable-nitro", "Nitro enabled", "enable nitro"),
    _line("problem-report", "Problems", "problem report", Shown("summary", _DETAIL), result=True),
    _line(
        "grep",
        "Text search in files",
        "grep",
        Shown("query", ' "{}"'),
        Shown("include", " in {}"),
        Shown("count", ", {} results"),
    ),
    _line("explore-code", "Code explored", "explore code", *_QUERY_AND_FILES),
    _line("code-search", "Code search", "code search", *_QUERY_AND_FILES),
    _line("code-search-result", "Code search result", "code search result", *_QUERY_AND_FILES),
    _line("codebase-context", "Codebase context", "codebase context", *_QUERY_AND_FILES),
    _line("web-search", "Web search", "web search", Shown("query", ' "{}"')),
    _line("web-search-result", "Web search result", "web search result", Shown("query", ' "{}"')),
    _web_line("web-crawl", "Web page crawled", "web crawl"),
    _web_line("web-fetch", "Web page fetched", "web fetch"),
    _line("read", "File read", "read", Shown("path"), Shown("lines", ", lines {}")),
    _line(
        "git",
        "Git",
        "git",
        Shown("operation"),
        Shown("path"),
        Shown("revision", ", revision {}"),
        Shown("subject", _DETAIL),
    ),
    _line("command", "Command", "command", Shown("type"), result=True),
    _line("mcp-tool-call", "Tool call", "tool call", *_SERVER_AND_TOOL),
    _line("mcp-tool-result", "Tool result", "tool result", *_SERVER_AND_TOOL, result=True),
    _line("mcp-tool-search", "Tool search", "tool search"),
    _line("mcp-tool-schema", "Tool description", "tool schema"),
    _line("list-files", "Files listed", "list files", Shown("directory")),
    _line("database-schema", "Database schema", "database schema", *_SCHEMA),
    _line("db-table-schema", "Table schema", "table schema", *_SCHEMA),
    _line("supabase-table-schema", "Supabase table schema", "Supabase table schema", *_SCHEMA),
    _line("neon-table-schema", "Neon table schema", "Neon table schema", *_SCHEMA),
    _line("supabase-project-info", "Supabase project", "Supabase project info", *_SCHEMA),
    _line("neon-project-info", "Neon project", "Neon project info", *_SCHEMA),
    _line("read-guide", "Guide read", "read guide", Shown("name")),
    TagRule(
        "dyad-status",
        Policy.LINE,
        "Status",
        "status",
        (Shown("title", _DETAIL),),
        Body.TEXT,
        body_characters=ATTRIBUTE_CHARACTERS,
        reading_body_characters=RESULT_CHARACTERS,
    ),
    _line("image-generation", "Image generated", "image generation", Shown("prompt", ' "{}"'), Shown("path", " as {}")),
    _line("step-limit", "Step limit reached", "step limit", result=True),
    _line("script", "Script", "script", Shown("description", _DETAIL)),
    _line(
        "test-assertions",
        "Test assertions",
        "test assertions",
        Shown("status"),
        Shown("spec-path", " in {}"),
        result=True,
    ),
    _line("subagent", "Subagent", "subagent", Shown("task-name"), result=True),
)

_DROPPED = (
    TagRule("think", Policy.DROP, "Thinking"),
    TagRule("thinking", Policy.DROP, "Thinking"),
    TagRule("dyad-search-chats", Policy.DROP, "Chat search"),
    TagRule("dyad-read-chat", Policy.DROP, "Chat read"),
    TagRule("dyad-explore-chat-history", Policy.DROP, "Chat history explored"),
)

TAG_RULES: Mapping[str, TagRule] = MappingProxyType({rule.name: rule for rule in _KEPT + _LINES + _DROPPED})


def rule_for(name: str) -> TagRule:
    """The tag's row, or one made for an unknown ``dyad-*`` tag, which keeps no body."""
    known = TAG_RULES.get(name)
    if known:
        return known
    plain = name.removeprefix("dyad-").replace("-", " ").strip()
    verb = plain if len(plain) <= 40 and plain.replace(" ", "").isalnum() else "tag"
    return TagRule(name, Policy.LINE, verb.capitalize(), verb, UNKNOWN_ATTRIBUTES, is_known=False)
