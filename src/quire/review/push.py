"""Send archived runs and local proposals to the remote, and take what others have sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..archive.branch import GitArchive
from ..archive.exchange import TIMEOUT, Exchanged
from ..archive.put import Owed, catch_up
from ..errors import QuireError, UsageError
from ..text import plain
from ..workspace import Workspace
from .branch_merge import QUICKER
from .commit import push_branch
from .local_forge import LocalForge
from .sync_with_remote import Travelled
from .sync_with_remote import push as push_proposals


@dataclass(frozen=True, slots=True)
class Pushed:
    remote: str | None  # None where there is none, and runs were only archived
    branch: str
    runs: Exchanged = field(default_factory=Exchanged)
    archived: int = 0  # runs that were still owed to the archive
    owed: tuple[Owed, ...] = ()  # those that still are
    proposals: Travelled = field(default_factory=Travelled)

    def as_dict(self) -> dict[str, Any]:
        told = self.proposals
        return {
            "remote": self.remote,
            "branch": self.branch,
            "sent": self.runs.sent,
            "taken": self.runs.taken,
            "replayed": self.runs.replayed,
            "archived": self.archived,
            "owed": {one.run_id: one.error.message for one in self.owed},
            "proposals": {
                "sent": list(told.sent),
                "added": list(told.added),
                "new": list(told.new),
                "changed": list(told.changed),
                "renumbered": {str(old): new for old, new in told.renumbered.items()},
                "branches": list(told.branches),
                "problems": list(told.problems),
            },
        }


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came of bringing proposals together at the end of something else."""

    told: Travelled = field(default_factory=Travelled)
    warnings: tuple[str, ...] = ()

    def number(self, number: int) -> int:
        """A proposal's number afterwards: another clone may have been quicker with that one."""
        return self.told.renumbered.get(number, number)


def _silent(what: str) -> None:
    pass


def push(
    ws: Workspace,
    remote: str = "",
    timeout: float = TIMEOUT,
    say: Callable[[str], None] = _silent,
) -> Pushed:
    """What could not be archived before is archived first. Nothing is forced, nothing is lost.

    Proposals do not wait for runs: where those are refused, they still go. `say` hears what is
    begun that may take long.
    """
    archive, repository = ws.archive, ws.repository
    git = archive if isinstance(archive, GitArchive) else None
    name = repository.remote(remote or ws.config.archive.remote) if repository and git else None
    if name is None and git and repository and repository.remotes():
        raise _which(repository.remotes())
    before = sum(1 for _ in ws.runs.owed())
    owed = catch_up(ws)
    done = before - len(owed)
    if name is None or git is None:
        if not before:
            raise _nowhere(ws)
        return Pushed(None, git.branch if git else "", archived=done, owed=tuple(owed))
    say(f"pushing to {name} …")
    runs, problem = Exchanged(), None
    try:
        runs = git.push(name, timeout)
    except QuireError as error:
        problem = error
    if problem is not None and problem.retryable:
        raise problem  # nobody is there: not for proposals either
    forge, told = ws.forge, Travelled()
    if isinstance(forge, LocalForge):
        told = push_proposals(forge, name, timeout)
    if problem is not None:
        raise problem
    return Pushed(name, git.branch, runs, done, tuple(owed), told)


def exchange(ws: Workspace, timeout: float = TIMEOUT) -> Exchange:
    """Bring local proposals together with the remote's, after one was made or changed.

    Nothing where there is no remote, where a server has them, or where the configuration says
    `push = false`. What was done is done: a remote that is not there is a warning.
    """
    remote = shared(ws)
    forge = ws.forge
    if remote is None or not isinstance(forge, LocalForge):
        return Exchange()
    try:
        told = push_proposals(forge, remote, timeout)
    except QuireError as error:
        return Exchange(warnings=(f"not sent yet: {plain(error.message)}; then: quire push",))
    moved = tuple(f"proposal {old} is now {new}" for old, new in told.renumbered.items())
    return Exchange(told, (*moved, *map(plain, told.problems)))


def shared(ws: Workspace) -> str | None:
    """The remote that local proposals are exchanged with by themselves."""
    if ws.repository is None or not ws.config.forge.push or ws.forge.kind != "local":
        return None
    return ws.repository.remote(ws.config.archive.remote)


def send_branch(ws: Workspace, branch: str) -> tuple[str, ...]:
    """The branch of a local proposal, before that says what is proposed; warnings.

    Others may have pushed to it: that must be mended first, and is an error. A remote that is not
    there is none.
    """
    remote = shared(ws)
    if remote is None or ws.repository is None:
        return ()
    try:
        push_branch(ws.repository, remote, branch)
    except QuireError as error:
        if QUICKER.search(error.message):
            raise
        return (f"{branch} is not sent yet: {plain(error.message)}; then: quire push",)
    return ()


def _nowhere(ws: Workspace) -> UsageError:
    if ws.repository is None:
        return UsageError(
            f"{ws.root} is in no git repository: there is nowhere to push to",
            hint=f"runs are kept in {ws.archive.where}; git init begins a repository",
        )
    return UsageError(
        "this repository has no remote",
        hint="git remote add origin <address>; until then everything stays here",
    )


def _which(remotes: list[str]) -> UsageError:
    return UsageError(
        f"there are several remotes: {', '.join(remotes)}",
        hint=f"name one: quire push --remote {remotes[0]}",
    )
