"""Who calls a tool, as far as the tool must know: whom to tell, whom to ask, whether they left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _unheard(_: str) -> None:
    pass


def _untold(_done: int, _total: int, _what: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Caller:
    """`name` is one connection's own: what one has read, another one has not."""

    name: str = ""
    progress: Callable[[int, int, str], None] = _untold
    announce: Callable[[str], None] = _unheard  # the run, should we not live to tell its end
    left: Callable[[], bool] = bool  # nobody waits for the answer any more
    cancelled: Callable[[], bool] = bool  # they said so
