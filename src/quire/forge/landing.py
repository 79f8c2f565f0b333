"""Merging a branch into another without a working tree, and letting one follow that is there."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import ForgeError, GitError
from ..store.git import Repository, Said, call, refused
from .protocol import Finish, Proposal

TRIES = 10


def land(repository: Repository, proposal: Proposal, message: str, finish: Finish | None) -> str:
    """The commit on the base branch that holds the proposal. All of it happens, or nothing."""
    ref = f"refs/heads/{proposal.base}"
    for _ in range(TRIES):
        tip = repository.resolve(ref)
        if tip is None:
            raise ForgeError(
                f"proposal {proposal.number} goes to {proposal.base}, and there is no such branch",
                hint=f"git fetch, then git branch {proposal.base} origin/{proposal.base}",
            )
        if repository.is_ancestor(proposal.head, tip):
            return joined(repository, proposal.head, tip)
        tree, conflicts = merged_tree(repository, tip, proposal)
        if finish is not None:
            merged = tree
            tree = repository.git("rev-parse", "--verify", f"{finish(merged)}^{{tree}}")
            # What can be made again from the rest of the tree is no conflict.
            conflicts = [
                path
                for path in conflicts
                if repository.blob(tree, path) == repository.blob(merged, path)
            ]
        if conflicts:
            raise conflicting(proposal, conflicts)
        parents = ("-p", tip, "-p", proposal.head)
        commit = repository.git(
            "commit-tree", tree, *parents, input=message.encode("utf-8", "surrogateescape")
        )
        if _moved(repository, ref, tip, commit, proposal):
            return commit
    raise GitError(
        f"{proposal.base} moved {TRIES} times while proposal {proposal.number} was being merged",
        hint="say it again",
    )


def joined(repository: Repository, head: str, tip: str) -> str:
    """Where a branch already has that commit: the merge that brought it, or the commit itself."""
    merges = repository.git(
        "rev-list", "--ancestry-path", "--merges", "--topo-order", "--reverse", f"{head}..{tip}"
    )
    return merges.split("\n")[0] or head


def merged_tree(repository: Repository, tip: str, proposal: Proposal) -> tuple[str, list[str]]:
    """The tree, and the files in it that both sides changed in ways that do not go together."""
    options = ("--write-tree", "--name-only", "--no-messages", "-z")
    said = repository.ask("merge-tree", *options, tip, proposal.head)
    parts = said.out.decode("utf-8", "surrogateescape").split("\0")
    if said.code in (0, 1):
        return parts[0].strip(), sorted({part for part in parts[1:] if part})
    if "unrelated histories" in said.err:
        raise ForgeError(
            f"{proposal.branch} and {proposal.base} have no commit in common",
            hint=f"begin the branch anew from {proposal.base}",
        )
    raise refused(said, ["merge-tree"])


def conflicting(proposal: Proposal, files: list[str]) -> ForgeError:
    return ForgeError(
        f"proposal {proposal.number} conflicts with {proposal.base} in {_listed(files)}",
        hint=f"git switch {proposal.branch} && git merge {proposal.base}, mend the files and "
        "commit; then merge the proposal again",
    )


def _moved(repository: Repository, ref: str, tip: str, commit: str, proposal: Proposal) -> bool:
    """Whether the branch is at the commit now; False when somebody else was quicker."""
    place = repository.checked_out(ref)
    if place is None or not Path(place).is_dir():
        said = repository.ask("update-ref", "-m", "quire: merge", ref, commit, tip)
    else:
        # git itself looks first whether a file of the working tree is in the way.
        command = ["merge", "--ff-only", "--no-autostash", "--quiet", commit]
        said = call(Path(place), repository.env, command)
    if said.code == 0:
        return True
    if repository.resolve(ref) != tip:
        return False
    if place is not None and (files := in_the_way(said)):
        raise ForgeError(
            f"{proposal.base} is checked out in {place}, and {_listed(files)} there would be "
            "overwritten",
            hint="commit or put away what is changed there (git stash), then merge again",
        )
    raise refused(said, ["merge" if place else "update-ref"])


def in_the_way(said: Said) -> list[str]:
    """The files git names, each on a line of its own behind a tab."""
    if "would be overwritten" not in said.err and "would be removed" not in said.err:
        return []
    return re.findall(r"^\t(.+)$", said.err, re.MULTILINE)


def _listed(files: list[str]) -> str:
    shown = ", ".join(files[:8])
    return f"{shown} and {len(files) - 8} more" if len(files) > 8 else shown
