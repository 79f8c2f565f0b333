"""Merging a branch into another without a working tree, and letting one follow that is there.

Where a remote has the base, the merge is made on top of that and pushed, never by force: either the
remote has all of it, or nothing has happened anywhere. The branch here only follows.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import ForgeError, GitError, UsageError
from ..git.commit_files import attribute
from ..git.repository import Repository, Said, branch_name, refused
from .protocol import Finish, Proposal

TRIES = 10
TIMEOUT = 60.0  # seconds for one call of a remote
_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
          "--no-auto-maintenance")  # fmt: skip
QUICKER = re.compile(
    r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to (update|lock) ref"
    r"|incorrect old value|reference already exists|Unable to create .*lock"
)


@dataclass(frozen=True, slots=True)
class Upstream:
    """A branch of a remote."""

    remote: str
    branch: str

    @property
    def ref(self) -> str:
        return f"refs/remotes/{self.remote}/{self.branch}"


def upstream(repository: Repository, base: str) -> Upstream | None:
    """The branch a base stands for: the one it follows, else the remote's of that name."""
    remote = repository.config(f"branch.{base}.remote")
    followed = repository.config(f"branch.{base}.merge") or ""
    if remote in repository.remotes() and followed.startswith("refs/heads/"):
        try:
            return Upstream(remote, branch_name(followed.removeprefix("refs/heads/")))
        except UsageError:
            return None
    usual = repository.remote()
    found = Upstream(usual, base) if usual else None
    return found if found and repository.resolve(found.ref) else None


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
        commit = _merged(repository, tip, proposal, message, finish)
        if _moved(repository, ref, tip, commit, proposal):
            return commit
    raise _restless(proposal)


def land_there(
    repository: Repository, proposal: Proposal, there: Upstream, message: str, finish: Finish | None
) -> str:
    """The same on a remote. The base here follows where nothing is in its way."""
    for _ in range(TRIES):
        tip = _fetched(repository, proposal, there)
        done = repository.is_ancestor(proposal.head, tip)
        commit = tip if done else _merged(repository, tip, proposal, message, finish)
        if done or _pushed(repository, proposal, there, commit):
            follow(repository, proposal.base, commit)
            return joined(repository, proposal.head, tip) if done else commit
    raise _restless(proposal)


def follow(repository: Repository, base: str, commit: str) -> bool:
    """Move the branch here, and a working tree that has it, forward to a commit."""
    ref = f"refs/heads/{base}"
    tip = repository.resolve(ref)
    if tip is None or not repository.is_ancestor(tip, commit):
        return tip is not None and repository.is_ancestor(commit, tip)
    return tip == commit or _forward(repository, ref, tip, commit)[1].code == 0


def _fetched(repository: Repository, proposal: Proposal, there: Upstream) -> str:
    spec = f"+refs/heads/{there.branch}:{there.ref}"
    try:
        said = repository.ask("fetch", *_FETCH, "--", there.remote, spec, timeout=TIMEOUT)
    except GitError as error:
        raise not_reached(proposal, there.remote, error) from error
    tip = repository.resolve(there.ref) if said.code == 0 else None
    if tip is not None:
        return tip
    if "couldn't find remote ref" in said.err:
        raise ForgeError(
            f"proposal {proposal.number} goes to {there.branch}, and {there.remote} has no such "
            "branch",
            hint=f"git push {there.remote} {there.branch}, then merge it again",
        )
    raise not_reached(proposal, there.remote, refused(said, ["fetch"]))


def not_reached(proposal: Proposal, remote: str, error: GitError) -> ForgeError:
    raised = ForgeError(
        f"proposal {proposal.number} is not merged: {proposal.base} is on {remote}, and that "
        f"cannot be reached: {error.message}",
        hint=f"nothing has changed; merge it when {remote} is there. {error.hint}",
    )
    raised.retryable = True
    return raised


def _pushed(repository: Repository, proposal: Proposal, there: Upstream, commit: str) -> bool:
    """Whether the remote took it; False when somebody else was quicker."""
    spec = f"{commit}:refs/heads/{there.branch}"
    said = repository.ask("push", "--quiet", "--", there.remote, spec, timeout=TIMEOUT)
    if said.code == 0:
        return True
    if QUICKER.search(said.err):
        return False
    raise ForgeError(
        f"proposal {proposal.number} is not merged: {there.remote} does not take a push to "
        f"{there.branch}: {refused(said, ['push']).message}",
        hint="nothing has changed; if that branch is protected, whoever may push to it merges "
        "the proposal",
    )


def _merged(
    repository: Repository, tip: str, proposal: Proposal, message: str, finish: Finish | None
) -> str:
    """The commit that merges the proposal into the tip; no branch is at it yet."""
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
    said = message.encode("utf-8", "surrogateescape")
    return repository.git("commit-tree", tree, *parents, input=said)


def _restless(proposal: Proposal) -> GitError:
    return GitError(
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
    place, said = _forward(repository, ref, tip, commit)
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


def _forward(repository: Repository, ref: str, tip: str, commit: str) -> tuple[str | None, Said]:
    """Where the branch is checked out, and what git said when it was to move on."""
    place = repository.checked_out(ref)
    if place is None or not Path(place).is_dir():
        return place, repository.ask("update-ref", "-m", "quire: merge", ref, commit, tip)
    there = Repository.find(Path(place), repository.env)
    if there is None or there.common.resolve() != repository.common.resolve():
        return place, Said(1, b"", f"{place} is no working tree of this repository")
    if path := _not_checked_out(there, tip, commit):
        return place, Said(1, b"", f"{path} needs a filter that only .git/config has")
    # git itself looks first whether a file of the working tree is in the way.
    return place, there.ask("merge", "--ff-only", "--no-autostash", "--quiet", commit)


def _not_checked_out(repository: Repository, tip: str, commit: str) -> str:
    """A file that would come into the working tree without its filter: it would be the wrong one,
    and the filter is a program that any cell may have named. A person's own git runs it."""
    filters = repository.left_out()
    if not filters:
        return ""
    listed = repository.raw("diff-tree", "-r", "-z", "--name-only", "--no-renames", tip, commit)
    paths = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    said = attribute(repository, commit, "filter", paths)
    return next((path for path in paths if said.get(path) in filters), "")


def in_the_way(said: Said) -> list[str]:
    """The files git names, each on a line of its own behind a tab."""
    if "would be overwritten" not in said.err and "would be removed" not in said.err:
        return []
    return re.findall(r"^\t(.+)$", said.err, re.MULTILINE)


def _listed(files: list[str]) -> str:
    shown = ", ".join(files[:8])
    return f"{shown} and {len(files) - 8} more" if len(files) > 8 else shown
