"""Which cell of one run is which of another, when cells were added, removed and rewritten."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from ..task.parameter_cell import INJECTED_TAG
from .record import CellRecord

Pair = tuple[int | None, int | None]
_ALIKE = 0.5
_BLOCK = 60  # cells on each side up to which all combinations are weighed
_WORD = re.compile(r"\w+")


def aligned(old: Sequence[CellRecord], new: Sequence[CellRecord]) -> list[Pair]:
    """Places of cells that belong together, in order; None where one side has no such cell."""
    out: list[Pair] = []
    for tag, a, b, c, d in opcodes([_key(cell) for cell in old], [_key(cell) for cell in new]):
        if tag == "equal":
            out += zip(range(a, b), range(c, d), strict=True)
        else:
            out += _block(old, range(a, b), new, range(c, d))
    return out


def opcodes(
    old: Sequence[Hashable], new: Sequence[Hashable]
) -> list[tuple[str, int, int, int, int]]:
    found = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(str(tag), a, b, c, d) for tag, a, b, c, d in found]


def _key(cell: CellRecord) -> tuple[str, str]:
    """The cell that sets the parameters is the same cell, whatever it sets them to."""
    return ("injected", "") if INJECTED_TAG in cell.tags else (cell.kind, cell.source)


def _block(
    old: Sequence[CellRecord], before: range, new: Sequence[CellRecord], after: range
) -> Iterator[Pair]:
    """Pairs of a stretch without equal cells: those that are alike, the others alone."""
    pairs = _best(old, before, new, after)
    a, c = before.start, after.start
    for left, right in [*pairs, (before.stop, after.stop)]:
        yield from ((at, None) for at in range(a, left))
        yield from ((None, at) for at in range(c, right))
        if left < before.stop and right < after.stop:
            yield left, right
        a, c = left + 1, right + 1


def _best(
    old: Sequence[CellRecord], before: range, new: Sequence[CellRecord], after: range
) -> list[tuple[int, int]]:
    """The pairs in order with the greatest likeness in all."""
    if len(before) == len(after) == 1:
        same = old[before[0]].kind == new[after[0]].kind
        return [(before[0], after[0])] if same else []
    if len(before) > _BLOCK or len(after) > _BLOCK:
        near = zip(before, after, strict=False)
        return [(a, c) for a, c in near if _likeness(old[a], new[c]) >= _ALIKE]
    # best[i][j]: the likeness that the first i and the first j cells can have.
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    alike = [[_likeness(old[a], new[c]) for c in after] for a in before]
    for i in range(len(before)):
        for j in range(len(after)):
            taken = best[i][j] + alike[i][j] if alike[i][j] >= _ALIKE else 0.0
            best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j], taken)
    pairs: list[tuple[int, int]] = []
    i, j = len(before), len(after)
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((before[i], after[j]))
    return pairs[::-1]


def _likeness(old: CellRecord, new: CellRecord) -> float:
    if old.kind != new.kind or (INJECTED_TAG in old.tags) != (INJECTED_TAG in new.tags):
        return 0.0
    if old.title and old.title == new.title:
        return 1.0
    a, b = Counter(_WORD.findall(old.source)), Counter(_WORD.findall(new.source))
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 1.0
