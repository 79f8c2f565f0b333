"""notebook_execute, run_wait, run_cancel, run_show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import UsageError
from ...executors.underway import Attended, Progress
from ...runs.asking import Nobody
from ...runs.printed import plain
from ...runs.telling import Told
from ...workspace import Workspace
from .. import underway
from ..runs import find
from ..tell import tell, tell_found
from ..underway import Waited
from . import texts
from .caller import Caller
from .notebooks import inside

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
    if "from" in options:
        options["from_cell"] = str(options.pop("from"))
    attended = Attended()
    with attended.by(ws.asker if wait is None or wait > 0 else Nobody()):
        under = underway.start(ws, inside(ws, path), parameters or {}, attended=attended, **options)
        caller.announce(under.run_id)
        told = _follow(ws, caller, under.run_id, wait)
    if cancel_with_request and caller.cancelled():
        return _tell(underway.cancel(ws, under.run_id))
    return told


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
    told = _tell(underway.cancel(ws, run))
    return Told(told.text, told.pictures)  # it was called off, as was asked


def _follow(ws: Workspace, caller: Caller, run_id: str, seconds: float | None) -> Told:
    seconds = ws.config.answer_within if seconds is None else min(seconds, LONGEST)

    def told(progress: Progress) -> None:
        caller.progress(progress.done, progress.total, plain(str(progress)))

    waited = underway.wait(ws, run_id, seconds, told=told, called_off=caller.left, asker=ws.asker)
    return _tell(waited)


def _tell(waited: Waited) -> Told:
    told = tell_found(waited.found)
    if waited.over:
        return told
    return texts.above(f"it is at {plain(str(waited.progress))} and goes on by itself", told)


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
    )
    return Told(told.text, told.pictures)  # it was shown, whatever the run came to
