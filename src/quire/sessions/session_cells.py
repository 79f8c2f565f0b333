"""The cells of a session's task: how each stands, and which are meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import DocumentError, Hint, NextStep, UsageError
from ..task import params
from ..task.document import Cell, Document
from ..task.stale import Ran, stale
from ..workspace import LiveSession
from .live_session import Execution

NAMED = 10  # executions that a refusal names


@dataclass(frozen=True, slots=True)
class CellState:
    """How a cell of the document stands in the session."""

    index: int
    cell: Cell
    state: str  # "ran", "failed", "stale", "never ran", "text"
    order: int | None = None
    reason: str = ""


def masked(states: list[CellState], live: LiveSession) -> list[CellState]:
    """Fit to be shown: a task may hold what its author should not have written there."""
    mask = live.session.sieve.masker.mask
    return [
        replace(
            state,
            cell=replace(state.cell, title=mask(state.cell.title), source=mask(state.cell.source)),
            reason=mask(state.reason),
        )
        for state in states
    ]


def standing(document: Document, executions: list[Execution]) -> list[CellState]:
    # Loose code and injected parameters belong to no cell, but what they define counts.
    ran = [
        Ran("", e.cell.source, e.order)
        if e.index is None
        else Ran(e.cell.id, e.cell.source, e.order, e.index, e.cell.title)
        for e in executions
    ]
    reasons = stale(document.cells, ran)
    latest = {one.cell_id: one.order for one in ran if one.cell_id}
    failed = {e.order for e in executions if e.status not in ("ok", "running")}
    out: list[CellState] = []
    for index, cell in enumerate(document.cells):
        order = latest.get(cell.id)
        if cell.kind != "code":
            out.append(CellState(index, cell, "text"))
        elif cell.id in reasons:
            out.append(CellState(index, cell, "stale", order, reasons[cell.id]))
        elif order is None:
            out.append(CellState(index, cell, "never ran"))
        elif order in failed:
            out.append(CellState(index, cell, "failed", order))
        else:
            out.append(CellState(index, cell, "ran", order))
    return out


def chosen_cells(document: Document, live: LiveSession, what: str) -> list[tuple[Cell, int | None]]:
    """`3`, an id, a title, `3-7`, `3-`, `-7`, `all`, `stale`."""
    last = len(document.cells) - 1
    if what == "all":
        places = list(range(last + 1))
    elif what == "stale":
        states = standing(document, live.session.executions)
        places = [s.index for s in states if s.state in ("stale", "failed", "never ran")]
    else:
        places = _range(document, what, last)
    return [(document.cells[place], place) for place in places]


def _range(document: Document, what: str, last: int) -> list[int]:
    start, dash, end = what.partition("-")
    if dash and all(part == "" or part.isdigit() for part in (start, end)) and (start or end):
        first, final = int(start or 0), int(end or last)
        if first > final or final > last:
            raise DocumentError(
                f"there are no cells {what}: the task has {last + 1}",
                hint=document.indexes,
            )
        return list(range(first, final + 1))
    return [document.find(what)]


def with_parameters(
    document: Document, chosen: list[tuple[Cell, int | None]], values: Mapping[str, Any]
) -> list[tuple[Cell, int | None]]:
    """The given parameters follow the cell that declares them, as in a run."""
    if not values:
        return chosen
    injected = params.filled(document, values)
    cell = next(c for c in injected.cells if params.INJECTED_TAG in c.tags)
    at = params.parameters_cell(document)
    out: list[tuple[Cell, int | None]] = []
    for one in chosen:
        out.append(one)
        if one[1] is not None and one[1] == at:
            out.append((cell, None))
    return out


def order_of(
    document: Document,
    executions: Sequence[Execution],
    target: str,
    *,
    lost: Sequence[Execution] = (),
    session: str = "NAME",
) -> int:
    """`lost`: what ran where no way leads back to."""
    if target.startswith("#") and target[1:].isdecimal():
        return _numbered(executions, target)
    if hits := _executions_of(document, executions, target):
        return hits[-1].order
    if _executions_of(document, lost, target):
        raise UsageError(
            f"cell {target} ran in a kernel that was lost, with the state before it",
            hint=Hint("{} runs again what it had run", NextStep("restore", {"session": session})),
        )
    raise UsageError(
        f"cell {target} has not run in this session: the kernel is as it was before it",
        hint="`quire session tree` shows the states one can go back to",
    )


def _executions_of(
    document: Document, executions: Sequence[Execution], target: str
) -> list[Execution]:
    hits = [e for e in executions if target in (e.cell.id, e.cell.title) and target]
    if not hits:
        place = document.find(target)
        cell = document.cells[place]
        hits = [e for e in executions if e.cell.id == cell.id]
        # The cell was edited since it ran: it is still the cell at its place.
        hits = hits or [e for e in executions if e.index == place]
    return hits


def _numbered(executions: Sequence[Execution], target: str) -> int:
    order = int(target[1:8])  # no session ever runs that much
    if any(one.order == order for one in executions):
        return order
    known = ", ".join(f"#{one.order} ({one.cell.id})" for one in executions[-NAMED:])
    raise UsageError(
        f"there is no execution {target} in this session",
        hint=f"the last that stand: {known}" if known else "nothing has run in it",
    )
