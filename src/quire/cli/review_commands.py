"""`quire commit`, `propose`, `proposals`, `review`, `merge-proposal` and `close-proposal`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import click

from ..errors import UsageError
from ..record.summary import one_line
from ..review.protocol import State, Verdict
from .main import App, emit_json
from .progress import COLOUR

_FINDINGS = 20


@click.command(
    epilog="""Examples:

\b
  quire commit notebooks/report.py -m "Add the report"
  quire commit notebooks/report.py -m "Add the report" --branch add-report --json
"""
)
@click.argument("paths", nargs=-1, required=True)
@click.option("-m", "--message", required=True, metavar="TEXT", help="What changed, and why.")
@click.option("--branch", metavar="NAME", help="The branch to commit to; a new one is made.")
@click.option("--push/--no-push", default=None, help="Push the branch, or do not.")
@click.option("--no-verify", is_flag=True, help="Leave out the repository's hooks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def commit(
    app: App,
    paths: tuple[str, ...],
    message: str,
    branch: str | None,
    push: bool | None,
    no_verify: bool,
    as_json: bool,
) -> None:
    """Commit a task and its notebook to a branch.

    PATHS are .py or .ipynb tasks, or folders. The .py and its .ipynb without outputs are committed
    together, and nothing else with them, whatever is staged. On the main branch a new one is made
    and switched to.
    """
    from ..review.commit import commit as make

    app.json_asked = as_json
    done = make(
        app.workspace(), list(paths), message, branch=branch, push=push, hooks=not no_verify
    )
    if as_json:
        emit_json(app, done.as_dict())
        return
    term = app.terminal
    for path, finding in done.findings[:_FINDINGS]:
        where = f"{one_line(path)}, cell {finding.index}, line {finding.line}"
        kind = term.paint(finding.kind, "yellow", on_err=True)
        term.err(f"{kind}: {where}: {one_line(finding.message)}")
    if len(done.findings) > _FINDINGS:
        term.err(f"… and {len(done.findings) - _FINDINGS} more")
    _warn(app, done.warnings)
    if done.commit is None:
        term.out("nothing changed: what would be committed is in the current commit")
        return
    new = " (new)" if done.created else ""
    term.out(f"{done.commit[:10]} on {one_line(done.branch)}{new}")
    for path in done.paths:
        term.out(f"  {one_line(path)}")
    if done.pushed:
        term.out(f"pushed to {one_line(done.pushed)}")


@click.command(
    epilog="""Examples:

\b
  quire propose --title "Add the report"
  quire propose --title "Add the report" --body "For the weekly meeting." --base develop
  quire propose --run 2026-11-16-163516-report-8121
"""
)
@click.option("--title", metavar="TEXT", help="One line; else that of the branch's first commit.")
@click.option("--body", metavar="TEXT", help="What to say above the summary of the runs.")
@click.option("--branch", metavar="NAME", help="The branch to propose; else the current one.")
@click.option("--base", metavar="NAME", help="The branch it should go to; else the main one.")
@click.option("--run", metavar="RUN", help="The run to show; else the newest of each task.")
@click.option("--draft", is_flag=True, help="Although cells wait to be written; it is said so.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def propose(app: App, /, as_json: bool, draft: bool, **options: str | None) -> None:
    """Put a branch up for review.

    The proposal shows what the tasks of the change did when they were run, from the newest archived
    run of exactly this version. Said again, it brings the open proposal up to date. With cells that
    wait to be written there is no proposal, unless --draft says what it is.
    """
    from ..review.propose import propose as put_up

    app.json_asked = as_json
    done = put_up(app.workspace(), **options, draft=draft)
    if as_json:
        emit_json(app, done.as_dict())
        return
    term, found = app.terminal, done.proposal
    _warn(app, done.warnings)
    what = "opened" if done.created else "updated"
    term.out(
        f"{what}: proposal {found.number}, {one_line(found.branch)} into {one_line(found.base)}"
    )
    for task in done.tasks:
        if task.file.new is None:
            term.out(f"  {one_line(task.file.path)}: removed")
        elif task.ran is None or task.verdict is None:
            term.out(f"  {one_line(task.file.path)}: no archived run of this version")
        else:
            outcome = term.paint(task.ran.record.outcome, COLOUR[task.ran.record.outcome])
            line = one_line(task.verdict.line)
            term.out(f"  {one_line(task.file.path)}: {outcome}, {line}")
    if found.url:
        term.out(one_line(found.url))


@click.command(epilog="Examples: quire proposals · quire proposals --state all --json")
@click.option(
    "--state",
    type=click.Choice(["open", "merged", "closed", "all"]),
    default="open",
    show_default=True,
    help="Which ones.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def proposals(app: App, state: str, as_json: bool) -> None:
    """List proposals, newest first."""
    from ..review.look import as_dict
    from ..review.look import proposals as listed

    app.json_asked = as_json
    wanted = None if state == "all" else cast("State", state)
    found = listed(app.workspace(), wanted)
    if as_json:
        emit_json(app, [as_dict(one) for one in found])
        return
    if not found:
        app.terminal.err("There are no such proposals.")
    for one in found:
        title, branch = one_line(one.title), one_line(one.branch)
        app.terminal.out(f"{one.number:>4}  {one.state:6}  {branch}  {title}")


@click.command(
    epilog="""Examples:

\b
  quire review 3
  quire review 3 --approve -m "Good."
  quire review 3 --request-changes "The total is off by one."
"""
)
@click.argument("number", type=click.IntRange(min=1))
@click.option("--approve", is_flag=True, help="Say that it may be merged.")
@click.option("--comment", metavar="TEXT", help="Say something of it.")
@click.option("--request-changes", metavar="TEXT", help="Say what must change first.")
@click.option("-m", "--message", metavar="TEXT", help="With --approve: what to say.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def review(
    app: App,
    number: int,
    approve: bool,
    comment: str | None,
    request_changes: str | None,
    message: str | None,
    as_json: bool,
) -> int:
    """Look at a proposal, and say what you think of it.

    Shows what it says, the difference in the source, the difference in the results against the last
    run on its base, and whether the runs behind it verify. Exit code: 0, or 1 when a run is
    missing, failed or does not verify.
    """
    from ..review.look import as_dict, say
    from ..review.look import review as look
    from .proposal_text import show_review

    app.json_asked = as_json
    verdict = _verdict(approve, comment, request_changes, message)
    if verdict is not None:
        kind, text = verdict
        found, warnings = say(app.workspace(), number, kind, text)
        if as_json:
            emit_json(app, as_dict(found) | {"verdict": kind, "warnings": list(warnings)})
        else:
            _warn(app, warnings)
            app.terminal.out(f"{_DONE[kind]} proposal {found.number}")
        return 0
    seen = look(app.workspace(), number)
    if as_json:
        emit_json(app, seen.as_dict())
    else:
        show_review(app, seen)
    return 1 if seen.problems else 0


_DONE = {
    "approve": "approved",
    "comment": "commented on",
    "request_changes": "requested changes of",
}


def _verdict(
    approve: bool, comment: str | None, changes: str | None, message: str | None
) -> tuple[Verdict, str] | None:
    if sum((approve, comment is not None, changes is not None)) > 1:
        raise UsageError(
            "only one of --approve, --comment and --request-changes can be said at a time",
            hint="call it again for the other",
        )
    if message is not None and not approve:
        raise UsageError("-m goes with --approve", hint='--comment "…" or --request-changes "…"')
    if approve:
        return "approve", message or ""
    if comment is not None:
        return "comment", comment
    return None if changes is None else ("request_changes", changes)


@click.command(
    "merge-proposal",
    epilog='Examples: quire merge-proposal 3 · quire merge-proposal 3 -m "Merge the report" --json',
)
@click.argument("number", type=click.IntRange(min=1))
@click.option("-m", "--message", default="", metavar="TEXT", help="The message of the commit.")
@click.option("--force", is_flag=True, help="Although a check fails or no good run is behind it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def merge_proposal(app: App, number: int, message: str, force: bool, as_json: bool) -> None:
    """Merge a proposal.

    Refused while somebody asks for changes; and, without --force, while a check fails, or a changed
    task has no run of this version that went well and verifies. Notebooks are made again from the
    merged source. The branch stays.
    """
    from ..review.merge_proposal import merge_proposal as merge

    app.json_asked = as_json
    done = merge(app.workspace(), number, message=message, force=force)
    if as_json:
        emit_json(app, done.as_dict())
        return
    _warn(app, done.warnings)
    term = app.terminal
    term.out(f"merged: proposal {number} into {one_line(done.base)} as {done.commit[:10]}")
    for path in done.regenerated:
        term.out(f"  made again: {one_line(path)}")


@click.command(
    "close-proposal",
    epilog="Examples: quire close-proposal 3 · quire close-proposal 3 --json",
)
@click.argument("number", type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def close_proposal(app: App, number: int, as_json: bool) -> None:
    """Withdraw a proposal without merging it. The branch stays."""
    from ..review.look import as_dict
    from ..review.look import close_proposal as close

    app.json_asked = as_json
    found, warnings = close(app.workspace(), number)
    if as_json:
        emit_json(app, as_dict(found) | {"warnings": list(warnings)})
        return
    _warn(app, warnings)
    app.terminal.out(f"closed: proposal {found.number}; its branch {one_line(found.branch)} stays")


def _warn(app: App, warnings: Sequence[str]) -> None:
    for warning in warnings:
        app.terminal.err(
            f"{app.terminal.paint('warning:', 'yellow', on_err=True)} {one_line(warning)}"
        )
