"""`quire push`, `quire log`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..record.summary import one_line, took
from .main import App, emit_json
from .progress import COLOUR
from .record_commands import limit_option

if TYPE_CHECKING:
    from ..review.push import Pushed


@click.command(epilog="Examples: quire log · quire log -n 0 --json")
@limit_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def log(app: App, limit: int, as_json: bool) -> None:
    """List archived runs, newest first: also those of others, and those gone from this folder."""
    from ..archive.put import log as archived

    app.json_asked = as_json
    found = list(archived(app.workspace(), limit or None))
    if as_json:
        emit_json(app, found)
        return
    if not found:
        app.terminal.err("No run has been archived here yet.")
    for item in found:
        outcome = app.terminal.paint(f"{item['outcome']:<9}", COLOUR.get(item["outcome"], ""))
        by = f"  by {one_line(item['asked'])}" if item["asked"] else ""
        app.terminal.out(
            f"{item['run_id']}  {outcome}  {took(item['duration']):>9}  "
            f"{one_line(item['task'] or '')}{by}"
        )


@click.command(epilog="Examples: quire push · quire push --remote backup --json")
@click.option("--remote", default="", metavar="NAME", help="Another remote than the usual one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def push(app: App, remote: str, as_json: bool) -> int:
    """Push archived runs and local proposals to the remote, and take those that are only there.

    Nothing is forced: what others have pushed meanwhile stays, and ours goes on top of it. Runs
    that could not be archived before are archived first, also without a remote. Exit status: 1 if
    one still could not.
    """
    from ..review.push import push

    app.json_asked = as_json
    done = push(app.workspace(), remote, say=lambda what: app.terminal.err(one_line(what)))
    if as_json:
        emit_json(app, done.as_dict())
        return 1 if done.owed else 0
    for line in _told(done):
        app.terminal.out(one_line(line))
    for one in done.owed:
        app.terminal.err(one_line(f"not archived: {one.run_id}: {one.error.message}"))
    for problem in done.proposals.problems:
        app.terminal.err(one_line(f"warning: {problem}"))
    if done.remote is None:
        app.terminal.err("note: there is no remote to push to: everything stays here")
    return 1 if done.owed else 0


def _told(done: Pushed) -> list[str]:
    lines = []
    runs, proposals = done.runs, done.proposals
    if done.archived:
        lines.append(f"archived {_count(done.archived, 'run')} that had to wait")
    if runs.sent:
        after = f", {runs.replayed} of them after those of others" if runs.replayed else ""
        lines.append(f"sent {_count(runs.sent, 'run')} to {done.remote}{after}")
    if runs.taken:
        lines.append(f"took {_count(runs.taken, 'run')} from {done.remote}")
    lines += [f"sent the branch {branch}" for branch in proposals.branches]
    lines += [f"sent proposal {number}" for number in proposals.sent]
    lines += [f"sent what is new on proposal {number}" for number in proposals.added]
    lines += [f"new proposal {number}" for number in proposals.new]
    lines += [f"proposal {number} has changed" for number in proposals.changed]
    lines += [f"proposal {old} is now {new}" for old, new in proposals.renumbered.items()]
    if not lines and done.remote is not None:
        lines.append(f"{done.remote} has everything already")
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
