"""`quire ci`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..ci.gate_report import GateResult, TaskFinished, TaskRun, compared, headline
from ..errors import UsageError
from ..record.plan import jsonable
from ..record.summary import one_line, took, worded
from ..text import plain
from .main import App, calling_off, emit_json
from .progress import COLOUR
from .record_commands import relative


@click.command(
    epilog="""Examples:

\b
  quire ci
  quire ci --all -j 4 --junit report.xml
  quire ci --base origin/main --json
"""
)
@click.option("--all", "everything", is_flag=True, help="Run every task, affected or not.")
@click.option("--base", metavar="REV", help="What to compare with; otherwise the main branch.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many tasks at a time; otherwise as many as there are cores.",
)
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit for each task.")
@click.option("--cell-timeout", type=float, metavar="SECONDS", help="Limit for each cell.")
@click.option("--output", metavar="DIR", help="Where executed notebooks go; otherwise .quire/ci.")
@click.option("--junit", metavar="FILE", help="Where the JUnit file goes (.xml).")
@click.option("--summary", metavar="FILE", help="Where the Markdown summary goes (.md).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_obj
def ci(app: App, /, as_json: bool, quiet: bool, **options: Any) -> int:
    """Run the tasks a change affects, as the gate does.

    Finds all tasks under notebooks/, runs those that the change since the main branch affects, and
    writes executed notebooks, a JUnit file and a Markdown summary. Exit code: 0 all are ok, 1 one
    is not, 2 the request was wrong, 130 cancelled.
    """
    from ..ci.gate import Gate

    app.json_asked = as_json
    if app.engine is None:
        from ..kernel import processes

        processes.alone()  # a process for this command only, unlike one that imports quire
    for name in ("timeout", "cell_timeout"):
        if options[name] is not None and not options[name] > 0:
            raise UsageError(f"--{name.replace('_', '-')} must be above 0", hint="give seconds")
    gate = Gate(app.workspace(), cancel=app.cancelled, **options)
    total = 0
    with calling_off(app.cancelled):
        for event in gate:
            if isinstance(event, TaskFinished) and not quiet:
                total = total or event.left + 1
                _progress(app, event, total)
    result = gate.result
    if as_json:
        emit_json(app, as_data(result, gate.root, gate.junit, gate.summary))
    else:
        _show(app, result)
        where = [relative(path, app.cwd) for path in (gate.junit, gate.summary)]
        app.terminal.out(f"reports: {', '.join(where)}")
    if result.cancelled:
        return 130
    return 0 if result.ok else 1


def shown(text: str) -> str:
    """One line for a log that may obey: runners of workflows take `::` and `##[` for commands."""
    return one_line(text).replace("::", ": :").replace("##[", "## [")


def _progress(app: App, event: TaskFinished, total: int) -> None:
    run, width = event.run, len(str(total))
    app.terminal.err(
        f"[{total - event.left:>{width}}/{total}] {_word(app, run, on_err=True)} "
        f"{took(run.duration):>8}  {shown(run.task)}"
    )


def _word(app: App, run: TaskRun, *, on_err: bool = False) -> str:
    word = worded(run.outcome)
    painted = app.terminal.paint(word, COLOUR.get(run.outcome, "red"), on_err=on_err)
    return painted + " " * max(0, 9 - len(word))


def _show(app: App, result: GateResult) -> None:
    term = app.terminal
    width = max((len(shown(run.task)) for run in result.tasks), default=0)
    for run in result.tasks:
        results = ", ".join(f"{name} = {text[:60]}" for name, text in run.results.items())
        said = run.error or results
        row = f"{shown(run.task):<{width}}  {took(run.duration):>8}  {shown(said)[:160]}"
        term.out(f"{_word(app, run)} {row}".rstrip())
        for warning in run.warnings:
            term.err(f"warning: {shown(run.task)}: {shown(warning)}")
    for run in result.failures:
        _failure(app, run)
    for item in result.left_out:
        term.out(f"left out: {shown(item.task)}: {shown(item.why)}")
    for warning in result.warnings:
        term.err(f"warning: {shown(warning)}")
    term.out(shown(compared(result)))
    term.out(headline(result))


def _failure(app: App, run: TaskRun) -> None:
    term = app.terminal
    where = f", {shown(run.where)}" if run.where else ""
    term.err(f"\n{shown(run.task)}{where}:")
    for line in plain(run.traceback or run.error).splitlines():
        term.err(f"  | {line}".replace("##[", "## [").rstrip())
    if run.hint:
        term.err(f"{term.paint('hint:', 'blue', on_err=True)} {shown(run.hint)}")


def as_data(result: GateResult, root: Path, junit: Path, summary: Path) -> dict[str, Any]:
    return {
        "outcome": "cancelled" if result.cancelled else "ok" if result.ok else "failed",
        "duration": result.duration,
        "base": result.base or None,
        "everything": result.everything or None,
        "tasks": [_task(run, root) for run in result.tasks],
        "unaffected": list(result.unaffected),
        "left_out": [{"task": item.task, "why": item.why} for item in result.left_out],
        "warnings": list(result.warnings),
        "junit": str(junit),
        "summary": str(summary),
    }


def _task(run: TaskRun, root: Path) -> dict[str, Any]:
    """As `quire run` tells of a run, and what only a gate knows."""
    error = None
    if not run.ok:
        error = {
            "cell": run.cell,
            "name": run.error_type,
            "value": run.error if run.value is None else run.value,
            "traceback": run.traceback,
            "hint": run.hint,
        }
    return {
        "task": run.task,
        "outcome": run.outcome,
        "because": run.because,
        "run_id": run.run_id or None,
        "duration": run.duration,
        "results": jsonable(run.values),
        "notebook": str(root / run.notebook) if run.notebook else None,
        "cells": [
            {"id": c.id, "kind": c.kind, "status": c.status, "duration": c.duration}
            for c in run.cells
        ],
        "error": error,
        "archived": run.archived,
        "environment": run.environment,
        "logbook": run.logbook,
        "warnings": list(run.warnings),
    }
