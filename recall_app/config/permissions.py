"""What an agent may do with which tool, everywhere and in one app (contracts §7). ``settings`` stores it."""

from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict, Field


class Permission(StrEnum):
    ASK = "ask"
    ALWAYS = "always"
    NEVER = "never"


class Permissions(BaseModel):
    """The person's choices; a tool that isn't named has its own default.

    Frozen: every change gives a new value. App ids are never reused, so an entry of a deleted app is harmless.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    everywhere: dict[str, Permission] = Field(default_factory=dict)
    """By tool name."""
    apps: dict[int, dict[str, Permission]] = Field(default_factory=dict)
    """Overrides, by app id and tool name."""
    review_before_sharing: bool = False
    """With ``ask``: the person sees what would go and can withhold parts of it."""

    def effective(self, tool: str, app_id: int, default: Permission) -> Permission:
        """The permission that counts for ``tool`` in this app: its override, else everywhere's, else ``default``."""
        override = self.apps.get(app_id, {}).get(tool)
        return override or self.everywhere.get(tool) or default

    def with_app(self, tool: str, app_id: int, permission: Permission) -> Self:
        """``permission`` for ``tool`` in this app only."""
        return self._with(apps={**self.apps, app_id: {**self.apps.get(app_id, {}), tool: permission}})

    def with_everywhere(self, tool: str, permission: Permission, *, clearing_app: int | None = None) -> Self:
        """``permission`` for ``tool`` in all apps that have no override; ``clearing_app`` loses the one it has."""
        changed = self._with(everywhere={**self.everywhere, tool: permission})
        return changed if clearing_app is None else changed.without_override(tool, clearing_app)

    def without_override(self, tool: str, app_id: int) -> Self:
        """This app follows everywhere's choice again."""
        left = {name: permission for name, permission in self.apps.get(app_id, {}).items() if name != tool}
        others = {other: choices for other, choices in self.apps.items() if other != app_id}
        return self._with(apps={**others, app_id: left} if left else others)

    def reset(self) -> Self:
        """Every tool back to its default, without overrides; reviewing stays as it is."""
        return self._with(everywhere={}, apps={})

    def reviewing(self, review: bool) -> Self:
        return self._with(review_before_sharing=review)

    def _with(self, **changes: object) -> Self:
        return self.model_copy(update=changes)
