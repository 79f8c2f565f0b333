"""notebook_execute, run_wait, run_cancel, run_show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..archive.read import find
from ..engine import background_runs
from ..engine.background_runs import Waited
from ..engine.planning import Errand
from ..engine.resume import prepare
from ..engine.run import NotebookExecutor
from ..engine.run_underway import Attended, Progress, Underway
from ..engine.step_changes import Asked as Change
from ..errors import UsageError
from ..record.questions import Nobody
from ..render.agent_run import Told
from ..task.read_task import read
from ..text import plain
from ..workspace import Workspace
from . import tool_texts
from .caller import Caller
from .describe_run import tell, tell_found
from .notebook_tools import inside

LONGEST = 600.0  # seconds one call may wait


def execute(
    ws: Workspace,
    caller: Caller,
    *,
    path: str,
    parameters: dict[str, Any] | None = None,
    wait: float | None = None,
    cancel_with_request: bool = False,
    **options: Any,
) -> Told:
    limit(options, "timeout")
    limit(options, "cell_timeout")
    path, attended = inside(ws, path), Attended()
    with attended.by(ws.asker if wait is None or wait > 0 else Nobody()):
        if "resume" in options and find(ws, options["resume"]).record.outcome == "paused":
            under = _taken_up(ws, path, parameters, attended, options)
        else:
            if "from" in options:
                options["from_cell"] = str(options.pop("from"))
            errand = Errand(
                options.pop("request", ""), changes=_changes(options.pop("changes", []))
            )
            options |= {"errand": errand, "attended": attended}
            under = background_runs.start(ws, path, parameters or {}, **options)
        caller.announce(under.run_id)
        told = _follow(ws, caller, under.run_id, wait)
    if cancel_with_request and caller.cancelled():
        return _tell(ws, background_runs.cancel(ws, under.run_id))
    return told


def _changes(told: list[dict[str, Any]]) -> list[Change]:
    return [Change(str(one["step"]), one["source"], one.get("reason", "")) for one in told]


def _taken_up(
    ws: Workspace,
    path: str,
    parameters: dict[str, Any] | None,
    attended: Attended,
    options: dict[str, Any],
) -> Underway:
    """A run that waits for a person. That an agent asks for it is no approval: they are asked."""
    name = options.pop("resume")
    timeout = options.pop("timeout", None)
    old = find(ws, name).record
    fixed = [*options, *(["parameters"] if parameters else [])]
    if fixed:
        raise UsageError(
            f"{old.run_id} waits for a person, and goes on as it was: "
            f"{', '.join(sorted(fixed))} cannot be given",
            hint="leave them out, or run it anew without resume",
        )
    task = ws.named(read(ws, path).path)
    if task != old.task:
        raise UsageError(
            f"{old.run_id} was a run of {old.task}, not of {task}", hint=f'path="{old.task}"'
        )

    def make(here: Workspace, attended: Attended) -> NotebookExecutor:
        execution, _ = prepare(here, old.run_id, timeout=timeout, attended=attended)
        return execution

    return background_runs.begin(ws, make, attended)


def limit(given: Mapping[str, Any], name: str) -> float | None:
    seconds: float | None = given.get(name)
    if seconds is not None and seconds <= 0:
        raise UsageError(f"{name} must be above 0", hint="give seconds")
    return seconds


def wait(ws: Workspace, caller: Caller, *, run: str, timeout: float | None = None) -> Told:
    found = find(ws, run)
    caller.announce(found.record.run_id)
    return _follow(ws, caller, found.record.run_id, timeout)


def cancel(ws: Workspace, caller: Caller, *, run: str) -> Told:
    told = _tell(ws, background_runs.cancel(ws, run))
    return Told(told.text, told.pictures)  # it was called off, as was asked


def _follow(ws: Workspace, caller: Caller, run_id: str, seconds: float | None) -> Told:
    seconds = ws.config.answer_within if seconds is None else min(seconds, LONGEST)

    def told(progress: Progress) -> None:
        caller.progress(progress.done, progress.total, plain(str(progress)))

    waited = background_runs.wait(
        ws, run_id, seconds, told=told, called_off=caller.left, asker=ws.asker
    )
    return _tell(ws, waited)


def _tell(ws: Workspace, waited: Waited) -> Told:
    told = tell_found(ws, waited.found, limits=tool_texts.limits(ws))
    if waited.over or waited.found.record.outcome != "running":  # it may end at this moment
        return told
    return tool_texts.above(f"it is at {plain(str(waited.progress))} and goes on by itself", told)


def show(
    ws: Workspace,
    caller: Caller,
    *,
    run: str,
    cell: str | int | None = None,
    stream: str = "",
    lines: str = "",
    result: str = "",
) -> Told:
    told = tell(
        ws,
        run,
        cell="" if cell is None else str(cell),
        stream=stream,
        lines=lines,
        result=result,
        limits=tool_texts.limits(ws),
    )
    return Told(told.text, told.pictures)  # it was shown, whatever the run came to
