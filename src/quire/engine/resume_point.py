"""Go on with a failed run from the state before a cell, instead of from the beginning.

While a run goes on, the state before each cell is set aside, except where what ran since the last
one can do nothing but bind names and print: those cells are simply run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..kernel.protocol import Kernel
from ..kernel.snapshots import Snapshot
from ..masking.secrets import Secret
from ..record.events import CellFinished, Event, KernelDied, OutputAdded, ResultGlued
from ..record.record import CHANGED, CellRecord, Record
from ..task.document import Cell
from ..task.purity import is_pure
from .saved_states import Marks


class Trail:
    """The states a run leaves behind it. Positions are those of the plan's cells."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        # Since the last state that is known. That of a fresh kernel needs no setting aside, and
        # where a resumed run begins somebody has done it.
        self._changed = False
        self.reason = ""

    def before(self, position: int, kernel: Kernel) -> None:
        """Set the state aside if need be. `reason` says why that could not be."""
        if self._changed:
            self.reason = self.marks.take(kernel, position).reason
            self._changed = bool(self.reason)

    def changes(self, cell: Cell) -> bool:
        """Whether the state after this cell is one that has to be set aside."""
        return self._changed or not is_pure(cell.source)

    def after(self, cell: Cell) -> None:
        self._changed = self.changes(cell)


@dataclass(slots=True)
class Kept:
    """A failed run that can be resumed for a while."""

    run_id: str
    path: Path
    cells: Sequence[Cell]
    parameters: Mapping[str, Any]
    record: Record
    marks: Marks
    server: Any  # the fork server its snapshots belong to
    secrets: Sequence[Secret]  # what its kernel knows and nobody may see
    expires: float

    def drop(self) -> None:
        self.marks.clear()


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a run goes on: cells before `start` are carried over from `run_id`."""

    run_id: str
    start: int
    base: int  # the state set aside is that before this cell; from there to `start` only pure ones
    snapshot: Snapshot | None  # None: a fresh kernel is that state
    places: Mapping[int, int]  # where cells up to there were in that run, and where they are now
    carried: Mapping[str, CellRecord]
    results: Sequence[ResultGlued]


def plan_resume(kept: Kept, cells: Sequence[Cell], wanted: int | None) -> Resume:
    """Go on at the first changed or failed cell, or at `wanted` if that is not later.

    Only code counts: words between the cells may change as they like.
    """
    records = {cell.id: cell for cell in kept.record.cells}
    old, new = _places(kept.cells), _places(cells)
    same = 0
    for before, now in zip(old, new, strict=False):
        if not _is_same(kept.cells[before], cells[now]) or not _done(records.get(cells[now].id)):
            break
        same += 1
    start = new[same] if same < len(new) else len(cells)
    if wanted is not None:
        if wanted > start:
            raise UsageError(
                f"{_name(cells[wanted])} cannot be where the run goes on: "
                f"{_name(cells[start])} changed or failed before it",
                hint=f"go on at {cells[start].id} or before it",
            )
        same = sum(at < wanted for at in new)
        start = wanted
    first, snapshot = _base(kept, cells, old, new, same)
    carried = {cells[at].id: records[cells[at].id] for at in new[:same] if cells[at].id in records}
    results = [
        ResultGlued(r.cell, r.name, r.kind, r.value)
        for r in kept.record.results.values()
        if r.cell in carried
    ]
    places = dict(zip(old[: first + 1], new[: first + 1], strict=False))
    base = new[first] if first < len(new) else len(cells)
    return Resume(kept.run_id, start, base, snapshot, places, carried, results)


def _places(cells: Sequence[Cell]) -> list[int]:
    return [at for at, cell in enumerate(cells) if cell.kind == "code"]


def _is_same(before: Cell, now: Cell) -> bool:
    # A cell that is changed for one run keeps its id.
    return (before.id, before.source, _runs(before)) == (now.id, now.source, _runs(now))


def can_resume(kept: Kept) -> bool:
    """Whether the state before its failed cell is there."""
    try:
        plan_resume(kept, kept.cells, None)
    except UsageError:
        return False
    return True


def _name(cell: Cell) -> str:
    return f"cell {cell.id}" + (f" ({cell.title!r})" if cell.title else "")


def _done(record: CellRecord | None) -> bool:
    return record is not None and record.status in ("ok", "skipped", "carried")


def _base(
    kept: Kept, cells: Sequence[Cell], old: list[int], new: list[int], same: int
) -> tuple[int, Snapshot | None]:
    """The nearest state before the code cell number `same` from which harmless ones lead there."""
    for n in range(same, 0, -1):
        mark = kept.marks.get(old[n]) if n < len(old) else None
        if mark is not None and mark.snapshot is not None and mark.snapshot.alive:
            return n, mark.snapshot
        before = cells[new[n - 1]]
        if _runs(before) and not is_pure(before.source):
            reason = mark.reason if mark is not None else "it was not set aside"
            place = _name(cells[new[same]]) if same < len(new) else "the end"
            raise UsageError(
                f"the state before {place} is gone: {reason}",
                hint="run the task in full: leave out --resume",
            )
    return 0, None


def _runs(cell: Cell) -> bool:
    return cell.kind == "code" and "skip-execution" not in cell.tags


def carry_over(resume: Resume, cells: Sequence[Cell]) -> Iterator[Event]:
    """What the earlier run did, told again in the record of this one."""
    for cell in cells[: resume.start]:
        record = resume.carried.get(cell.id)
        if cell.kind != "code" or record is None:
            continue
        if record.status == "skipped":
            yield CellFinished(cell.id, "skipped", at=record.finished)
            continue
        for output in record.outputs:
            yield OutputAdded(cell.id, output)
        yield from (result for result in resume.results if result.cell == cell.id)
        yield CellFinished(
            cell.id,
            "carried",
            at=record.finished,
            duration=record.duration or 0.0,
            execution_count=record.execution_count,
            error=record.error,
        )


def catch_up(resume: Resume, cells: Sequence[Cell], kernel: Kernel) -> None:
    """From the state that was set aside to the one before `start`: nothing of it is shown."""
    for cell in cells[resume.base : resume.start]:
        if not _runs(cell) or not cell.source.strip():
            continue
        for event in kernel.execute(cell.source, cell.id):
            died = isinstance(event, KernelDied)
            failed = isinstance(event, CellFinished) and event.status != "ok"
            if died or (failed and "raises-exception" not in cell.tags):
                raise UsageError(
                    f"cell {cell.id} did not run again as it had",
                    hint="run the task in full: leave out --resume",
                )


def as_run(cells: Sequence[Cell], record: Record) -> tuple[Cell, ...]:
    """The cells with the source that a person gave them while the run went on."""
    changed = {cell.id: cell.source for cell in record.cells if CHANGED in cell.metadata}
    return tuple(replace(c, source=changed[c.id]) if c.id in changed else c for c in cells)
