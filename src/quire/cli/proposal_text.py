"""A proposal on a terminal. Every text in it is a stranger's.

The left margin is ours: what others wrote stands on one line behind words of ours, or indented, or
as git's difference, where every line begins with a sign. So nobody can write a section of a review.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..record.summary import one_line, when
from ..render.comparison import lines
from ..review.safe_markdown import on_terminal
from ..text import visible
from .main import App
from .progress import COLOUR

if TYPE_CHECKING:
    from ..review.look import Review, Reviewed
    from ..review.protocol import Comment

_LOOKS = {"head": "bold", "added": "green", "removed": "red", "hunk": "blue", "note": "dim"}
_CHECKS = {"success": "green", "failure": "red", "error": "red", "pending": "yellow"}
_SAID = {"approve": "approved", "request_changes": "requests changes", "comment": "says"}
_SAID_EARLIER = {
    "approve": "approved an earlier version",
    "request_changes": "requested changes of an earlier version",
}
CELLS = 5


def show_review(app: App, seen: Review) -> None:
    term, found = app.terminal, seen.proposal
    term.out(term.paint(f"{found.number}: {one_line(found.title)}", "bold"))
    where = f"{one_line(found.branch)} into {one_line(found.base)}"
    term.out(f"{found.state}, {where}, by {one_line(found.author)}, {when(one_line(found.at))}")
    if found.url:
        term.out(one_line(found.url))
    for nb in seen.notebooks:
        if nb.wrong:
            told = f"{one_line(nb.path)}: {one_line(nb.wrong)}"
            term.out(f"{term.paint('problem:', 'red')} {told}")
    if found.merged:
        term.out(f"merged as {one_line(found.merged)[:10]}")
    if seen.described:
        what = f"describes an earlier version ({seen.described[:10]})"
        term.out()
        term.out(term.paint(f"{what}: quire propose brings it up to date", "yellow"))
    _quoted(app, found.body, gap=True)
    _said(app, seen)
    _heading(app, "source")
    for row in visible(seen.diff).rstrip("\n").split("\n"):
        term.out(term.paint(row, _look(row)))
    for task in seen.tasks:
        _task(app, task)
    _notebooks(app, seen)
    for warning in seen.warnings:
        term.out(f"{term.paint('warning:', 'yellow')} {one_line(warning)}")
    for problem in seen.problems:
        term.out(f"{term.paint('problem:', 'red')} {one_line(problem)}")


def _heading(app: App, text: str) -> None:
    app.terminal.out()
    app.terminal.out(app.terminal.paint(f"== {one_line(text)}", "bold"))


def _quoted(app: App, text: str, *, gap: bool = False) -> None:
    lines = on_terminal(text)
    if lines and gap:
        app.terminal.out()
    for line in lines:
        app.terminal.out(f"    {line}".rstrip())


def _said(app: App, seen: Review) -> None:
    term, found = app.terminal, seen.proposal
    if found.checks:
        _heading(app, "checks")
    for check in found.checks:
        state = term.paint(check.state, _CHECKS.get(check.state, ""))
        term.out(f"{state}  {one_line(check.context)}  {one_line(check.description)}".rstrip())
    if found.comments:
        _heading(app, "comments")
    for comment in found.comments:
        term.out(f"{one_line(comment.author)} {_did(seen, comment)}, {when(one_line(comment.at))}")
        _quoted(app, comment.text)


def _did(seen: Review, comment: Comment) -> str:
    if comment.verdict is not None and seen.is_of_another_version(comment):
        return f"{_SAID_EARLIER[comment.verdict]} ({one_line(comment.commit)[:10]})"
    return _SAID.get(comment.verdict or "comment", "says")


def _look(row: str) -> str:
    if row.startswith("@@"):
        return "blue"
    if row.startswith(("diff ", "index ", "--- ", "+++ ")):
        return "bold"
    return {"+": "green", "-": "red"}.get(row[:1], "")


def _task(app: App, task: Reviewed) -> None:
    term = app.terminal
    _heading(app, f"{task.file.path} ({task.file.kind})")
    if task.file.new is None:
        return
    if task.ran is None or task.proof is None:
        term.out("no archived run of this version")
        return
    record = task.ran.record
    outcome = term.paint(record.outcome, COLOUR[record.outcome])
    term.out(f"{outcome}  {task.ran.run_id}")
    term.out(term.paint(one_line(task.proof.line), "green" if task.proof.ok else "red"))
    for finding in task.proof.findings:
        term.out(f"    {one_line(str(finding))}")
    for note in task.proof.notes:
        term.out(f"    {one_line(note)}")
    for note in task.notes:
        term.out(f"{term.paint('note:', 'yellow')} {one_line(note)}")
    for row, look in _results(task):
        term.out(term.paint(row, look))


def _results(task: Reviewed) -> Iterator[tuple[str, str]]:
    if task.before is None or task.comparison is None:
        if task.file.kind != "added":
            yield "no archived run of the base's version to compare with", "dim"
        return
    yield f"against {task.before.run_id}, the last run on the base:", ""
    if task.comparison.verdict == "equal":
        yield "    the same results and outputs", ""
    for line in lines(task.comparison):
        for row in line.text.split("\n"):
            yield (f"    {row}".rstrip(), _LOOKS.get(line.look, ""))


def _notebooks(app: App, seen: Review) -> None:
    uncovered = [nb for nb in seen.notebooks if nb.uncovered]
    if uncovered:
        _heading(app, "notebooks")
    for nb in uncovered:
        app.terminal.out(f"{one_line(nb.path)}: what it shows is covered by no archived run")
        for found in nb.uncovered[:CELLS]:
            app.terminal.out(f"    {one_line(found)}")
        if len(nb.uncovered) > CELLS:
            app.terminal.out(f"    … and {len(nb.uncovered) - CELLS} more")
