"""Commit a task and its notebook together, to a branch, and nothing else with them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from ..errors import DocumentError, Hint, NextStep, QuireError, UsageError
from ..files import write_atomic
from ..git import commit_files
from ..git.commit_files import Change, Draft
from ..git.filters import strip
from ..git.repository import Repository, branch_name
from ..task import formats, percent, sync
from ..task.lint import Finding, lint
from ..task.sync import Step
from ..task.waiting_cells import told as cells_wait
from ..task.waiting_cells import waiting as unwritten
from ..text import plain
from ..workspace import Workspace
from . import branches, change_set
from .removed_tasks import Removal, removals, removed

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
        raise UsageError("the message is empty", hint='say what changed, such as "Add x"')
    waiting = commit_files.under_way(repository)
    if waiting:
        raise UsageError(
            f"a {waiting} is under way", hint=f"finish it first: git {waiting} --continue"
        )
    target, new = _target(ws, repository, branch, message)
    commit_files.identity(repository)
    gone, there = _sorted_out(ws, repository, paths)
    steps = _kept(repository, sync.plan(ws, there) if there else [], gone)
    findings = _checked(ws, repository, steps)
    changes = [change for step in steps for change in _changes(repository, step)]
    changes += [Change(name, None) for removal in gone for name in removal.names]
    drawn = _made(repository, steps, changes, message, target, new=new, hooks=hooks)
    if drawn is None:
        return Committed(None, repository.branch() or "", findings=findings)
    warnings = (*_unwritten(changes), *_cleared(ws, gone))
    pushed, told = _pushed(ws, repository, target, push, hooks=hooks)
    return Committed(drawn.commit, target, new, drawn.paths, findings, pushed, warnings + told)


def _made(
    repository: Repository,
    steps: Sequence[Step],
    changes: Sequence[Change],
    message: str,
    target: str,
    *,
    new: bool,
    hooks: bool,
) -> Draft | None:
    """The commit, on its branch. What was written for it is taken back where there is none."""
    parent = repository.head()
    assert parent is not None
    before = [(path, text.encode(), _as_it_is(path)) for step in steps for path, text in step.files]
    try:
        sync.take(steps)  # hooks may look at the files themselves
        drawn = commit_files.draft(repository, parent, changes, message, hooks=hooks)
        if drawn is not None:
            commit_files.land(repository, drawn, target, new=new)
    except BaseException:
        if repository.head() == parent:
            _put_back(before)
        raise
    return drawn


def _as_it_is(path: Path) -> tuple[bytes, os.stat_result] | None:
    return (path.read_bytes(), path.stat()) if path.exists() else None


def _put_back(
    before: Sequence[tuple[Path, bytes, tuple[bytes, os.stat_result] | None]],
) -> None:
    for path, written, old in before:
        with contextlib.suppress(OSError, QuireError):
            if path.read_bytes() != written:
                continue  # a hook, or somebody, has been there since
            if old is None:
                path.unlink()
            else:
                data, stat = old
                write_atomic(path, data, mode=stat.st_mode & 0o777)
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _kept(repository: Repository, steps: Sequence[Step], gone: Sequence[Removal]) -> Sequence[Step]:
    """Without the tasks that are gone: a notebook that was left would bring them back."""
    names = {removal.py for removal in gone}
    if not names:
        return steps
    return [s for s in steps if _name(repository, s.result.source.with_suffix(".py")) not in names]


def _unwritten(changes: Sequence[Change]) -> Iterator[str]:
    """Work in progress may be committed, but nobody should take it for more."""
    for change in changes:
        if change.path.endswith(".py") and change.data is not None:
            left = unwritten(change_set.document(change.data, change.path))
            if left:
                yield f"{change.path} is a draft: {cells_wait(left)}"


def _cleared(ws: Workspace, gone: Sequence[Removal]) -> Iterator[str]:
    for removal in gone:
        if removal.left is not None:
            try:
                removal.left.unlink(missing_ok=True)
            except OSError as error:
                yield f"{ws.named(removal.left)} could not be removed: {error.strerror}"


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
        if branches.is_the_archives(ws, name):
            raise UsageError(
                f"{name} cannot be the branch: the archive of runs is on "
                f"{ws.config.archive.branch}",
                hint="choose another name",
            )
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
    return branches.unused(ws, repository, branch_name(branches.slug(message))), True


def _sorted_out(
    ws: Workspace, repository: Repository, paths: Sequence[str | Path]
) -> tuple[list[Removal], list[str | Path]]:
    """Tasks that went, and files or folders that are there."""
    gone: list[Removal] = []
    there: list[str | Path] = []
    for path in paths:
        if not str(path):
            raise UsageError("a path is empty", hint="name a task, or a folder: . is this one")
        full = ws.cwd / path
        if full.suffix in formats.SUFFIXES and not full.is_dir():
            went = _went(ws, repository, path)
            gone += went
            if not went:
                there.append(path)
            continue
        below = _folder(repository, full)
        found = [] if below is None else list(removals(ws, repository, below))
        gone += found
        if os.path.lexists(full) or not found:
            there.append(path)
    return list({removal.py: removal for removal in gone}.values()), there


def _went(ws: Workspace, repository: Repository, path: str | Path) -> list[Removal]:
    """A task that somebody names, if it is gone."""
    full = ws.cwd / path
    py, nb = (full.with_suffix(suffix) for suffix in (".py", ".ipynb"))
    is_there = os.path.lexists(full)
    if is_there and os.path.lexists(py):
        return []
    inner = Repository.find(full.parent, repository.env) if is_there else repository
    if inner is None or inner.git_dir != repository.git_dir:
        return []  # said where it is looked at
    went = list(removed(ws, repository, [_name(repository, py)]))
    if is_there and went:
        raise UsageError(
            f"{path} is there but its {py.name} is gone",
            hint=Hint(
                "to remove the task: {}; to bring it back: quire sync {}",
                NextStep("commit", {"path": ws.named(py)}),
                quote(ws.named(full)),
            ),
        )
    if not is_there and not went:
        if os.path.lexists(py) and _has(repository, _name(repository, nb)):
            raise UsageError(
                f"{path} is gone but {py.name} is there",
                hint=f"remove {py.name} too, or make it again: quire sync {quote(ws.named(py))}",
            )
        raise DocumentError(f"there is no file {path}", hint="check the path")
    return went


def _folder(repository: Repository, full: Path) -> str | None:
    """A folder as git names it, whether it is still there or not; None where it is not its."""
    assert repository.top is not None
    place, top = full.resolve(), repository.top.resolve()
    if not place.is_relative_to(top):
        return None
    name = place.relative_to(top).as_posix()
    return "" if name == "." else name


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
                f"{ws.named(step.result.source)} and its notebook say different things",
                hint=step.result.hint,
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
        hint=Hint("mend it first; `{}` takes only what Python can read", NextStep("commit")),
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
    planned = dict(step.files)
    found = []
    for path in (py, nb):
        if repository.ask("check-ignore", "--quiet", "--", str(path)).code == 0:
            continue  # a repository may keep its notebooks to the .py alone
        text = planned.get(path)
        data = path.read_bytes() if text is None else text.encode()
        if path == nb:
            data = strip(data).data  # outputs belong to runs, and those are archived
        executable = path.exists() and bool(path.stat().st_mode & 0o100)
        found.append(Change(_name(repository, path), data, executable))
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
        hooks=hooks,
    )
