"""Run a plan on a kernel, cell by cell, as a generator of events. No files, no threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ..document.model import Cell
from ..kernel.protocol import Kernel
from ..runs.events import (
    CellError,
    CellFinished,
    CellStarted,
    CellStatus,
    Event,
    KernelDied,
    Outcome,
    RunFinished,
    RunStarted,
)
from ..runs.plan import Plan
from ..runs.sieve import Sieve

TICK = 0.1
REASON = 2_000  # characters


class Cancel(Protocol):
    """Asked between events: has somebody called this off? A threading.Event is one."""

    def is_set(self) -> bool: ...


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _Stopping:
    """A cell that is being ended: first asked, then made to."""

    status: CellStatus
    outcome: Outcome
    reason: str
    kill_at: float
    killed: bool = False


@dataclass(slots=True)
class LocalExecutor:
    plan: Plan
    kernel: Kernel
    sieve: Sieve
    cancel: Cancel
    now: Callable[[], datetime] = utc_now
    # What others have to say about this run while it goes on: tool calls, warnings.
    inbox: SimpleQueue[Event] = field(default_factory=SimpleQueue)
    current_cell: str = ""
    _run_deadline: float | None = None
    _outcome: Outcome = "ok"
    _reason: str = ""
    _stop: bool = False
    _began: float = 0.0
    _cell_began: float | None = None

    def events(self) -> Generator[Event, None, None]:
        began = self._began = time.monotonic()
        limits = self.plan.limits
        if limits.timeout is not None:
            self._run_deadline = began + limits.timeout
        yield self._started()
        for cell in self.plan.document.cells:
            if cell.kind != "code":
                continue
            if "skip-execution" in cell.tags:
                yield CellFinished(cell.id, "skipped", at=self._at())
                continue
            yield from self._cell(cell)
            self._cell_began = None
            if self._stop:
                break
        yield from self._waiting()
        yield self._finished()

    def abandoned(self) -> Iterator[Event]:
        """How a run ends that nobody follows any more. Its kernel is the caller's to end."""
        if self._cell_began is not None:
            yield from self.sieve.end_cell(self.current_cell)
            duration = round(time.monotonic() - self._cell_began, 6)
            yield CellFinished(self.current_cell, "cancelled", at=self._at(), duration=duration)
        self._outcome, self._reason = "cancelled", "whoever followed it stopped before its end"
        yield self._finished()

    def _finished(self) -> RunFinished:
        duration = round(time.monotonic() - self._began, 6)
        return RunFinished(self._outcome, self._at(), duration, self._reason)

    def _at(self) -> str:
        return self.now().isoformat()

    def _started(self) -> RunStarted:
        plan = self.plan
        mask = self.sieve.masker.mask_json
        cells: list[Mapping[str, Any]] = mask(list(plan.cells_as_json()))
        return RunStarted(
            plan.run_id,
            plan.uuid,
            self._at(),
            mask(plan.task),
            mask(plan.document.title),
            tuple(cells),
            mask(plan.as_json(self.kernel.describe())),
            plan.parent,
        )

    def _cell(self, cell: Cell) -> Iterator[Event]:
        self.current_cell = cell.id
        began = time.monotonic()
        if self._is_over(began):
            return
        self._cell_began = began
        yield CellStarted(cell.id, self._at())
        if not cell.source.strip():
            yield CellFinished(cell.id, "ok", at=self._at())
            return
        deadline, reason = self._deadline(began)
        stopping: _Stopping | None = None
        for event in self.kernel.execute(cell.source, cell.id, tick=TICK):
            yield from self._waiting()
            if isinstance(event, CellFinished):
                duration = round(time.monotonic() - began, 6)
                done = replace(event, at=self._at(), duration=duration)
                yield from self.sieve.take(self._judged(done, cell, stopping))
            elif isinstance(event, KernelDied):
                yield from self._died(event, stopping, began)
            else:
                if event is not None:
                    yield from self.sieve.take(event)
                stopping = self._watch(stopping, deadline, reason)

    def _is_over(self, now: float) -> bool:
        """Cancelled or out of time between two cells: the next one does not start."""
        if self.cancel.is_set():
            self._outcome, self._reason = "cancelled", "it was cancelled"
        elif self._run_deadline is not None and now >= self._run_deadline:
            self._outcome, self._reason = "timed_out", self._deadline(now)[1]
        else:
            return False
        self._stop = True
        return True

    def _waiting(self) -> Iterator[Event]:
        while True:
            try:
                yield self.inbox.get_nowait()
            except Empty:
                return

    def _deadline(self, began: float) -> tuple[float | None, str]:
        """The nearer of the cell's and the run's end of time, and how to say it."""
        limit = self.plan.limits.cell_timeout
        deadline = began + limit if limit is not None else None
        if self._run_deadline is not None and (deadline is None or self._run_deadline < deadline):
            return self._run_deadline, f"the run took longer than {self.plan.limits.timeout:g} s"
        return deadline, f"the cell took longer than {limit or 0:g} s"

    def _watch(
        self, stopping: _Stopping | None, deadline: float | None, reason: str
    ) -> _Stopping | None:
        now = time.monotonic()
        if stopping is None:
            grace = self.plan.limits.grace
            if self.cancel.is_set():
                stopping = _Stopping("cancelled", "cancelled", "it was cancelled", now + grace)
            elif deadline is not None and now >= deadline:
                stopping = _Stopping("timed_out", "timed_out", reason, now + grace)
            else:
                return None
            self.kernel.interrupt()
        elif now >= stopping.kill_at and not stopping.killed:
            stopping.killed = True
            self.kernel.kill()
        return stopping

    def _judged(self, event: CellFinished, cell: Cell, stopping: _Stopping | None) -> CellFinished:
        """What the end of a cell means for the run."""
        if stopping is not None:
            # It may have ended well in the very moment; the limit was passed all the same.
            self._outcome, self._reason, self._stop = stopping.outcome, stopping.reason, True
            return replace(event, status=stopping.status)
        if event.status == "failed":
            if "raises-exception" in cell.tags:
                return replace(event, status="ok")
            error = event.error or CellError("Failed", "")
            self._outcome, self._stop = "failed", True
            self._reason = self._said(f"{error.name}: {error.value}")
        self._stop = self._stop or event.stop
        return event

    def _said(self, text: str) -> str:
        """Fit for the line that says why the run ended."""
        masked = self.sieve.masker.mask(text)
        return masked if len(masked) <= REASON else f"{masked[:REASON]} …"

    def _died(self, event: KernelDied, stopping: _Stopping | None, began: float) -> Iterator[Event]:
        status: CellStatus = "died"
        self._outcome, self._reason, self._stop = "died", self._said(event.reason), True
        if stopping is not None:
            status, self._outcome, self._reason = (
                stopping.status,
                stopping.outcome,
                stopping.reason,
            )
        yield from self.sieve.end_cell(event.cell)
        yield from self.sieve.take(event)
        duration = round(time.monotonic() - began, 6)
        yield CellFinished(event.cell, status, at=self._at(), duration=duration)
