"""notebook_execute, run_wait, run_cancel, run_find, run_show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import UsageError
from ...executors.underway import Progress
from ...runs.printed import plain
from ...runs.summary import one_line, took
from ...runs.telling import Told
from ...workspace import Workspace
from .. import archive, underway
from ..runs import find, runs
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
    under = underway.start(ws, inside(ws, path), parameters or {}, **options)
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
    return _tell(underway.cancel(ws, run))


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


def search(
    ws: Workspace,
    caller: Caller,
    *,
    query: str = "",
    path: str | None = None,
    outcome: str | None = None,
    since: str = "",
    limit: int = 10,
) -> Told:
    words = query.casefold().split()
    task = ws.named((ws.cwd / inside(ws, path)).resolve()) if path is not None else None
    if since and not re.match(r"\d{4}-\d{2}-\d{2}", since):
        raise UsageError(f"{since[:40]!r} is no date", hint="such as 2026-11-16")
    lines: list[str] = []
    for found in _summaries(ws):
        if task is not None and found["task"] != task:
            continue
        if outcome is not None and found["outcome"] != outcome:
            continue
        if (found["started"] or "") < since:
            break
        text = " ".join(str(found[key] or "") for key in ("run_id", "task", "title", "error"))
        if not all(word in text.casefold() for word in words):
            continue
        if len(lines) == limit:
            lines.append("… there are more: narrow it, or raise limit")
            break
        lines.append(_line(found))
    return Told("\n".join(lines) or "no such run")


def _line(found: dict[str, Any]) -> str:
    by = f"  by {one_line(found['asked'])}" if found.get("asked") else ""
    error = f"  {one_line(found['error'])[:160]}" if found["error"] else ""
    task = one_line(found["task"] or "")
    return f"{found['run_id']}  {found['outcome']}  {took(found['duration'])}  {task}{by}{error}"


def _summaries(ws: Workspace) -> Iterator[dict[str, Any]]:
    """Newest first: those that are here, then what only the archive still has."""
    here = set()
    for found in runs(ws, None):
        here.add(found["run_id"])
        yield found
    if ws.config.archive.enabled:
        for found in archive.log(ws, None):
            if found["run_id"] not in here:
                yield {"error": None, **found}


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
