"""`quire edit`."""

from __future__ import annotations

from typing import Any

import click

from ..errors import UsageError
from ..record.summary import one_line
from ..text import visible
from .main import App, emit_json
from .record_commands import relative

_FINDINGS = 20


@click.command(
    epilog="""Examples:

\b
  quire edit notebooks/report.py 3 --file fixed.py
  quire edit notebooks/report.py 3 --after --source "df.describe()" --title check
  quire edit notebooks/report.py load --find "region = 'eu'" --replace "region = 'us'"
  quire edit notebooks/report.py 5 --move-before 2 --expect 3f2a9c01be
"""
)
@click.argument("path")
@click.argument("cell")
@click.option("--file", "file", metavar="FILE", help="The new source from a file; - reads stdin.")
@click.option("--source", metavar="TEXT", help="The new source.")
@click.option("--after", "where", flag_value="after", help="A new cell below CELL.")
@click.option("--before", "where", flag_value="before", help="A new cell above CELL.")
@click.option(
    "--kind", type=click.Choice(["code", "markdown", "raw"]), help="The kind of the cell."
)
@click.option("--title", metavar="TEXT", help="The title of the cell; empty takes it away.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="The tags of the cell, each.")
@click.option("--delete", is_flag=True, help="Take the cell out.")
@click.option("--move-after", metavar="CELL", help="Put the cell below another one.")
@click.option("--move-before", metavar="CELL", help="Put the cell above another one.")
@click.option("--find", metavar="TEXT", help="Text inside the cell, to be replaced.")
@click.option("--replace", metavar="TEXT", help="What to put in its place.")
@click.option("--all", "everywhere", is_flag=True, help="Replace it wherever it is in the cell.")
@click.option("--expect", metavar="ID", help="The id CELL had when you read it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def edit(app: App, /, path: str, cell: str, as_json: bool, **options: Any) -> None:
    """Change one cell of a task.

    CELL is an id, an index from 0, or a title. An id is a digest of the cell's text: an edit aimed
    at a cell that has changed since it was read is refused, with what it looks like now. The rest
    of the file stays as it is, byte for byte.
    """
    from ..authoring.edit_file import edit as change

    app.json_asked = as_json
    done = change(
        app.workspace(),
        path,
        cell,
        new_source=_source(app, options["file"], options["source"]),
        insert=options["where"],
        kind=options["kind"],
        delete=options["delete"],
        move_before=options["move_before"],
        move_after=options["move_after"],
        find=options["find"],
        replace=options["replace"],
        all=options["everywhere"],
        expect=options["expect"],
        title=options["title"],
        tags=options["tags"] or None,
    )
    if as_json:
        emit_json(app, done.as_dict())
        return
    term = app.terminal
    edited = done.edited
    if edited.diff:
        term.out(visible(edited.diff), end="")
    else:
        term.out(f"unchanged: {relative(done.path, app.cwd)}")
    if edited.cell_id:
        term.out(f"cell {edited.index} is now {edited.cell_id}")
    for finding in done.findings[:_FINDINGS]:
        where = f"cell {finding.index} ({finding.cell_id}), line {finding.line}"
        term.out(f"{term.paint(finding.kind, 'yellow')}: {where}: {one_line(finding.message)}")
    for name, cells in done.stale.items():
        for at, _, reason in cells:
            term.out(f"{term.paint('stale', 'yellow')} in {name}: cell {at}: {one_line(reason)}")
    if len(done.findings) > _FINDINGS:
        term.out(f"… and {len(done.findings) - _FINDINGS} more")


def _source(app: App, file: str | None, source: str | None) -> str | None:
    if file is None or source is not None:
        if file is not None:
            raise UsageError("--file and --source were both given", hint="give one of them")
        return source
    return app.read(file)
