"""`quire diff`, `merge` and `replay`: what changed, and whether it comes out the same again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..record.summary import one_line
from ..text import plain
from .main import App, calling_off, emit_json
from .progress import COLOUR

if TYPE_CHECKING:
    from ..record.compare import Comparison
    from ..render.comparison import Line
    from ..review.diff import NotebookDiff

_LOOKS = {"head": "bold", "added": "green", "removed": "red", "hunk": "blue", "note": "yellow"}
_VERDICTS = {
    "equal": ("equal", "green"),
    "volatile": ("equal up to volatile cells", "green"),
    "not_compared": ("equal as far as it could be compared", "yellow"),
    "different": ("different", "red"),
}


@click.command(
    epilog="""Examples:

\b
  quire diff last
  quire diff 2026-11-16-15 last --json
  quire diff old.ipynb new.ipynb
  quire diff main:notebooks/x.ipynb notebooks/x.ipynb
"""
)
@click.argument("old", required=False)
@click.argument("new", required=False)
@click.option("--all", "everything", is_flag=True, help="With ids, counts, timings; nothing cut.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--install-nbdime", is_flag=True, help="Make the environment that notebooks need.")
@click.pass_obj
def diff(
    app: App,
    old: str | None,
    new: str | None,
    everything: bool,
    as_json: bool,
    install_nbdime: bool,
) -> int:
    """Compare two runs, or two notebooks, cell by cell.

    OLD and NEW are runs (an id, a unique beginning of one, or `last`), or .ipynb and .py files,
    also as REV:path. One run alone is compared with the run of its task before it. Ids, counts,
    timings and metadata are left out. Exit code: 0 equal, 1 different or not all at hand, 2 the
    request was wrong.
    """
    from ..review import diff as verb

    app.json_asked = as_json
    if install_nbdime:
        return _install(app, as_json)
    if old is None:
        raise UsageError("name a run, or two runs or files", hint="quire diff last")
    files = [verb.is_file(name) for name in (old, new) if name is not None]
    if not any(files):
        compared = verb.diff_runs(app.workspace(), old, new, noise=everything)
        if as_json:
            emit_json(app, compared.as_dict())
        else:
            _show_runs(app, compared, everything)
        return _status(compared)
    if new is None or not all(files):
        raise UsageError(
            "a file is compared with a file, and a run with a run",
            hint="quire diff a.ipynb b.ipynb, quire diff RUN RUN or quire diff main:a.py a.py",
        )
    found = verb.diff_files(app.workspace(), old, new, noise=everything, operations=as_json)
    if as_json:
        emit_json(app, _as_data(found))
    else:
        _show_files(app, found)
    return int(not found.equal)


def _install(app: App, as_json: bool) -> int:
    from ..git.nbdime_process import install

    folder = install(app.workspace())
    if as_json:
        emit_json(app, {"nbdime": str(folder)})
    else:
        app.terminal.out(f"nbdime is in {folder}")
    return 0


def _show_runs(app: App, compared: Comparison, everything: bool) -> None:
    from ..render.comparison import lines

    term = app.terminal
    for side, record in (("old", compared.old), ("new", compared.new)):
        outcome = term.paint(record.outcome, COLOUR.get(record.outcome, ""))
        term.out(f"{side}  {record.run_id}  {outcome}  {one_line(record.task)}")
        if record.resumed_from:
            term.out(f"     goes on with {one_line(record.resumed_from)}, where some cells ran")
    _paint(app, lines(compared, everything=everything))
    _verdict(app, compared)


def _paint(app: App, lines: Iterable[Line]) -> None:
    for line in lines:
        app.terminal.out(app.terminal.paint(line.text, _LOOKS.get(line.look, "")))


def _verdict(app: App, compared: Comparison) -> None:
    word, colour = _VERDICTS[compared.verdict]
    app.terminal.out()
    app.terminal.out(app.terminal.paint(word, colour))


def _status(compared: Comparison) -> int:
    """What could not be compared is no success: nobody knows that it is equal."""
    return int(compared.verdict in ("different", "not_compared"))


def _as_data(found: NotebookDiff) -> dict[str, Any]:
    verdict = "equal" if found.equal else "different"
    return {
        "verdict": verdict,
        "old": found.old,
        "new": found.new,
        "operations": found.operations,
    }


def _show_files(app: App, found: NotebookDiff) -> None:
    term = app.terminal
    if found.equal:
        term.out(term.paint("equal", "green"))
        return
    if not found.text.startswith("--- "):
        term.out(term.paint(f"--- {one_line(found.old)}", "bold"))
        term.out(term.paint(f"+++ {one_line(found.new)}", "bold"))
    for row in found.text.rstrip("\n").split("\n"):
        term.out(term.paint(plain(row), _row_look(row)))


def _row_look(row: str) -> str:
    if row.startswith(("---", "+++", "##")):
        return "bold"
    return {"+": "green", "-": "red", "@": "blue"}.get(row[:1], "")


@click.command(epilog="Example: quire merge base.ipynb ours.ipynb theirs.ipynb -o merged.ipynb")
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
@click.option("-o", "--output", metavar="FILE", help="Write here instead of to stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def merge(app: App, base: str, ours: str, theirs: str, output: str | None, as_json: bool) -> int:
    """Merge two versions of a notebook, cell by cell.

    OURS and THEIRS both come from BASE; an empty BASE means that both sides added the notebook.
    Where both changed the same, both stand in the outcome between marks, which is still a valid
    notebook. Exit code: 0 clean, 1 conflicts, 2 the request was wrong.
    """
    from ..git.merge_notebooks import merge as verb

    app.json_asked = as_json
    done = verb(app.workspace(), base, ours, theirs, output=output)
    if as_json:
        told: dict[str, Any] = {"conflicts": done.conflicts, "output": output, "note": done.note}
        emit_json(app, told if output else told | {"notebook": json.loads(done.data)})
        return int(done.conflicts > 0)
    term = app.terminal
    if output is None:
        # What JSON lets stand as it is, a terminal may obey.
        term.out(json.dumps(json.loads(done.data), indent=1))
    if done.note:
        term.err(f"both versions stand one after the other: {one_line(done.note)}")
    if done.conflicts:
        places = "1 conflict" if done.conflicts == 1 else f"{done.conflicts} conflicts"
        term.err(f"{places}: look for <<<<<<<")
    return int(done.conflicts > 0)


@click.command(epilog="Examples: quire replay last · quire replay 2026-11-16-15 --json")
@click.argument("run", default="last")
@click.option("--cwd", metavar="DIR", help="Run in this folder instead of the one it had.")
@click.option("--python", metavar="PATH", help="Run in this interpreter; it needs IPython.")
@click.option("--kernel", metavar="NAME", help="Run in an installed Jupyter kernel.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit for the whole run.")
@click.option("--no-archive", is_flag=True, help="Keep the record of the replay here only.")
@click.option("--all", "everything", is_flag=True, help="With ids, counts, timings; nothing cut.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_obj
def replay(app: App, /, run: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Run a run again and compare.

    The source as it was run and the same parameters, in a clean kernel; then both are compared cell
    by cell. This runs the code of that run: verify first what others have made. Exit code: 0 equal,
    or equal up to cells tagged `volatile`; 1 different or not all at hand, 2 the request was wrong,
    130 cancelled.
    """
    from ..engine.replay import prepare
    from .progress import Progress
    from .run_commands import show_notices

    app.json_asked = as_json
    if app.engine is None:
        from ..kernel import processes

        processes.alone()
    if options["timeout"] is not None and not options["timeout"] > 0:
        raise UsageError("--timeout must be above 0", hint="give seconds")
    prepared = prepare(
        app.workspace(),
        run,
        cwd=options["cwd"],
        python=options["python"],
        kernel=options["kernel"],
        timeout=options["timeout"],
        archives=False if options["no_archive"] else None,
        cancel=app.cancelled,
    )
    for note in prepared.notes:
        app.terminal.err(f"note: {one_line(note)}")
    with calling_off(app.cancelled), Progress(app.terminal) as progress:
        for event in prepared.execution:
            if not quiet:
                progress.show(event)
    compared = prepared.outcome(noise=options["everything"])
    if as_json:
        told = {"notes": list(prepared.notes), "archived": prepared.execution.archived}
        emit_json(app, compared.as_dict() | told)
    else:
        _show_replay(app, compared, options["everything"])
    show_notices(app, prepared.execution)
    if compared.new.outcome == "cancelled":
        return 130
    return _status(compared)


def _show_replay(app: App, compared: Comparison, everything: bool) -> None:
    """What differs between the environments comes first: it may be why the rest does."""
    from ..render.comparison import environment_lines

    if compared.environment and not everything:
        app.terminal.err(
            app.terminal.paint("warning:", "yellow", on_err=True)
            + " the environment is not the one the run had:"
        )
        for line in environment_lines(compared.environment):
            app.terminal.err(line.text)
    _show_runs(app, compared, everything)
