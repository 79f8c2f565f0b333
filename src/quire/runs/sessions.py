"""What a session's journal says: what ran, and what of it still counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .events import (
    CellFinished,
    CellStatus,
    CellSubmitted,
    Event,
    KernelDied,
    KernelReplaced,
    Rewound,
    SessionClosed,
    SessionOpened,
)


@dataclass(slots=True)
class Submission:
    """A cell that was given to a kernel, and how it ended if it did."""

    cell: CellSubmitted
    status: CellStatus = "running"
    error: str = ""

    @property
    def ended(self) -> bool:
        """By itself: nobody stopped it, and the kernel did not go with it."""
        return self.status in ("ok", "failed") and self.error != "KeyboardInterrupt"


@dataclass(slots=True)
class SessionState:
    name: str = ""
    task: str = ""
    opened: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = 1
    closed: bool = False
    # What the present kernel has run, and what the last one before it had that got anywhere.
    ran: list[Submission] = field(default_factory=list)
    before: list[Submission] = field(default_factory=list)

    @property
    def effective(self) -> list[Submission]:
        """What made the state that was last worth having. What was cut short is not among it."""
        latest = self.ran if any(one.status == "ok" for one in self.ran) else self.before
        return [one for one in latest or self.ran if one.ended]


def fold_session(events: Iterable[Event]) -> SessionState:
    state = SessionState()
    for event in events:
        if isinstance(event, SessionOpened):
            state.name, state.task = event.session, event.task
            state.opened, state.plan = event.at, event.plan
        elif isinstance(event, CellSubmitted):
            state.ran.append(Submission(event))
        elif isinstance(event, CellFinished):
            if state.ran:
                state.ran[-1].status = event.status
                state.ran[-1].error = event.error.name if event.error else ""
        elif isinstance(event, Rewound):
            state.ran = [one for one in state.ran if one.cell.order < event.order]
        elif isinstance(event, KernelDied):
            state.epoch += 1
        elif isinstance(event, KernelReplaced):
            if any(one.status == "ok" for one in state.ran):
                state.before = state.ran
            state.ran = []
            state.epoch = event.epoch
        elif isinstance(event, SessionClosed):
            state.closed = True
    return state
