"""What a session's journal says: what ran, and what of it still counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .events import (
    CellFinished,
    CellSubmitted,
    Event,
    KernelReplaced,
    Rewound,
    SessionClosed,
    SessionOpened,
)


@dataclass(slots=True)
class SessionState:
    name: str = ""
    task: str = ""
    opened: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = 1
    closed: bool = False
    # What the present kernel has run, and what the one before it had.
    ran: list[CellSubmitted] = field(default_factory=list)
    before: list[CellSubmitted] = field(default_factory=list)
    statuses: dict[int, str] = field(default_factory=dict)


def fold_session(events: Iterable[Event]) -> SessionState:
    state = SessionState()
    for event in events:
        if isinstance(event, SessionOpened):
            state.name, state.task = event.session, event.task
            state.opened, state.plan = event.at, event.plan
        elif isinstance(event, CellSubmitted):
            state.ran.append(event)
        elif isinstance(event, CellFinished):
            if state.ran:
                state.statuses[state.ran[-1].order] = event.status
        elif isinstance(event, Rewound):
            state.ran = [one for one in state.ran if one.order < event.order]
        elif isinstance(event, KernelReplaced):
            state.before, state.ran = state.ran or state.before, []
            state.epoch = event.epoch
        elif isinstance(event, SessionClosed):
            state.closed = True
    return state
