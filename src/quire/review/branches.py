"""Which branch is meant: the main one, a new one for a piece of work, the one to propose."""

from __future__ import annotations

import re

from ..errors import UsageError
from ..git.repository import Repository, branch_name
from ..workspace import Workspace

_USUAL = ("main", "master", "trunk")
NAME_LIMIT = 50


def working(ws: Workspace) -> Repository:
    """The repository, if it is one to work in."""
    repository = ws.repository
    if repository is None:
        raise UsageError(
            f"{ws.root} is not in a git repository",
            hint="make it one: git init",
        )
    if repository.top is None:
        raise UsageError(
            f"{repository.git_dir} has no working tree", hint="work in a clone: git clone …"
        )
    if repository.head() is None:
        raise UsageError(
            "the repository has no commits yet",
            hint='make the first one: git add . && git commit -m "Begin"',
        )
    return repository


def main_branch(ws: Workspace, repository: Repository) -> str | None:
    """Where proposals go, by configuration, by what the remote says, by its usual name."""
    if ws.config.forge.base:
        return branch_name(ws.config.forge.base)
    remote = repository.remote()
    if remote:
        said = repository.ask("symbolic-ref", "--quiet", f"refs/remotes/{remote}/HEAD")
        if said.code == 0:
            return said.text.removeprefix(f"refs/remotes/{remote}/")
    local = _names(repository, "refs/heads", 2)
    known = [name for name in local if name != ws.config.archive.branch]
    first = repository.config("init.defaultBranch")
    for name in (*_USUAL, *([first] if first else [])):
        if name in known or (remote and repository.resolve(f"refs/remotes/{remote}/{name}")):
            return name
    return known[0] if len(known) == 1 else None


def slug(text: str) -> str:
    """A branch's name from what somebody says of the work: `Add x!` is `add-x`."""
    first = text.strip().split("\n")[0].lower()
    words = re.sub(r"[^\w]+", "-", first).strip("-_")
    cut = words if len(words) <= NAME_LIMIT else words[:NAME_LIMIT].rpartition("-")[0]
    return (cut or words[:NAME_LIMIT]).strip("-_") or "change"


def is_the_archives(ws: Workspace, name: str) -> bool:
    """Whether a branch is the archive's, or would leave git no room for that one."""
    archive = ws.config.archive.branch
    return f"{name}/".startswith(f"{archive}/") or archive.startswith(f"{name}/")


def unused(ws: Workspace, repository: Repository, name: str) -> str:
    """The name, or with the next number where a branch has it, here or on a remote."""
    taken = _names(repository, "refs/heads", 2) + _names(repository, "refs/remotes", 3)
    taken.append(ws.config.archive.branch)  # whether it is there yet or not
    return next(
        found
        for found in (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3)))
        if found not in taken and not any(other.startswith(f"{found}/") for other in taken)
    )


def _names(repository: Repository, under: str, parts: int) -> list[str]:
    listed = repository.git("for-each-ref", f"--format=%(refname:lstrip={parts})", under)
    return [name for name in listed.split("\n") if name]


def tip(repository: Repository, branch: str, remote: str | None) -> str:
    """The commit a base branch is at: on the server where there is one, else here."""
    refs = [f"refs/remotes/{remote}/{branch}"] if remote else []
    for ref in (*refs, f"refs/heads/{branch}"):
        commit = repository.resolve(ref)
        if commit is not None:
            return commit
    raise UsageError(f"there is no branch {branch}", hint="git fetch; git branch --all lists them")
