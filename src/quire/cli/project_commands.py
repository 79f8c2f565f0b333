"""`quire init`, `quire new`, `quire doctor`."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import click

from ..record.summary import one_line
from .main import App, emit_json
from .record_commands import relative

if TYPE_CHECKING:
    from ..git.init_repository import Step

_SHOWN = 3

_DONE = {
    "write": "wrote",
    "append": "added to",
    "set": "set",
    "remove": "removed",
    "git init": "made",
    "trust": "wrote",
}
_WOULD = {"append": "add to", "git init": "make", "trust": "write"}


@click.command(epilog="Examples: quire init · quire init --dry-run · quire init --no-git")
@click.option("--no-git", "no_git", is_flag=True, help="Files only; leave git alone.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def init(app: App, no_git: bool, dry_run: bool, as_json: bool) -> None:
    """Set up a repository for tasks.

    Writes notebooks/ with an example, a guide, the workflows of the gate and the configuration, and
    tells git of this clone how to treat notebooks. What is there already stays as it is; a second
    call changes nothing.
    """
    from ..git.init_repository import init as set_up

    app.json_asked = as_json
    told = set_up(app.workspace(), git=not no_git, dry_run=dry_run)
    if as_json:
        emit_json(app, told.as_dict())
        return
    term = app.terminal
    term.out(one_line(str(told.root)))
    for (action, note, _), group in groupby(told.steps, _alike):
        targets = [one_line(step.target) for step in group]
        more = f" and {len(targets) - _SHOWN} more" if len(targets) > _SHOWN else ""
        names = ", ".join(targets[:_SHOWN]) + more
        if action != "keep":
            word = f"would {_WOULD.get(action, action)}" if dry_run else _DONE[action]
            remark = f"  {term.paint(one_line(note), 'dim')}" if note else ""
            term.out(f"  {word} {names}{remark}")
        elif note:
            term.out(f"  kept {names}: {one_line(note)}")
    if not told.changed:
        term.out("  everything is in place")
    elif not dry_run:
        term.out("next: quire doctor, then commit what is new")


def _alike(step: Step) -> tuple[str, str, str]:
    """Settings and hooks come in numbers; files are shown one by one."""
    many = step.action == "set" or "hooks/" in step.target
    return step.action, step.note, "" if many else step.target


@click.command(
    epilog='Examples: quire new "Report the health of this machine" · '
    'quire new "Alert when a disk is full" -p "limit: float = 90.0  # in percent"'
)
@click.argument("description")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="DECLARATION",
    help="A parameter, as NAME: TYPE = DEFAULT  # HELP. May be repeated.",
)
@click.option("--path", metavar="FILE", help="Where to put it; otherwise named by DESCRIPTION.")
@click.option("--no-model", is_flag=True, help="Do not ask the configured language model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def new(
    app: App,
    description: str,
    parameters: tuple[str, ...],
    path: str | None,
    no_model: bool,
    as_json: bool,
) -> None:
    """Create a task from a description.

    The task has a title, the parameters that are declared with -p (else those that the description
    states outright), and a cell each to gather, decide, report and check. Those wait to be written:
    a run fails as long as one does. Which they are is said on stderr. No file is written over.
    """
    from ..authoring.create import new as begin

    app.json_asked = as_json
    created = begin(
        app.workspace(), description, parameters=parameters, path=path, model=not no_model
    )
    if as_json:
        emit_json(app, created.as_dict())
        return
    term = app.terminal
    if created.note:
        term.err(f"{term.paint('warning:', 'yellow', on_err=True)} {one_line(created.note)}")
    term.out(relative(created.path, app.cwd))
    for item in created.parameters:
        term.err(f"  takes {one_line(str(replace(item, help='')))}")
    for cell in created.waiting:
        name = one_line(cell.title)
        term.err(f"  waits: cell {cell.index} ({cell.cell_id}), {name}: {one_line(cell.what)}")
    if created.drafted_by == "model":
        term.err("  drafted by the model: read it before you run it")


@click.command(epilog="Examples: quire doctor · quire doctor --json")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def doctor(app: App, as_json: bool) -> int:
    """Check that a repository is set up well.

    Each line says ok, warning or problem, and what to do next. Changes nothing. Exit code: 1 if
    there is a problem.
    """
    from ..git.doctor import doctor as check
    from ..git.doctor import is_well

    app.json_asked = as_json
    found = check(app.workspace())
    if as_json:
        keys = ("level", "about", "message", "hint")
        lines = [(f.level, f.about, f.said, f.hint) for f in found]
        emit_json(app, [dict(zip(keys, line, strict=True)) for line in lines])
    else:
        colours = {"ok": "green", "warning": "yellow", "problem": "red"}
        for finding in found:
            level = app.terminal.paint(f"{finding.level:<7}", colours[finding.level])
            app.terminal.out(f"{level}  {one_line(finding.about)}: {one_line(finding.said)}")
            if finding.hint:
                app.terminal.out(f"         next: {one_line(finding.hint)}")
    return 0 if is_well(found) else 1
