"""Put a branch up for review, with what its tasks did when they were run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..archive.branch import GitArchive
from ..errors import Hint, NextStep, Option, QuireError, UsageError
from ..git.repository import Repository, branch_name
from ..proof.keys import trust_of
from ..proof.verify import Verdict, verify_run
from ..record.record_files import NOTEBOOK
from ..record.summary import one_line, took
from ..task.sync import taking
from ..task.waiting_cells import told as cells_wait
from ..workspace import Workspace
from . import branches, change_set, notebook_pairs
from .change_set import Difference, File, Ran
from .commit import push_branch
from .proposal_body import DRAFTED, OWN_LIMIT, Place, Told, address_of, own_words, render
from .proposal_rules import CONTEXT, TITLE, fit_text, fit_title
from .protocol import Check, CheckState, Forge, Proposal
from .push import exchange, send_branch
from .run_for_source import backing

DRAFT = "Draft: "  # before the title of a proposal with cells that wait
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Shown:
    """A task of the change, the run of this version of it, and whether that verifies."""

    file: File
    ran: Ran | None = None
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()  # what other runs of this version say

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.file.path,
            "change": self.file.kind,
            "run_id": self.ran.run_id if self.ran else None,
            "outcome": self.ran.record.outcome if self.ran else None,
            "verified": self.verdict.ok if self.verdict else None,
            "waiting": [cell.name for cell in self.file.waiting],
        }


@dataclass(frozen=True, slots=True)
class Proposed:
    proposal: Proposal
    created: bool
    tasks: tuple[Shown, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        found = self.proposal
        return {
            "number": found.number,
            "url": found.url,
            "title": found.title,
            "branch": found.branch,
            "base": found.base,
            "head": found.head,
            "state": found.state,
            "created": self.created,
            "tasks": [task.as_dict() for task in self.tasks],
            "warnings": list(self.warnings),
        }


def propose(
    ws: Workspace,
    *,
    title: str | None = None,
    body: str | None = None,
    branch: str | None = None,
    base: str | None = None,
    run: str | None = None,
    draft: bool = False,
) -> Proposed:
    """Open a proposal, or bring the open one of the branch up to date. A task with cells that wait
    is proposed as a `draft` or not at all.

    Without a title it is the first line of the branch's first commit, without a body what the
    proposal said before. Everything is looked at before anything is sent.
    """
    repository = branches.working(ws)
    if title is not None:
        title = fit_title(title)
    if body is not None and len(body) > OWN_LIMIT:
        raise UsageError(
            f"the body has {len(body):,} characters; at most {OWN_LIMIT:,} are taken",
            hint="shorten it, and link to the rest",
        )
    fit_text(body or "", "body")
    forge = ws.forge
    remote = repository.remote() if forge.kind != "local" else None
    name, target, change = _change(ws, repository, branch, base, remote)
    shown = _shown(ws, repository, change, run)
    _is_said(shown, draft=draft)
    warnings = list(_uncommitted(repository, name, shown))
    wrong = notebook_pairs.touched(repository, change.head, (f.path for f in change.files))
    warnings += [f"{name}: {why}; {taking(name)}" for name, why in wrong.items()]
    warnings += [f"{task.file.path}: {note}" for task in shown for note in task.notes]
    if remote is not None:
        push_branch(repository, remote, name)
        _push_archive(ws, remote, warnings)
    warnings += send_branch(ws, name)
    there = _open_one(repository, forge, name, target, change.head)
    own = body if body is not None else own_words(there.body) if there else ""
    place = Place(name, remote or "", _folder(ws, repository), change.head)
    told = [_told(ws, forge, task, remote, there.body if there else "") for task in shown]
    text = render(own, told, place)
    if there is None:
        first = _titled(title or _subject(repository, change), draft=draft)
        found = forge.open(branch=name, base=target, title=first, body=text)
    else:
        found = forge.update(there.number, title=_retitled(title, there, draft=draft), body=text)
    if remote is not None:
        told = list(_attached(forge, found.number, shown, told, warnings))
        if (mended := render(own, told, place)) != text:
            found = forge.update(found.number, body=mended)
    for task, each in zip(shown, told, strict=True):
        _check(forge, change.head, task, each.notebook, warnings)
    shared = exchange(ws)
    found = replace(found, head=change.head, number=shared.number(found.number))
    return Proposed(found, there is None, shown, (*warnings, *shared.warnings))


def _is_said(shown: Sequence[Shown], *, draft: bool) -> None:
    """What is no finished work has to be called so, and only that."""
    waits = [task for task in shown if task.file.waiting]
    if waits and not draft:
        told = "; ".join(
            f"{one_line(task.file.path)}: {one_line(cells_wait(task.file.waiting))}"
            for task in waits
        )
        raise UsageError(
            told,
            hint=Hint(
                "write and commit them, or say that it is unfinished: {}",
                NextStep("propose", {"draft": True}),
            ),
        )
    if draft and not waits:
        raise UsageError(
            "no cell of the change waits: it is no draft",
            hint=Hint("leave out {}", Option("--draft", "draft")),
        )


def _titled(title: str, *, draft: bool) -> str:
    return f"{DRAFT}{title}"[:TITLE] if draft and not title.startswith(DRAFT) else title


def _retitled(title: str | None, there: Proposal, *, draft: bool) -> str | None:
    """None where it stays. What said that it is a draft says so no more when it is written."""
    was = there.title
    if title is None and not draft and DRAFTED in there.body:
        return was.removeprefix(DRAFT)
    worded = _titled(title or was, draft=draft)
    return None if title is None and worded == was else worded


def _change(
    ws: Workspace,
    repository: Repository,
    branch: str | None,
    base: str | None,
    remote: str | None,
) -> tuple[str, str, Difference]:
    """The branch, the base and what lies between them."""
    name = repository.branch() if branch is None else branch_name(branch)
    if name is None:
        raise UsageError(
            "the current commit is on no branch",
            hint=Hint("git switch -c NAME, or name one: {}", Option("--branch", "branch")),
        )
    target = branch_name(base) if base is not None else branches.main_branch(ws, repository)
    if target is None:
        raise UsageError(
            "there is no telling which branch is the main one",
            hint=Hint(
                'name it: {}, or base = "…" under [tool.quire.forge]', Option("--base", "base")
            ),
        )
    if name == target:
        raise UsageError(
            f"{name} is what proposals go to",
            hint=Hint(
                "{} makes a branch",
                NextStep("commit", {"path": "notebooks/x.py", "message": ...}),
            ),
        )
    if ws.config.archive.branch in (name, target):
        raise UsageError(
            f"{ws.config.archive.branch} holds the archive of runs", hint="name another branch"
        )
    head = repository.resolve(f"refs/heads/{name}")
    if head is None:
        raise UsageError(f"there is no branch {name}", hint="git branch lists them")
    onto = branches.tip(repository, target, remote)
    change = change_set.difference(repository, onto, head)
    if not change.files and not change.others:
        raise UsageError(
            f"{name} changes nothing that {target} does not have",
            hint=Hint("commit something on {} first: {}", name, NextStep("commit")),
        )
    return name, target, change


def _shown(
    ws: Workspace, repository: Repository, change: Difference, run: str | None
) -> tuple[Shown, ...]:
    trust = trust_of(ws, revision=change.onto)
    files = {file.path: file for file in change_set.tasks(repository, change)}
    given = _given(ws, repository, change, run) if run is not None else None
    if given is not None:
        files.setdefault(given[0].path, given[0])
    found = []
    for path, file in files.items():
        task = change_set.task_name(ws, repository, path)
        if given is not None and path == given[0].path:
            verdict = verify_run(ws, given[1].run_id, trust=trust)
            found.append(Shown(file, given[1], verdict))
            continue
        behind = backing(ws, task, file.new, trust, failed_too=True)
        found.append(Shown(file, behind.ran, behind.proof, behind.notes))
    return tuple(found)


def _given(ws: Workspace, repository: Repository, change: Difference, run: str) -> tuple[File, Ran]:
    """The run somebody names; of the text that is on the branch, or it proves nothing."""
    ran = change_set.archived(ws, run)
    assert repository.top is not None
    full = (ws.root.resolve() / ran.record.task).resolve()
    top = repository.top.resolve()
    path = full.relative_to(top).as_posix() if full.is_relative_to(top) else ""
    data = repository.blob(change.head, path) if path else None
    if data is None:
        raise UsageError(
            f"the run {ran.run_id} is of {ran.record.task}, which is not on the branch",
            hint=Hint("commit it first: {}", NextStep("commit")),
        )
    if not change_set.ran_text(ran.files, data):
        raise UsageError(
            f"the run {ran.run_id} ran another version of {ran.record.task}",
            hint=Hint("run what is on the branch: {}", NextStep("run", {"path": ran.record.task})),
        )
    return File(path, repository.blob(change.since, path), data), ran


def _uncommitted(repository: Repository, branch: str, shown: Sequence[Shown]) -> list[str]:
    if repository.branch() != branch or not shown:
        return []
    paths = [f":(literal){task.file.path}" for task in shown if task.file.new is not None]
    if not paths:
        return []
    raw = repository.raw("diff-index", "-z", "--name-only", "HEAD", "--", *paths)
    return [
        f"{name} has changes that are not committed; they are not proposed"
        for name in raw.decode("utf-8", "replace").split("\0")
        if name
    ]


def _open_one(
    repository: Repository, forge: Forge, branch: str, base: str, head: str
) -> Proposal | None:
    """The open proposal of the branch. Someone's fork may have a branch of that name too."""
    for found in forge.proposals("open"):
        # In a repository of its own a branch is one branch, also after it was rewritten.
        mine = forge.kind == "local" or repository.is_ancestor(found.head, head)
        if found.branch == branch and found.base == base and mine:
            return forge.proposal(found.number)
    return None


def _subject(repository: Repository, change: Difference) -> str:
    lines = repository.git("log", "--reverse", "--format=%s", f"{change.since}..{change.head}")
    return one_line(lines.split("\n")[0])[:TITLE] or "Changes"


def _folder(ws: Workspace, repository: Repository) -> str:
    assert repository.top is not None
    root, top = ws.root.resolve(), repository.top.resolve()
    return root.relative_to(top).as_posix() if root.is_relative_to(top) else ""


def _told(ws: Workspace, forge: Forge, task: Shown, remote: str | None, said: str) -> Told:
    """`said` is the body there was: what it links to needs no second place."""
    file = task.file
    document = change_set.document(file.new, file.path)
    first = next((c.source for c in document.cells if c.kind == "markdown"), "")
    left = tuple(cell.name for cell in file.waiting)
    told = Told(file.path, document.title, first, waiting=left)
    if file.new is None:
        return Told(file.path, gone=True)
    if task.ran is None or task.verdict is None:
        return told
    kept, address = "", ""
    if ws.archive.kind == "git":
        path = f"{ws.archive.path(task.ran.run_id)}/notebook.ipynb"
        kept = f"git show {ws.config.archive.branch}:{path}"
        if remote is not None:
            address = _linked(ws, forge, remote, path) or address_of(said, task.ran.run_id)
    ran, line = task.ran.record, task.verdict.line
    told = replace(told, record=ran, verified=line, notes=task.notes)
    return replace(told, notebook=address, kept=kept)


def _push_archive(ws: Workspace, remote: str, warnings: list[str]) -> None:
    """Only where the configuration says that runs are to be seen there: all of them go."""
    archive = ws.archive
    if not ws.config.archive.push or not isinstance(archive, GitArchive):
        return
    try:
        archive.push(ws.config.archive.remote or remote)
    except QuireError as error:
        warnings.append(f"the archive was not pushed: {error.message}")


def _linked(ws: Workspace, forge: Forge, remote: str, path: str) -> str:
    """The address of an archived file, where the server has the archive."""
    repository = ws.repository
    assert repository is not None
    commit = repository.resolve(f"refs/remotes/{remote}/{ws.config.archive.branch}")
    if commit is None or repository.ask("cat-file", "-e", f"{commit}:{path}").code:
        return ""
    return forge.link(commit, path) or ""


def _attached(
    forge: Forge, number: int, shown: Sequence[Shown], told: Sequence[Told], warnings: list[str]
) -> Iterator[Told]:
    """Executed notebooks that have no address yet are kept with the proposal, where that can be."""
    for task, each in zip(shown, told, strict=True):
        if task.ran is None or each.notebook:
            yield each
            continue
        try:
            name = f"{task.ran.run_id}.ipynb"
            address = forge.attach(number, name, task.ran.files[NOTEBOOK])
        except QuireError as error:
            warnings.append(f"the executed notebook was not attached: {error.message}")
            address = None
        yield replace(each, notebook=address or "")


def _check(forge: Forge, commit: str, task: Shown, url: str, warnings: list[str]) -> None:
    """What the run says of the commit; without a run nothing is said."""
    if task.ran is None or task.verdict is None:
        return
    record = task.ran.record
    state: CheckState = "success" if record.ok else "failure"
    words = f"{record.outcome} in {took(record.duration)}, {task.verdict.line}"
    if not task.verdict.ok:
        state, words = "error", task.verdict.line
    context = f"quire/{_CONTROL.sub('?', task.file.path)}"
    if len(context) > CONTEXT:
        context = f"quire/…{context[-(CONTEXT - 7) :]}"
    try:
        forge.set_check(commit, Check(context, state, one_line(words)[:140], url))
    except QuireError as error:
        warnings.append(f"the commit's status was not set: {error.message}")
