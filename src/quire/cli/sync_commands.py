"""`quire sync`."""

from __future__ import annotations

from typing import Any

import click

from ..record.summary import one_line
from .main import App, emit_json
from .record_commands import relative


@click.command(epilog="Examples: quire sync notebooks/ · quire sync --take ipynb analysis.ipynb")
@click.argument("paths", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if something would be.")
@click.option(
    "--take",
    "side",
    type=click.Choice(["py", "ipynb"]),
    help="Which file of each named pair is written to the other.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def sync(app: App, paths: tuple[str, ...], check: bool, side: Any, as_json: bool) -> int:
    """Write .ipynb from .py; back with --take ipynb.

    The .py is the source of truth. Where an .ipynb says something else, by an edit or by what a
    colleague committed, nothing is written, and --take says which of the two counts.
    """
    from ..task.sync import sync as bring_together

    app.json_asked = as_json
    found = bring_together(app.workspace(), list(paths), check=check, side=side)
    if as_json:
        emit_json(
            app,
            [
                {
                    "source": str(s.source),
                    "target": str(s.target),
                    "action": s.action,
                    "hint": s.hint,
                }
                for s in found
            ],
        )
    else:
        for item in found:
            if item.action != "unchanged":
                target = relative(item.target, app.cwd)
                app.terminal.out(f"{item.action}: {relative(item.source, app.cwd)} -> {target}")
                if item.hint:
                    app.terminal.err(f"hint: {one_line(item.hint)}")
        if not any(item.action != "unchanged" for item in found):
            app.terminal.out(f"{len(found)} in step")
    if any(item.action == "conflict" for item in found):
        return 2
    return 1 if check and any(item.action != "unchanged" for item in found) else 0
