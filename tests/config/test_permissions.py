import pytest

from recall_app.config.permissions import Permission, Permissions

DEFAULT = Permission.ALWAYS


def test_override_beats_everywhere_beats_default() -> None:
    permissions = Permissions()
    assert permissions.effective("search_chats", 1, DEFAULT) is Permission.ALWAYS
    permissions = permissions.with_everywhere("search_chats", Permission.ASK)
    assert permissions.effective("search_chats", 1, DEFAULT) is Permission.ASK
    permissions = permissions.with_app("search_chats", 1, Permission.NEVER)
    assert permissions.effective("search_chats", 1, DEFAULT) is Permission.NEVER
    assert permissions.effective("search_chats", 2, DEFAULT) is Permission.ASK
    assert permissions.effective("read_chat", 1, DEFAULT) is Permission.ALWAYS


def test_everywhere_clears_the_override_of_the_app_it_was_chosen_in_and_no_other() -> None:
    permissions = (
        Permissions()
        .with_app("read_chat", 1, Permission.ASK)
        .with_app("read_chat", 2, Permission.NEVER)
        .with_app("search_chats", 1, Permission.NEVER)
        .with_everywhere("read_chat", Permission.ALWAYS, clearing_app=1)
    )
    assert permissions.effective("read_chat", 1, Permission.ASK) is Permission.ALWAYS
    assert permissions.effective("read_chat", 2, Permission.ASK) is Permission.NEVER
    assert permissions.effective("search_chats", 1, DEFAULT) is Permission.NEVER


def test_reset_keeps_reviewing() -> None:
    permissions = (
        Permissions()
        .reviewing(True)
        .with_everywhere("read_chat", Permission.NEVER)
        .with_app("read_chat", 1, Permission.ASK)
    )
    reset = permissions.reset()
    assert reset.effective("read_chat", 1, DEFAULT) is DEFAULT
    assert reset.review_before_sharing


@pytest.mark.parametrize("default", list(Permission))
def test_removing_an_override_that_is_not_there_changes_nothing(
    default: Permission,
) -> None:
    permissions = Permissions().with_app("read_chat", 1, Permission.NEVER)
    assert permissions.without_override("search_chats", 1) == permissions
    assert permissions.without_override("read_chat", 9) == permissions
    assert permissions.without_override("read_chat", 1).effective("read_chat", 1, default) is default
