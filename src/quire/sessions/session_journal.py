"""What a session's journal says: what ran, and what of it still counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..record.events import (
    CellError,
    CellFinished,
    CellStatus,
    CellSubmitted,
    Event,
    KernelDied,
    KernelReplaced,
    OutputAdded,
    OutputsCleared,
    OutputUpdated,
    Replaced,
    ResultGlued,
    Rewound,
    SessionClosed,
    SessionOpened,
)

# What the state of a session does not depend on, and most of its journal may be.
GIVEN_OUT = (OutputAdded, OutputUpdated, OutputsCleared)


@dataclass(slots=True)
class Submission:
    """A cell that was given to a kernel, and how it ended if it did."""

    cell: CellSubmitted
    status: CellStatus = "running"
    error: CellError | None = None
    results: dict[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """By itself: nobody stopped it, and the kernel did not go with it."""
        stopped = self.error is not None and self.error.name == "KeyboardInterrupt"
        return self.status in ("ok", "failed") and not stopped


@dataclass(slots=True)
class Life:
    """What was known while a kernel lived that was lost since."""

    ran: list[Submission]
    before: list[Submission]
    replaced: Replaced | None


@dataclass(slots=True)
class SessionState:
    name: str = ""
    task: str = ""
    opened: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = 1
    closed: bool = False
    ran: list[Submission] = field(default_factory=list)  # in the present kernel
    # What made the state that went with the kernels before, as far as nobody has given it up.
    before: list[Submission] = field(default_factory=list)
    replaced: Replaced | None = None  # how the present kernel came to be; None: it is the first
    # Kernels that were lost, the last one at the end: a rewind may go back into one.
    lives: list[Life] = field(default_factory=list)

    @property
    def effective(self) -> list[Submission]:
        """What makes the state that the session would have, had no kernel been lost. What was cut
        short is not among it."""
        ended = [one for one in self.ran if one.ended]
        well = [one for one in ended if one.status == "ok"]
        if self.replaced == "restarted":
            # An empty kernel was wanted: until something ran well in it, that can be taken back.
            return ended if well else self.before
        if self.replaced == "restored":
            again = _in_common(self.before, self.ran)
            missing = again < len(self.before)
            return [*self.before, *(x for x in self.ran[again:] if x.ended)] if missing else ended
        # What fails in a fresh kernel may well fail for want of the state.
        return [*self.before, *well] if self.before else ended

    @property
    def lost(self) -> list[Submission]:
        """What made the state that nobody has given up. Who had a kernel restarted has."""
        return [] if self.replaced == "restarted" else self.before

    def lose(self, how: Replaced) -> None:
        """The kernel goes, and another one comes."""
        well = [one for one in self.ran if one.status == "ok"]
        self.lives.append(Life(self.ran, self.before, self.replaced))
        # Who went on in a fresh kernel and loses that one too had given up the one before.
        given_up = how == self.replaced == "lost" and well
        self.before, self.ran = well if given_up else self.effective, []
        self.replaced = how

    def go_back(self, order: int) -> None:
        """To before that execution, in the kernel that it ran in: numbers go on from one to the
        next, and begin anew only where no way leads back."""
        while self.lives and not (self.ran and self.ran[0].cell.order <= order):
            life = self.lives.pop()
            self.ran, self.before, self.replaced = life.ran, life.before, life.replaced
        self.ran = [one for one in self.ran if one.cell.order < order]
        if self.replaced == "restored":
            self.before = []  # it has run again here, and this is to undo some of it


def _in_common(before: Sequence[Submission], after: Sequence[Submission]) -> int:
    """How many at the beginning are the same."""
    pairs = zip(before, after, strict=False)
    different = (at for at, (a, b) in enumerate(pairs) if a.cell.source != b.cell.source)
    return next(different, min(len(before), len(after)))


def fold_session(events: Iterable[Event]) -> SessionState:
    state = SessionState()
    for event in events:
        if isinstance(event, SessionOpened):
            state.name, state.task = event.session, event.task
            state.opened, state.plan = event.at, event.plan
        elif isinstance(event, CellSubmitted):
            state.ran.append(Submission(event))
        elif isinstance(event, ResultGlued):
            if state.ran:
                state.ran[-1].results[event.name] = event.value
        elif isinstance(event, CellFinished):
            if state.ran:
                state.ran[-1].status, state.ran[-1].error = event.status, event.error
        elif isinstance(event, Rewound):
            state.go_back(event.order)
        elif isinstance(event, KernelDied):
            state.epoch += 1
        elif isinstance(event, KernelReplaced):
            state.lose(event.how)
            state.epoch = event.epoch
        elif isinstance(event, SessionClosed):
            state.closed = True
    return state
