"""Some lines of a stream, by number: the way to what a telling has left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from ..errors import UsageError
from ..text import EXPLAINED, MARK, clean_line, inline, scrubbed, shortened_line

_RANGE = re.compile(r"(\d{1,12})?(-)?(\d{1,12})?")
_WITHIN = re.compile(r"(\d{1,12}):(\d{1,12})")
FIRST = 200  # lines, where nobody says which


@dataclass(frozen=True, slots=True)
class Lines:
    """Which lines, counted from 1. `last` is None for all that follow. `start` is the character
    from which a single line is read."""

    first: int = 1
    last: int | None = None
    start: int = 1


def asked_lines(text: str) -> Lines:
    """`7`, `3-7`, `300-`, `-20`, which are the first twenty, or `7:2001`, within a line."""
    within = _WITHIN.fullmatch(text.replace(" ", ""))
    if within is not None and int(within[1]) and int(within[2]):
        return Lines(int(within[1]), int(within[1]), int(within[2]))
    found = _RANGE.fullmatch(text.replace(" ", ""))
    if found is None or not (found[1] or found[3]):
        raise UsageError(f"{inline(text)} is no range of lines", hint="such as 101-300, or 101-")
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else None if found[2] else first
    if first < 1 or (last is not None and last < first):
        raise UsageError(
            f"{inline(text)} is no range of lines", hint="lines are counted from 1 upwards"
        )
    return Lines(first, last)


def tell_lines(
    rows: Iterable[str],
    total: int,
    wanted: Lines,
    *,
    what: str,
    limit: int,
    more: Callable[[str], str] = lambda lines: lines,
) -> str:
    """`rows` are all lines from the first, `total` is how many. `more` says how to read on.

    Never longer than `limit`; where the range does not fit it ends earlier, and says so.
    """
    last = total if wanted.last is None else min(wanted.last, total)
    if wanted.first > total:
        return f"{what} has only {total:,} line{'' if total == 1 else 's'}"[:limit]
    if last == wanted.first:
        row = clean_line(scrubbed(next(islice(rows, wanted.first - 1, None), "")))
        return _tell_line(row, total, wanted, what, limit, more)
    head = f"{what}, lines {wanted.first:,} to {{last:,}} of {total:,}\n{EXPLAINED}"
    room = limit - len(head) - 40
    at, out = wanted.first, []
    tail = ""
    for row in islice(rows, wanted.first - 1, last):
        short = shortened_line(clean_line(scrubbed(row)))
        tail = f"… lines {at:,} to {last:,} did not fit; read on: {more(f'{at}-{last}')}"
        room -= len(MARK) + len(short) + 1
        if room < len(tail) + 1:
            break
        out.append(MARK + short)
        at += 1
    else:
        tail = ""
    parts = [head.format(last=at - 1), *out, *([tail] if tail else [])]
    return "\n".join(parts)[: max(0, limit)]


def _tell_line(
    line: str, total: int, wanted: Lines, what: str, limit: int, more: Callable[[str], str]
) -> str:
    """One line from a character on, as much of it as there is room for."""
    number, size = wanted.first, len(line)
    if wanted.start > max(1, size):
        return f"line {number:,} of {what} has only {size:,} characters"[: max(0, limit)]
    begin = wanted.start - 1
    room = limit - len(what) - len(EXPLAINED) - len(more(f"{number}:{size}")) - 200
    end = min(size, begin + max(80, room))
    part = "" if end - begin == size else f", characters {begin + 1:,} to {end:,} of {size:,}"
    parts = [f"{what}, line {number:,} of {total:,}{part}", EXPLAINED, MARK + line[begin:end]]
    if end < size:
        parts.append(f"… {size - end:,} characters follow; read on: {more(f'{number}:{end + 1}')}")
    return "\n".join(parts)[: max(0, limit)]
