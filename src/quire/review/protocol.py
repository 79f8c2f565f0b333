"""What a forge can do. One Protocol, three implementations, one contract suite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["open", "merged", "closed"]
Verdict = Literal["approve", "comment", "request_changes"]
CheckState = Literal["pending", "success", "failure", "error"]
Finish = Callable[[str], str]  # the id of a merged tree to the id of the one to commit


@dataclass(frozen=True, slots=True)
class Comment:
    """What somebody said of a proposal; with a verdict, it is a review."""

    author: str
    at: str
    text: str
    verdict: Verdict | None = None
    commit: str = ""  # of a review: the head of the proposal when it was made, where that is known


@dataclass(frozen=True, slots=True)
class Check:
    """What a machine said of a commit. The newest of a context counts."""

    context: str
    state: CheckState
    description: str = ""
    url: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change put up for review. Strings in it are a stranger's."""

    number: int
    title: str
    body: str
    branch: str
    base: str
    head: str  # the commit the branch is at
    state: State
    author: str
    at: str
    url: str = ""  # empty where there is no server
    merged: str | None = None  # the commit that it became
    comments: tuple[Comment, ...] = ()
    checks: tuple[Check, ...] = ()


class Forge(Protocol):
    """Every method raises ForgeError, with the next step, when the forge says no or nothing.

    Where git itself refuses it is a GitError, and a title or number that no forge could take is
    a UsageError. Branches are on the forge already when they are named: whoever calls has pushed
    them.
    """

    @property
    def kind(self) -> str: ...  # local, gitea or github

    @property
    def where(self) -> str: ...  # for people: the repository on its server, or in this folder

    @property
    def finishes(self) -> bool: ...  # whether `merge` heeds `finish`

    def open(self, *, branch: str, base: str, title: str, body: str) -> Proposal: ...

    def update(self, number: int, *, title: str | None = None, body: str | None = None) -> Proposal:
        """Change what the proposal says of itself; None leaves a part as it is."""
        ...

    def proposals(self, state: State | None = "open") -> list[Proposal]:
        """Newest first; None for all. Comments and checks may be left out."""
        ...

    def proposal(self, number: int) -> Proposal:
        """With everything."""
        ...

    def comment(self, number: int, text: str) -> None: ...

    def review(self, number: int, verdict: Verdict, text: str) -> None: ...

    def set_check(self, commit: str, check: Check) -> None:
        """Say what a machine found of a commit. `at` is the forge's to fill in."""
        ...

    def attach(self, number: int, name: str, data: bytes) -> str | None:
        """Keep a file with the proposal; its address, or None where that is not possible."""
        ...

    def link(self, commit: str, path: str) -> str | None:
        """Where a person can look at a file of a commit; None where there is no server."""
        ...

    def merge(self, number: int, message: str, finish: Finish | None = None) -> str:
        """Merge it; the commit that it became. Refused while changes are requested.

        Where the commit is made here, `finish` may change its tree. A server makes its own: there
        `finishes` is False, and whoever calls adds a commit of theirs afterwards.
        """
        ...

    def close(self, number: int) -> None: ...
