"""`quire session`, `exec`, `rewind`: live kernels."""

from __future__ import annotations

from typing import Any

import click

from ..record.summary import one_line, took
from .exec_commands import follow, state_json
from .main import App, calling_off, emit_json
from .run_commands import given_parameters, parameter_options


@click.group(epilog="Examples: quire session open notebooks/a.py · quire session list")
def session() -> None:
    """Kernels that are still there at the next call."""


@session.command("open", epilog="Example: quire session open notebooks/a.py -p region eu")
@click.argument("path")
@parameter_options
@click.option("--name", metavar="NAME", help="Call it this instead of after the task.")
@click.option("--kernel", metavar="NAME", help="Use an installed Jupyter kernel.")
@click.option("--python", metavar="PATH", help="Use this interpreter; it needs IPython.")
@click.option("--cwd", metavar="DIR", help="Start the kernel in this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def open_(app: App, /, path: str, as_json: bool, **options: Any) -> None:
    """Start a kernel for a task and print the session's name. Nothing runs yet."""
    from ..sessions.session import open_session

    app.json_asked = as_json
    info = open_session(
        app.workspace(),
        path,
        given_parameters(app, options),
        name=options["name"],
        kernel=options["kernel"],
        python=options["python"],
        cwd=options["cwd"],
    )
    connection = info.kernel.get("connection_file")
    if as_json:
        emit_json(app, _info(info))
        return
    app.terminal.out(info.name)
    if connection:
        app.terminal.out(f"connection file: {connection}")
        app.terminal.out(f"attach with: jupyter console --existing {connection}")


def _info(info: Any) -> dict[str, Any]:
    return {
        "session": info.name,
        "task": info.task,
        "state": info.state,
        "epoch": info.epoch,
        "ran": info.ran,
        "idle": info.idle,
        "warning": info.warning,
        "lost": info.lost,
        "kernel": dict(info.kernel),
    }


@session.command("list", epilog="Example: quire session list --json")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def list_(app: App, as_json: bool) -> None:
    """List sessions: what they are on, how long they were idle, what was lost."""
    from ..sessions.session import sessions

    found = sessions(app.workspace())
    if as_json:
        emit_json(app, [_info(info) for info in found])
        return
    if not found:
        app.terminal.err("No session is open.")
    for info in found:
        idle = "" if info.idle is None else f"idle {took(info.idle)}"
        app.terminal.out(
            f"{one_line(info.name):<20}  {info.state:<5}  epoch {info.epoch}  {idle:<14}  "
            f"{one_line(info.task)}"
        )
        for note in (info.warning, info.lost and f"its state is gone: {info.lost}"):
            if note:
                app.terminal.out(app.terminal.paint(f"    {one_line(note)}", "yellow"))


@session.command(epilog="Example: quire session show analysis")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def show(app: App, name: str, as_json: bool) -> None:
    """Show the cells of a session's task: which ran, in which order, which are stale."""
    from ..sessions.session import cells, find

    app.json_asked = as_json
    live = find(app.workspace(), name)
    states = cells(app.workspace(), name)
    if as_json:
        emit_json(
            app,
            {
                "session": live.session.name,
                "epoch": live.session.epoch,
                "lost": live.session.why_lost,
                "cells": [state_json(s) for s in states],
            },
        )
        return
    _say_lost(app, live.session)
    for s in states:
        if s.state == "text":
            continue
        order = f"#{s.order}" if s.order is not None else ""
        first = one_line(s.cell.title or next(iter(s.cell.source.splitlines()), ""))[:50]
        colour = {"ran": "green", "failed": "red", "stale": "yellow"}.get(s.state, "dim")
        state = app.terminal.paint(f"{s.state:<9}", colour)
        app.terminal.out(f"[{s.index}] {s.cell.id}  {state}  {order:<5}  {first}".rstrip())
        if s.reason:
            app.terminal.out(f"      {one_line(s.reason)}")


def _say_lost(app: App, live: Any) -> None:
    if live.why_lost:
        note = f"the kernel's state is gone: {one_line(live.why_lost)} (epoch {live.epoch})"
        app.terminal.out(app.terminal.paint(note, "yellow"))


@session.command(epilog="Example: quire session vars analysis")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on stdout.")
@click.pass_obj
def vars(app: App, name: str, as_json: bool) -> None:
    """List a session's variables: name, type, size, a short look at the value."""
    from ..sessions.session import find, variables

    app.json_asked = as_json
    live = find(app.workspace(), name)
    found = variables(app.workspace(), name)
    if as_json:
        emit_json(
            app,
            {
                "session": live.session.name,
                "epoch": live.session.epoch,
                "lost": live.session.why_lost,
                "variables": found,
            },
        )
        return
    _say_lost(app, live.session)
    # A cell may call a variable, or its type, what it likes.
    keys = ("name", "type", "size", "value")
    rows = [tuple(one_line(str(v[key] or "")) for key in keys) for v in found]
    width = max((len(name) for name, *_ in rows), default=0)
    kinds = max((len(kind) for _, kind, *_ in rows), default=0)
    for name, kind, size, value in rows:
        app.terminal.out(f"{name:<{width}}  {kind:<{kinds}}  {size:<12}  {value}".rstrip())


@session.command(epilog="Example: quire session tree analysis")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def tree(app: App, name: str, as_json: bool) -> None:
    """Show what ran and which states one can go back to."""
    from ..sessions.session import find

    app.json_asked = as_json
    live = find(app.workspace(), name).session
    rows: list[dict[str, Any]] = []
    held = {mark.order for mark in live.marks.held()}
    for one in (*(e for e in live.left if e.order in held), *live.executions):
        mark = live.marks.get(one.order)
        rows.append(
            {
                "order": one.order,
                "cell": one.cell.id,
                "index": one.index,
                "title": live.sieve.masker.mask(one.cell.title),
                "status": one.status,
                "rewindable": mark is not None and mark.snapshot is not None,
                "reason": mark.reason if mark is not None else "",
                "memory": mark.snapshot.memory() if mark is not None and mark.snapshot else 0,
            }
        )
    if as_json:
        emit_json(
            app,
            {"session": live.name, "epoch": live.epoch, "lost": live.why_lost, "states": rows},
        )
        return
    _say_lost(app, live)
    for row in rows:
        place = "code" if row["index"] is None else f"cell {row['index']}"
        size, why = row["memory"] / 2**20, one_line(str(row["reason"]))
        back = f"{size:.1f} MB" if row["rewindable"] else f"no: {why}"
        title = one_line(str(row["title"]))
        app.terminal.out(f"#{row['order']}  {place:<8} {row['status']:<9} {title:<24} {back}")


@session.command(epilog="Example: quire session interrupt analysis")
@click.argument("name")
@click.pass_obj
def interrupt(app: App, name: str) -> None:
    """Interrupt the cell that a session runs, as Ctrl-C would."""
    from ..sessions.session import interrupt as stop

    running = stop(app.workspace(), name)
    app.terminal.out("interrupted" if running else "nothing was running")


@session.command(epilog="Example: quire session restart analysis")
@click.argument("name")
@click.pass_obj
def restart(app: App, name: str) -> None:
    """Give a session a fresh kernel."""
    from ..sessions.session import find
    from ..sessions.session import restart as begin_again

    event = begin_again(app.workspace(), name)
    app.terminal.out(f"a fresh kernel (epoch {event.epoch}); nothing has run in it")
    kernel = find(app.workspace(), name).session.kernel
    if connection := getattr(kernel, "connection_file", ""):
        app.terminal.out(f"connection file: {connection}")


@session.command(epilog="Example: quire session restore analysis")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def restore(app: App, name: str, as_json: bool) -> int:
    """Run again, in a fresh kernel, what the lost one had run."""
    from ..sessions.restore import restore as bring_back

    app.json_asked = as_json
    with calling_off(app.cancelled):
        return follow(app, name, bring_back(app.workspace(), name, app.cancelled), as_json)


@session.command(epilog="Example: quire session promote analysis notebooks/clean.py")
@click.argument("name")
@click.argument("target")
@click.option("--force", is_flag=True, help="Replace TARGET if it is there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def promote(app: App, name: str, target: str, force: bool, as_json: bool) -> int:
    """Make a task of a session: run it from top to bottom in a clean kernel and compare.

    TARGET is written only if the clean run gives what the session saw.
    """
    from ..sessions.promote import promote as make_task
    from ..sessions.session import find

    app.json_asked = as_json
    live = find(app.workspace(), name).session
    if not as_json:
        _say_lost(app, live)
    with calling_off(app.cancelled):
        made = make_task(app.workspace(), name, target, app.cancelled, force=force)
    if as_json:
        emit_json(
            app,
            {
                "session": live.name,
                "epoch": live.epoch,
                "lost": live.why_lost,
                "written": str(made.path) if made.path else None,
                "run_id": made.run_id,
                "difference": made.difference,
            },
        )
    elif made.path is not None:
        held = "" if made.outcome == "ok" else ", which failed as the session did"
        app.terminal.out(f"written: {target} (clean run {made.run_id}{held})")
    else:
        app.terminal.err(f"not written: {one_line(made.difference)}")
        app.terminal.err(f"the clean run is {made.run_id}")
    return 0 if made.path is not None else 1


@session.command(epilog="Example: quire session close analysis")
@click.argument("name")
@click.pass_obj
def close(app: App, name: str) -> None:
    """End a session and its kernel."""
    from ..sessions.session import close as end

    end(app.workspace(), name)
    app.terminal.out("closed")
