"""The sample workspace keeps what it promises, and its reader takes damage calmly."""

import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_app.domain.markup import StrayClose, TagBlock, TagState, TextBlock, parse_blocks
from recall_app.domain.projection import ChatSearchProjectionInput, project_chat_message_for_search
from recall_app.domain.records import SkippedRecord, SourceApp, SourceChat, SourceItem, SourceMessage
from recall_app.domain.tags import TAG_RULES
from recall_app.sources.sample import LONGEST_REPEAT, FormatError, SampleReader, decode_escapes

HOSTILE = "storefront/support-inbox"


@cache
def workspace() -> tuple[SourceItem, ...]:
    reader = SampleReader()
    (folder,) = reader.discover()
    return tuple(reader.read(folder))


def chats() -> list[SourceChat]:
    return [item for item in workspace() if isinstance(item, SourceChat)]


def messages() -> list[SourceMessage]:
    return [item for item in workspace() if isinstance(item, SourceMessage)]


def messages_of(chat_key: str) -> list[SourceMessage]:
    return [message for message in messages() if message.source_key.startswith(f"{chat_key}#")]


def answers() -> list[SourceMessage]:
    return [message for message in messages() if message.role == "assistant"]


def found(message: SourceMessage) -> str:
    return project_chat_message_for_search(
        ChatSearchProjectionInput(message.role, message.content, message.is_compaction_summary)
    ).text


# --- the workspace ---


def test_size() -> None:
    assert [item.name for item in workspace() if isinstance(item, SourceApp)] == ["Field Notes", "Storefront"]
    assert [item for item in workspace() if isinstance(item, SkippedRecord)] == []
    assert len(chats()) >= 14
    assert len(messages()) >= 240
    assert all(len(messages_of(chat.source_key)) >= 4 for chat in chats())


def test_source_keys_are_unique_and_free_of_the_file_number() -> None:
    keys = [item.source_key for item in workspace() if not isinstance(item, SkippedRecord)]
    assert len(set(keys)) == len(keys)
    assert "storefront/authentication-setup#17" in keys


def test_times_do_not_run_backwards_within_a_chat() -> None:
    for chat in chats():
        times = [one.created_at or 0 for one in messages_of(chat.source_key) if not one.is_compaction_summary]
        assert times == sorted(times), chat.source_key
        assert chat.created_at == times[0], chat.source_key


def test_a_compaction_stands_just_before_the_message_that_set_it_off() -> None:
    ordered = messages()
    summaries = [index for index, message in enumerate(ordered) if message.is_compaction_summary]
    assert len(summaries) >= 2
    for index in summaries:
        summary, after = ordered[index], ordered[index + 1]
        assert (summary.role, after.role) == ("assistant", "user")
        assert 0 < (after.created_at or 0) - (summary.created_at or 0) <= 1000
        assert "backup file at" in summary.content
        assert "backup file at" not in found(summary)


def test_every_tag_of_the_policy_table_occurs() -> None:
    seen = {block.name for answer in answers() for block in parse_blocks(answer.content) if isinstance(block, TagBlock)}
    assert sorted(set(TAG_RULES) - seen) == []
    assert sorted(seen - set(TAG_RULES)) == ["dyad-weather-report"]


def test_tags_are_well_formed() -> None:
    for answer in answers():
        blocks = parse_blocks(answer.content)
        assert not [block for block in blocks if isinstance(block, StrayClose)], answer.source_key
        for block in blocks:
            if isinstance(block, TagBlock):
                assert block.well_formed, (answer.source_key, block.name)
                assert block.state is TagState.COMPLETE, (answer.source_key, block.name)


def test_bodies_are_escaped_but_in_the_one_message_of_an_early_dyad() -> None:
    raw = {
        (answer.source_key, block.attributes.get("path"))
        for answer in answers()
        for block in parse_blocks(answer.content)
        if isinstance(block, TagBlock) and "<" in block.raw_body and block.name not in {"dyad-questionnaire", "think"}
    }
    assert raw == {("storefront/set-up-the-shop#12", "src/components/ProductCard.tsx")}


def test_some_payloads_are_bulky_and_leave_the_projection() -> None:
    bulky = [
        (answer, block)
        for answer in answers()
        for block in parse_blocks(answer.content)
        if isinstance(block, TagBlock) and block.raw_body.count("\n") >= 30
    ]
    assert len(bulky) >= 12
    for answer, block in bulky:
        line = max(block.body.splitlines(), key=len)
        if TAG_RULES[block.name].policy != "keep the body":
            assert line not in found(answer), answer.source_key


def test_every_answer_says_something_of_its_own() -> None:
    silent = [answer.source_key for answer in answers() if not found(answer).strip()]
    assert silent == []


@pytest.mark.parametrize(
    ("chat_key", "script"),
    [
        ("storefront/login-problems-zh", "CJK"),
        ("field-notes/offline-map-ja", "HIRAGANA"),
        ("field-notes/rtl-arabic", "ARABIC"),
    ],
)
def test_languages_with_a_script_of_their_own(chat_key: str, script: str) -> None:
    for message in messages_of(chat_key):
        prose = "".join(block.text for block in parse_blocks(message.content) if isinstance(block, TextBlock))
        assert any(unicodedata.name(letter, "").startswith(script) for letter in prose), message.source_key


def test_spanish() -> None:
    words = Counter(" ".join(one.content for one in messages_of("storefront/precios-con-iva")).lower().split())
    assert min(words["de"], words["el"], words["con"]) >= 5


def test_one_chat_is_private() -> None:
    assert [chat.title for chat in chats() if chat.is_private] == ["Salary spreadsheet"]


def test_the_decision_of_12_july_and_its_neighbours() -> None:
    chat = messages_of("storefront/authentication-setup")
    assert len(chat) == 31
    assert chat[11].content == "Can we keep the refresh token in the keychain on iOS?"
    assert (chat[16].role, chat[16].created_at) == ("assistant", 1_783_880_940_000)
    assert "short server sessions instead of refresh tokens, because the mobile web view drops" in chat[16].content
    assert chat[17].content == "OK. Write it down in the plan."
    store = messages_of("storefront/pick-a-session-store")
    assert len(store) == 9
    assert (store[3].role, store[3].content.split(".")[0]) == (
        "user",
        "Redis is fine, but then a refresh token needs its own table",
    )


def test_a_mention_in_inline_code_keeps_the_sentences_after_it() -> None:
    (answer,) = [one for one in answers() if one.content.find("Use the `<think>` tag carefully") >= 0]
    assert "We decided to strip it on the server" in found(answer)


def test_hostile_characters_are_really_there() -> None:
    (chat,) = [one for one in chats() if one.source_key == HOSTILE]
    text = "\n".join(message.content for message in messages_of(HOSTILE))
    wanted = ["\x1b[", "\x1b]8;;", "\u202e", "\u200b", "\ufeff", "\U000e0001", "</dyad-search-chats>", "<script>"]
    assert [repr(one) for one in [*wanted, "<img src=x onerror="] if one not in text] == []
    assert max(map(len, text.split())) == 2000
    assert chat.title is not None
    assert all(one in chat.title for one in ("\n", "<b>", "\u202e", "\x1b"))
    assert any(chat.title == "🚀" * 150 + "🎉" * 150 for chat in chats())


def test_the_body_of_a_tag_that_nobody_knows_is_not_found() -> None:
    hidden = [answer for answer in answers() if "violet-otter-92" in answer.content]
    assert len(hidden) == 1
    assert "violet-otter-92" not in found(hidden[0])


def test_the_files_hold_no_control_character_themselves() -> None:
    (folder,) = SampleReader().discover()
    for file in folder.rglob("*.chat"):
        text = file.read_text(encoding="utf-8")
        odd = {
            hex(ord(one))
            for one in text
            # The joiner holds emoji together.
            if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Co"} and one not in "\n\u200d"
        }
        assert odd == set(), file.name


# --- the reader ---

FRONT = '+++\ntitle = "One"\ncreated_at = 2026-01-02T03:04:05Z\nmodel = "m"\n+++\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "app.toml").write_text('name = "Shop"\n', encoding="utf-8")
    return tmp_path


def read(folder: Path, text: str | bytes, name: str = "01-one.chat") -> list[SourceItem]:
    content = text.encode() if isinstance(text, str) else text
    (folder / "shop" / name).write_bytes(content)
    return [item for item in SampleReader().read(folder) if not isinstance(item, SourceApp)]


def test_head_and_text(folder: Path) -> None:
    body = (
        "\n@@ user 2026-01-02T03:04:05Z\n\n    indented\n\n@@ -1,2 +1,2 @@\nnot a head\n\n"
        "@@ assistant 2026-01-02T04:04:05.678+01:00 model=other compaction\nanswer \\u{41}\n"
        "@@ assistant 2026-01-02T03:05:00Z\n"
    )
    chat, asked, summary, empty = read(folder, FRONT + body)
    assert isinstance(chat, SourceChat)
    assert (chat.source_key, chat.title, chat.created_at) == ("shop/one", "One", 1_767_323_045_000)
    assert asked == SourceMessage(
        "shop/one#1", "user", "    indented\n\n@@ -1,2 +1,2 @@\nnot a head", 1_767_323_045_000
    )
    assert summary == SourceMessage(
        "shop/one#2", "assistant", "answer \\u{41}", 1_767_323_045_678, model="other", is_compaction_summary=True
    )
    assert empty == SourceMessage("shop/one#3", "assistant", "", 1_767_323_100_000, model="m")


def test_windows_line_ends_and_a_byte_order_mark(folder: Path) -> None:
    text = FRONT + "@@ user 2026-01-02T03:04:05Z\na\nb\u2028c\n"
    _, message = read(folder, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert isinstance(message, SourceMessage)
    assert message.content == "a\nb\u2028c"


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("@@ assistent 2026-01-02T03:04:05Z", "the head is not '@@ user TIME' or '@@ assistant TIME'"),
        ("@@ user yesterday", "the head's time is not ISO 8601"),
        ("@@ user 2026-01-02T03:04:05", "the head's time has no zone"),
        ("@@ user 2026-01-02T03:04:05Z loud", "the head has an unknown mark"),
    ],
)
def test_a_damaged_head_costs_its_own_message_only(folder: Path, head: str, reason: str) -> None:
    good = "@@ user 2026-01-02T03:04:05Z\ngood\n"
    _, first, skipped, last = read(folder, f"{FRONT}{good}{head}\nlost\n{good}")
    assert isinstance(first, SourceMessage)
    assert isinstance(last, SourceMessage)
    assert skipped == SkippedRecord("shop/01-one.chat:8", reason)
    assert (first.source_key, last.source_key) == ("shop/one#1", "shop/one#3")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no +++ in the first line"),
        ('+++\ntitle = "x"\n', "the front matter has no closing +++"),
        ("+++\ntitle = secret\n+++\n", "not valid TOML"),
        ("+++\ntitle = 3\n+++\n", "title is not a text"),
        ("+++\nprivate = 1\n+++\n", "private is not true or false"),
        ("+++\ncreated_at = 2026-01-02T03:04:05\n+++\n", "created_at is not a time with its zone"),
        ("+++\ntitle = '\\u{110000}'\nescapes = true\n+++\n", "an escape names no character"),
        (FRONT.encode() + b"@@ user 2026-01-02T03:04:05Z\n\xff\n", "not UTF-8"),
        (b"+" * (4 * 1024 * 1024 + 1), "longer than 4 MiB"),
    ],
)
def test_a_damaged_file_is_skipped_and_the_next_comes_in(folder: Path, text: str | bytes, reason: str) -> None:
    (folder / "shop" / "02-two.chat").write_text(FRONT + "@@ user 2026-01-02T03:04:05Z\ngood\n", encoding="utf-8")
    skipped, chat, message = read(folder, text)
    assert skipped == SkippedRecord("shop/01-one.chat", reason)
    assert isinstance(chat, SourceChat)
    assert isinstance(message, SourceMessage)
    assert message.content == "good"


def test_a_damaged_app_is_skipped_and_the_next_comes_in(folder: Path) -> None:
    (folder / "broken").mkdir()
    (folder / "broken" / "app.toml").write_text('path = "x"\n', encoding="utf-8")
    assert list(SampleReader().read(folder)) == [
        SkippedRecord("broken/app.toml", "name is missing"),
        SourceApp("shop", "Shop"),
    ]


def test_text_before_the_first_message_is_reported(folder: Path) -> None:
    _, skipped, message = read(folder, f"{FRONT}\nlost\n@@ user 2026-01-02T03:04:05Z\ngood\n")
    assert skipped == SkippedRecord("shop/01-one.chat:7", "text before the first message")
    assert isinstance(message, SourceMessage)


def test_detect(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert SampleReader().detect(folder)
    assert not SampleReader().detect(folder / "shop")
    assert not SampleReader().detect(folder / "shop" / "app.toml")
    assert not SampleReader().detect(tmp_path_factory.mktemp("empty"))


def test_escapes() -> None:
    assert decode_escapes(r"\u{1b}[1m \u{1F680*3} \u{5c}u{41} \u0041 \u{} \u{zz}") == (
        "\x1b[1m 🚀🚀🚀 \\u{41} \\u0041 \\u{} \\u{zz}"
    )
    for wrong in (r"\u{d800}", r"\u{110000}", rf"\u{{61*{LONGEST_REPEAT + 1}}}"):
        with pytest.raises(FormatError):
            decode_escapes(wrong)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_can_be_written_in_escapes(text: str) -> None:
    assert decode_escapes("".join(f"\\u{{{ord(one):x}}}" for one in text)) == text
