"""What the tools say in their own words: short, the facts first."""

from __future__ import annotations

from ...errors import QuireError
from ...runs.rephrasing import error_text
from ...runs.telling import Limits, Told
from ...workspace import Workspace

SHOWN = 20
ROOM = Limits().whole  # characters
PART = 2_000  # characters that are worth showing of something longer


def error(problem: QuireError) -> Told:
    return Told(error_text(problem), (), True)


def limits(ws: Workspace) -> Limits:
    return Limits(pictures=ws.config.pictures)


def bounded(lines: list[str], rest: str, room: int = ROOM) -> str:
    """As many as fit; `rest` says how to see the others. Of a very long one, its beginning."""
    room -= len(rest) + 200
    out: list[str] = []
    for at, line in enumerate(lines):
        if len(line) < room:
            out.append(line)
            room -= len(line) + 1
            continue
        if room > PART:
            shown = line[:room].rpartition("\n")[0] or line[:room]
            out.append(f"{shown}\n… {len(line) - len(shown):,} more characters of it are not shown")
            at += 1
        if at < len(lines):
            out.append(f"… {len(lines) - at} more: {rest}")
        break
    return "\n".join(out)


def above(first: str, told: Told) -> Told:
    return Told(f"{first}\n{told.text}", told.pictures, told.failed) if first else told
