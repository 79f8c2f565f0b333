"""A live kernel with a document, driven cell by cell. It knows what ran, and can go back.

Before each cell the kernel's state is set aside where that is possible; `rewind` returns to it.
Generators of events, no files: whoever drives it writes the journal.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from ..engine.approval import Verdict
from ..engine.output_sieve import Sieve
from ..engine.run_cell import Calls, Cancel, CellRunner, Limit, NoCalls, utc_now
from ..engine.saved_states import NO_SNAPSHOTS, NOT_THERE, Budget, Mark, Marks
from ..errors import Hint, KernelError, NextStep, UsageError
from ..kernel.protocol import Kernel
from ..record.events import (
    CellError,
    CellFinished,
    CellStatus,
    CellSubmitted,
    Event,
    KernelDied,
    KernelReplaced,
    Replaced,
    ResultGlued,
    Rewound,
    Warned,
)
from ..task.document import Cell


@dataclass(slots=True)
class Execution:
    """One cell that ran, as it was when it ran. `life` counts the kernels."""

    order: int
    cell: Cell
    index: int | None
    status: CellStatus = "running"
    error: CellError | None = None
    duration: float = 0.0
    results: dict[str, Any] = field(default_factory=dict)
    life: int = 0


class Approving(Protocol):
    """Says which cells wait for a person, and what became of them."""

    def wants(self, cell: Cell) -> bool: ...

    def decide(
        self, cell: Cell, called_off: Callable[[], bool]
    ) -> Generator[Event, None, Verdict]: ...


def _waits(why: str) -> UsageError:
    return UsageError(
        why,
        hint="run it where a person can be asked, or run the task as a whole: it pauses there, "
        "and `quire resume` takes it up",
    )


LOOK = 80  # characters of a variable's value


def _look(value: str) -> str:
    return value if len(value) <= LOOK else f"{value[: LOOK - 1]}…"


class Session:
    """`start` makes a fresh kernel. One call at a time: a second one is refused, not queued."""

    def __init__(
        self,
        name: str,
        start: Callable[[], Kernel],
        sieve: Sieve,
        *,
        budget: Budget | None = None,
        now: Callable[[], datetime] = utc_now,
        calls: Calls | None = None,
    ) -> None:
        self.name = name
        self.calls: Calls = calls or NoCalls()
        self.start = start
        self.sieve = sieve
        self.now = now
        self.kernel: Kernel | None = start()
        self.epoch = 1
        self.lost = ""  # why the state of the epoch before is gone, until somebody was told
        self.executions: list[Execution] = []
        # What ran in kernels that were lost, as long as there is a way back into them: who goes on
        # in a fresh one may not have seen that yet.
        self.left: list[Execution] = []
        self.marks = Marks(budget or Budget())
        self.used = time.monotonic()
        self._orders = 0
        self._life = 0
        self._busy = threading.Lock()

    @property
    def alive(self) -> bool:
        return self.kernel is not None and bool(getattr(self.kernel, "alive", True))

    @property
    def why_lost(self) -> str:
        """Why the state is gone that somebody may still expect; empty when it is not."""
        return self.lost or ("" if self.alive else "its kernel had ended")

    @property
    def busy(self) -> bool:
        return self._busy.locked()

    def _enter(self) -> None:
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                f"the session {self.name} is running a cell",
                hint=Hint(
                    "wait for it, or stop it: {}", NextStep("interrupt", {"session": self.name})
                ),
            )
        self.used = time.monotonic()

    def _leave(self) -> None:
        self.used = time.monotonic()
        self._busy.release()

    def at(self) -> str:
        return self.now().isoformat()

    def execute(
        self,
        cells: Sequence[tuple[Cell, int | None]],
        cancel: Cancel,
        *,
        cell_timeout: float | None = None,
        snapshots: bool = True,
        may_fail: Collection[int] = (),
        approval: Approving | None = None,
    ) -> Iterator[Event]:
        """Run cells in order; stops after one that fails. Each comes with its place.

        `may_fail` holds positions in `cells`: those cells may raise without ending it. One that
        waits for a person is refused where it is the first, and otherwise what follows is left.
        """
        self._enter()
        ran = False
        try:
            if not self.alive:
                yield self._fresh(self.why_lost)
            for at, (cell, index) in enumerate(cells):
                if cell.kind != "code" or "skip-execution" in cell.tags:
                    continue
                if cancel.is_set():
                    break
                if approval is not None and approval.wants(cell):
                    verdict = yield from approval.decide(cell, cancel.is_set)
                    if verdict.do == "skip":
                        yield Warned(cell.id, f"{self._called(cell)} was skipped")
                        continue
                    if verdict.do != "run":
                        if cancel.is_set():
                            break
                        if not ran:
                            raise _waits(verdict.reason)
                        yield Warned(cell.id, f"{verdict.reason}; what follows did not run")
                        break
                    cell = verdict.cell
                ran = True
                status = yield from self._one(cell, index, cancel, cell_timeout, snapshots)
                if status != "ok" and not (status == "failed" and at in may_fail):
                    break
        finally:
            self._leave()

    def _called(self, cell: Cell) -> str:
        return self.sieve.masker.mask(f"the step {cell.title or cell.id}")

    def _one(
        self,
        cell: Cell,
        index: int | None,
        cancel: Cancel,
        cell_timeout: float | None,
        snapshots: bool,
    ) -> Generator[Event, None, CellStatus]:
        assert self.kernel is not None
        self._orders += 1
        execution = Execution(self._orders, cell, index, life=self._life)
        if snapshots:
            self.marks.take(self.kernel, execution.order)
        self.executions.append(execution)
        mask = self.sieve.masker.mask
        yield CellSubmitted(
            cell.id,
            execution.order,
            index,
            mask(cell.title),
            mask(cell.source),
            self.at(),
            str(cell.metadata.get("kernel") or ""),
        )
        runner = CellRunner(self.kernel, self.sieve, cancel, self.now, calls=self.calls)
        limit = Limit()
        if cell_timeout is not None:
            limit = Limit(
                time.monotonic() + cell_timeout, f"the cell took longer than {cell_timeout:g} s"
            )
        try:
            for event in runner.run(cell, limit, aside=snapshots):
                if isinstance(event, ResultGlued):
                    execution.results[event.name] = event.value
                elif isinstance(event, CellFinished):
                    execution.status, execution.error = event.status, event.error
                    execution.duration = event.duration
                elif isinstance(event, KernelDied):
                    self._bury(event.reason)
                yield event
        finally:
            if execution.status == "running" and self.alive:
                # Whoever followed it left. What the cell still says belongs to nobody.
                self.kernel.kill()
                self._bury("whoever ran a cell stopped before its end")
        return execution.status

    def _bury(self, reason: str) -> None:
        """The process is gone. What was set aside is not: one can still rewind."""
        if self.kernel is not None and not self.marks.held():
            self.kernel.close()
            self.kernel = None
        self.epoch += 1
        self.lost = reason

    def _fresh(self, reason: str, how: Replaced = "lost") -> KernelReplaced:
        """A kernel in the place of the one there was. Where that was lost its states stay, for
        `rewind` can go on from them here as well; who asks for a fresh one gives them up."""
        if how != "lost":
            self.marks.clear()
        if self.kernel is not None:
            self.kernel.close()
        self.kernel = self.start()
        held = {mark.order for mark in self.marks.held()}
        ran = [*self.left, *self.executions]
        lives = {one.life for one in ran if one.order in held}
        self.left, self.executions = [one for one in ran if one.life in lives], []
        self.marks.leave()
        self._life += 1
        if not self.lost:
            self.epoch += 1
        return KernelReplaced(self.epoch, reason, self.at(), how)

    def no_way_back(self, order: int) -> str:
        """Why one cannot go back to before that execution; empty where one can."""
        mark = self.marks.get(order)
        if mark is not None and mark.snapshot is not None:
            return ""
        return mark.reason if mark is not None else NOT_THERE

    def restart(self, how: Replaced = "restarted") -> KernelReplaced:
        """A new kernel with nothing in it."""
        self._enter()
        try:
            reason = self.why_lost or "it was restarted"
            self.lost = ""
            return self._fresh(reason, how)
        finally:
            self._leave()

    def rewind(self, order: int) -> Rewound:
        """Be as before that execution. Raises when that state is not there."""
        self._enter()
        try:
            mark = self.marks.get(order)
            if mark is None and self.why_lost:
                raise self.gone()
            if mark is None or mark.snapshot is None or self.kernel is None:
                raise _no_way_back(order, mark)
            rewind = getattr(self.kernel, "rewind", None)
            if rewind is None:
                raise UsageError(NO_SNAPSHOTS, hint="restart the session instead")
            try:
                rewind(mark.snapshot)
            except KernelError as error:
                # Where the state has gone this moment, say the same as if it had gone before.
                mark = self.marks.get(order)
                if mark is not None and mark.snapshot is not None:
                    raise
                raise _no_way_back(order, mark) from error
            self._return_to(order)
            self.marks.cut(order)
            self.lost = ""
            return Rewound(order, self.at())
        finally:
            self._leave()

    def _return_to(self, order: int) -> None:
        """What has run is what had before that execution, in the kernel that it ran in."""
        ran = [*self.left, *self.executions]
        self._life = next((one.life for one in ran if one.order == order), self._life)
        self.left = [one for one in ran if one.life < self._life]
        self.executions = [one for one in ran if one.life == self._life and one.order < order]
        self._orders = order - 1

    def way_back(self) -> int:
        """The last execution in a kernel that was lost to before which one can go; 0 for none."""
        lost = self.left if self.alive else [*self.left, *self.executions]
        held = {mark.order for mark in self.marks.held()}
        return max((one.order for one in lost if one.order in held), default=0)

    def gone(self) -> UsageError:
        back = self.way_back()
        hint, steps = "{} runs again what it had run", [NextStep("restore", {"session": self.name})]
        if back:
            hint = f"{{}} goes back to before #{back} ran, and {hint}"
            steps.insert(0, NextStep("rewind", {"session": self.name, "cell": f"#{back}"}))
        return UsageError(
            f"the kernel's state is gone: {self.why_lost} (epoch {self.epoch})",
            hint=Hint(hint, *steps),
        )

    def cull(self, reason: str) -> None:
        """End the kernel of a session that nobody uses. The session stays and says so."""
        if not self._busy.acquire(blocking=False):
            return
        try:
            self.close()
            self.epoch += 1
            self.lost = reason
        finally:
            self._busy.release()

    def interrupt(self) -> None:
        if self.kernel is not None:
            self.kernel.interrupt()

    def variables(self) -> list[Mapping[str, Any]]:
        self._enter()
        try:
            if not self.alive:
                raise self.gone()
            inspect = getattr(self.kernel, "variables", None)
            if inspect is None:
                raise KernelError(
                    "this kernel cannot list its variables", hint="run a cell that shows them"
                )
            try:
                listed = inspect()
            except KernelError as error:
                if self.alive:
                    raise
                raise self.gone() from error
            found: list[dict[str, Any]] = self.sieve.masker.mask_json(listed)
            return [{**one, "value": _look(one["value"])} for one in found]
        finally:
            self._leave()

    def close(self) -> None:
        self.marks.clear()
        self.left = []
        if self.kernel is not None:
            self.kernel.close()
            self.kernel = None


def _no_way_back(order: int, mark: Mark | None) -> UsageError:
    return UsageError(
        f"there is no way back to before execution {order}: {mark.reason if mark else NOT_THERE}",
        hint="rewind further back, or restart the session and run the cells again",
    )
