"""`quire run` and `quire params`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..record.events import RunStarted
from ..record.summary import one_line
from .main import App, calling_off, emit_json

if TYPE_CHECKING:
    from ..engine.planning import Errand
    from ..engine.run import NotebookExecutor

EXIT = {"ok": 0, "cancelled": 130, "paused": 3}

_PARAMETERS = (
    click.option(
        "-p",
        "--parameter",
        "pairs",
        nargs=2,
        multiple=True,
        metavar="NAME VALUE",
        help="Give a parameter; converted to its declared type. Also NAME=VALUE.",
    ),
    click.option(
        "-r",
        "--raw",
        nargs=2,
        multiple=True,
        metavar="NAME VALUE",
        help="Give a parameter as a string, whatever it looks like.",
    ),
    click.option(
        "-y", "--yaml", "yamls", multiple=True, metavar="YAML", help="Parameters as YAML."
    ),
    click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        metavar="FILE",
        help="Parameters from a YAML or JSON file.",
    ),
)


def parameter_options(command: Any) -> Any:
    """The ways to give a task its parameters, the same wherever one can."""
    for option in reversed(_PARAMETERS):
        command = option(command)
    return command


@click.command(
    epilog="""Examples:

\b
  quire run notebooks/report.py -p region eu -p threshold 0.5
  quire run notebooks/report.py -f parameters.yaml --json
  quire run analysis.ipynb --kernel ir --cell-timeout 600
"""
)
@click.argument("path")
@parameter_options
@click.option("-o", "--output", metavar="FILE", help="Also write the executed notebook here.")
@click.option("--cwd", metavar="DIR", help="Run in this folder instead of the current one.")
@click.option("--cell-timeout", type=float, metavar="SECONDS", help="Limit for each cell.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit for the whole run.")
@click.option("--python", metavar="PATH", help="Run in this interpreter; it needs IPython.")
@click.option("--kernel", metavar="NAME", help="Run in an installed Jupyter kernel.")
@click.option("--resume", metavar="RUN", help="Go on with a failed run at its first changed cell.")
@click.option("--from", "from_cell", metavar="CELL", help="With --resume: go on at this cell.")
@click.option("--request", metavar="TEXT", help="What was asked for, in plain words; it is kept.")
@click.option(
    "--source",
    "sources",
    nargs=2,
    multiple=True,
    metavar="NAME TEXT",
    help="Where the value of a parameter is from: a URL or a file; it is kept.",
)
@click.option(
    "--change",
    "changes",
    nargs=2,
    multiple=True,
    metavar="STEP FILE",
    help="Run the code of this file in the place of a step, this time; - reads stdin.",
)
@click.option("--reason", "reasons", multiple=True, metavar="TEXT", help="Why; for each --change.")
@click.option("--step", is_flag=True, help="Ask before each step: run, edit, skip or stop.")
@click.option("--uuid", metavar="UUID", help="The uuid of the run; otherwise a new one.")
@click.option("--no-archive", is_flag=True, help="Keep the record here only.")
@click.option("--no-host", is_flag=True, help="Run in this process; keep nothing warm.")
@click.option("--detach", is_flag=True, help="Print the run's id and let it go on by itself.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_obj
def run(
    app: App,
    /,
    path: str,
    as_json: bool,
    quiet: bool,
    no_host: bool,
    detach: bool,
    **options: Any,
) -> int:
    """Run a task and keep its record.

    PATH is a .py notebook with `# %%` cells, an .ipynb, an .md logbook, or the name of a template
    under logbooks/templates/. The source is never changed. Exit code:
    0 ok, 1 the task failed, 2 the request was wrong, 3 it waits for a person, 130 cancelled.
    """
    from ..engine.run import NotebookExecutor

    app.json_asked = as_json
    if app.engine is None:
        from ..kernel import processes

        processes.alone()  # a process for this command only, unlike one that imports quire
    for name in ("timeout", "cell_timeout"):
        if options[name] is not None and not options[name] > 0:
            raise UsageError(f"--{name.replace('_', '-')} must be above 0", hint="give seconds")
    parameters = given_parameters(app, options)
    wishes = _wishes(app, options)
    if detach:
        return _detach(app, path, parameters, wishes, as_json=as_json)
    workspace = app.workspace()
    if quiet:
        workspace.say = lambda _: None
    execution = NotebookExecutor(
        path, parameters, workspace=workspace, cancel=app.cancelled, **wishes
    )
    return follow(app, execution, as_json=as_json, quiet=quiet, output=options["output"])


def follow(
    app: App,
    execution: NotebookExecutor,
    *,
    as_json: bool,
    quiet: bool,
    output: str | None = None,
) -> int:
    """Show a run while it goes on, and its end; the exit code."""
    from ..record.report import report
    from .progress import Progress

    with calling_off(app.cancelled), Progress(app.terminal) as progress:
        for event in execution:
            if isinstance(event, RunStarted):
                app.announce(event.run_id)
            if not quiet:
                progress.show(event)
    record = execution.record
    if as_json:
        emit_json(app, report(record, str(execution.folder.notebook), execution.archived))
    else:
        from .record_commands import relative, show_end

        show_end(app, record, execution.folder, output)
        if record.outcome == "paused":
            app.terminal.out(f"take it up: quire resume {record.run_id}")
        elif execution.resumable:
            from shlex import quote

            shown = quote(relative(execution.plan.path, app.cwd))
            minutes = round(execution.workspace.config.resume_for / 60)
            app.terminal.out(
                f"mend it, then go on from there: quire run {shown} --resume last "
                f"(for {minutes} min)"
            )
    show_notices(app, execution)
    return EXIT.get(record.outcome, 1)


def _wishes(app: App, options: dict[str, Any]) -> dict[str, Any]:
    """What the options say, as NotebookExecutor calls it."""
    same = ("cwd", "python", "kernel", "cell_timeout", "timeout", "output", "resume", "from_cell")
    return {name: options[name] for name in same} | {
        "archives": False if options["no_archive"] else None,
        "errand": _errand(app, options),
    }


def _detach(
    app: App, path: str, parameters: dict[str, Any], wishes: dict[str, Any], *, as_json: bool
) -> int:
    from ..archive.read import find
    from ..engine.background_runs import start
    from ..record.report import report

    workspace = app.workspace()
    under = start(workspace, path, parameters, **wishes)
    if as_json:
        found = find(workspace, under.run_id)
        emit_json(app, report(found.record, found.notebook, found.archived))
    else:
        app.terminal.out(under.run_id)
    return 0


def _errand(app: App, options: dict[str, Any]) -> Errand:
    """What is special about this run."""
    from ..engine.planning import Errand
    from ..engine.step_changes import Asked

    changes, reasons = options["changes"], list(options["reasons"])
    if len(reasons) > max(len(changes), 0) or (len(reasons) not in (0, 1, len(changes))):
        raise UsageError(
            f"there are {len(reasons)} --reason for {len(changes)} --change",
            hint="give one for each, or one for all",
        )
    if len(reasons) == 1:
        reasons *= len(changes)
    reasons = reasons or [""] * len(changes)
    asked = tuple(
        Asked(step, app.read(file, "the change"), reason)
        for (step, file), reason in zip(changes, reasons, strict=True)
    )
    return Errand(
        request=options["request"] or "",
        sources=dict(options["sources"]),
        changes=asked,
        step=options["step"],
        uuid=options["uuid"] or "",
    )


def show_notices(app: App, execution: NotebookExecutor) -> None:
    """The run is good; something around it is not yet as it should be."""
    term = app.terminal
    word = term.paint("warning:", "yellow", on_err=True)
    for notice in execution.notices:
        why = notice.why
        term.err(f"{word} {one_line(str(notice))}")
        if why is not None:
            hint = term.paint("hint:", "blue", on_err=True)
            term.err(f"{hint} {one_line(why.hint)}; then: quire push")


def given_parameters(app: App, options: dict[str, Any]) -> dict[str, Any]:
    from ..task import params

    files = [(name, app.read(name, "the parameter file")) for name in options["files"]]
    return dict(params.parse_assignments(options["pairs"], options["raw"], options["yamls"], files))


@click.command(epilog="Example: quire params notebooks/report.py --json")
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def params(app: App, path: str, as_json: bool) -> None:
    """Show what a task can be given: name, type, default and help of each parameter."""
    from ..record.plan import jsonable
    from ..task.read_task import parameters

    app.json_asked = as_json
    found = parameters(app.workspace(), path)
    if as_json:
        emit_json(app, [{**p.as_dict(), "default": jsonable(p.default)} for p in found])
        return
    if not found:
        app.terminal.err(f"{Path(path).name} declares no parameters: tag a cell `parameters`.")
        return
    width = max(len(p.name) for p in found)
    kinds = max(len(p.type) for p in found)
    defaults = [one_line("required" if p.required else f"= {p.default_source}") for p in found]
    room = min(40, max(map(len, defaults)))
    for p, default in zip(found, defaults, strict=True):
        text = f"{p.name:<{width}}  {p.type:<{kinds}}  {default:<{room}}  {one_line(p.help)}"
        app.terminal.out(text.rstrip())
