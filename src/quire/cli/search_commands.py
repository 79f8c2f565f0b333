"""`quire find`, `quire index`: the memory of all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..record.summary import one_line
from ..text import plain
from .main import App, emit_json
from .progress import COLOUR

if TYPE_CHECKING:
    from ..search.find import Hit
    from ..search.similar import Alike, Similar
    from ..search.snippets import Spot

DIFF_LINES = 40


class _Search(click.Command):
    """A query may have words to leave out, such as `-draft`, that look like options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [one for one in self.params if isinstance(one, click.Option)]
        valued = {name for one in options if not one.is_flag for name in one.opts}
        known = {name for one in options for name in one.opts}
        # Behind a space it is a word to Click, and the same to the query.
        spaced = [
            f" {arg}" if before not in valued and _leaves_out(arg, known) else arg
            for before, arg in zip(["", *args], args, strict=False)
        ]
        return super().parse_args(ctx, spaced)


def _leaves_out(arg: str, known: set[str]) -> bool:
    if not arg.startswith("-") or arg.startswith("--") or len(arg) < 3:
        return False
    return not (arg[:2] in known and arg[2:].lstrip("=").isdigit())


@click.command(
    cls=_Search,
    epilog="Examples: quire find \"KeyError: 'user_id'\" · quire find note:drift --since 7d · "
    'quire find --result "score>0.8" --param region=eu · quire find --like last',
)
@click.argument("query", nargs=-1)
@click.option("--task", default="", metavar="TASK", help="Only runs of this task: path or name.")
@click.option("--since", default="", metavar="WHEN", help="Not older: 2026-01-31, 7d, 24h, today.")
@click.option("--until", default="", metavar="WHEN", help="Not younger; a date counts to its end.")
@click.option("--outcome", multiple=True, metavar="O", help="ok, failed, timed_out, …; repeat.")
@click.option("--who", default="", metavar="W", help="Only runs that W asked for.")
@click.option("--param", "params", multiple=True, metavar="P=V", help="= != < <= > >=; repeat.")
@click.option("--result", "results", multiple=True, metavar="R>V", help="The same for results.")
@click.option("--like", metavar="RUN|TEXT", help="Runs that failed like it, and what mended them.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=10, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def find(
    app: App,
    query: tuple[str, ...],
    task: str,
    since: str,
    until: str,
    outcome: tuple[str, ...],
    who: str,
    params: tuple[str, ...],
    results: tuple[str, ...],
    like: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Find runs by what they hold: title, notes, results, errors, code, outputs, …

    QUERY is words (all of them), "a phrase" in quotes, a beginning (wor*), a field (note:word),
    -word for none of it, and OR. Without QUERY the newest runs that fit the options.
    """
    from ..errors import UsageError
    from ..search.find import find as search
    from ..search.similar import similar

    app.json_asked = as_json
    ws = app.workspace()
    if like is not None:
        if query or outcome or who or params or results:
            raise UsageError(
                "--like goes with --task, --since, --until and -n only",
                hint="quire find --like last",
            )
        _show_similar(
            app,
            similar(ws, like, task=task, since=since, until=until, limit=limit,
                    progress=_progress(app)),
            as_json,
        )  # fmt: skip
        return
    words = " ".join(query).strip()
    found = search(ws, words, task=task, since=since, until=until, outcome=outcome,
                   who=who, params=params, results=results, limit=limit,
                   progress=_progress(app))  # fmt: skip
    if as_json:
        told = {"runs": [hit.as_dict() for hit in found.hits], "searched": found.searched}
        emit_json(app, told | {"warnings": list(found.warnings)})
        return
    for hit in found.hits:
        _show_hit(app, hit)
    if not found.hits:
        app.terminal.err(f"No run of {found.searched:,} fits.")
    _warn(app, found.warnings)


def _show_hit(app: App, hit: Hit) -> None:
    term = app.terminal
    outcome = term.paint(hit.outcome.replace("_", " "), COLOUR.get(hit.outcome, ""))
    term.out(f"{hit.run_id}  {outcome}  {one_line(hit.title or hit.task)}")
    term.out(f"    {one_line(hit.summary)}")
    if hit.missing:
        term.out(term.paint(f"    without: {one_line(', '.join(hit.missing))}", "dim"))
    for spot in hit.spots:
        title = one_line(hit.cells.get(spot.cell, "") or spot.cell)
        where = f"{spot.field} in {title}" if spot.cell else spot.field
        term.out(f"    {where}: {_marked(app, spot)}")
    term.out(term.paint(f"    {one_line(hit.command)}", "dim"))


def _marked(app: App, spot: Spot) -> str:
    """Snippets are plain already: only what was met is made bold, where a person looks."""
    out, last = "", 0
    for start, end in spot.marks:
        if start >= last:
            out += spot.snippet[last:start] + app.terminal.paint(spot.snippet[start:end], "bold")
            last = end
    return out + spot.snippet[last:]


def _show_similar(app: App, found: Similar, as_json: bool) -> None:
    if as_json:
        told = {"error": found.error, "runs": [one.as_dict() for one in found.runs]}
        emit_json(app, told | {"warnings": list(found.warnings)})
        return
    term = app.terminal
    term.out(f"like {one_line(found.error)}")
    for one in found.runs:
        term.out()
        _show_alike(app, one)
    if not found.runs:
        term.err("No other run failed like that.")
    _warn(app, found.warnings)


def _show_alike(app: App, one: Alike) -> None:
    term, hit, fix = app.terminal, one.hit, one.fix
    term.out(f"{hit.run_id}  {one_line(hit.task)}  {one.why}")
    term.out(f"    {one_line(hit.summary)}")
    if fix is None:
        term.out("    no later run of this task has passed")
        return
    term.out(f"    passed in {fix.run_id}")
    for name, (old, new) in fix.parameters.items():
        term.out(f"    {one_line(name)}: {one_line(repr(old))} → {one_line(repr(new))}")
    lines = plain(fix.diff).rstrip("\n").split("\n") if fix.diff else []
    for line in lines[:DIFF_LINES]:
        colour = {"+": "green", "-": "red"}.get(line[:1], "")
        term.out(term.paint(f"    {line}", colour))
    if len(lines) > DIFF_LINES:
        term.out(f"    … quire diff {hit.run_id} {fix.run_id} has the rest")
    if not fix.diff:
        term.out("    the source is the same")


def _warn(app: App, warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        app.terminal.err(app.terminal.paint(f"warning: {one_line(warning)}", "yellow", on_err=True))


class _Progress:
    """Said on stderr when there is much to do: a line now and then."""

    def __init__(self, app: App, every: int) -> None:
        self._app, self._every, self._next = app, every, every

    def __call__(self, done: int, total: int) -> None:
        if total >= self._every and done >= self._next:
            self._next = done + self._every
            self._app.terminal.err(f"indexed {done:,} of {total:,} runs")


def _progress(app: App) -> _Progress:
    return _Progress(app, 5_000)


@click.group(epilog="Examples: quire index status · quire index rebuild")
def index() -> None:
    """The index that `quire find` looks into. A cache: it can always be made again."""


@index.command(epilog="Example: quire index rebuild --json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def rebuild(app: App, as_json: bool) -> None:
    """Make the index anew from the archive. Until it is done the old one is used."""
    from ..search.fill import rebuild as make

    app.json_asked = as_json
    done = make(app.workspace(), _progress(app))
    if as_json:
        emit_json(app, {"runs": done.added, "damaged": done.damaged})
        return
    app.terminal.out(f"indexed {done.added:,} runs")
    for run_id, why in done.damaged.items():
        app.terminal.err(f"warning: {run_id} cannot be read: {one_line(why)}")


@index.command(epilog="Example: quire index status --json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(app: App, as_json: bool) -> None:
    """What the index has, what it lacks and what it cannot read. Changes nothing."""
    from ..search.fill import status as look

    app.json_asked = as_json
    told = look(app.workspace())
    if as_json:
        emit_json(app, told)
        return
    term = app.terminal
    if told["problem"]:
        term.out(f"{told['path']} {told['problem']}; the next search makes it anew")
    else:
        term.out(f"{told['path']}: {told['runs']:,} runs, {told['size'] / 1e6:.1f} MB")
    term.out(f"to add: {told['behind']:,} runs of {told['archive']}")
    for run_id, why in told["damaged"].items():
        term.out(f"cannot be read: {run_id}: {one_line(why)}")


@click.command(epilog="Examples: quire digest · quire digest --since 30d --task report · --write")
@click.option("--since", default="", metavar="WHEN", help="How far back; 7d if not given.")
@click.option("--until", default="", metavar="WHEN", help="Up to when.")
@click.option("--task", default="", metavar="TASK", help="Only runs of this task: path or name.")
@click.option("--write", is_flag=True, help="Write DIGEST.md, of the last 30 days, to the archive.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def digest(app: App, since: str, until: str, task: str, write: bool, as_json: bool) -> None:
    """What happened, what was learned and what failed, as Markdown; each line names its run."""
    from ..search.digest import digest as make

    app.json_asked = as_json
    done = make(app.workspace(), since=since, until=until, task=task, write=write,
                progress=_progress(app))  # fmt: skip
    if as_json:
        told = {"text": done.text, "runs": done.runs, "place": done.place or None}
        emit_json(app, told | {"warnings": list(done.warnings)})
        return
    if done.place:
        app.terminal.out(f"wrote {done.place}: {done.runs:,} runs")
    else:
        app.terminal.out(done.text, end="")
    _warn(app, done.warnings)
