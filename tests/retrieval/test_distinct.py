"""When two messages say the same (contracts §4: "materially distinct")."""

import pytest

from recall_app.domain.word_breaks import index_text
from recall_app.retrieval.distinct import is_repetition

SAID = "We chose the tangerine palette because it is warm and easy on the eyes."


@pytest.mark.parametrize(
    ("one", "other", "repeats"),
    [
        (SAID, SAID, True),
        (SAID, SAID.upper(), True),
        (SAID, f"## Summary\n- {SAID}\n- Then other things happened, at great length and in detail.", True),
        (SAID, "We chose the tangerine palette at last.", False),
        (SAID, "Nothing of the kind was ever said.", False),
        ("yes", "no", False),
        ("yes", "Yes!", True),
        ("数据库迁移到云端了", "总结：数据库迁移到云端了。", True),
        ("数据库迁移到云端了", "登录页面的问题还没有修复", False),
        ("", "something", False),
        ("", "", True),
        ("🚀", "🎉", False),
    ],
)
def test_a_copy_or_a_text_that_holds_most_of_the_other_repeats_it(one: str, other: str, repeats: bool) -> None:
    assert is_repetition(index_text(one), index_text(other)) is repeats
    assert is_repetition(index_text(other), index_text(one)) is repeats
