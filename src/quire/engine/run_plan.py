"""Run a plan on a kernel, cell by cell, as a generator of events. No files, no threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from queue import SimpleQueue
from typing import Any

from ..kernel.protocol import Kernel
from ..record.events import (
    CellError,
    CellFinished,
    Event,
    RunFinished,
    RunStarted,
    Warned,
)
from ..record.plan import Plan
from ..task.document import Cell
from ..task.waiting_cells import MARK, told, waiting
from .approval import Approval, Verdict, is_step
from .output_sieve import Sieve
from .resume_point import Resume, Trail, carry_over
from .run_cell import Calls, Cancel, CellRunner, Limit, NoCalls, utc_now

__all__ = ["Cancel", "LocalExecutor", "utc_now"]

# Seconds after which a run says where it comes from as soon as that is known, should it be killed
# later; a shorter one says it at its end.
NOTED_AFTER = 1.0


@dataclass(slots=True)
class LocalExecutor:
    plan: Plan
    kernel: Kernel
    sieve: Sieve
    cancel: Cancel
    now: Callable[[], datetime] = utc_now
    trail: Trail | None = None  # where states are set aside, so that the run can be resumed
    resume: Resume | None = None
    origin: Future[Sequence[Event]] | None = None  # being found out while the cells run
    opening: Sequence[Event] = ()  # what there is to tell before the first cell
    approval: Approval | None = None  # asks a person before a step
    calls: Calls = field(default_factory=NoCalls)  # answers what the cells ask for
    runner: CellRunner = field(init=False)
    _began: float = 0.0
    _deadline: float | None = None

    def __post_init__(self) -> None:
        self.runner = CellRunner(
            self.kernel,
            self.sieve,
            self.cancel,
            self.now,
            self.plan.limits.grace,
            calls=self.calls,
            besides=self._origin_of_long,
        )

    @property
    def inbox(self) -> SimpleQueue[Event]:
        return self.runner.inbox

    @property
    def current_cell(self) -> str:
        return self.runner.current

    def events(self) -> Generator[Event, None, None]:
        self._began = time.monotonic()
        runner = self.runner
        if self.plan.limits.timeout is not None:
            self._deadline = self._began + self.plan.limits.timeout
        yield self._started()
        yield from self.opening
        cells = self.plan.document.cells
        if self.resume is not None:
            yield from carry_over(self.resume, cells)
        waits = {one.index for one in waiting(self.plan.document)}
        last = max((at for at, cell in enumerate(cells) if cell.kind == "code"), default=0)
        for position, cell in enumerate(cells):
            if cell.kind != "code" or (self.resume and position < self.resume.start):
                continue
            if position in waits:
                if self.trail is not None:
                    self.trail.before(position, self.kernel)
                yield self._waits(cell)
                break
            if "skip-execution" in cell.tags:
                yield CellFinished(cell.id, "skipped", at=runner.at())
                continue
            limit = self._limit()
            if self._is_over(limit):
                break
            if self.trail is not None:
                self.trail.before(position, self.kernel)
            if self.approval is not None and self.approval.wants(cell):
                verdict = yield from self._asked(cell)
                if verdict.do != "run":
                    yield from self._without(cell, verdict)
                    if runner.stop:
                        break
                    continue
                cell = verdict.cell
                limit = self._limit()
            aside = self.trail is not None and position < last and self.trail.changes(cell)
            yield from runner.run(cell, limit, aside=aside)
            if self.trail is not None:
                self.trail.after(cell)
            if runner.stop:
                break
        yield from runner.waiting()
        yield from self.calls.leftover()
        yield from self._origin(wait=True)
        if (
            self.trail is not None
            and self.trail.reason
            and runner.outcome not in ("ok", "cancelled")
        ):
            yield Warned(runner.current, f"it cannot be resumed at this cell: {self.trail.reason}")
        yield self._finished()

    def _waits(self, cell: Cell) -> CellFinished:
        """Nothing skips a cell that waits to be written: neither a tag nor a person."""
        runner = self.runner
        said = runner.sieve.safe(told(waiting(self.plan.document)))
        runner.current, runner.outcome, runner.reason = cell.id, "failed", said
        error = CellError(MARK, said)
        return CellFinished(cell.id, "failed", at=runner.at(), error=error)

    def _asked(self, cell: Cell) -> Generator[Event, None, Verdict]:
        """What a person says of the next step. The time they take is not the run's."""
        assert self.approval is not None
        began = time.monotonic()
        order = [one.id for one in self.plan.document.cells if is_step(one)]
        place = (order.index(cell.id) + 1, len(order))
        verdict = yield from self.approval.decide(cell, place, self.cancel.is_set)
        if self._deadline is not None:
            self._deadline += time.monotonic() - began
        return verdict

    def _without(self, cell: Cell, verdict: Verdict) -> Iterator[Event]:
        """A step that is not run, and what that means for the rest."""
        runner = self.runner
        if verdict.do == "skip":
            yield CellFinished(cell.id, "skipped", at=runner.at())
        elif verdict.do == "fail":
            error = CellError("NotApproved", verdict.reason)
            runner.outcome, runner.reason, runner.stop = "failed", verdict.reason, True
            yield CellFinished(cell.id, "failed", at=runner.at(), error=error)
        elif self.cancel.is_set():
            runner.outcome, runner.reason, runner.stop = "cancelled", "it was cancelled", True
        else:
            runner.outcome, runner.reason, runner.stop = "paused", verdict.reason, True

    def abandoned(self) -> Iterator[Event]:
        """How a run ends that nobody follows any more. Its kernel is the caller's to end."""
        yield from self.runner.abandoned()
        yield from self._origin(wait=False)
        yield self._finished()

    def _origin_of_long(self) -> Iterator[Event]:
        if time.monotonic() - self._began > NOTED_AFTER:
            yield from self._origin(wait=False)

    def _origin(self, *, wait: bool) -> Iterator[Event]:
        if self.origin is not None and (wait or self.origin.done()):
            origin, self.origin = self.origin, None
            yield from origin.result()

    def _finished(self) -> RunFinished:
        duration = round(time.monotonic() - self._began, 6)
        runner = self.runner
        if runner.outcome == "ok" and (left := waiting(self.plan.document)):
            # A cell before them has ended the run.
            runner.outcome, runner.reason = "failed", runner.sieve.safe(told(left))
        return RunFinished(runner.outcome, runner.at(), duration, runner.reason)

    def _started(self) -> RunStarted:
        plan = self.plan
        mask = self.sieve.masker.mask_json
        cells: list[Mapping[str, Any]] = mask(list(plan.cells_as_json()))
        return RunStarted(
            plan.run_id,
            plan.uuid,
            self.runner.at(),
            mask(plan.task),
            mask(plan.document.title),
            tuple(cells),
            mask(plan.as_json(self.kernel.describe()) | self._mode()),
            plan.parent,
        )

    def _mode(self) -> dict[str, Any]:
        """Only a run from a clean kernel is marked clean."""
        resume = self.resume
        if resume is None:
            return {"mode": "clean"}
        return {
            "mode": "resumed",
            "resumed": {"run": resume.run_id, "carried": list(resume.carried)},
        }

    def _limit(self) -> Limit:
        """The nearer of the cell's and the run's end of time, and how to say it."""
        limits = self.plan.limits
        run = Limit(self._deadline, f"the run took longer than {limits.timeout or 0:g} s")
        if limits.cell_timeout is None:
            return run
        deadline = time.monotonic() + limits.cell_timeout
        if run.deadline is not None and run.deadline < deadline:
            return run
        return Limit(deadline, f"the cell took longer than {limits.cell_timeout:g} s")

    def _is_over(self, limit: Limit) -> bool:
        """Cancelled or out of time between two cells: the next one does not start."""
        runner = self.runner
        if self.cancel.is_set():
            runner.outcome, runner.reason = "cancelled", "it was cancelled"
        elif self._deadline is not None and time.monotonic() >= self._deadline:
            runner.outcome, runner.reason = "timed_out", limit.reason
        else:
            return False
        return True
