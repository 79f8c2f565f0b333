"""What a session sets aside, how much of it, and when it lets go. Without processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from fake_kernel import FakeKernel, dies, fails, hangs, leaves
from quire.engine.output_sieve import Sieve
from quire.engine.saved_states import GONE, NO_SNAPSHOTS, Budget, Marks
from quire.errors import KernelError, UsageError
from quire.kernel.protocol import Tick
from quire.masking.masker import Masker
from quire.record.events import CellFinished, CellSubmitted, Event, KernelReplaced
from quire.sessions.live_session import Session
from quire.task.document import Cell, identified


@dataclass
class FakeSnapshot:
    size: int = 10
    dropped: int = 0
    alive: bool = True
    shared: list[FakeSnapshot] = field(default_factory=list)

    def resident(self) -> int:
        return 2 * self.size

    def memory(self) -> int:
        return self.size

    def share(self) -> FakeSnapshot:
        self.shared.append(FakeSnapshot(self.size))
        return self.shared[-1]

    def drop(self) -> None:
        self.dropped += 1


@dataclass
class Snapping(FakeKernel):
    """A fake kernel with states that are plain objects."""

    alive: bool = True
    made: list[FakeSnapshot] = field(default_factory=list)
    woken: list[FakeSnapshot] = field(default_factory=list)
    refuse: str = ""
    size: int = 10
    on_rewind: Callable[[FakeSnapshot], None] | None = None

    def snapshot(self) -> FakeSnapshot | str:
        if self.refuse:
            return self.refuse
        self.made.append(FakeSnapshot(self.size))
        return self.made[-1]

    def rewind(self, snapshot: FakeSnapshot) -> None:
        if self.on_rewind is not None:
            self.on_rewind(snapshot)
        self.alive = True
        self.woken.append(snapshot)


def taken(count: int, budget: Budget, kernel: Snapping | None = None) -> tuple[Marks, Snapping]:
    kernel = kernel or Snapping()
    marks = Marks(budget)
    for order in range(1, count + 1):
        marks.take(kernel, order)
    return marks, kernel


def held(marks: Marks) -> list[int]:
    return [mark.order for mark in marks if mark.snapshot is not None]


# Marks


def test_the_newest_are_kept() -> None:
    marks, kernel = taken(5, Budget(count=2))
    assert held(marks) == [4, 5]
    assert [one.dropped for one in kernel.made] == [1, 1, 1, 0, 0]
    gone = marks.get(1)
    assert gone is not None
    assert gone.reason == "only the newest 2 states are kept"
    assert marks.get(9) is None


def test_memory_is_a_limit_too() -> None:
    marks, kernel = taken(5, Budget(count=32, memory=25))
    assert held(marks) == [4, 5]
    assert [one.dropped for one in kernel.made] == [1, 1, 1, 0, 0]
    gone = marks.get(2)
    assert gone is not None
    assert gone.reason == "the states together took too much memory"


def test_the_last_one_stays_however_large_it_is() -> None:
    marks, _ = taken(3, Budget(count=32, memory=1))
    assert held(marks) == [3]


def test_memory_is_measured_only_where_it_can_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []
    monkeypatch.setattr(FakeSnapshot, "memory", lambda self: measured.append(1) or self.size)
    taken(4, Budget(count=32, memory=80))
    assert measured == []
    taken(5, Budget(count=32, memory=80))
    assert measured


def test_not_all_are_measured_again_for_each_that_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of some size, most of which its copies share: the usual session."""
    measured: list[int] = []
    monkeypatch.setattr(FakeSnapshot, "resident", lambda self: 150)
    monkeypatch.setattr(FakeSnapshot, "memory", lambda self: measured.append(1) or self.size)
    taken(200, Budget(count=32, memory=4_000))
    # From the 27th on the newest, and now and then all of them.
    assert len(measured) <= 200 + 32 * 2


def test_what_the_live_kernel_leaves_to_them_is_counted() -> None:
    """Each cell writes all the memory anew: what a state shared with the kernel it has alone."""
    marks, kernel = Marks(Budget(count=32, memory=100)), Snapping(size=20)
    for order in range(1, 9):
        for made in kernel.made:
            made.size = 40
        marks.take(kernel, order)
        held = [one.snapshot.memory() for one in marks.held() if one.snapshot is not None]
        assert sum(held) <= 100


def test_why_there_is_none() -> None:
    marks, _ = taken(2, Budget(), Snapping(refuse="threads are still running (x)"))
    assert held(marks) == []
    assert [mark.reason for mark in marks] == ["threads are still running (x)"] * 2
    marks = Marks(Budget())
    assert marks.take(FakeKernel(), 1).reason == NO_SNAPSHOTS


def test_a_copy_that_was_ended_from_outside_is_none() -> None:
    marks, kernel = taken(4, Budget(count=3))
    kernel.made[2].alive = False
    gone = marks.get(3)
    assert gone is not None
    assert (gone.snapshot, gone.reason) == (None, GONE)
    assert [mark.order for mark in marks.held()] == [2, 4]
    # Nor does it take the place of one that lives.
    marks.take(kernel, 5)
    assert held(marks) == [2, 4, 5]


def test_a_branch_is_cut_off() -> None:
    marks, kernel = taken(4, Budget())
    marks.cut(3)
    assert held(marks) == [1, 2]
    assert marks.get(3) is None
    assert [one.dropped for one in kernel.made] == [0, 0, 1, 1]
    marks.clear()
    assert [one.dropped for one in kernel.made] == [1, 1, 1, 1]
    assert list(marks) == []


def test_what_is_inherited_is_shared() -> None:
    marks, kernel = taken(3, Budget())
    heir = Marks(Budget())
    heir.inherit(marks, {1: 1, 2: 5})
    assert held(heir) == [1, 5]
    marks.clear()
    assert [one.dropped for one in kernel.made] == [1, 1, 1]
    assert [one.dropped for made in kernel.made for one in made.shared] == [0, 0]


# Session


def session(kernel: Any = None, **options: Any) -> tuple[Session, list[Any]]:
    started: list[Any] = []

    def start() -> Any:
        started.append(kernel if kernel is not None and not started else Snapping())
        return started[-1]

    sieve = Sieve(Masker([]), None)
    return Session("s", start, sieve, **options), started


def cells(*sources: str) -> list[tuple[Cell, int | None]]:
    return list(zip(identified(Cell("code", s) for s in sources), range(len(sources)), strict=True))


def ran(live: Session, *sources: str, **options: Any) -> list[Event]:
    return list(live.execute(cells(*sources), threading.Event(), **options))


def test_each_cell_has_a_state_before_it() -> None:
    live, (kernel,) = session()
    events = ran(live, "a", "b")
    assert [e.order for e in events if isinstance(e, CellSubmitted)] == [1, 2]
    assert held(live.marks) == [1, 2]
    assert live.rewind(2).order == 2
    assert kernel.woken == [kernel.made[1]]
    assert [e.order for e in live.executions] == [1]
    assert held(live.marks) == [1]
    # The next thing that runs takes the place of what was undone.
    events = ran(live, "c")
    assert [e.order for e in events if isinstance(e, CellSubmitted)] == [2]


def test_it_stops_after_a_cell_that_fails() -> None:
    live, _ = session(Snapping({"bad": fails}))
    events = ran(live, "a", "bad", "b")
    assert [e.status for e in events if isinstance(e, CellFinished)] == ["ok", "failed"]
    assert [e.status for e in live.executions] == ["ok", "failed"]


def test_cells_that_may_fail_do_not_stop_it() -> None:
    live, _ = session(Snapping({"bad": fails}))
    events = ran(live, "a", "bad", "b", may_fail={1})
    assert [e.status for e in events if isinstance(e, CellFinished)] == ["ok", "failed", "ok"]


def test_the_exit_of_a_cell_does_not_end_the_session() -> None:
    live, _ = session(Snapping({"exit": leaves}))
    assert [e.status for e in ran(live, "exit") if isinstance(e, CellFinished)] == ["ok"]
    assert live.alive


def test_after_a_death_one_can_rewind() -> None:
    live, (kernel,) = session(Snapping({"die": _dies}))
    ran(live, "a", "die")
    assert (live.epoch, live.alive) == (2, False)
    assert live.lost == "the kernel was killed by SIGSEGV"
    assert kernel.kills == 0  # what was set aside would go with it
    live.rewind(2)
    assert (live.epoch, live.alive, live.lost) == (2, True, "")


def _is_killed(snapshot: FakeSnapshot) -> None:
    snapshot.alive = False
    raise KernelError("that state is gone")


@pytest.mark.parametrize("when", ["before", "meanwhile"])
@pytest.mark.parametrize("dead", [False, True])
def test_a_state_that_has_gone_is_refused_and_forgotten(when: str, dead: bool) -> None:
    live, (kernel,) = session(Snapping({"die": _dies}))
    ran(live, "a", "b", "die" if dead else "c")
    if when == "before":
        kernel.made[1].alive = False
    else:
        kernel.on_rewind = _is_killed
    for _ in range(2):
        with pytest.raises(UsageError, match=f"no way back to before execution 2: {GONE}"):
            live.rewind(2)
        # Nothing else has changed, and nobody is asked to wake it again.
        kernel.on_rewind = None
        assert held(live.marks) == [1, 3]
        assert [e.order for e in live.executions] == [1, 2, 3]
        assert (live.alive, live.epoch, bool(live.lost)) == (not dead, 2 if dead else 1, dead)
    assert kernel.woken == []
    assert kernel.made[1].dropped == 1
    live.rewind(1)
    assert (live.alive, live.lost, kernel.woken) == (True, "", [kernel.made[0]])


def test_a_state_that_could_not_be_woken_stays() -> None:
    live, (kernel,) = session()
    ran(live, "a", "b")

    def fails_once(snapshot: FakeSnapshot) -> None:
        kernel.on_rewind = None
        raise KernelError("that state could not be woken: the kernel did not answer")

    kernel.on_rewind = fails_once
    with pytest.raises(KernelError, match="did not answer"):
        live.rewind(2)
    assert held(live.marks) == [1, 2]
    assert [e.order for e in live.executions] == [1, 2]
    assert live.rewind(2).order == 2


def test_a_kernel_that_dies_when_its_states_have_gone_leaves_no_way_back() -> None:
    live, (kernel,) = session(Snapping({"die": _dies}))
    ran(live, "a")
    kernel.made[0].alive = False
    ran(live, "die", snapshots=False)
    assert live.kernel is None
    with pytest.raises(UsageError, match=GONE):
        live.rewind(1)


def test_after_a_death_one_can_go_on_without() -> None:
    live, started = session(Snapping({"die": _dies}))
    ran(live, "a", "die")
    events = ran(live, "b")
    assert isinstance(events[0], KernelReplaced)
    assert (events[0].epoch, events[0].reason) == (2, "the kernel was killed by SIGSEGV")
    assert len(started) == 2
    assert started[0].kills == 1
    assert [e.order for e in live.executions] == [3]


def test_a_fresh_kernel_goes_back_into_the_one_that_was_lost() -> None:
    """Who went on may not have known that there was a way back, and has given up nothing."""
    live, started = session(Snapping({"die": _dies}))
    ran(live, "a", "b", "die")
    ran(live, "c", "d")
    assert (held(live.marks), live.way_back()) == ([1, 2, 3, 4, 5], 3)
    # Within the fresh kernel first.
    live.rewind(5)
    assert [e.order for e in live.executions] == [4]
    live.rewind(3)
    assert started[1].woken == [started[1].made[1], started[0].made[2]]
    assert [(e.order, e.cell.source) for e in live.executions] == [(1, "a"), (2, "b")]
    assert (held(live.marks), live.left, live.lost) == ([1, 2], [], "")
    assert all(one.dropped for one in started[1].made)
    events = ran(live, "e")
    assert [e.order for e in events if isinstance(e, CellSubmitted)] == [3]


def test_of_several_lost_kernels_each_has_its_own_past() -> None:
    live, started = session(Snapping({"die": _dies}))
    ran(live, "a", "die")
    ran(live, "b")
    started[1].alive = False
    ran(live, "c")
    assert live.way_back() == 3
    live.rewind(3)
    assert ([e.order for e in live.executions], [e.order for e in live.left]) == ([], [1, 2])
    live.rewind(2)
    assert ([e.order for e in live.executions], live.left) == ([1], [])


@pytest.mark.parametrize("how", ["restart", "cull"])
def test_what_was_lost_is_let_go_with_a_kernel_that_is_ended(how: str) -> None:
    live, started = session(Snapping({"die": _dies}))
    ran(live, "a", "die")
    ran(live, "b")
    live.restart() if how == "restart" else live.cull("nobody used it")
    assert all(one.dropped for one in (*started[0].made, *started[1].made))
    assert (held(live.marks), live.left, live.way_back()) == ([], [], 0)


def test_states_of_lost_kernels_count_in_the_budget_whatever_the_next_one_takes() -> None:
    marks, _ = taken(3, Budget(memory=350), Snapping(size=100))
    marks.leave()
    kernel = Snapping(size=20)
    marks.take(kernel, 4)
    assert held(marks) == [1, 2, 3, 4]
    marks.take(kernel, 5)
    marks.take(kernel, 6)
    assert held(marks) == [2, 3, 4, 5, 6]


def _dies(kernel: Any, cell: str, tick: Tick) -> Any:
    kernel.alive = False
    yield from dies(kernel, cell, tick)


def test_a_restart_is_another_epoch() -> None:
    live, started = session()
    ran(live, "a")
    event = live.restart()
    assert (event.epoch, event.reason, live.epoch) == (2, "it was restarted", 2)
    assert (len(started), started[0].kills, live.executions) == (2, 1, [])
    with pytest.raises(UsageError, match="no way back"):
        live.rewind(1)


def test_a_culled_session_says_so() -> None:
    live, started = session()
    ran(live, "a")
    live.cull("nobody used it")
    assert (live.alive, live.epoch, started[0].kills) == (False, 2, 1)
    with pytest.raises(UsageError, match=r"state is gone: nobody used it \(epoch 2\)"):
        live.rewind(1)
    with pytest.raises(UsageError, match="state is gone"):
        live.variables()
    events = ran(live, "b")
    assert isinstance(events[0], KernelReplaced)
    assert events[0].reason == "nobody used it"
    assert live.epoch == 2


def test_one_call_at_a_time() -> None:
    live, _ = session(Snapping({"long": hangs}))
    events = live.execute(cells("long"), threading.Event())
    next(events)
    for call in (lambda: ran(live, "a"), lambda: live.rewind(1), live.restart, live.variables):
        with pytest.raises(UsageError, match="the session s is running a cell"):
            call()
    live.cull("never")  # a busy one is left alone
    assert live.epoch == 1
    live.interrupt()
    assert [e.status for e in events if isinstance(e, CellFinished)] == ["failed"]
    assert not live.busy


def test_a_cell_that_nobody_follows_any_more() -> None:
    live, (kernel,) = session(Snapping({"long": hangs}))
    events = live.execute(cells("a", "long"), threading.Event())
    while len(live.executions) < 2 or kernel.asked[-1] != "long":
        next(events)
    events.close()
    assert (kernel.kills, live.busy, live.epoch) == (1, False, 2)
    assert live.lost == "whoever ran a cell stopped before its end"


def test_without_states() -> None:
    live, (kernel,) = session()
    ran(live, "a", snapshots=False)
    assert kernel.made == []
    with pytest.raises(UsageError, match="no state was set aside there"):
        live.rewind(1)
    assert list(live.marks) == []
