"""Write a logbook with some cells changed; every other line stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import DocumentError
from . import logbook
from .document import Cell, Document
from .edit import Slot, wanted


def written(text: str, doc: Document, slots: Sequence[Slot], touched: int | None) -> str:
    """The new text."""
    if logbook.dumps(doc) != text:
        raise DocumentError(
            "the lines of this logbook end in different ways", hint="save it with one kind of end"
        )
    cells = list(wanted(doc, slots))
    for place, (origin, _) in enumerate(slots):
        before = slots[place - 1][0] if place else None
        if origin is None or before != (origin - 1 if origin else None):
            cells[place] = _set_off(cells[place])
    new = logbook.dumps(replace(doc, cells=tuple(cells)))
    kernels = doc.metadata.get(logbook.KEPT, {}).get("kernels", ())
    again = logbook.loads(new, frozenset(map(str, kernels)))
    if [(c.kind, c.source) for c in again.cells] != [(c.kind, c.source) for c in cells]:
        raise DocumentError(
            "a logbook cannot hold these cells: the text would be read in another way",
            hint="two pieces of prose side by side are one; a step is code in a block",
        )
    return new


def _set_off(cell: Cell) -> Cell:
    """With one empty line before it: what stood there belonged to another place."""
    kept = dict(cell.metadata.get(logbook.KEPT, {}))
    kept.pop("lead", None)
    rest = {key: value for key, value in cell.metadata.items() if key != logbook.KEPT}
    return replace(cell, metadata={**rest, **({logbook.KEPT: kept} if kept else {})})
