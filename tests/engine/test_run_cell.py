"""When a cell's limits are looked at: at their time, by a clock that only this file moves."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from fake_kernel import FakeKernel
from quire.engine import run_cell as cells
from quire.engine.output_sieve import Sieve
from quire.engine.run_cell import CellRunner, Limit
from quire.kernel.protocol import KernelEvent, Tick, milliseconds
from quire.masking.masker import Masker
from quire.record.events import CellFinished, KernelDied
from quire.task.document import Cell, identified


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def wait(self, tick: Tick) -> None:
        assert callable(tick)
        self.waits.append(round(tick(), 6))
        self.now += self.waits[-1]


class Nowhere:
    def write(self, cell: str, what: str, text: str, path: str = "") -> str:
        return "/spill"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(cells, "time", clock)
    return clock


def runner(script: object) -> tuple[CellRunner, FakeKernel, Cell]:
    (cell,) = identified([Cell("code", "x")])
    kernel = FakeKernel({"x": script})  # type: ignore[dict-item]
    return CellRunner(kernel, Sieve(Masker(), Nowhere()), threading.Event()), kernel, cell


def test_the_interrupt_is_sent_when_the_time_is_over_and_not_a_tick_later(clock: Clock) -> None:
    def obeys(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
        while not kernel.interrupts:
            clock.wait(tick)
            yield None
        yield CellFinished(cell, "failed")

    run, kernel, cell = runner(obeys)
    events = list(run.run(cell, Limit(clock.now + 0.25, "too long")))
    assert clock.waits == [0.1, 0.1, 0.05]
    assert (kernel.interrupts, kernel.kills, run.outcome) == (1, 0, "timed_out")
    assert isinstance(events[-1], CellFinished)
    assert events[-1].status == "timed_out"


def test_and_so_it_is_killed_where_it_does_not_listen(clock: Clock) -> None:
    def deaf(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
        while not kernel.kills:
            clock.wait(tick)
            yield None
        clock.wait(tick)
        yield KernelDied(cell, "killed", 9)

    run, kernel, cell = runner(deaf)
    run.grace = 0.32
    list(run.run(cell, Limit(clock.now + 0.05, "too long")))
    # After that there is nothing left to be done at a time.
    assert clock.waits == [0.05, 0.1, 0.1, 0.1, 0.02, 0.1]
    assert (kernel.interrupts, kernel.kills) == (1, 1)


def test_without_a_limit_it_is_looked_at_now_and_then(clock: Clock) -> None:
    def slow(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
        for _ in range(3):
            clock.wait(tick)
            yield None
        yield CellFinished(cell, "ok")

    run, kernel, cell = runner(slow)
    list(run.run(cell, Limit()))
    assert clock.waits == [0.1, 0.1, 0.1]
    assert kernel.interrupts == 0


def test_a_wait_is_never_shorter_than_asked_for_and_never_none() -> None:
    assert [milliseconds(seconds) for seconds in (0.0, 0.0004, 0.0301, 0.1)] == [1, 1, 31, 100]
    assert milliseconds(lambda: 0.25) == 250
