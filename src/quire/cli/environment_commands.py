"""`quire env`: the environments of tasks that declare what they need."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ..record.summary import one_line
from .main import App, emit_json
from .record_commands import relative

if TYPE_CHECKING:
    from ..environments.resolve import Shown


@click.group(epilog="Example: quire env show notebooks/report.py")
def env() -> None:
    """Environments of tasks that declare what they need."""


@env.command(epilog="Example: quire env show notebooks/report.py --json")
@click.argument("task", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on stdout.")
@click.pass_obj
def show(app: App, task: str | None, as_json: bool) -> None:
    """Say what a task, or the workspace, declares, and what it gets. Makes nothing."""
    from ..environments.resolve import show as look

    app.json_asked = as_json
    _show(app, look(app.workspace(), task), as_json)


@env.command(epilog="Example: quire env build notebooks/report.py")
@click.argument("task", required=False)
@click.option("--upgrade", is_flag=True, help="Find the newest versions that are allowed.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on stdout.")
@click.pass_obj
def build(app: App, task: str | None, upgrade: bool, as_json: bool) -> None:
    """Make the environment of a task, or of the workspace, without running anything."""
    from ..environments.resolve import build as make

    app.json_asked = as_json
    _show(app, make(app.workspace(), task, upgrade=upgrade), as_json)


@env.command(epilog="Example: quire env lock notebooks/report.py --upgrade")
@click.argument("task", required=False)
@click.option("--upgrade", is_flag=True, help="Find the newest versions that are allowed.")
@click.pass_obj
def lock(app: App, task: str | None, upgrade: bool) -> None:
    """Write the versions, with digests, into a file beside the task, to be committed with it."""
    from ..environments.resolve import lock as fix

    path = fix(app.workspace(), task, upgrade=upgrade)
    app.terminal.out(relative(path, app.cwd))


@env.command("list", epilog="Example: quire env list --json")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def list_(app: App, as_json: bool) -> None:
    """List the environments in the cache: age, size, Python."""
    from ..environments.resolve import listed

    app.json_asked = as_json
    found = listed(app.workspace())
    if as_json:
        emit_json(app, found)
        return
    for one in found:
        days = (time.time() - one["used"]) / 86_400
        age = f"used {days:.0f} days ago" if one["used"] else ""
        state = "in use" if one["in_use"] else one["state"]
        app.terminal.out(
            f"{one['environment']:<26} {state:<10} {_size(one['size']):>8}  "
            f"Python {one['python'] or '?':<8} {len(one['packages']):>3} packages  {age}".rstrip()
        )
    if not found:
        app.terminal.err("no environment has been made yet")


@env.command(epilog="Examples: quire env clean · quire env clean --all")
@click.option("--days", type=float, default=30.0, help="Not used for so many days; 30.")
@click.option("--all", "everything", is_flag=True, help="However new they are.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on stdout.")
@click.pass_obj
def clean(app: App, days: float, everything: bool, as_json: bool) -> None:
    """Remove environments that nobody has used for a while. Those in use stay."""
    from ..environments.resolve import clean as remove

    app.json_asked = as_json
    told = remove(app.workspace(), days, everything=everything)
    if as_json:
        emit_json(app, told)
        return
    app.terminal.out(f"removed {len(told['removed'])}, {_size(told['size'])}")
    if told["in_use"]:
        app.terminal.err(f"{len(told['in_use'])} are in use: quire host stop, then again")


def _show(app: App, shown: Shown, as_json: bool) -> None:
    asked, made = shown.asked, shown.made
    told: dict[str, Any] = {
        "declared_by": asked.by,
        "dependencies": list(asked.of.requires),
        "requires_python": asked.of.python,
        "lock_file": shown.lock_file,
        "ready": made is not None,
        "lock": made.lock if made else None,
        "python": made.version if made else None,
        "interpreter": str(made.python) if made else None,
        "packages": dict(made.packages) if made else {},
    }
    if as_json:
        emit_json(app, told)
        return
    term = app.terminal
    for requirement in asked.of.requires:
        term.out(one_line(requirement))
    fixed = f", versions from {one_line(shown.lock_file)}" if shown.lock_file else ""
    if made is None:
        term.out(f"declared by the {asked.by}; not made yet{fixed}: quire env build, or a run")
        return
    term.out(f"declared by the {asked.by}{fixed}; lock {made.lock[:12]}")
    term.out(f"Python {made.version}, {len(made.packages)} packages: {made.python}")
    names = {_name(requirement) for requirement in asked.of.requires}
    for name, version in made.packages.items():
        if _name(name) in names:
            term.out(f"  {name} {version}")


def _name(requirement: str) -> str:
    import re

    found = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
    return re.sub(r"[-_.]+", "-", found[0] if found else "").lower()


def _size(size: float) -> str:
    return f"{size / 1e6:.1f} MB"
