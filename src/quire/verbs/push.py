"""Send archived runs and local proposals to the remote, and take what others have sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import QuireError, UsageError
from ..forge.local import LocalForge
from ..forge.travel import push as push_proposals
from ..store.gitarchive import GitArchive
from ..store.gitexchange import TIMEOUT, Exchanged
from ..workspace import Workspace
from .archive import Owed, catch_up


@dataclass(frozen=True, slots=True)
class Pushed:
    remote: str
    branch: str
    runs: Exchanged
    archived: int = 0  # runs that were still owed to the archive
    owed: tuple[Owed, ...] = ()  # those that still are
    new: tuple[int, ...] = ()  # proposals that were not known here
    changed: tuple[int, ...] = ()  # proposals to which others have added
    renumbered: dict[int, int] = field(default_factory=dict)  # ours, whose number was taken there

    def as_dict(self) -> dict[str, Any]:
        return {
            "remote": self.remote,
            "branch": self.branch,
            "sent": self.runs.sent,
            "taken": self.runs.taken,
            "replayed": self.runs.replayed,
            "archived": self.archived,
            "owed": {one.run_id: one.error.message for one in self.owed},
            "proposals": {
                "new": list(self.new),
                "changed": list(self.changed),
                "renumbered": {str(old): new for old, new in self.renumbered.items()},
            },
        }


def push(ws: Workspace, remote: str = "", timeout: float = TIMEOUT) -> Pushed:
    """What could not be archived before is archived first. Nothing is forced, nothing is lost.

    Proposals do not wait for runs: where those are refused, they still go.
    """
    archive = ws.archive
    if ws.repository is None or not isinstance(archive, GitArchive):
        raise UsageError(
            f"{ws.root} is in no git repository: there is nowhere to push to",
            hint=f"runs are kept in {archive.where}; git init begins a repository",
        )
    name = ws.repository.remote(remote or ws.config.archive.remote)
    if name is None:
        raise _which(ws.repository.remotes())
    before = sum(1 for _ in ws.runs.owed())
    owed = catch_up(ws)
    runs, problem = Exchanged(), None
    try:
        runs = archive.push(name, timeout)
    except QuireError as error:
        problem = error
    travelled: dict[str, Any] = {}
    if problem is not None and problem.retryable:
        raise problem  # nobody is there: not for proposals either
    forge = ws.forge
    if isinstance(forge, LocalForge):
        told = push_proposals(forge, name)
        travelled = {"new": told.new, "changed": told.changed, "renumbered": dict(told.renumbered)}
    if problem is not None:
        raise problem
    done = before - len(owed)
    return Pushed(name, archive.branch, runs, done, tuple(owed), **travelled)


def _which(remotes: list[str]) -> UsageError:
    if not remotes:
        return UsageError(
            "this repository has no remote",
            hint="git remote add origin <address>; until then everything stays here",
        )
    return UsageError(
        f"there are several remotes: {', '.join(remotes)}",
        hint=f"name one: quire push --remote {remotes[0]}",
    )
