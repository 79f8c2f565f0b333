"""What the tools say in their own words: short, the facts first."""

from __future__ import annotations

from ...errors import QuireError
from ...runs.printed import plain
from ...runs.telling import Limits, Told

SHOWN = 20


def error(problem: QuireError) -> Told:
    again = "\nTrying again may help." if problem.retryable else ""
    hint = f"\nhint: {plain(problem.hint)}" if problem.hint else ""
    return Told(f"error ({problem.code}): {plain(problem.message)}{hint}{again}", (), True)


def bounded(lines: list[str], rest: str, room: int = Limits().whole) -> str:
    """As many as fit; `rest` says how to see the others."""
    out: list[str] = []
    used = 0
    for at, line in enumerate(lines):
        used += len(line) + 1
        if used > room - 200:
            out.append(f"… {len(lines) - at} more: {rest}")
            break
        out.append(line)
    return "\n".join(out)


def above(first: str, told: Told) -> Told:
    return Told(f"{first}\n{told.text}", told.pictures, told.failed) if first else told
