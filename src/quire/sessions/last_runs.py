"""What a session saw its cells do last, whichever of its kernels ran them."""

from __future__ import annotations

from ..task.document import Cell
from ..workspace import LiveSession, Workspace
from .live_session import Execution
from .session_journal import Submission


def last_seen(workspace: Workspace, live: LiveSession) -> list[Execution]:
    """What ran, in its order. The answers of a lost kernel were seen all the same, and only the
    journal has them."""
    lost = workspace.sessions.read(live.session.name).lost
    return [*map(_as_execution, lost), *live.session.executions]


def _as_execution(one: Submission) -> Execution:
    ran = one.cell
    cell = Cell("code", ran.source, ran.cell, ran.title)
    return Execution(ran.order, cell, ran.index, one.status, one.error, results=one.results)
