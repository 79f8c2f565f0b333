"""What a session answered to one request: the cells that ran, and what came before all else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .events import (
    CellFinished,
    CellStarted,
    CellSubmitted,
    Event,
    KernelDied,
    KernelReplaced,
    OutputAdded,
    OutputCut,
    OutputsCleared,
    OutputUpdated,
    ResultGlued,
    Warned,
)
from .record import CellFold, CellRecord, Result


@dataclass(frozen=True, slots=True)
class Answered:
    """One execution. `index` is the cell's place in the task, None for loose code. `beside` has
    the file of all of a stream, where that was too much."""

    cell: CellRecord
    order: int
    index: int | None
    beside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    cells: tuple[Answered, ...] = ()
    results: tuple[Result, ...] = ()
    replaced: KernelReplaced | None = None  # the state somebody may have counted on is gone
    died: KernelDied | None = None
    warnings: tuple[str, ...] = ()

    @property
    def failed(self) -> Answered | None:
        bad = ("failed", "timed_out", "cancelled", "died")
        return next((one for one in self.cells if one.cell.status in bad), None)


class AnswerFold:
    """Takes events as they come; `answer()` at any time says what there is so far."""

    def __init__(self) -> None:
        self._ran: list[tuple[CellSubmitted, CellFold, dict[str, str]]] = []
        self._results: dict[str, Result] = {}
        self._replaced: KernelReplaced | None = None
        self._died: KernelDied | None = None
        self._warnings: list[str] = []
        self._shown: dict[str, list[dict[str, Any]]] = {}

    def add(self, event: Event) -> None:
        match event:
            case KernelReplaced():
                self._replaced = event
            case CellSubmitted():
                spec = {
                    "id": event.cell,
                    "kind": "code",
                    "source": event.source,
                    "title": event.title,
                }
                self._ran.append((event, CellFold(spec), {}))
            case ResultGlued():
                self._results[event.name] = Result(event.name, event.kind, event.value, event.cell)
            case KernelDied():
                self._died = event
            case Warned():
                self._warnings.append(event.message)
            case OutputUpdated():
                for output in self._shown.get(event.display_id, ()):
                    output["data"], output["metadata"] = event.data, event.metadata
            case _ if self._ran:
                if isinstance(event, OutputCut):
                    self._ran[-1][2][event.what] = event.path
                self._told_of(self._ran[-1][1], event)

    def _told_of(self, cell: CellFold, event: Event) -> None:
        match event:
            case CellStarted():
                cell.status, cell.started = "running", event.at
            case OutputAdded():
                cell.add(event.output, event.area)
                if event.display_id:
                    self._shown.setdefault(event.display_id, []).append(cell.outputs[-1])
            case OutputsCleared():
                if event.wait:
                    cell.clear_next = event.area
                else:
                    cell.clear(event.area)
            case OutputCut():
                cell.cut(event)
            case CellFinished():
                cell.finish(event)

    def answer(self) -> Answer:
        cells = tuple(
            Answered(fold.freeze(unfinished="running"), event.order, event.index, dict(beside))
            for event, fold, beside in self._ran
        )
        return Answer(
            cells,
            tuple(self._results.values()),
            self._replaced,
            self._died,
            tuple(self._warnings),
        )


def answer_of(events: Iterable[Event]) -> Answer:
    fold = AnswerFold()
    for event in events:
        fold.add(event)
    return fold.answer()
