"""Who calls a tool, as far as the tool must know: whom to tell, whom to ask, whether they left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


def _unheard(_: str) -> None:
    pass


def _unread(_: Mapping[str, Any]) -> None:
    pass


def _untold(_done: int, _total: int, _what: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Caller:
    """`name` is one connection's own: what one has read, another one has not."""

    name: str = ""
    progress: Callable[[int, int, str], None] = _untold
    announce: Callable[[str], None] = _unheard  # the run, should we not live to tell its end
    # A promotion, for the same reason: the arguments to ask for it again.
    promotes: Callable[[Mapping[str, Any]], None] = _unread
    left: Callable[[], bool] = bool  # nobody waits for the answer any more
    cancelled: Callable[[], bool] = bool  # they said so
