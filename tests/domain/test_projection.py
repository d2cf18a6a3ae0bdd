"""Both projections: every rule of contracts §3, and that no cut leaks a payload."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_app.domain.projection import (
    OMISSION_MARKER,
    PROJECTION_BYTES,
    ChatSearchProjectionInput,
    project_chat_message_for_reading,
    project_chat_message_for_search,
)
from recall_app.domain.records import Role
from recall_app.domain.tags import TAG_RULES, Policy
from tests.scale import scaled

SECRET = "SECRETpayload"


def found(content: str, role: Role = "assistant", summary: bool = False) -> str:
    return project_chat_message_for_search(ChatSearchProjectionInput(role, content, summary)).text


def read(content: str, role: Role = "assistant", summary: bool = False) -> str:
    return project_chat_message_for_reading(ChatSearchProjectionInput(role, content, summary))


LINES = [
    (
        'write path="src/lib/auth.ts" description="add the session cookie"',
        "write src/lib/auth.ts: add the session cookie",
    ),
    ('edit path="a.ts"', "edit a.ts"),
    ('search-replace path="a.ts" description="d"', "search-replace a.ts: d"),
    ('generate-test path="a.spec.ts"', "generate-test a.spec.ts"),
    ('copy from="a" to="b" description="d"', "copy a to b: d"),
    ('delete path="old.ts"', "delete old.ts"),
    ('rename from="a.ts" to="b.ts"', "rename a.ts to b.ts"),
    ('add-dependency packages="zod react"', "add dependency zod react"),
    ('execute-sql description="add users"', "execute SQL: add users"),
    ('read-logs type="client" level="error"', "read logs client, level error"),
    ('add-integration provider="supabase" outcome="done"', "add integration supabase: done"),
    ("enable-nitro", "enable nitro"),
    ('problem-report summary="2 problems"', "problem report: 2 problems"),
    ('grep query="useState&lt;T&gt;" include="*.ts" count="3"', 'grep "useState<T>" in *.ts, 3 results'),
    ('explore-code query="auth" files="4"', 'explore code "auth" in 4'),
    ('code-search query="auth"', 'code search "auth"'),
    ('code-search-result query="auth"', 'code search result "auth"'),
    ('codebase-context files="a.ts"', "codebase context in a.ts"),
    ('web-search query="fts5"', 'web search "fts5"'),
    ('web-search-result query="fts5"', 'web search result "fts5"'),
    ("web-crawl", "web crawl"),
    ("web-fetch", "web fetch"),
    ('read path="a.ts" lines="1-9"', "read a.ts, lines 1-9"),
    ('git operation="commit" revision="3f2a" subject="fix login"', "git commit, revision 3f2a: fix login"),
    ('command type="rebuild"', "command rebuild"),
    ('mcp-tool-call server="s" tool="t"', "tool call s t"),
    ('mcp-tool-result server="s" tool="t"', "tool result s t"),
    ("mcp-tool-search", "tool search"),
    ("mcp-tool-schema", "tool schema"),
    ('list-files directory="src"', "list files src"),
    ('database-schema provider="neon"', "database schema neon"),
    ('db-table-schema table="users"', "table schema users"),
    ('supabase-table-schema table="users"', "Supabase table schema users"),
    ('neon-table-schema table="users"', "Neon table schema users"),
    ("supabase-project-info", "Supabase project info"),
    ("neon-project-info", "Neon project info"),
    ('read-guide name="auth"', "read guide auth"),
    ('image-generation prompt="a cat" path="cat.png"', 'image generation "a cat" as cat.png'),
    ("step-limit", "step limit"),
    ('script description="seed"', "script: seed"),
    ('test-assertions status="passed" spec-path="a.spec.ts"', "test assertions passed in a.spec.ts"),
    ('subagent task-name="review"', "subagent review"),
]


@pytest.mark.parametrize(("tag", "line"), LINES)
def test_one_metadata_line(tag: str, line: str) -> None:
    name = tag.partition(" ")[0]
    body = f"{SECRET} " * 60
    content = f"Before.\n<dyad-{tag}>{body}</dyad-{name}>\nAfter."
    assert found(content) == f"Before.\n{line}\nAfter."
    assert read(content) == f"Before.\n{line}\nAfter."


def test_every_line_tag_is_in_the_table_above() -> None:
    names = {f"dyad-{tag.partition(' ')[0]}" for tag, _ in LINES} | {"dyad-status"}
    assert names == {rule.name for rule in TAG_RULES.values() if rule.policy is Policy.LINE}


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("<dyad-chat-summary>Fix the &lt;b&gt; login</dyad-chat-summary>", "Fix the <b> login"),
        (
            '<dyad-security-finding title="SQLi" level="high">In db.ts</dyad-security-finding>',
            "security finding, high: SQLi\nIn db.ts",
        ),
        (
            '<dyad-questionnaire><qa question="DB?">A &amp; b</qa><qa question="Y?">b</qa></dyad-questionnaire>',
            "DB?: A & b\nY?: b",
        ),
        ('<dyad-write-plan title="T" summary="S">1. do it</dyad-write-plan>', "plan: T\nS\n1. do it"),
        ('<dyad-exit-plan notes="go"></dyad-exit-plan>', "plan accepted: go"),
        (
            '<dyad-app-blueprint app-name="A" template="next" theme="dark" design-direction="calm"/>',
            "app blueprint A, template next, theme dark: calm",
        ),
        ('<dyad-output type="error" message="boom">at a.ts</dyad-output>', "output error: boom\nat a.ts"),
        (f'<dyad-output type="error">{"x" * 900}</dyad-output>', "output error\n" + "x" * 500),
        (f'<dyad-status title="Build">{"x" * 200}yyy</dyad-status>', "status: Build\n" + "x" * 200),
        ("<dyad-web-fetch> https://a.b/c page text</dyad-web-fetch>", "web fetch\nhttps://a.b/c"),
    ],
)  # fmt: skip
def test_kept_bodies(content: str, kept: str) -> None:
    assert found(content) == kept


@pytest.mark.parametrize("summary", [True, False])
def test_compaction_loses_its_closing_note(summary: bool) -> None:
    note = "If you need earlier parts, you can read the backup file at: `.dyad/x.md`\nNote: it may be large."
    assert found(f"<dyad-compaction title='x'>We chose pg.\n\n{note}</dyad-compaction>", summary=summary) == ""
    tagged = f'<dyad-compaction title="Compacted">We chose pg.\n\n{note}\n</dyad-compaction>'
    assert found(tagged, summary=summary) == "We chose pg."
    assert found(f"We chose pg. {note}", summary=True) == "We chose pg."
    early = "We saved the backup file at /tmp. " + "Then much more was done. " * 60
    assert found(early, summary=True) == early.strip()


@pytest.mark.parametrize(
    "content",
    [
        f"<think>{SECRET}</think>",
        f"<thinking>{SECRET}</thinking>",
        f'<dyad-search-chats query="q">{SECRET}</dyad-search-chats>',
        f'<dyad-read-chat title="{SECRET}">{SECRET}</dyad-read-chat>',
        f"<dyad-explore-chat-history>{SECRET}</dyad-explore-chat-history>",
        f'<dyad-new token="{SECRET}">{SECRET}</dyad-new>',
        f"<dyad-chat-summary><think>{SECRET}</think></dyad-chat-summary>",
        f"<dyad-chat-summary>&lt;think&gt;{SECRET}&lt;/think&gt;</dyad-chat-summary>",
        f"<dyad-chat-summary><dyad-new>&lt;/dyad-new&gt; {SECRET}",
        f'<dyad-questionnaire><think><qa question="{SECRET}">{SECRET}</qa></think></dyad-questionnaire>',
        f"<dyad-new>a </dyad-new> {SECRET} </dyad-new>",
        f"open ` span <dyad-new>a ` b {SECRET}</dyad-new>",
        f"```\n<dyad-new>\n```\n{SECRET}</dyad-new>",
        f"{SECRET} </think>",
        f"\x1b]8;;<dyad-new>\x07{SECRET}</dyad-new>",
        f"<dyad-new>\u0338{SECRET}</dyad-new>",
        f"<dy\u00adad-new>{SECRET}</dyad-new>",
        f"<dyad-ne\u200bw>{SECRET}</dyad-new>",
        f'<dyad-write path="a>{SECRET}</dyad-write> "x"',
        f"<dyad-chat-summary x=y>{SECRET}</dyad-chat-summary>",
        f"<dyad-command>{SECRET}",
        f"<dyad-chat-summary>{SECRET}",
    ],
)
def test_dropped_whole(content: str) -> None:
    for text in (found(content + " end"), read(content + " end")):
        assert SECRET not in text
        assert "<dyad-" not in text


def test_escaped_markup_in_an_attribute_is_no_markup() -> None:
    assert found('<dyad-write description="&lt;dyad-x&gt;"/>') == "write: dyad-x>"


def test_attributes_are_short() -> None:
    assert len(found(f'<dyad-read path="{"x" * 999}"/>')) == len("read ") + 200


def test_unknown_tags_keep_short_attributes() -> None:
    assert found('<dyad-brand-new path="a.ts" description="d">x</dyad-brand-new>') == "brand new a.ts: d"
    assert found("a <dyad-brand-new>x</dyad-brand-new> b") == "a b"


def test_names_in_closed_code_stay() -> None:
    text = "Use the `<think>` tag carefully. We decided on Postgres."
    assert found(text) == text


def test_white_space_where_tags_were() -> None:
    assert found("a<think>x</think>b") == "a b"
    assert found("a\n\n<think>x</think>\n\n\n<dyad-enable-nitro/>\n\n<dyad-enable-nitro/>\n\n\nb") == (
        "a\n\nenable nitro\nenable nitro\n\nb"
    )
    code = "```py\nif x:\n    y\n\n\n\n    z\n```"
    assert found(f"<think>x</think>\n{code}\nend") == f"{code}\nend"


def test_reading_keeps_what_explains_events() -> None:
    content = '<dyad-command type="test" exit-code="1" state="finished">2 failed</dyad-command>'
    assert found(content) == "command test"
    assert read(content) == "command test, finished, exit code 1\n2 failed"
    assert read('<dyad-write path="a" state="aborted">code</dyad-write>') == "write a, aborted"
    long = "x" * 501
    assert read(f"<dyad-mcp-tool-result>{long}</dyad-mcp-tool-result>") == "tool result"


def test_user_text_is_kept_as_typed() -> None:
    text = 'Why  does\n\n\n   <dyad-write path="/abs/a">x</dyad-write> show <think>?  '
    assert found(text, "user") == read(text, "user") == text
    assert found("a\r\nb e\u0301", "user", summary=True) == "a\nb \u00e9"


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ('<dyad-attachment name="a" path="/Users/me/a b.png">', '<dyad-attachment name="a" path="a b.png">'),
        (r'<dyad-attachment path="C:\Users\me\x.png" />', '<dyad-attachment path="x.png" />'),
        ("<dyad-attachment path='C:/Users/me/x>y.png'>", "<dyad-attachment path='x>y.png'>"),
        (r'<dyad-attachment path="\\server\me\x.png">', '<dyad-attachment path="x.png">'),
        ('<dyad-attachment path="~/me/x.png">', '<dyad-attachment path="x.png">'),
        ('<dyad-attachment url="file:///home/me/x.png">', '<dyad-attachment url="x.png">'),
        ('<dyad-attachment url="app://media/%2Fhome%2Fme%2Fx.png">', '<dyad-attachment url="x.png">'),
        ("<dyad-attachment path=/home/me/x.png>", "<dyad-attachment path=x.png>"),
        ('<dyad-attachment path="/home/me/x.png', '<dyad-attachment path="x.png'),
        ("<dyad-attachment>/home/me/x.png</dyad-attachment>", "<dyad-attachment>x.png</dyad-attachment>"),
        ('<dyad-attachment type="image/png" url="https://a.b/c">', '<dyad-attachment type="image/png" url="https://a.b/c">'),
    ],
)  # fmt: skip
def test_attachment_paths_are_reduced(typed: str, kept: str) -> None:
    assert found(f"see {typed}\nand /etc/hosts", "user") == f"see {kept}\nand /etc/hosts"


def test_bounds() -> None:
    fits = "é" * (PROJECTION_BYTES // 2)
    assert project_chat_message_for_search(ChatSearchProjectionInput("user", fits, False)).truncated is False
    content = "head " + "👩‍👩‍👧" * 10_000 + " tail"
    projection = project_chat_message_for_search(ChatSearchProjectionInput("assistant", content, False))
    assert projection.truncated
    assert len(projection.text.encode()) <= PROJECTION_BYTES
    head, tail = projection.text.split(OMISSION_MARKER)
    assert head.startswith("head ")
    assert tail.endswith(" tail")
    assert 0 <= 48 * 1024 - len(head.encode()) < 32
    assert 0 <= 12 * 1024 - len(tail.encode()) < 32
    assert read(content) == content


def test_deep_nesting_ends() -> None:
    assert found("<dyad-chat-summary>" * 20_000 + SECRET) == ""


PARTS = [SECRET, " x ", "\n", "<b>", '"', "&lt;", "a > b", "const x = 1;\n", "/>"]
CODE_PARTS = ["`", "``", "\n```\n", "\n```bash\n", "\n~~~\n"]
BODIES = st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join)
BODIES_WITH_CODE = st.lists(st.sampled_from(PARTS + CODE_PARTS), min_size=1, max_size=8).map("".join)
DROPPED = st.sampled_from(["think", "thinking", "dyad-new-one", "dyad-search-chats", 'dyad-write path="a.ts"'])


def element(tag: str, body: str) -> str:
    return f"<{tag}>{body}</{tag.partition(' ')[0]}>"


ELEMENTS = st.builds(element, DROPPED, BODIES_WITH_CODE)
# Behind open code a body with marks of its own can't be told from closed code with a mention in it.
ELEMENTS_WITHOUT_CODE = st.builds(element, DROPPED, BODIES)
CODE = st.sampled_from(
    [
        "`code`",
        "`<think>`",
        "`<dyad-write>` and `</dyad-write>`",
        "\n```ts\nconst a = 1;\n```\n",
        "\n```\n<think>\n```\n",
    ]
)
OPEN_CODE = st.sampled_from(["\nan open ` span\n", "\n```ts\nopen\n"])


@st.composite
def messages(draw: st.DrawFn) -> list[tuple[bool, str]]:
    """Pieces of a message: (is prose, text). At most one opens code and leaves it open, at the end."""
    pieces: list[tuple[bool, str]] = []
    for number in range(draw(st.integers(1, 7))):
        pieces.append((True, f" prose{number}word "))
        kind = draw(st.integers(0, 2))
        pieces.append((False, draw(ELEMENTS if kind else CODE)))
    pieces.append((True, " lastprose "))
    if draw(st.booleans()):
        pieces += [(False, draw(OPEN_CODE)), (False, draw(ELEMENTS_WITHOUT_CODE)), (True, " afterwards ")]
    return pieces


@given(messages(), st.floats(0, 1))
@settings(max_examples=scaled(300, 5_000), deadline=None)
def test_no_cut_leaks_a_payload_or_loses_prose(pieces: list[tuple[bool, str]], share: float) -> None:
    whole = "".join(text for _, text in pieces)
    cut = round(len(whole) * share)
    for text in (found(whole[:cut]), read(whole[:cut])):
        assert SECRET not in text
        at = 0
        for is_prose, piece in pieces:
            at += len(piece)
            if is_prose and at <= cut:
                assert piece.strip() in text


WILD = st.lists(
    st.sampled_from(
        ["prose ", "\n", "<think>", "</think>", "<dyad-write", ">", '"', "<dyad-chat-summary>", "</dyad-chat-summary>",
         "<dyad-output>", "&lt;", "think>", "dyad-x&gt;", "\u00ad", "\u200b", "<", "dy", "ad-x>", "\x1b[0m", "\u0338"]
    ),
    max_size=20,
).map("".join)  # fmt: skip


@given(WILD, st.sampled_from(["user", "assistant"]), st.booleans())
@settings(max_examples=scaled(300, 5_000), deadline=None)
def test_no_markup_outside_code_and_the_same_every_time(content: str, role: Role, summary: bool) -> None:
    message = ChatSearchProjectionInput(role, content, summary)
    projection = project_chat_message_for_search(message)
    assert projection == project_chat_message_for_search(message)
    if role == "assistant":
        for text in (projection.text, project_chat_message_for_reading(message)):
            assert "<dyad-" not in text
            assert "<think>" not in text


def test_attributed_quotes_of_the_built_in_assistant_are_read_but_not_indexed() -> None:
    answer = (
        "This is what earlier chats say:\n\n> We decided on quagga.\n> Second line.\n>\n"
        "> — Storage · 2026-07-12 · message 18\n\n> a quote without a source\n\nThat is all."
    )
    message = ChatSearchProjectionInput("assistant", answer, False)
    indexed = project_chat_message_for_search(message).text
    assert "quagga" not in indexed
    assert "Second line" not in indexed
    assert "a quote without a source" in indexed
    assert "That is all." in indexed
    assert "We decided on quagga." in project_chat_message_for_reading(message)
