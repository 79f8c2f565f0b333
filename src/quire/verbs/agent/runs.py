"""notebook_execute, run_wait, run_cancel, run_find, run_show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...errors import DocumentError, UsageError
from ...executors.underway import Progress
from ...runs.plan import jsonable
from ...runs.printed import plain
from ...runs.record import Record
from ...runs.summary import one_line, took
from ...runs.telling import Told, quoted, tell_cells, tell_lines, tell_run
from ...workspace import Workspace
from .. import archive, underway
from ..runs import find, runs
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
    if "from" in options:
        options["from_cell"] = str(options.pop("from"))
    under = underway.start(ws, inside(ws, path), parameters or {}, **options)
    caller.announce(under.run_id)
    told = _follow(ws, caller, under.run_id, wait)
    if cancel_with_request and caller.cancelled():
        return _tell(underway.cancel(ws, under.run_id))
    return told


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
    record = waited.found.record
    if waited.over:
        return tell_run(record, texts.LIMITS, path=record.task, resumable=waited.resumable)
    first = f"still running: {plain(str(waited.progress))} of run {record.run_id}"
    step = f'It goes on by itself. Next: run_wait(run="{record.run_id}")'
    return texts.above(f"{first}\n{step}", tell_run(record, texts.LIMITS, path=record.task))


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
    cells: str | None = None,
    cell: str | int | None = None,
    stream: str | None = None,
    lines: str | None = None,
    result: str | None = None,
) -> Told:
    found = find(ws, run)
    record = found.record
    if result is not None:
        return _result(record, result)
    if cell is not None or lines is not None or stream is not None:
        if cell is None:
            raise UsageError("lines of which cell?", hint="give cell, an index or an id")
        return _lines(ws, found, cell, stream or "stdout", lines)
    if cells is not None:
        chosen = [record.cells[at] for at in _places(record, cells)]
        first = f"{record.outcome}: run {record.run_id} of {plain(record.task)}"
        return texts.above(first, tell_cells(chosen, texts.LIMITS))
    resumable = record.run_id in ws.engine.kept
    told = tell_run(record, texts.LIMITS, path=record.task, resumable=resumable)
    return Told(told.text, told.images)  # the question was answered, whatever the run came to


def _result(record: Record, name: str) -> Told:
    import json

    if name not in record.results:
        there = ", ".join(map(plain, record.results)) or "none"
        raise UsageError(f"the run has no result {name!r}", hint=f"it has: {there}")
    value = jsonable(record.results[name].value)
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return Told(f"{plain(name)} of run {record.run_id}:\n{quoted(text)}")


def _places(record: Record, what: str) -> list[int]:
    start, dash, end = what.partition("-")
    if dash and start.isdigit() and (end == "" or end.isdigit()):
        last = min(int(end or len(record.cells) - 1), len(record.cells) - 1)
        return list(range(int(start), last + 1))
    return [_place(record, what)]


def _place(record: Record, cell: str | int) -> int:
    text = str(cell)
    if text.isdigit() and len(text) < 6 and int(text) < len(record.cells):
        return int(text)
    hits = [at for at, one in enumerate(record.cells) if text in (one.id, one.title) and text]
    if len(hits) == 1:
        return hits[0]
    said = f"{len(hits)} cells are" if hits else "no cell is"
    raise DocumentError(
        f"{said} {text[:80]!r} in run {record.run_id}",
        hint=f"use an index from 0 to {len(record.cells) - 1}",
    )


def _lines(ws: Workspace, found: Any, cell: str | int, stream: str, lines: str | None) -> Told:
    one = found.record.cells[_place(found.record, cell)]
    text = "".join(
        str(output["text"])
        for output in one.outputs
        if output["output_type"] == "stream" and output["name"] == stream
    )
    spilt = found.folder and found.folder.path / "spill" / f"{one.id}.{stream}.txt"
    first, last = _range(lines)
    if not text and not (spilt and spilt.exists()):
        return Told(f"cell {one.id} of run {found.record.run_id} wrote nothing to {stream}")
    return tell_lines(text, first, last, texts.LIMITS)


def _range(lines: str | None) -> tuple[int, int]:
    if lines is None:
        return 1, 10**9
    match = re.fullmatch(r"(\d{1,12})(?:-(\d{1,12})?)?", lines.strip())
    if match is None or int(match[1]) < 1:
        raise UsageError(f"{lines[:40]!r} is no range of lines", hint='such as "100-250"')
    first = int(match[1])
    last = int(match[2]) if match[2] else (10**9 if "-" in lines else first)
    if last < first:
        raise UsageError(f"lines {lines} end before they begin", hint='such as "100-250"')
    return first, last
