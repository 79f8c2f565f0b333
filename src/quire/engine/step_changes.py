"""Change steps for one run only; the task stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import DocumentError, UsageError
from ..record.plan import Change
from ..task import params
from ..task.document import Cell, Document
from ..task.params import INJECTED_TAG
from .approval import is_step, with_magic_of


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
    own = [cell for cell in plain.cells if INJECTED_TAG not in cell.tags]
    cells = list(document.cells)
    reasons: dict[int, str] = {}
    for change in asked:
        at = find(document, change.step, own)
        cell = cells[at]
        if at in reasons:
            raise UsageError(f"step {change.step} is changed twice", hint="give it once")
        if not change.source.strip():
            raise UsageError(
                f"the change of step {change.step} is empty",
                hint="give the code that shall run in its place",
            )
        reasons[at] = change.reason
        cells[at] = replace(cell, source=with_magic_of(cell.source, change.source))
    placed = params.placed(replace(document, cells=tuple(cells)), values).cells
    changes = {
        own[at].id: Change(own[at].source, placed[at].source, reason, by)
        for at, reason in reasons.items()
    }
    # A changed step keeps its id: it is the same step.
    run = (
        replace(cell, source=changes[cell.id].source) if cell.id in changes else cell
        for cell in plain.cells
    )
    return Filled(replace(plain, cells=tuple(run)), changes)


def find(document: Document, step: str, placed: Sequence[Cell] = ()) -> int:
    """Where a step stands among the cells. `placed`: the same with parameters in their places,
    which may have other titles and ids."""
    steps = [at for at, cell in enumerate(document.cells) if is_step(cell)]
    if step.isdigit() and len(step) < 6:
        number = int(step)
        if 1 <= number <= len(steps):
            return steps[number - 1]
        raise DocumentError(
            f"there is no step {step}: the task has {len(steps)}",
            hint=f"give a number from 1 to {len(steps)}, a title or an id",
        )
    hits = [n for n, cell in enumerate(placed) if step and step == cell.id]
    hits = hits or [n for n, cell in enumerate(placed) if step and step == cell.title]
    if len(hits) > 1:
        raise DocumentError(f"{step!r} names {len(hits)} steps", hint=_listed(document))
    at = hits[0] if hits else -1
    try:
        at = document.find(step) if step and at < 0 else at
    except DocumentError as error:
        raise DocumentError(error.message.replace("cell", "step"), hint=_listed(document)) from None
    if at not in steps:
        raise DocumentError(f"{step!r} is no step: it has no code", hint=_listed(document))
    return at


def _listed(document: Document) -> str:
    names = [cell.title or cell.id for cell in document.cells if is_step(cell)]
    shown = ", ".join(f"{n} {name}" for n, name in enumerate(names[:10], 1))
    return f"the steps: {shown}" if names else "the task has no steps"
