"""The task of a session, as it runs there: with values, kernels and approval as in a run."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from ..engine.approval import Approval, Verdict, is_step
from ..engine.choose_kernel import other_kernels
from ..kernel import kernelspecs
from ..record.events import Event
from ..task import params
from ..task.document import Cell, Document
from ..task.read_task import read
from ..workspace import LiveSession, Workspace


def as_it_runs(ws: Workspace, live: LiveSession) -> Document:
    """As the file is by now, and in a logbook with values in the place of each `{name}`. The ids
    are those of the file, by which cells are edited."""
    document = read(ws, live.path).document
    placed = params.placed(document, live.parameters)
    if placed is document:
        return document
    pairs = zip(placed.cells, document.cells, strict=True)
    return replace(placed, cells=tuple(replace(cell, id=own.id) for cell, own in pairs))


def check_kernels(ws: Workspace, document: Document) -> None:
    """Say which kernels there are, before anything runs, where a step names another one."""
    for name in sorted(set(other_kernels(document).values())):
        kernelspecs.find(name, ws.env)


@dataclass(slots=True)
class Asking:
    """Asks for the steps that are marked, as a run does."""

    approval: Approval
    order: tuple[str, ...]  # ids of the steps

    def wants(self, cell: Cell) -> bool:
        return self.approval.wants(cell)

    def decide(self, cell: Cell, called_off: Callable[[], bool]) -> Generator[Event, None, Verdict]:
        at = self.order.index(cell.id) + 1 if cell.id in self.order else 1
        return self.approval.decide(cell, (at, max(1, len(self.order))), called_off)


def asking(ws: Workspace, live: LiveSession, document: Document) -> Asking:
    order = tuple(cell.id for cell in document.cells if is_step(cell))
    approval = Approval(ws.asker, ws.config.approval, live.session.sieve.masker)
    approval.fill = lambda cell: params.typed(cell, document, live.parameters)
    return Asking(approval, order)
