"""notebook_commit and notebook_pr."""

from __future__ import annotations

from ..record.summary import one_line
from ..render.agent_run import Told
from ..review.commit import commit as make
from ..review.propose import propose
from ..text import mentioned
from ..workspace import Workspace
from . import tool_texts
from .caller import Caller
from .notebook_tools import inside


def commit(
    ws: Workspace,
    caller: Caller,
    *,
    path: str,
    message: str,
    branch: str | None = None,
    push: bool | None = None,
) -> Told:
    done = make(ws, [inside(ws, path)], message, branch=branch, push=push)
    if done.commit is None:
        first = f"nothing to commit: {mentioned(path)} is in the current commit as it is"
    else:
        new = " (new)" if done.created else ""
        first = f"committed {done.commit[:10]} on {one_line(done.branch)}{new}"
        first += f", pushed to {one_line(done.pushed)}" if done.pushed else ", not pushed"
    lines = [first, *(f"  {mentioned(name)}" for name in done.paths)]
    lines += [f"warning: {one_line(warning)}" for warning in done.warnings]
    lines += [
        f"{found.kind}: {mentioned(name)}, cell {found.index}, line {found.line}: "
        f"{one_line(found.message)}"
        for name, found in done.findings[: tool_texts.SHOWN]
    ]
    if done.commit is not None:
        lines.append(
            f'Next: notebook_pr(branch="{one_line(done.branch)}", title="…", description="…")'
        )
    return Told("\n".join(lines))


def pr(
    ws: Workspace,
    caller: Caller,
    *,
    branch: str,
    title: str,
    description: str,
    base: str | None = None,
    run: str | None = None,
    draft: bool = False,
) -> Told:
    done = propose(
        ws, title=title, body=description, branch=branch, base=base, run=run, draft=draft
    )
    found = done.proposal
    what = "opened" if done.created else "updated"
    into = f"{one_line(found.branch)} into {one_line(found.base)}"
    lines = [f"{what} proposal {found.number}: {into}"]
    if found.url:
        lines.append(one_line(found.url))
    for task in done.tasks:
        name = mentioned(task.file.path)
        if task.file.new is None:
            lines.append(f"  {name}: removed")
        elif task.ran is None or task.verdict is None:
            lines.append(f"  {name}: no archived run of this version; notebook_execute it first")
        else:
            outcome = task.ran.record.outcome
            lines.append(f"  {name}: {outcome}, {one_line(task.verdict.line)}")
    lines += [f"warning: {one_line(warning)}" for warning in done.warnings]
    return Told("\n".join(lines))
