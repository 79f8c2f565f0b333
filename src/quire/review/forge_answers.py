"""What a server said, read strictly: a field is what it should be, or the error names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ForgeError


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object of an answer. `what` names it for people, `kind` the forge."""

    values: Mapping[str, Any]
    what: str
    kind: str

    @classmethod
    def of(cls, value: Any, what: str, kind: str) -> Fields:
        if not isinstance(value, dict):
            raise _unfit(kind, what, "is not an object")
        return cls(value, what, kind)

    def text(self, name: str) -> str:
        """A string; null and an absent one are the empty string."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise _unfit(self.kind, self.what, f"has no text in {name!r}")
        return value

    def needed(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise _unfit(self.kind, self.what, f"lacks {name!r}")
        return value

    def number(self, name: str) -> int:
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _unfit(self.kind, self.what, f"has no number in {name!r}")
        return value

    def flag(self, name: str) -> bool:
        """True or false; an absent one is false."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise _unfit(self.kind, self.what, f"has neither true nor false in {name!r}")
        return bool(value)

    def inside(self, name: str) -> Fields:
        return Fields.of(self.values.get(name), f"{self.what}.{name}", self.kind)

    def login(self, name: str = "user") -> str:
        """Who it was. Null stands for an account that is gone."""
        if self.values.get(name) is None:
            return "ghost"
        return self.inside(name).needed("login")


def _unfit(kind: str, what: str, wrong: str) -> ForgeError:
    return ForgeError(
        f"{kind}'s answer is not understood: {what} {wrong}",
        hint=f"is it really a {kind}, and a current version?",
    )
