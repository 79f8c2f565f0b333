"""Change steps for one run only; the task stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..document import params
from ..document.model import Document
from ..errors import DocumentError, UsageError
from ..executors.approval import is_step, with_magic_of
from ..runs.plan import Change


@dataclass(frozen=True, slots=True)
class Asked:
    """`step`: its number, counted from 1 over the steps; its title, name or id."""

    step: str
    source: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Filled:
    document: Document  # as it runs
    changes: Mapping[str, Change]


def fill(
    document: Document, values: Mapping[str, Any], asked: Sequence[Asked] = (), by: str = ""
) -> Filled:
    """Parameters in their places, in what is changed too."""
    plain = params.filled(document, values)
    if not asked:
        return Filled(plain, {})
    cells = list(document.cells)
    reasons: dict[str, str] = {}
    for change in asked:
        at = find(document, change.step)
        cell = cells[at]
        if cell.id in reasons:
            raise UsageError(f"step {change.step} is changed twice", hint="give it once")
        if not change.source.strip():
            raise UsageError(
                f"the change of step {change.step} is empty",
                hint="give the code that shall run in its place",
            )
        reasons[cell.id] = change.reason
        cells[at] = replace(cell, source=with_magic_of(cell.source, change.source))
    changed = params.filled(replace(document, cells=tuple(cells)), values)
    originals = {cell.id: cell.source for cell in plain.cells}
    changes = {
        cell.id: Change(originals[cell.id], cell.source, reasons[cell.id], by)
        for cell in changed.cells
        if cell.id in reasons
    }
    return Filled(changed, changes)


def find(document: Document, step: str) -> int:
    """Where a step stands among the cells."""
    steps = [at for at, cell in enumerate(document.cells) if is_step(cell)]
    if step.isdigit() and len(step) < 6:
        number = int(step)
        if 1 <= number <= len(steps):
            return steps[number - 1]
        raise DocumentError(
            f"there is no step {step}: the task has {len(steps)}",
            hint=f"give a number from 1 to {len(steps)}, a title or an id",
        )
    try:
        at = document.find(step) if step else -1
    except DocumentError as error:
        raise DocumentError(error.message.replace("cell", "step"), hint=_listed(document)) from None
    if at not in steps:
        raise DocumentError(f"{step!r} is no step: it has no code", hint=_listed(document))
    return at


def _listed(document: Document) -> str:
    names = [cell.title or cell.id for cell in document.cells if is_step(cell)]
    shown = ", ".join(f"{n} {name}" for n, name in enumerate(names[:10], 1))
    return f"the steps: {shown}" if names else "the task has no steps"
