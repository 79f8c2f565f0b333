from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import fake_kernel
from fake_kernel import FakeKernel, dies, fails, hangs, ignores, leaves, said
from quire.engine import run_cell, run_plan
from quire.engine.output_sieve import Bounds, Sieve
from quire.engine.run_cell import REASON
from quire.engine.run_plan import LocalExecutor
from quire.kernel.protocol import KernelEvent, Tick
from quire.masking.masker import Masker, Secret
from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    KernelDied,
    OutputAdded,
    OutputCut,
    RunFinished,
    RunStarted,
    ToolCalled,
    Warned,
)
from quire.record.plan import Limits, Plan
from quire.record.record import Record, fold
from quire.task.document import Cell, Document, identified

SECRET = "hunter2-hunter2-hunter2"


class Nowhere:
    def write(self, cell: str, what: str, text: str, path: str = "") -> str:
        return "/spill"


def executor(
    *cells: Cell | str,
    kernel: FakeKernel | None = None,
    cancel: threading.Event | None = None,
    bounds: Bounds | None = None,
    task: str = "t.py",
    **limits: float,
) -> LocalExecutor:
    made = identified(Cell("code", cell) if isinstance(cell, str) else cell for cell in cells)
    document = Document(made)
    plan = Plan("run", "u", task, Path("t.py"), document, "", limits=Limits(**limits))  # type: ignore[arg-type]
    sieve = Sieve(Masker([Secret("PASSWORD", SECRET)]), Nowhere(), bounds)
    clock = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(1_000))
    return LocalExecutor(
        plan, kernel or FakeKernel(), sieve, cancel or threading.Event(), lambda: next(clock)
    )


def ran(*cells: Cell | str, **more: Any) -> tuple[list[Event], Record]:
    events = list(executor(*cells, **more).events())
    return events, fold(events)


def statuses(record: Record) -> list[str]:
    return [cell.status for cell in record.cells]


def test_the_order_of_events() -> None:
    events, record = ran("one", Cell("markdown", "text"), "two")
    assert [type(e) for e in events] == [
        RunStarted,
        CellStarted,
        OutputAdded,
        CellFinished,
        CellStarted,
        OutputAdded,
        CellFinished,
        RunFinished,
    ]
    assert statuses(record) == ["ok", "text", "ok"]
    assert record.outcome == "ok"
    times = [e.at for e in events if not isinstance(e, OutputAdded)]  # type: ignore[union-attr]
    assert times == sorted(times)
    assert len(set(times)) == len(times)
    assert record.duration is not None
    assert record.cells[0].execution_count == 1


def test_a_task_without_cells() -> None:
    events, record = ran()
    assert [type(e) for e in events] == [RunStarted, RunFinished]
    assert record.outcome == "ok"


def test_a_cell_that_raises_ends_the_run() -> None:
    kernel = FakeKernel({"bad": fails})
    _, record = ran("one", "bad", "three", kernel=kernel)
    assert statuses(record) == ["ok", "failed", "not run"]
    assert (record.outcome, record.reason) == ("failed", "ValueError: no")
    assert record.cells[1].outputs[0]["text"] == "before\n"
    assert kernel.asked == ["one", "bad"]


def test_a_cell_that_may_raise() -> None:
    tagged = Cell("code", "bad", tags=("raises-exception",))
    _, record = ran(tagged, "two", kernel=FakeKernel({"bad": fails}))
    assert statuses(record) == ["ok", "ok"]
    assert record.outcome == "ok"
    assert record.cells[0].error == CellError("ValueError", "no", ("line",))


def test_a_cell_to_be_skipped_never_reaches_the_kernel() -> None:
    kernel = FakeKernel()
    events, record = ran(Cell("code", "one", tags=("skip-execution",)), "two", kernel=kernel)
    assert statuses(record) == ["skipped", "ok"]
    assert kernel.asked == ["two"]
    assert sum(isinstance(e, CellStarted) for e in events) == 1


@pytest.mark.parametrize("source", ["", "  \n\n\t"])
def test_an_empty_cell_is_well_and_counts_nothing(source: str) -> None:
    kernel = FakeKernel()
    _, record = ran(source, "two", kernel=kernel)
    assert statuses(record) == ["ok", "ok"]
    assert [c.execution_count for c in record.cells] == [None, 1]
    assert kernel.asked == ["two"]


def test_a_task_that_leaves_early_is_well() -> None:
    _, record = ran("one", "bye", "three", kernel=FakeKernel({"bye": leaves}))
    assert statuses(record) == ["ok", "ok", "not run"]
    assert record.outcome == "ok"


def test_the_kernel_dies() -> None:
    events, record = ran("one", "dies", "three", kernel=FakeKernel({"dies": dies}))
    assert [type(e) for e in events[-4:]] == [OutputAdded, KernelDied, CellFinished, RunFinished]
    assert statuses(record) == ["ok", "died", "not run"]
    assert (record.outcome, record.reason) == ("died", "the kernel was killed by SIGSEGV")
    assert record.cells[1].outputs[0]["text"] == "last words"


def test_what_was_cut_of_a_cell_that_died_is_told() -> None:
    def floods(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent]:
        yield said(cell, "x" * 500)
        yield KernelDied(cell, "gone")

    events, _ = ran("floods", kernel=FakeKernel({"floods": floods}), bounds=Bounds(100, 20))
    assert [type(e) for e in events[-4:]] == [OutputCut, KernelDied, CellFinished, RunFinished]


LIMITS = pytest.mark.parametrize(
    ("limit", "said"), [("cell_timeout", "the cell took"), ("timeout", "the run took")]
)


@dataclass
class Clock:
    """Time goes on only where somebody sleeps."""

    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (run_plan, run_cell, fake_kernel):
        monkeypatch.setattr(module, "time", clock)
    return clock


@LIMITS
def test_out_of_time(limit: str, said: str, clock: Clock) -> None:
    kernel = FakeKernel({"hangs": hangs})
    _, record = ran("hangs", "two", kernel=kernel, **{limit: 0.05})
    assert statuses(record) == ["timed_out", "not run"]
    assert record.outcome == "timed_out"
    assert record.reason == f"{said} longer than 0.05 s"
    assert record.error is not None
    assert record.error.name == "TimedOut"
    assert (kernel.interrupts, kernel.kills) == (1, 0)


@LIMITS
def test_out_of_time_and_deaf(limit: str, said: str, clock: Clock) -> None:
    kernel = FakeKernel({"ignores": ignores})
    began = clock.now
    events, record = ran("ignores", "two", kernel=kernel, **{limit: 0.05}, grace=0.1)
    assert clock.now - began == pytest.approx(0.15, abs=0.02)
    assert statuses(record) == ["timed_out", "not run"]
    assert record.outcome == "timed_out"
    assert (kernel.interrupts, kernel.kills) == (1, 1)
    assert any(isinstance(e, KernelDied) for e in events)


def test_the_nearer_limit_is_named(clock: Clock) -> None:
    _, record = ran("hangs", kernel=FakeKernel({"hangs": hangs}), cell_timeout=60, timeout=0.05)
    assert record.reason == "the run took longer than 0.05 s"
    _, record = ran("hangs", kernel=FakeKernel({"hangs": hangs}), cell_timeout=0.05, timeout=60)
    assert record.reason == "the cell took longer than 0.05 s"


def test_a_flood_of_events_does_not_hide_the_clock(clock: Clock) -> None:
    def chatters(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent]:
        while not kernel.interrupts:
            clock.sleep(0.001)
            yield said(cell, "x")
        yield CellFinished(cell, "failed", error=CellError("KeyboardInterrupt", "", ()))

    _, record = ran("chatters", kernel=FakeKernel({"chatters": chatters}), cell_timeout=0.05)
    assert record.outcome == "timed_out"


def test_a_limit_of_the_run_passed_between_cells(clock: Clock) -> None:
    def slow(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent]:
        clock.sleep(0.08)
        yield CellFinished(cell, "ok")

    kernel = FakeKernel({"slow": slow})
    _, record = ran("slow", "two", kernel=kernel, timeout=0.05)
    assert statuses(record) == ["ok", "not run"]
    assert (record.outcome, kernel.asked) == ("timed_out", ["slow"])
    assert record.reason == "the run took longer than 0.05 s"


def test_called_off_while_a_cell_runs() -> None:
    cancel, kernel = threading.Event(), FakeKernel({"hangs": hangs})
    events: list[Event] = []
    for event in executor("hangs", "two", kernel=kernel, cancel=cancel).events():
        events.append(event)
        if isinstance(event, OutputAdded):
            cancel.set()
    record = fold(events)
    assert statuses(record) == ["cancelled", "not run"]
    assert (record.outcome, record.reason) == ("cancelled", "it was cancelled")
    assert (kernel.interrupts, kernel.kills) == (1, 0)


def test_called_off_between_cells() -> None:
    cancel, kernel = threading.Event(), FakeKernel()
    events: list[Event] = []
    for event in executor("one", "two", kernel=kernel, cancel=cancel).events():
        events.append(event)
        if isinstance(event, CellFinished):
            cancel.set()
    assert statuses(fold(events)) == ["ok", "not run"]
    assert fold(events).outcome == "cancelled"
    assert (kernel.asked, kernel.interrupts) == (["one"], 0)


def test_called_off_before_it_began() -> None:
    cancel, kernel = threading.Event(), FakeKernel()
    cancel.set()
    _, record = ran("one", kernel=kernel, cancel=cancel)
    assert (record.outcome, statuses(record), kernel.asked) == ("cancelled", ["not run"], [])


def test_a_cell_that_may_raise_is_still_cancelled() -> None:
    cancel = threading.Event()
    cell = Cell("code", "hangs", tags=("raises-exception",))
    events: list[Event] = []
    for event in executor(cell, kernel=FakeKernel({"hangs": hangs}), cancel=cancel).events():
        events.append(event)
        if isinstance(event, OutputAdded):
            cancel.set()
    assert fold(events).outcome == "cancelled"


def test_what_others_say_comes_in_between() -> None:
    call = ToolCalled("a", "run", {"path": "x"}, ok=True, duration=0.1)
    execution = executor("one", "two")
    events: list[Event] = []
    for event in execution.events():
        events.append(event)
        if isinstance(event, CellStarted) and len(execution.kernel.asked) == 0:  # type: ignore[attr-defined]
            execution.inbox.put(call)
    kinds = [type(e) for e in events]
    assert kinds.index(ToolCalled) < kinds.index(CellFinished)
    assert fold(events).tool_calls == (call,)


def test_what_comes_with_the_last_cell_is_not_lost() -> None:
    execution = executor("one")
    events: list[Event] = []
    for event in execution.events():
        events.append(event)
        if isinstance(event, CellFinished):
            execution.inbox.put(Warned("a", "late"))
    assert [type(e) for e in events[-2:]] == [Warned, RunFinished]


def test_secrets_are_masked_in_all_a_run_says_of_itself() -> None:
    def tells(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent]:
        yield CellFinished(cell, "failed", error=CellError("E", SECRET, (SECRET,)))

    def mourns(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent]:
        yield KernelDied(cell, f"it said {SECRET}")

    for script in (tells, mourns):
        heading = Cell("markdown", f"# About {SECRET}", attachments={"x": {SECRET: SECRET}})
        source = f"print('{SECRET}')"
        kernel = FakeKernel({source: script}, kind=SECRET)
        events, record = ran(heading, source, kernel=kernel, task=f"{SECRET}.py")
        assert SECRET not in repr(events)
        assert record.title == "About [masked:PASSWORD]"


def test_a_long_reason_is_shortened() -> None:
    def rants(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent]:
        yield CellFinished(cell, "failed", error=CellError("E", "x" * 1_000_000, ()))

    _, record = ran("rants", kernel=FakeKernel({"rants": rants}))
    assert len(record.reason) <= REASON + 2
    assert record.reason.startswith("E: xxx")


def test_nobody_follows_it_to_its_end() -> None:
    execution = executor("hangs", "two", kernel=FakeKernel({"hangs": hangs}))
    events: list[Event] = []
    following = execution.events()
    for event in following:
        events.append(event)
        if isinstance(event, OutputAdded):
            break
    following.close()
    events += execution.abandoned()
    record = fold(events)
    assert statuses(record) == ["cancelled", "not run"]
    assert record.outcome == "cancelled"
    assert "stopped before its end" in record.reason
    assert record.duration is not None


def test_nobody_follows_it_between_cells() -> None:
    execution = executor("one", "two")
    events: list[Event] = []
    following = execution.events()
    for event in following:
        events.append(event)
        if isinstance(event, RunStarted):
            break
    following.close()
    events += execution.abandoned()
    assert statuses(fold(events)) == ["not run", "not run"]
    assert fold(events).outcome == "cancelled"
