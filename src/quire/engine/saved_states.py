"""States of a kernel to go back to: what is set aside, how much of it, and why where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..kernel.protocol import Kernel
from ..kernel.snapshots import Snapshot

NO_SNAPSHOTS = "this kind of kernel cannot set its state aside"
NOT_THERE = "no state was set aside there"
GONE = "the copy that was set aside was ended from outside"


@dataclass(slots=True)
class Mark:
    """The state before an execution: set aside, or why it is not."""

    order: int
    snapshot: Snapshot | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be set aside."""

    count: int = 32
    memory: int = 4 << 30  # bytes, counted as proportional set size


class Marks:
    """Snapshots of one kernel, oldest first. The oldest go when there are too many."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._marks: dict[int, Mark] = {}
        self._most = 0  # bytes: more than that they cannot have together
        self._left = 0  # bytes of those whose kernel is gone: they say nothing of the next one's

    def __iter__(self) -> Iterator[Mark]:
        return iter(self._marks.values())

    def get(self, order: int) -> Mark | None:
        mark = self._marks.get(order)
        snapshot = mark.snapshot if mark is not None else None
        if mark is not None and snapshot is not None and not snapshot.alive:
            # A copy is a process: the system may end it for its memory, or a person may.
            self._forget(mark, GONE)
        return mark

    def held(self) -> list[Mark]:
        """Those one can go back to."""
        marks = [self.get(order) for order in tuple(self._marks)]
        return [mark for mark in marks if mark is not None and mark.snapshot is not None]

    def inherit(self, other: Marks, orders: Mapping[int, int]) -> None:
        """Have what another one has set aside at these orders, whatever becomes of that one."""
        for mark in other:
            order = orders.get(mark.order)
            if order is not None and mark.snapshot is not None:
                self._marks[order] = Mark(order, mark.snapshot.share())

    def take(self, kernel: Kernel, order: int) -> Mark:
        made = kernel.snapshot() if hasattr(kernel, "snapshot") else NO_SNAPSHOTS
        mark = Mark(order, None, made) if isinstance(made, str) else Mark(order, made)
        self._marks[order] = mark
        self._trim()
        return mark

    def _trim(self) -> None:
        held = self.held()
        excess = len(held) - self.budget.count
        for mark in held[: max(0, excess)]:
            self._forget(mark, f"only the newest {self.budget.count} states are kept")
        held = held[max(0, excess) :]
        newest = held[-1].snapshot if held else None
        if newest is None:
            return
        # Measuring takes as long as the process is large: not at all where it cannot matter, and
        # all of them only where what has come since the last time could be too much.
        most = self._left + newest.resident() * len(held)
        if most > self.budget.memory:
            # What it has now and, as much again, what the live kernel leaves to it in the end.
            most = min(most, self._most + 2 * newest.memory())
        if most > self.budget.memory:
            most = self._measured(held)
        self._most = most

    def _measured(self, held: list[Mark]) -> int:
        """The most that they can have together by the next one. The oldest go if it is too much."""
        sizes = [mark.snapshot.memory() if mark.snapshot else 0 for mark in held]
        total = sum(sizes)
        for mark, size in zip(held[:-1], sizes, strict=False):
            if total <= self.budget.memory:
                break
            total -= size
            self._forget(mark, "the states together took too much memory")
        return total + sizes[-1]

    def leave(self) -> None:
        """Their kernel is gone, and those that come are another one's."""
        self._left = sum(mark.snapshot.memory() for mark in self.held() if mark.snapshot)

    @staticmethod
    def _forget(mark: Mark, reason: str) -> None:
        if mark.snapshot is not None:
            mark.snapshot.drop()
        mark.snapshot, mark.reason = None, reason

    def cut(self, order: int) -> None:
        """Drop what belongs to an abandoned branch: everything from `order` on."""
        for later in [o for o in self._marks if o >= order]:
            mark = self._marks.pop(later)
            if mark.snapshot is not None:
                mark.snapshot.drop()

    def clear(self) -> None:
        self.cut(0)
        self._left = 0
