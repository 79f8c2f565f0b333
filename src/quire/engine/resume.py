"""Take up a run that waits for a person: from the state it left, or by running again what ran."""

from __future__ import annotations

from typing import Literal

from ..archive.read import find
from ..errors import Hint, NextStep, UsageError
from ..host.person_only import refuse_from_kernel
from ..record.record import Record
from ..task.logbook import APPROVE
from ..workspace import Workspace
from .approval import Do
from .planning import Errand
from .replay import as_it_was, folder_of, kernel_of
from .resume_point import can_resume
from .run import NotebookExecutor
from .run_plan import Cancel
from .run_underway import Attended
from .take_up import check

Decision = Literal["", "run", "skip"]


def prepare(
    workspace: Workspace,
    run: str,
    *,
    decision: Decision = "",
    step: bool = False,
    once_more: bool = False,
    timeout: float | None = None,
    archives: bool | None = None,
    cancel: Cancel | None = None,
    attended: Attended | None = None,
) -> tuple[NotebookExecutor, tuple[str, ...]]:
    """The run that goes on, and what a reader should know of how it does. `decision` is what
    becomes of the step that waits; empty: a person is asked. `once_more`: also where somebody has
    taken it up before."""
    if decision:
        refuse_from_kernel(workspace, "to decide on a step that waits")
    found = find(workspace, run)
    old = found.record
    if old.outcome != "paused":
        go_on = NextStep("run", {"path": old.task, "resume": old.run_id})
        what = f"{old.run_id} does not wait for anybody: it is {old.outcome}"
        raise UsageError(what, hint=Hint("after a failure: {}", go_on))
    if not once_more:
        check(workspace, old)
    notes: list[str] = []
    waits = _waiting(old)
    decided = {} if waits is None else _decided(old)
    if waits is not None and decision:
        decided[waits] = decision
    errand = Errand(
        old.request,
        dict(old.plan.get("sources") or {}),
        step=step,
        decided=decided,
        waits=waits or "",
        takes_up=old,
        once_more=once_more,
    )
    again = as_it_was(workspace, found)
    workspace.engine.tidy()
    kept = workspace.engine.kept.get(old.run_id)
    limits = old.plan.get("limits") or {}
    kernel = python = cwd = None
    goes_on = kept is not None and can_resume(kept) and kept.path == again.source.path
    if not goes_on:
        notes.append(f"the state of {old.run_id} is gone: what ran before runs again")
        kernel, python = kernel_of(old, notes)
        cwd = folder_of(workspace, old, notes)
    execution = NotebookExecutor(
        again.source.path,
        workspace=workspace,
        cwd=cwd,
        kernel=kernel,
        python=python,
        resume=old.run_id if goes_on else None,
        cell_timeout=limits.get("cell_timeout"),
        timeout=timeout if timeout is not None else limits.get("timeout"),
        archives=archives,
        cancel=cancel,
        again=again,
        attended=attended,
        errand=errand,
    )
    return execution, tuple(notes)


def _waiting(old: Record) -> str | None:
    """The step that waits: the first that has not run."""
    code = (cell for cell in old.cells if cell.kind == "code")
    return next((cell.id for cell in code if cell.status == "not run"), None)


def _decided(old: Record) -> dict[str, Do]:
    """What a person said of the steps before it holds."""
    asked = {one.cell for one in old.asked if one.kind == "approval"}
    out: dict[str, Do] = {}
    for cell in old.cells:
        if cell.kind != "code" or cell.status == "not run":
            continue
        if cell.id in asked or APPROVE in cell.tags:
            out[cell.id] = "skip" if cell.status == "skipped" else "run"
    return out
