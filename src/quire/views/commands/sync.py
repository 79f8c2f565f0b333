"""`quire sync`."""

from __future__ import annotations

import click

from ...runs.summary import one_line
from ..cli import App, emit_json
from .records import relative


@click.command(epilog="Examples: quire sync notebooks/ · quire sync analysis.py --check")
@click.argument("paths", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if something would be.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def sync(app: App, paths: tuple[str, ...], check: bool, as_json: bool) -> int:
    """Write .ipynb from .py, and back.

    The .py is the source of truth. An .ipynb that was edited while its .py was not is written back
    to it; where both changed, nothing is written and the conflict is shown.
    """
    from ...verbs.sync import sync as bring_together

    app.json_asked = as_json
    found = bring_together(app.workspace(), list(paths), check=check)
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
    conflict = any(item.action == "conflict" for item in found)
    stale = check and any(item.action != "unchanged" for item in found)
    return 1 if conflict or stale else 0
