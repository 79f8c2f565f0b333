"""Run one cell on a kernel: watch its limits, pass its output through the sieve, judge its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Protocol

from ..kernel.protocol import Kernel
from ..record.events import (
    CellError,
    CellFinished,
    CellStarted,
    CellStatus,
    Event,
    KernelDied,
    Outcome,
)
from ..task.document import Cell
from .output_sieve import Sieve

TICK = 0.1
REASON = 2_000  # characters
UNSTOPPABLE = "the cell did not stop when it was interrupted, so its kernel was ended"


class Cancel(Protocol):
    """Asked between events: has somebody called this off? A threading.Event is one."""

    def is_set(self) -> bool: ...


def utc_now() -> datetime:
    return datetime.now(UTC)


class Calls(Protocol):
    """Answers what cells ask of the engine, while they run and no longer."""

    def open(self, cell: str, tell: Callable[[Event], object]) -> None:
        """From now on, and `tell` hears of it from other threads."""
        ...

    def close(self) -> None:
        """No more. Calls under way have ended, and were told of, when it returns."""
        ...

    def leftover(self) -> list[Event]:
        """What there is still to tell after the last cell."""
        ...


class NoCalls:
    def open(self, cell: str, tell: Callable[[Event], object]) -> None:
        pass

    def close(self) -> None:
        pass

    def leftover(self) -> list[Event]:
        return []


@dataclass(slots=True)
class Limit:
    """When a cell has to be over, and how to say that it was not."""

    deadline: float | None = None
    reason: str = ""


@dataclass(slots=True)
class _Stopping:
    """A cell that is being ended: first asked, then made to."""

    status: CellStatus
    outcome: Outcome
    reason: str
    kill_at: float
    killed: bool = False


def _until(stopping: _Stopping | None, limit: Limit) -> float:
    """To the next look at the clock: what has its time is done at that time, not a tick later."""
    due = limit.deadline if stopping is None else None if stopping.killed else stopping.kill_at
    return TICK if due is None else min(TICK, max(0.0, due - time.monotonic()))


@dataclass(slots=True)
class CellRunner:
    """Runs cells one after another. `outcome` and `reason` are those of the last; `stop` says
    that nothing should follow it."""

    kernel: Kernel
    sieve: Sieve
    cancel: Cancel
    now: Callable[[], datetime] = utc_now
    grace: float = 2.0
    # What others have to say about this run while it goes on: tool calls, warnings.
    inbox: SimpleQueue[Event] = field(default_factory=SimpleQueue)
    calls: Calls = field(default_factory=NoCalls)
    # And what whoever has the run made has to say, asked for at every look at the kernel.
    besides: Callable[[], Iterable[Event]] = tuple
    current: str = ""
    began: float | None = None  # when the cell under way did
    outcome: Outcome = "ok"
    reason: str = ""
    stop: bool = False

    def at(self) -> str:
        return self.now().isoformat()

    def run(self, cell: Cell, limit: Limit, *, aside: bool = False) -> Iterator[Event]:
        """`aside`: whoever runs the next cell will want to come back to the state before it."""
        self.current = cell.id
        began = self.began = time.monotonic()
        yield CellStarted(cell.id, self.at())
        if cell.source.strip():
            self.calls.open(cell.id, self.inbox.put)
            try:
                yield from self._executed(cell, limit, began, aside)
            finally:
                self.calls.close()
        else:
            yield CellFinished(cell.id, "ok", at=self.at())
        self.began = None

    def abandoned(self) -> Iterator[Event]:
        """How a cell ends that nobody follows any more. The kernel is the caller's to end."""
        self.calls.close()
        yield from self.waiting()
        if self.began is not None:
            yield from self.sieve.end_cell(self.current)
            duration = round(time.monotonic() - self.began, 6)
            yield CellFinished(self.current, "cancelled", at=self.at(), duration=duration)
        self.outcome, self.reason = "cancelled", "whoever followed it stopped before its end"

    def _executed(self, cell: Cell, limit: Limit, began: float, aside: bool) -> Iterator[Event]:
        stopping: _Stopping | None = None

        def tick() -> float:
            return _until(stopping, limit)

        for event in self.kernel.execute(cell.source, cell.id, tick=tick, aside=aside):
            if isinstance(event, CellFinished | KernelDied):
                self.calls.close()
            yield from self.waiting()
            if isinstance(event, CellFinished):
                duration = round(time.monotonic() - began, 6)
                done = replace(event, at=self.at(), duration=duration)
                yield from self.sieve.take(self._judged(done, cell, stopping))
            elif isinstance(event, KernelDied):
                yield from self._died(event, stopping, began)
            else:
                if event is not None:
                    yield from self.sieve.take(event)
                stopping = self._watch(stopping, limit)

    def waiting(self) -> Iterator[Event]:
        yield from self.besides()
        while True:
            try:
                yield self.inbox.get_nowait()
            except Empty:
                return

    def _watch(self, stopping: _Stopping | None, limit: Limit) -> _Stopping | None:
        now = time.monotonic()
        if stopping is None:
            kill_at = now + self.grace
            if self.cancel.is_set():
                stopping = _Stopping("cancelled", "cancelled", "it was cancelled", kill_at)
            elif limit.deadline is not None and now >= limit.deadline:
                stopping = _Stopping("timed_out", "timed_out", limit.reason, kill_at)
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
            self.outcome, self.reason, self.stop = stopping.outcome, stopping.reason, True
            return replace(event, status=stopping.status)
        if event.status == "failed":
            if "raises-exception" in cell.tags:
                return replace(event, status="ok")
            error = event.error or CellError("Failed", "")
            self.outcome, self.stop = "failed", True
            self.reason = self._said(f"{error.name}: {error.value}")
        self.stop = self.stop or event.stop
        return event

    def _said(self, text: str) -> str:
        """Fit for the line that says why the run ended."""
        masked = self.sieve.safe(text)
        return masked if len(masked) <= REASON else f"{masked[:REASON]} …"

    def _died(self, event: KernelDied, stopping: _Stopping | None, began: float) -> Iterator[Event]:
        status: CellStatus = "died"
        if stopping is not None and stopping.killed:
            event = replace(event, reason=UNSTOPPABLE)
        self.outcome, self.reason, self.stop = "died", self._said(event.reason), True
        if stopping is not None:
            status, self.outcome = stopping.status, stopping.outcome
            self.reason = stopping.reason
        yield from self.sieve.end_cell(event.cell)
        yield from self.sieve.take(event)
        duration = round(time.monotonic() - began, 6)
        yield CellFinished(event.cell, status, at=self.at(), duration=duration)
