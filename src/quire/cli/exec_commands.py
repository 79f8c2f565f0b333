"""`quire exec` and `quire rewind`: cells in a live kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from ..errors import DocumentError, UsageError
from ..record.cell_calls import called
from ..record.events import (
    Asked,
    CellFinished,
    CellSubmitted,
    Event,
    KernelDied,
    KernelReplaced,
    NoteAdded,
    OutputAdded,
    OutputCut,
    ResultGlued,
    ToolCalled,
    Warned,
)
from ..record.summary import one_line, took
from ..text import plain
from .main import App, calling_off, emit_json
from .progress import COLOUR, noted
from .record_commands import output_text


def state_json(state: Any) -> dict[str, Any]:
    return {
        "index": state.index,
        "id": state.cell.id,
        "title": state.cell.title,
        "state": state.state,
        "order": state.order,
        "reason": state.reason,
    }


@click.command(epilog="Examples: quire exec analysis 3-7 · quire exec analysis --code 'df.shape'")
@click.argument("name")
@click.argument("cells", required=False)
@click.option("--code", metavar="CODE", help="Run this instead of cells of the task.")
@click.option("--cell-timeout", type=float, metavar="SECONDS", help="Limit for each cell.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def exec(
    app: App,
    name: str,
    cells: str | None,
    code: str | None,
    cell_timeout: float | None,
    as_json: bool,
) -> int:
    """Run cells in a session's kernel.

    CELLS is an index, an id or a title; a range 3-7 or 3-; `all`; or `stale`.
    """
    from ..sessions.session import execute

    app.json_asked = as_json
    if cell_timeout is not None and not cell_timeout > 0:
        raise UsageError("--cell-timeout must be above 0", hint="give seconds")
    with calling_off(app.cancelled):
        events = execute(
            app.workspace(), name, cells, app.cancelled, code=code, cell_timeout=cell_timeout
        )
        return follow(app, name, events, as_json)


def follow(app: App, name: str, events: Iterator[Event], as_json: bool) -> int:
    """Show what happens, or gather it for one object. The exit code."""
    from ..sessions.session import cells, find

    told: list[dict[str, Any]] = []
    replaced: dict[str, Any] | None = None
    worst = "ok"
    warnings: list[str] = []
    for event in events:
        if isinstance(event, KernelReplaced):
            replaced = {"epoch": event.epoch, "reason": event.reason}
        elif isinstance(event, CellSubmitted):
            told.append(_begun(event))
        elif isinstance(event, Warned):
            warnings.append(event.message)
        elif isinstance(event, Asked) and event.kind == "approval":
            worst = worst if event.answer in ("run", "edit", "skip") else "paused"
        elif isinstance(event, OutputAdded) and told:
            told[-1]["outputs"].append(dict(event.output))
        elif isinstance(event, ResultGlued) and told:
            told[-1]["results"][event.name] = event.value
        elif isinstance(event, ToolCalled) and told:
            told[-1]["tool_calls"].append(
                {"tool": event.tool, "ok": event.ok, "reason": event.reason, "times": event.times}
            )
        elif isinstance(event, NoteAdded) and told:
            told[-1]["notes"].append(event.text)
        elif isinstance(event, CellFinished) and told:
            worst = event.status if event.status != "ok" else worst
            error = event.error
            told[-1] |= {"status": event.status, "duration": event.duration}
            told[-1]["error"] = error and {"name": error.name, "value": error.value}
        if not as_json:
            _show(app, event, told)
    states = []
    with suppress(DocumentError):  # the file may be gone by now; what ran is told all the same
        states = [s for s in cells(app.workspace(), name) if s.state == "stale"]
    live = find(app.workspace(), name).session
    if as_json:
        emit_json(
            app,
            {
                "session": live.name,
                "epoch": live.epoch,
                "replaced": replaced,
                "cells": told,
                "stale": [state_json(s) for s in states],
                "warnings": warnings,
            },
        )
    else:
        for s in states:
            said = f"stale: [{s.index}] {one_line(s.reason)}"
            app.terminal.err(app.terminal.paint(said, "yellow", on_err=True))
    if app.cancelled.is_set():
        return 130
    return {"ok": 0, "cancelled": 130, "paused": 3}.get(worst, 1)


def _begun(event: CellSubmitted) -> dict[str, Any]:
    return {
        "id": event.cell,
        "index": event.index,
        "order": event.order,
        "title": event.title,
        "status": "running",
        "duration": None,
        "outputs": [],
        "results": {},
        "tool_calls": [],
        "notes": [],
        "error": None,
    }


def _show(app: App, event: Event, told: list[dict[str, Any]]) -> None:
    """What cells give out goes to stdout as it is, and nothing else: a line of theirs could look
    like any of ours."""
    term = app.terminal
    if isinstance(event, KernelReplaced):
        note = f"the kernel's state is gone: {one_line(event.reason)} (epoch {event.epoch})"
        term.err(term.paint(note, "yellow", on_err=True))
    elif isinstance(event, OutputAdded):
        text = plain(output_text(event.output))
        is_stream = event.output["output_type"] == "stream"
        term.out(text, end="" if is_stream or text.endswith("\n") else "\n")
    elif isinstance(event, ToolCalled) and event.refused:
        term.err(term.paint(called(event), "yellow", on_err=True))
    elif isinstance(event, NoteAdded):
        term.err(term.paint(noted(event.text), "dim", on_err=True))
    elif isinstance(event, Warned):
        term.err(term.paint(f"warning: {one_line(event.message)}", "yellow", on_err=True))
    elif isinstance(event, OutputCut):
        term.err(f"… {event.omitted:,} more ({event.what}); all of it is in {event.path}")
    elif isinstance(event, KernelDied):
        term.err(term.paint(one_line(event.reason), "red", on_err=True))
    elif isinstance(event, CellFinished) and told:
        one = told[-1]
        place = "code" if one["index"] is None else f"[{one['index']}]"
        status = term.paint(event.status, COLOUR.get(event.status, ""), on_err=True)
        term.err(f"{place} {status} {took(event.duration)}  {one_line(one['title'])}".rstrip())


@click.command(epilog="Examples: quire rewind analysis 5 · quire rewind analysis '#3'")
@click.argument("name")
@click.argument("cell")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def rewind(app: App, name: str, cell: str, as_json: bool) -> None:
    """Put a session's kernel back to the state before a cell ran.

    CELL is an index, an id or a title, or `#N` for the Nth thing that ran. Files that the cell
    wrote and messages it sent are not undone.
    """
    from ..sessions.session import find
    from ..sessions.session import rewind as go_back

    app.json_asked = as_json
    event, states = go_back(app.workspace(), name, cell)
    live = find(app.workspace(), name).session
    if as_json:
        emit_json(
            app,
            {
                "session": live.name,
                "epoch": live.epoch,
                "order": event.order,
                "ran": len(live.executions),
                "stale": [state_json(s) for s in states if s.state == "stale"],
                "note": NOT_UNDONE,
            },
        )
        return
    app.terminal.out(f"the kernel is as it was before #{event.order}; {len(live.executions)} ran")
    app.terminal.out(NOT_UNDONE)


NOT_UNDONE = "What was done outside the kernel (files, network) is not undone."
