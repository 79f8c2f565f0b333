"""Merge a proposal: through its forge, with notebooks made again from the merged text."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from ..errors import ForgeError, GitError, QuireError
from ..git.hooks import hook
from ..git.repository import Repository, branch_name
from ..git.setup import is_set_up
from ..host.person_only import refuse_from_kernel
from ..record.summary import one_line
from ..task.sync import taking
from ..text import plain
from ..workspace import Workspace
from . import branches, change_set
from .branch_merge import not_reached, upstream
from .local_forge import LocalForge
from .look import FETCH, FETCH_TIMEOUT, Review, review
from .proposal_rules import fit_number, must_be_mergeable
from .protocol import Proposal
from .push import exchange
from .regenerate import regenerated
from .sync_with_remote import fetch


@dataclass(frozen=True, slots=True)
class Merged:
    number: int
    commit: str
    branch: str
    base: str
    regenerated: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "commit": self.commit,
            "branch": self.branch,
            "base": self.base,
            "regenerated": list(self.regenerated),
            "warnings": list(self.warnings),
        }


def merge_proposal(ws: Workspace, number: int, *, message: str = "", force: bool = False) -> Merged:
    """`force`: although a check fails, or a run is missing, failed or does not verify. Asked-for
    changes still count.

    The branch stays where it is. What others said of a local proposal counts too, so it is fetched
    first; where a remote has the base, the merge is the remote's or there is none.
    """
    refuse_from_kernel(ws, "to merge a proposal")
    repository = branches.working(ws)
    forge = ws.forge
    _take_in(ws, repository, fit_number(number))
    found = forge.proposal(number)
    must_be_mergeable(found)
    looked = review(ws, number)
    against = [*looked.problems, *_failing(looked.proposal)]
    if against and not force:
        raise ForgeError(
            f"proposal {number} is not merged: {'; '.join(map(plain, against))}",
            hint=f"{_next(looked)}; --force merges it all the same",
        )
    warnings = [f"merged all the same: {plain(each)}" for each in against]
    warnings += looked.warnings
    warnings += [
        f"the check {plain(check.context)} has not ended"
        for check in looked.proposal.checks
        if check.state == "pending"
    ]
    made: list[str] = []
    tasks = _tasks(repository, looked)

    def finish(tree: str) -> str:
        mended, paths = regenerated(repository, tree, tasks)
        made[:] = paths  # it may be asked for more than once
        return mended

    before = repository.head()
    said = message.strip() or f"Merge proposal {number}: {one_line(found.title)}"
    commit = forge.merge(number, said, finish if forge.finishes else None)
    if not repository.is_ancestor(forge.proposal(number).head, looked.change.head):
        warnings.append("the branch moved while it was being merged: look at what came in")
    if not forge.finishes:
        made, told = _afterwards(repository, found, tasks)
        warnings += told
    elif upstream(repository, found.base):
        warnings += _left_behind(repository, found.base, commit)
    if repository.top is not None and repository.head() != before and is_set_up(repository):
        # No hook was called when this working tree followed.
        warnings += hook("post-merge", ["0"], repository.top, ws.env)
    warnings += exchange(ws).warnings
    return Merged(number, commit, found.branch, found.base, tuple(made), tuple(warnings))


def _next(looked: Review) -> str:
    found = looked.proposal
    for nb in looked.notebooks:
        if nb.wrong:
            return f"on the branch {one_line(found.branch)}: {taking(one_line(nb.path))}"
    lacking = [task.file.path for task in looked.tasks if task.lacks_run]
    if not lacking:
        return f"quire review {found.number} says more"
    run = shlex.join(["quire", "run", one_line(lacking[0])])
    return f"on the branch {one_line(found.branch)}: {run}, then merge it again"


def _take_in(ws: Workspace, repository: Repository, number: int) -> None:
    """The local proposals of the remote, and their branches."""
    forge = ws.forge
    remote = repository.remote(ws.config.archive.remote)
    if remote is None or forge.kind != "local" or not isinstance(forge, LocalForge):
        return
    found = forge.proposal(number)
    try:
        told = fetch(forge, remote)
    except GitError as error:
        if upstream(repository, found.base) is None:
            return  # it is merged here, and sent when the remote is there
        raise not_reached(found, remote, error) from error
    if number in told.renumbered:
        raise ForgeError(
            f"proposal {number} is now {told.renumbered[number]}: another clone had that number "
            "first",
            hint=f"quire merge-proposal {told.renumbered[number]}",
        )


def _left_behind(repository: Repository, base: str, commit: str) -> list[str]:
    """The remote has it. Work of one's own can keep the base here from following."""
    here = repository.resolve(f"refs/heads/{base}")
    if here is None or repository.is_ancestor(commit, here):
        return []
    return [f"{base} here has changes of its own and stays where it was; git pull brings the merge"]


def _failing(proposal: Proposal) -> list[str]:
    return [
        f"the check {check.context} says {check.state}"
        for check in proposal.checks
        if check.state in ("failure", "error")
    ]


def _tasks(repository: Repository, looked: Review) -> list[str]:
    return [
        file.path
        for file in change_set.tasks(repository, looked.change)
        if file.suffix == ".py" and file.new is not None
    ]


def _afterwards(
    repository: Repository, found: Proposal, tasks: list[str]
) -> tuple[list[str], list[str]]:
    """A server merges by itself: notebooks that are behind then get a commit of their own."""
    base = branch_name(found.base)
    remote = repository.remote()
    if remote is None:
        return [], []
    ref = f"refs/remotes/{remote}/{base}"
    try:
        repository.git(
            "fetch", *FETCH, "--", remote, f"+refs/heads/{base}:{ref}", timeout=FETCH_TIMEOUT
        )
        tip = repository.git("rev-parse", "--verify", ref)
        old = repository.git("rev-parse", "--verify", f"{tip}^{{tree}}")
        tree, made = regenerated(repository, old, tasks)
        if not made:
            return [], []
        text = f"Make notebooks again after proposal {found.number}\n".encode()
        commit = repository.git("commit-tree", tree, "-p", tip, input=text)
        repository.git(
            "push", "--quiet", "--", remote, f"{commit}:refs/heads/{base}", timeout=FETCH_TIMEOUT
        )
    except QuireError as error:
        told = f"notebooks may be behind on {base}: {plain(error.message)}"
        return [], [f"{told}; git pull, then quire sync and quire commit"]
    return list(made), []
