"""What this repository has acknowledged of an archive's branch, told apart from the branch itself.

.git/quire/<branch>.tip
    <commit>         where the branch was last; two while it is moved: either may be found
    lost <commit>    where it was before somebody set it back, until it holds that again

On a branch that was set back every seal is good. Only who remembers can tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import GitError
from ..files import write_atomic
from ..git.objects import entries
from ..git.ref_log import own_folder
from ..git.repository import Repository
from .layout import RUNS, is_run_id, some


@dataclass(frozen=True, slots=True)
class Seen:
    tips: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Witness:
    def __init__(self, repository: Repository, branch: str) -> None:
        self.repository = repository
        self.branch = branch

    @property
    def path(self) -> Path:
        return own_folder(self.repository) / f"{self.branch.replace('/', '%2F')}.tip"

    def read(self) -> Seen:
        try:
            lines = self.path.read_text("ascii").split("\n")
        except (OSError, ValueError):
            return Seen()
        tips, lost = dict[str, None](), dict[str, None]()
        for line in lines:
            commit = line.removeprefix("lost ").strip()
            if commit:
                (lost if line.startswith("lost ") else tips)[commit] = None
        return Seen(tuple(tips), tuple(lost))

    def write(self, tips: Sequence[str], lost: Sequence[str] = ()) -> None:
        lines = [*tips, *(f"lost {commit}" for commit in lost)]
        # Where this cannot be written the run is archived all the same.
        with contextlib.suppress(OSError, GitError):
            write_atomic(self.path, "\n".join(lines).encode() + b"\n", durable=False)

    def missing(self, tip: str | None, seen: Seen | None = None) -> tuple[str, ...]:
        """Where the branch once was and what it does not hold at `tip`.

        git is not asked as long as the branch is where it was left. Who does not hold the branch
        still reads `seen` before the tip: what others add in between is then on the branch. What a
        push has put in other commits meanwhile, the witness knows afterwards.
        """
        if seen is not None:
            found = self.missing(tip) if (early := self._missing(tip, seen)) else ()
            return tuple(commit for commit in found if commit in early)
        return self._missing(tip, self.read())

    def _missing(self, tip: str | None, seen: Seen) -> tuple[str, ...]:
        found = self.still_missing(tip, seen.lost)
        if seen.tips and tip not in seen.tips and not any(self._holds(tip, c) for c in seen.tips):
            found += (seen.tips[-1],)
        return tuple(dict.fromkeys(found))

    def still_missing(self, tip: str | None, lost: Sequence[str]) -> tuple[str, ...]:
        return tuple(commit for commit in lost if not self._holds(tip, commit))

    def _holds(self, tip: str | None, commit: str) -> bool:
        return tip is not None and (tip == commit or self.repository.is_ancestor(commit, tip))

    # In words.

    def told(self, tip: str | None, missing: Sequence[str]) -> str:
        """What is gone, and what to do about it."""
        return " ".join(f"{self.what(tip, lost)}. {self._next(tip, lost)}" for lost in missing)

    def what(self, tip: str | None, lost: str) -> str:
        gone = self._gone(tip, lost)
        which = f": {some(gone)}" if gone else ""
        if tip is None:
            return (
                f"the branch {self.branch} is gone with all its runs{which}; it was at {lost[:12]}"
            )
        told = f"the branch {self.branch} was at {lost[:12]} and does not hold it any more"
        if gone == []:
            return f"{told}: its runs are there, but in other commits"
        changed = "" if self._is_shorter(tip, lost) else " or changed"
        return f"{told}: runs were removed{changed}{which}"

    def _next(self, tip: str | None, lost: str) -> str:
        if not self._is_here(lost):
            return "This repository has them no more; quire push takes what the remote still has"
        if tip is None:
            return f"To have it back: git branch {self.branch} {lost}"
        if self._is_shorter(tip, lost):
            return f"To have them back: git update-ref refs/heads/{self.branch} {lost} {tip}"
        keep = f"git branch {self.branch}-{lost[:12]} {lost}"
        return f"To look at them: git log {lost} ^{tip[:12]}; so that git keeps them: {keep}"

    def _is_here(self, commit: str) -> bool:
        return self.repository.resolve(commit) is not None

    def _is_shorter(self, tip: str, lost: str) -> bool:
        return self.repository.is_ancestor(tip, lost)

    def _gone(self, tip: str | None, lost: str) -> list[str] | None:
        """The runs that are not there as they were; None where the commit itself is gone."""
        try:
            then = self._runs(lost)
            now = self._runs(tip) if tip is not None else {}
        except GitError:
            return None
        return sorted(run_id for run_id, id_ in then.items() if now.get(run_id) != id_)

    def _runs(self, commit: str) -> dict[str, str]:
        found = entries(self.repository, commit, f"{RUNS}/", folders=True)
        names = ((entry.path.rpartition("/")[2], entry.id) for entry in found)
        return {name: id_ for name, id_ in names if is_run_id(name)}
