"""Cells that wait to be written: those that raise NotImplementedError as a statement of their own.

It is plain Python, so such a cell fails wherever it runs, and it waits no more once it is written.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .document import Cell, Document
from .plain_python import parsed

MARK = "NotImplementedError"
_UNSAID = "it is not written yet"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A cell still to be written, and what belongs there."""

    cell_id: str
    index: int
    title: str
    what: str

    @property
    def name(self) -> str:
        return self.title or self.cell_id


def missing(cell: Cell) -> str | None:
    """What belongs into a cell that waits; None where it does not wait."""
    if cell.kind != "code" or MARK not in cell.source:
        return None
    tree = parsed(cell.source).tree
    for statement in tree.body if tree is not None else ():
        if isinstance(statement, ast.Raise) and statement.exc is not None:
            raised, said = statement.exc, _UNSAID
            if isinstance(raised, ast.Call):
                told = raised.args[0] if raised.args else None
                if isinstance(told, ast.Constant) and isinstance(told.value, str):
                    said = told.value or _UNSAID
                raised = raised.func
            if isinstance(raised, ast.Name) and raised.id == MARK:
                return said
    return None


def waiting(document: Document) -> tuple[Waiting, ...]:
    """In the order of the cells. Only Python is read."""
    if document.language != "python":
        return ()
    return tuple(
        Waiting(cell.id, at, cell.title, what)
        for at, cell in enumerate(document.cells)
        if (what := missing(cell)) is not None
    )


def told(cells: Sequence[Waiting]) -> str:
    """Such as `cells wait: gather, decide`."""
    return f"cells wait: {', '.join(cell.name for cell in cells)}"
