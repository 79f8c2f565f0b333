"""Bring back the state of a kernel that is gone: run again what it had run."""

from __future__ import annotations

from collections.abc import Iterator

from ..engine.run_cell import Cancel
from ..errors import Hint, NextStep, UsageError
from ..record.events import Event
from ..task.document import Cell
from ..workspace import Workspace
from .session import find
from .session_journal import Submission
from .session_task import as_it_runs


def restore(workspace: Workspace, name: str, cancel: Cancel) -> Iterator[Event]:
    """Run again, in a fresh kernel, what lost ones had run and what ran well since, as it was then.

    What failed then may fail again. What never came to its own end, because it was stopped or its
    kernel died, is left out.
    """
    live = find(workspace, name)
    session = live.session
    lost = workspace.sessions.read(session.name).effective
    if not lost:
        raise UsageError(
            f"the session {session.name} has run nothing that could be restored",
            hint=Hint("use `{}`", NextStep("exec")),
        )
    present = {cell.id: cell for cell in as_it_runs(workspace, live).cells}
    live.others.update({one.cell.cell: one.cell.kernel for one in lost if one.cell.kernel})
    again = [(_as_it_was(one, present), one.cell.index) for one in lost]
    may_fail = {at for at, one in enumerate(lost) if one.status == "failed"}
    fresh = session.restart("restored")
    live.journal.append(fresh)
    yield fresh
    for event in session.execute(again, cancel, may_fail=may_fail):
        live.journal.append(event)
        yield event


def _as_it_was(one: Submission, present: dict[str, Cell]) -> Cell:
    """The cell that ran. Journals hold no secrets: the task may, if it is still in there."""
    cell = one.cell
    if cell.cell in present:
        return present[cell.cell]
    if "[masked:" in cell.source:
        raise UsageError(
            f"what ran as #{cell.order} held a secret, which is not kept: it cannot be run again",
            hint="restart the session and run the cells yourself",
        )
    return Cell("code", cell.source, cell.cell, cell.title)
