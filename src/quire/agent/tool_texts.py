"""What the tools say in their own words: short, the facts first."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import QuireError
from ..render.agent_page import error_text
from ..render.agent_run import Limits, Told
from ..workspace import Workspace

SHOWN = 20
ROOM = Limits().whole  # characters
PART = 2_000  # characters that are worth showing of something longer


def error(problem: QuireError) -> Told:
    return Told(error_text(problem), (), True)


def limits(ws: Workspace) -> Limits:
    return Limits(pictures=ws.config.pictures)


def bounded(
    lines: list[str],
    rest: str,
    room: int = ROOM,
    more: Callable[[int, str], str] = lambda at, shown: "",
) -> str:
    """As many as fit; `rest` says how to see the others. Of a very long one, its beginning; `more`
    says how to read on in it, by its place and what was shown."""
    room -= len(rest) + 200
    out: list[str] = []
    for at, line in enumerate(lines):
        if len(line) < room:
            out.append(line)
            room -= len(line) + 1
            continue
        if room > PART:
            shown = _beginning(line, room)
            call = more(at, shown)
            missing = f"… {len(line) - len(shown):,} more characters of it are not shown"
            out.append(f"{shown}\n{missing}{f'; read on: {call}' if call else ''}")
            at += 1
        if at < len(lines):
            out.append(f"… {len(lines) - at} more: {rest}")
        break
    return "\n".join(out)


def _beginning(text: str, room: int) -> str:
    """By whole lines, unless one is so long that little would be shown."""
    whole = text[:room].rpartition("\n")[0]
    return whole if len(whole) > room // 2 else text[:room]


def above(first: str, told: Told) -> Told:
    return Told(f"{first}\n{told.text}", told.pictures, told.failed) if first else told
