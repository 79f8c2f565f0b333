"""What a forge can do. One Protocol, three implementations, one contract suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["open", "merged", "closed"]
Verdict = Literal["approve", "comment", "request_changes"]
CheckState = Literal["pending", "success", "failure", "error"]


@dataclass(frozen=True, slots=True)
class Comment:
    """What somebody said of a proposal; with a verdict, it is a review."""

    author: str
    at: str
    text: str
    verdict: Verdict | None = None


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

    Branches are on the forge already when they are named: whoever calls has pushed them.
    """

    kind: str

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

    def set_check(self, commit: str, check: Check) -> None: ...

    def attach(self, number: int, name: str, data: bytes) -> str | None:
        """Keep a file with the proposal; its address, or None where that is not possible."""
        ...

    def link(self, commit: str, path: str) -> str | None:
        """Where a person can look at a file of a commit; None where there is no server."""
        ...

    def merge(self, number: int, message: str) -> str:
        """Merge it; the commit that it became. Refused while changes are requested."""
        ...

    def close(self, number: int) -> None: ...
