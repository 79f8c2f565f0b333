"""Commit a task and its notebook together, to a branch, and nothing else with them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..document import formats, percent
from ..document.lint import Finding, lint
from ..errors import DocumentError, QuireError, UsageError
from ..runs.printed import plain
from ..store import commits
from ..store.commits import Change
from ..store.git import Repository, branch_name
from ..workspace import Workspace
from . import branches, sync
from .gitfilter import strip
from .sync import Step

PUSH_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Committed:
    """`commit` is None where there was nothing to commit; paths count from the repository's top."""

    commit: str | None
    branch: str
    created: bool = False
    paths: tuple[str, ...] = ()
    findings: tuple[tuple[str, Finding], ...] = ()
    pushed: str | None = None  # the remote
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "commit": self.commit,
            "branch": self.branch,
            "created": self.created,
            "paths": list(self.paths),
            "findings": [
                {
                    "path": path,
                    "cell": finding.index,
                    "cell_id": finding.cell_id,
                    "line": finding.line,
                    "column": finding.column,
                    "kind": finding.kind,
                    "message": finding.message,
                }
                for path, finding in self.findings
            ],
            "pushed": self.pushed,
            "warnings": list(self.warnings),
        }


def commit(
    ws: Workspace,
    paths: Sequence[str | Path],
    message: str,
    *,
    branch: str | None = None,
    push: bool | None = None,
    hooks: bool = True,
) -> Committed:
    """`push`: None for what the configuration says. Everything is checked before anything is done.

    On the main branch, or on none, a new branch is made and switched to. What else is staged or
    changed stays as it is and is not part of the commit.
    """
    repository = branches.working(ws)
    if not message.strip() or "\0" in message:
        raise UsageError("the message is empty", hint='say what changed: -m "Add x"')
    waiting = commits.under_way(repository)
    if waiting:
        raise UsageError(
            f"a {waiting} is under way", hint=f"finish it first: git {waiting} --continue"
        )
    target, new = _target(ws, repository, branch, message)
    commits.identity(repository)
    gone, there = _sorted_out(ws, repository, paths)
    steps = sync.plan(ws, there) if there else []
    findings = _checked(ws, repository, steps)
    sync.take(steps)
    changes = [change for step in steps for change in _changes(repository, step)]
    changes += [Change(path, None) for path in gone]
    parent = repository.head()
    assert parent is not None
    drawn = commits.draft(repository, parent, changes, message, hooks=hooks)
    here = repository.branch() or ""
    if drawn is None:
        return Committed(None, here, findings=findings)
    commits.land(repository, drawn, target, new=new)
    pushed, warnings = _pushed(ws, repository, target, push, hooks=hooks)
    return Committed(drawn.commit, target, new, drawn.paths, findings, pushed, warnings)


def _target(
    ws: Workspace, repository: Repository, wanted: str | None, message: str
) -> tuple[str, bool]:
    """The branch to commit to, and whether it is a new one."""
    current = repository.branch()
    if current is not None and current == ws.config.archive.branch:
        raise UsageError(
            f"the current branch, {current}, holds the archive of runs",
            hint=f"git switch {branches.main_branch(ws, repository) or 'main'}",
        )
    if wanted is not None:
        name = branch_name(wanted)
        if name == current:
            return name, False
        if repository.resolve(f"refs/heads/{name}") is not None:
            raise UsageError(
                f"the branch {name} exists and is not the current one",
                hint=f"git switch {name} first, or choose another name",
            )
        remote = repository.remote()
        if remote and repository.resolve(f"refs/remotes/{remote}/{name}") is not None:
            raise UsageError(
                f"{remote} has a branch {name} already",
                hint=f"git switch {name} first, or choose another name",
            )
        return name, True
    if current is not None and current != branches.main_branch(ws, repository):
        return current, False
    return branches.unused(repository, branch_name(branches.slug(message))), True


def _sorted_out(
    ws: Workspace, repository: Repository, paths: Sequence[str | Path]
) -> tuple[list[str], list[str | Path]]:
    """Files that went, as git names them, and files or folders that are there."""
    gone: list[str] = []
    there: list[str | Path] = []
    for path in paths:
        full = ws.cwd / path
        if os.path.lexists(full) or full.suffix not in formats.SUFFIXES:
            there.append(path)
            continue
        pair = [full.with_suffix(suffix) for suffix in formats.SUFFIXES]
        known = [name for name in (_name(repository, p) for p in pair) if _has(repository, name)]
        if not known:
            raise DocumentError(f"there is no file {path}", hint="check the path")
        left = [p for p in pair if p.exists()]
        if left:
            raise UsageError(
                f"{path} is gone but {left[0].name} is there",
                hint=f"remove {left[0].name} too, or bring the task back: "
                f"quire sync {ws.named(left[0])}",
            )
        gone += known
    return gone, there


def _has(repository: Repository, name: str) -> bool:
    return repository.blob("HEAD", name) is not None


def _name(repository: Repository, path: Path) -> str:
    """A path as git names it: from the top of the repository."""
    assert repository.top is not None
    full = path.parent.resolve() / path.name
    if not full.is_relative_to(repository.top.resolve()):
        raise UsageError(
            f"{path} is not in the repository {repository.top}", hint="commit it where it belongs"
        )
    inner = Repository.find(full.parent, repository.env) if full.parent.is_dir() else repository
    if inner is None or inner.git_dir != repository.git_dir:
        raise UsageError(
            f"{path} is in a repository of its own, a submodule perhaps",
            hint=f"cd {full.parent} and commit it there",
        )
    return full.relative_to(repository.top.resolve()).as_posix()


def _checked(
    ws: Workspace, repository: Repository, steps: Sequence[Step]
) -> tuple[tuple[str, Finding], ...]:
    """What a linter says of the tasks. Raises where one cannot be committed."""
    if not steps:
        return ()
    findings: list[tuple[str, Finding]] = []
    for step in steps:
        for path in (step.result.source, step.result.target):
            if path.is_symlink():
                raise UsageError(
                    f"{ws.named(path)} is a symbolic link", hint="commit the file it leads to"
                )
        if step.result.action == "conflict":
            raise UsageError(
                f"{ws.named(step.result.source)} and its twin differ", hint=step.result.hint
            )
        name = _name(repository, step.result.source)
        text = formats.decode(step.result.source.read_bytes(), step.result.source.name)
        document = formats.loads(text, step.result.source.suffix)
        for finding in lint(document):
            if finding.kind == "syntax":
                raise _broken(ws, step.result.source, text, finding)
            findings.append((name, finding))
        py = step.result.source.with_suffix(".py")
        if repository.ask("check-ignore", "--quiet", "--", str(py)).code == 0:
            raise UsageError(
                f"git ignores {ws.named(py)}", hint="see .gitignore: git check-ignore -v"
            )
    return tuple(findings)


def _broken(ws: Workspace, path: Path, text: str, finding: Finding) -> DocumentError:
    where = f"cell {finding.index}, line {finding.line}"
    if path.suffix == ".py":
        where = f"line {_line(text, finding)}"
    return DocumentError(
        f"{ws.named(path)}, {where}: {plain(finding.message)}",
        hint="mend it first; quire commit takes only what Python can read",
    )


def _line(text: str, finding: Finding) -> int:
    """The line of the file, counted from 1, of a line of a cell."""
    try:
        spans = percent.spans(text)
        cells = percent.loads(text).cells
    except DocumentError:
        return finding.line
    lines = percent.split_lines(text)
    start, end = spans[finding.index]
    first = cells[finding.index].source.split("\n")[0]
    opening = next((at for at in range(start, end) if lines[at] == first), start + 1)
    return opening + finding.line


def _changes(repository: Repository, step: Step) -> list[Change]:
    py = step.result.source.with_suffix(".py")
    nb = py.with_suffix(".ipynb")
    found = []
    for path in (py, nb):
        if repository.ask("check-ignore", "--quiet", "--", str(path)).code == 0:
            continue  # a repository may keep its notebooks to the .py alone
        data = path.read_bytes()
        if path == nb:
            data = strip(data).data  # outputs belong to runs, and those are archived
        found.append(Change(_name(repository, path), data, bool(path.stat().st_mode & 0o100)))
    return found


def _pushed(
    ws: Workspace, repository: Repository, branch: str, push: bool | None, *, hooks: bool
) -> tuple[str | None, tuple[str, ...]]:
    """The commit is there whatever becomes of this: what goes wrong is a warning."""
    if push is False or (push is None and not ws.config.forge.push):
        return None, ()
    remote = repository.remote()
    if remote is None:
        return None, (("there is no remote to push to",) if push else ())
    try:
        push_branch(repository, remote, branch, hooks=hooks)
    except QuireError as error:
        then = f"git push --set-upstream {remote} {branch}"
        return None, (f"not pushed: {plain(error.message)}; later: {then}",)
    return remote, ()


def push_branch(repository: Repository, remote: str, branch: str, *, hooks: bool = True) -> None:
    """Never by force."""
    ref = f"refs/heads/{branch}"
    verify = [] if hooks else ["--no-verify"]
    repository.git(
        "push",
        "--quiet",
        "--set-upstream",
        *verify,
        "--",
        remote,
        f"{ref}:{ref}",
        timeout=PUSH_TIMEOUT,
    )
