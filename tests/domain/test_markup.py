"""The tag parser: the grammar of contracts §3, whole and in pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_app.domain.markup import (
    Block,
    StrayClose,
    StreamingTagParser,
    TagBlock,
    TagState,
    TextBlock,
    parse_blocks,
)
from tests.scale import scaled

PIECES = [
    "We chose Postgres. ", "\n", "`", "``", "```", "```ts\n", "\n```\n", "~~~\n", "<think>", "</think>", "<thinking>",
    "</thinking >", '<dyad-write path="a>b" description="say `x` &quot;now&quot;">', "</dyad-write>", "<dyad-write",
    '<dyad-read path="q" />', "<dyad-unknown>", "</dyad-unknown>", '<dyad-write path="', '"', ">", "<", "/>", "<dyad-",
    "<thi", "</dyad-wri", "&lt;", "\\`", "> ", "- ", " = ", "'", "\r\n", "\u200b",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


def tags(text: str) -> list[TagBlock]:
    return [block for block in parse_blocks(text) if isinstance(block, TagBlock)]


def plain(text: str) -> str:
    return "|".join(block.text for block in parse_blocks(text) if isinstance(block, TextBlock))


def in_pieces(text: str, sizes: list[int]) -> list[Block]:
    parser = StreamingTagParser()
    at = 0
    for size in sizes:
        parser.feed(text[at : at + size])
        at += size
    parser.feed(text[at:])
    return parser.finish()


@given(TEXTS, st.lists(st.integers(0, 9), max_size=60))
@settings(max_examples=scaled(300, 5_000), deadline=None)
def test_blocks_are_the_same_for_any_split(text: str, sizes: list[int]) -> None:
    whole = parse_blocks(text)
    assert in_pieces(text, sizes) == whole
    assert in_pieces(text, [1] * len(text)) == whole


@given(TEXTS)
@settings(max_examples=scaled(150, 2_000), deadline=None)
def test_what_a_stream_has_shown_is_never_taken_back(text: str) -> None:
    parser = StreamingTagParser()
    shown = ""
    for character in text:
        parser.feed(character)
        now = "".join(block.text for block in parser.blocks if isinstance(block, TextBlock))
        assert now.startswith(shown)
        shown = now
    assert "".join(block.text for block in parser.finish() if isinstance(block, TextBlock)).startswith(shown)


def test_attributes_and_entities() -> None:
    [tag] = tags(
        '<dyad-write path="a>b" description="&lt;b&gt; &quot;x&quot; &amp;amp;">1 &lt; 2 &amp;lt; 3</dyad-write >'
    )
    assert tag.attributes == {"path": "a>b", "description": '<b> "x" &amp;'}
    assert tag.body == "1 < 2 &lt; 3"
    assert tag.state is TagState.COMPLETE
    assert tag.well_formed


def test_self_closing_tags_and_their_place() -> None:
    text = 'a <dyad-read path="q" /> b'
    [tag] = tags(text)
    assert (tag.raw_body, text[tag.start : tag.end]) == ("", '<dyad-read path="q" />')
    assert plain(text) == "a | b"


@pytest.mark.parametrize("text", ["<Dyad-write>a</Dyad-write>", "<thinker>a</thinker>", "< think>a", "<dy", "a < b"])
def test_other_names_are_text(text: str) -> None:
    assert parse_blocks(text) == [TextBlock(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Use the `<think>` tag carefully. We decided on Postgres.",
        "Write `` `<dyad-write path=` `` first. Then go.",
        "From `<think>` to `</think>` it thinks. Then go.",
        "```xml\n<dyad-write>\n```\nThen go.",
        "- item\n  ~~~\n  <think>\n  ~~~\nThen go.",
    ],
)
def test_a_name_in_closed_code_is_text(text: str) -> None:
    assert parse_blocks(text) == [TextBlock(text)]


@pytest.mark.parametrize(
    "text",
    [
        "an open ` span <think>SECRET",
        "an open ` span <think>SECRET\nwith a ` later",
        "an escaped \\`<think>` SECRET",
        "```\n<think>SECRET",
        "```\n<think>SECRET\n``` not a closing fence",
        "```xml\n<think>\n```bash\nx\n```\nSECRET",
        "``` <think>SECRET",
        'say `<dyad-write description="use `npm` now">SECRET',
    ],
)
def test_open_code_shields_nothing(text: str) -> None:
    assert "SECRET" not in plain(text)
    assert tags(text)[-1].state is TagState.UNFINISHED


def test_a_whole_element_in_closed_code_loses_its_body() -> None:
    assert plain("```\n<think>SECRET</think>\n```\nThen `<think>SECRET</think>` go") == "```\n|\n```\nThen `|` go"
    assert plain("```md\n<dyad-write path='x'>\n```js\n1\n```\nSECRET</dyad-write>\n```\ngo") == "```md\n|\n```\ngo"


def test_content_runs_to_the_matching_close() -> None:
    assert plain("<think>a <think>b</think> SECRET</think> go") == " go"
    assert plain("<dyad-write>a <dyad-write/> b</dyad-write> go") == " go"
    assert plain("<dyad-write>a <dyad-write-plan> b</dyad-write> go") == " go"
    assert plain('<dyad-write>the <dyad-write path="</dyad-write> go') == " go"


def test_a_close_without_opening_is_told_apart() -> None:
    assert parse_blocks("a</dyad-write>b") == [TextBlock("a"), StrayClose("dyad-write"), TextBlock("b")]


@pytest.mark.parametrize(
    "opening",
    [
        '<dyad-write path="src/a.ts>SECRET',
        '<dyad-write path="a>\nSECRET "\n>',
        '<dyad-write path="a>SECRET" x</dyad-write> "y"',
        '<dyad-write path="a>\nSECRET "<br/> SECRET',
        "<dyad-write path=a/> SECRET",
        '<dyad-write path="SECRET</dyad-write>" />',
    ],
)
def test_a_broken_opening_gives_nothing_away(opening: str) -> None:
    assert "SECRET" not in plain(opening)
    assert all("SECRET" not in value for tag in tags(opening) for value in tag.attributes.values())


def test_states_while_streaming() -> None:
    parser = StreamingTagParser()
    parser.feed('Go <dyad-write path="a.ts" des')
    assert parser.blocks == [
        TextBlock("Go "),
        TagBlock("dyad-write", {"path": "a.ts"}, "", TagState.IN_PROGRESS, False, 3, 14),
    ]
    parser.feed('cription="d">body</dyad')
    assert isinstance(parser.blocks[-1], TagBlock)
    assert (parser.blocks[-1].raw_body, parser.blocks[-1].state) == ("body", TagState.IN_PROGRESS)
    assert isinstance(last := parser.finish()[-1], TagBlock)
    assert (last.raw_body, last.state) == ("body</dyad", TagState.UNFINISHED)


def test_undecided_text_is_held_back() -> None:
    parser = StreamingTagParser()
    parser.feed("Use the `<think>")
    assert parser.blocks == [TextBlock("Use the `")]
    parser.feed("` tag.\n")
    assert parser.blocks == [TextBlock("Use the `<think>` tag.\n")]


@pytest.mark.parametrize(
    "unit", ["<dyad-x", "<dyad-x>", "`", "`<think>` ", "<think>", '<dyad-x a="', "``` a\n<dyad-x/>\n"]
)
@pytest.mark.parametrize("before", ["", "```\n", "<dyad-x>"])
def test_hostile_repetition_comes_to_an_end(before: str, unit: str) -> None:
    assert parse_blocks(before + unit * 100_000)
