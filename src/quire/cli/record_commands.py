"""`quire runs`, `show`, `results`, `export`: looking at what has run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..record.cell_calls import by_cell, labelled
from ..record.cell_positions import standing
from ..record.plan import jsonable
from ..record.record import RECOVERED, CellRecord, Record
from ..record.run_folders import RunFolder
from ..record.summary import one_line, took, worded
from ..render.blocks import output_block
from ..text import mentioned, plain, visible
from .main import App, emit_json
from .progress import COLOUR

if TYPE_CHECKING:
    from ..archive.read import Found

OUTPUT_LINES = 20
# What a cell printed or raised stands further right than every line of ours, so that nothing it
# prints can pass for a call, a note or an answer.
THEIRS = "    "
OURS = "  "


def relative(path: Path, cwd: Path) -> str:
    """A path to be shown: on one line, whatever its name is."""
    name = str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
    return name if name.isprintable() else one_line(name)


def show_end(app: App, record: Record, folder: RunFolder, output: str | None) -> None:
    """The last lines of `quire run`."""
    term = app.terminal
    if record.error is not None:
        _show_error(app, record)
    outcome = term.paint(record.outcome, COLOUR[record.outcome])
    code = [cell for cell in record.cells if cell.kind == "code"]
    ran = sum(cell.status == "ok" for cell in code)
    carried = sum(cell.status == "carried" for cell in code)
    rest = f", {carried} carried over from {record.resumed_from}" if carried else ""
    term.out(f"{outcome} in {took(record.duration)}, {ran} of {len(code)} cells{rest}")
    for name, result in record.results.items():
        term.out(f"{OURS}{mentioned(name)} = {_brief(result.kind, result.value)}")
    if record.outcome == "paused":
        term.out(term.paint(one_line(record.reason), "yellow"))
    if record.plan.get("logbook"):
        term.out(f"record: {one_line(str(record.plan['logbook']))}")
    term.out(f"notebook: {output or relative(folder.notebook, app.cwd)}")


def _show_error(app: App, record: Record) -> None:
    from ..record.report import short_traceback

    error = record.error
    assert error is not None
    term = app.terminal
    text = plain(short_traceback(error.traceback)) or plain(f"{error.name}: {error.value}")
    where = next((cell for cell in record.cells if cell.id == error.cell), None)
    if where is not None:
        name = f" ({one_line(where.title)})" if where.title else ""
        term.err(f"cell {where.id}{name}:")
    for line in text.split("\n"):
        term.err(f"{THEIRS}{line}".rstrip())


def _brief(kind: str, value: Any) -> str:
    if kind == "table":
        return f"table, {value['kept']:,} of {value['total']:,} rows"
    if kind == "display":
        return f"display, {one_line(', '.join(value))}"
    text = plain(json.dumps(jsonable(value), ensure_ascii=False, default=str))
    return text if len(text) <= 100 else f"{text[:97]}…"


limit_option = click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="How many; 0 for all.",
)


@click.command(epilog="Example: quire runs -n 5 --json")
@limit_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def runs(app: App, limit: int, as_json: bool) -> None:
    """List runs, newest first."""
    from ..archive.read import runs as list_runs

    found = list(list_runs(app.workspace(), limit or None))
    if as_json:
        emit_json(app, found)
        return
    if not found:
        app.terminal.err("No task has run here yet.")
    for item in found:
        outcome = app.terminal.paint(f"{item['outcome']:<9}", COLOUR.get(item["outcome"], ""))
        app.terminal.out(
            f"{item['run_id']}  {outcome}  {took(item['duration']):>9}  {one_line(item['task'])}"
            + (f"  (taken up by {item['taken_up_by']})" if item["taken_up_by"] else "")
        )


@click.command(epilog="Examples: quire show last · quire show 2026-11-16-15 --json")
@click.argument("run", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
@click.option("--all", "everything", is_flag=True, help="Outputs in full.")
@click.option("--cell", metavar="CELL", help="Only this cell: its source and its outputs.")
@click.pass_obj
def show(app: App, run: str, as_json: bool, everything: bool, cell: str | None) -> None:
    """Show a run: outcome, parameters, results, cells with their outputs.

    RUN is an id, a unique beginning of one, or `last`; of a logbook also its record or uuid.
    """
    from ..agent.describe_run import written
    from ..archive.read import find, only

    app.json_asked = as_json
    found = find(app.workspace(), run)
    record = found.record
    if cell is not None:
        record = only(record, cell)
        found = replace(found, record=record)
    if as_json:
        emit_json(app, as_data(found))
        return
    if cell is not None:
        _show_one(app, record.cells[0], everything)
        return
    term = app.terminal
    term.out(term.paint(one_line(record.title or record.task), "bold"))
    outcome = term.paint(record.outcome, COLOUR[record.outcome])
    duration = f" in {took(record.duration)}" if record.duration else ""
    term.out(f"{record.run_id}  {outcome}{duration}  {one_line(record.task)}")
    if record.parent:
        term.out(f"run by {record.parent}")
    for line in _origin(record, found.archived):
        term.out(line)
    if record.replays:
        term.out(f"replays {record.replays}")
    if record.resumed_from:
        term.out(f"resumed: goes on with {record.resumed_from}")
    if found.taken_up is not None:
        term.out(f"taken up by {found.taken_up.run_id}{_stands(found.taken_up.outcome)}")
    if record.request:
        term.out(f"request: {one_line(record.request)}")
    sources = record.plan.get("sources") or {}
    for name, value in record.parameters.items():
        source = f"  (from {one_line(str(sources[name]))})" if name in sources else ""
        told = plain(json.dumps(value, ensure_ascii=False))
        term.out(f"{OURS}{mentioned(name)}: {told}{source}")
    for name, result in record.results.items():
        term.out(f"{OURS}{mentioned(name)} = {_brief(result.kind, result.value)}")
    for warning in record.warnings:
        term.out(term.paint(f"warning: {one_line(warning)}", "yellow"))
    calls = by_cell(record)
    _show_calls(app, calls.get("", []))
    stands = standing(record, written(found))
    for one in record.cells:
        _show_cell(app, stands[one.id].index if one.id in stands else None, one, everything)
        _show_calls(app, calls.get(one.id, []))
    if record.plan.get("logbook"):
        term.out(f"record: {one_line(str(record.plan['logbook']))}")
    if record.recovered:
        term.out(term.paint(RECOVERED, "yellow"))
    if (record.error is not None or record.outcome == "paused") and record.reason:
        term.out(term.paint(one_line(record.reason), "red"))
    where = relative(found.folder.notebook, app.cwd) if found.folder else found.notebook
    if where:
        term.out(f"notebook: {where}")


def _stands(outcome: str) -> str:
    return f", which is {worded(outcome)}" if outcome else ", of which there is no record"


def _show_one(app: App, cell: CellRecord, everything: bool) -> None:
    for line in visible(cell.source).split("\n"):
        app.terminal.out(line)
    _show_cell(app, None, cell, everything)
    if cell.error is not None:
        for line in plain("\n".join(cell.error.traceback) or cell.error.name).split("\n"):
            app.terminal.err(f"{THEIRS}{line}".rstrip())


def _origin(record: Record, archived: Mapping[str, Any] | None) -> Iterator[str]:
    git, asked = record.origin.get("git") or {}, record.origin.get("asked") or {}
    if asked.get("by"):
        behalf = f" on behalf of {one_line(str(asked['behalf']))}" if asked.get("behalf") else ""
        yield f"asked for by {one_line(str(asked['by']))}{behalf}"
    if git.get("commit"):
        changes = " with changes that are not committed" if git.get("dirty") else ""
        yield f"at commit {one_line(str(git['commit']))[:12]}{changes}"
    declared = record.plan.get("environment") or {}
    if declared.get("lock"):
        yield (
            f"with what it declares to need: Python {one_line(str(declared.get('python')))}, "
            f"lock {one_line(str(declared['lock']))[:12]}"
        )
    if archived:
        yield f"archived: {one_line(str(archived['archive']))}"


def _show_cell(app: App, number: int | None, cell: CellRecord, everything: bool) -> None:
    term = app.terminal
    if cell.kind != "code":
        return
    status = term.paint(cell.status, COLOUR.get(cell.status, ""))
    title = one_line(cell.title)
    place = "" if number is None else f"[{number}] "
    term.out(f"\n{place}{cell.id}  {status}  {took(cell.duration)}  {title}".rstrip())
    changed = cell.metadata.get("changed")
    if isinstance(changed, Mapping):
        term.out(f"{OURS}changed for this run: {one_line(str(changed.get('reason') or ''))}")
    for output in cell.outputs:
        lines = plain(output_text(output)).rstrip("\n").split("\n")
        cut = 0
        if not everything and len(lines) > OUTPUT_LINES:
            cut = len(lines) - OUTPUT_LINES
            lines = lines[:OUTPUT_LINES]
        for line in lines:
            term.out(f"{THEIRS}{line}")
        if cut:
            term.out(term.paint(f"{OURS}… {cut} more lines (--all shows them)", "dim"))


def _show_calls(app: App, lines: Iterable[tuple[str, str]]) -> None:
    """What a cell asked of the engine."""
    for kind, text in lines:
        colour = {"bad": "red", "note": "bold"}.get(kind, "dim")
        # Further lines of a note stand below its text, where no line of ours begins.
        for at, row in enumerate(labelled(kind, text).split("\n")):
            margin = f"{OURS}        " if at else f"{OURS}· "
            app.terminal.out(app.terminal.paint(f"{margin}{row}", colour))


def output_text(output: Mapping[str, Any]) -> str:
    block = output_block(output, "terminal")
    if block is None:
        return ""
    if block.kind == "result":
        return f"glued {block.text}"
    return f"<{block.text}>" if block.kind == "other" else block.text


def as_data(found: Found) -> dict[str, Any]:
    """The whole record as JSON: what `--json` of `run` says, and the rest."""
    from ..record.report import report

    record = found.record
    told = report(record, found.notebook, found.archived)
    for told_cell, cell in zip(told["cells"], record.cells, strict=True):
        told_cell |= {
            "title": cell.title,
            "tags": list(cell.tags),
            "source": cell.source,
            "outputs": list(cell.outputs),
        }
    return told | {
        "task": record.task,
        "title": record.title,
        "uuid": record.uuid,
        "parent": record.parent,
        "request": record.request,
        "sources": dict(record.plan.get("sources") or {}),
        "changes": {
            cell.id: dict(cell.metadata["changed"])
            for cell in record.cells
            if isinstance(cell.metadata.get("changed"), Mapping)
        },
        "mode": record.plan.get("mode", "clean"),
        "resumed_from": record.resumed_from,
        "taken_up_by": found.taken_up and found.taken_up.run_id,
        "started": record.started,
        "finished": record.finished,
        "parameters": record.parameters,
        "kernel": record.plan.get("kernel", {}),
        "origin": dict(record.origin),
        "warnings": list(record.warnings),
        "tool_calls": [asdict(call) for call in record.tool_calls],
        "notes": [asdict(note) for note in record.notes],
        "questions": [asdict(asked) for asked in record.asked],
    }


@click.command(epilog="Examples: quire results last · quire results last score --json")
@click.argument("run", default="last")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object, or one value.")
@click.pass_obj
def results(app: App, run: str, name: str | None, as_json: bool) -> None:
    """Read back the named results of a run."""
    from ..archive.read import find
    from ..errors import UsageError

    app.json_asked = as_json
    record = find(app.workspace(), run).record
    if name is not None and name not in record.results:
        raise UsageError(
            f"the run has no result {name!r}", hint=f"it has: {', '.join(record.results) or 'none'}"
        )
    if as_json:
        values = jsonable(record.values)
        emit_json(app, values if name is None else values[name])
        return
    if not record.results:
        app.terminal.err("This run glued no results.")
    for key, result in record.results.items():
        if name in (None, key):
            app.terminal.out(f"{mentioned(key)} = {_brief(result.kind, result.value)}")


@click.command(epilog="Examples: quire export last report.html · quire export last out.ipynb")
@click.argument("run")
@click.argument("target")
@click.option("--force", is_flag=True, help="Replace TARGET if it is there.")
@click.pass_obj
def export(app: App, run: str, target: str, force: bool) -> None:
    """Write a run as a notebook (.ipynb), a web page (.html) or Markdown (.md)."""
    from ..archive.export import export as write

    path = write(app.workspace(), run, target, force=force)
    app.terminal.out(relative(path, app.cwd))
