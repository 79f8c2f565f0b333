"""A unified diff that stays quick on long texts with one small change."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

_CONTEXT = 3
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


def unified(old: Sequence[str], new: Sequence[str], name: str) -> str:
    """Lines with their ends. Only what lies between the first and the last change is compared."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = max(0, head - _CONTEXT)
    after = max(0, tail - _CONTEXT)
    window = old[start : len(old) - after], new[start : len(new) - after]
    return "".join(_lines(*window, name, start))


def _lines(old: Sequence[str], new: Sequence[str], name: str, start: int) -> Iterator[str]:
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=_CONTEXT):
        hunk = _HUNK.match(line)
        if hunk:
            a, b = int(hunk[1]) + start, int(hunk[3]) + start
            yield f"@@ -{a}{hunk[2] or ''} +{b}{hunk[4] or ''} @@\n"
        elif line.endswith(("\n", "\r")):
            yield line
        else:
            yield f"{line}\n\\ No newline at end of file\n"
