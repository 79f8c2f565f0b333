"""Compare two runs, or two versions of a notebook."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from ..archive.read import Found, find
from ..errors import DocumentError, GitError, RunNotFound, UsageError
from ..git import nbdime_process as nbdime
from ..record.compare import Comparison, compare
from ..record.record import Record
from ..task import formats, ipynb
from ..task.document import Document
from ..task.text_diff import unified
from ..workspace import Workspace
from .strip_noise import quiet

_REVISION = re.compile(r"[\w./@{}^~+=-]+", re.ASCII)


def diff_runs(
    workspace: Workspace, old: str, new: str | None = None, *, noise: bool = False
) -> Comparison:
    """What changed from one run to another; with one only, from the run of its task before it."""
    if new is None:
        found = find(workspace, old)
        return compare(before(workspace, found).record, found.record, noise=noise)
    return compare(find(workspace, old).record, find(workspace, new).record, noise=noise)


def before(workspace: Workspace, found: Found) -> Found:
    """The run of the same task before this one, here or in the archive. Not a replay: that of a
    replay is the run it repeats."""
    record = found.record
    if record.replays:
        return find(workspace, record.replays)
    ids = set(workspace.runs.ids())
    if workspace.config.archive.enabled:
        ids |= set(workspace.archive.ids())
    # Time and name of the task are in the id: most need not be read.
    near = [i for i in ids - {record.run_id} if _slug(i) == _slug(record.run_id)]
    near = sorted((i for i in near if _second(i) <= _second(record.run_id)), reverse=True)
    for _, same in groupby(near, key=_second):
        runs = [find(workspace, run_id) for run_id in same]
        fitting = [run for run in runs if _precedes(run.record, record)]
        if fitting:
            return max(fitting, key=lambda run: run.record.started)
    raise RunNotFound(
        f"there is no run of {record.task} before {record.run_id}",
        hint="name two runs: quire diff OLD NEW",
    )


def _precedes(one: Record, other: Record) -> bool:
    return one.task == other.task and one.started < other.started and not one.replays


def _second(run_id: str) -> str:
    return run_id[:17]


def _slug(run_id: str) -> str:
    return run_id[18:].rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class Version:
    """A task at some time: a file, or what git has of it."""

    name: str
    suffix: str
    data: bytes

    @property
    def text(self) -> str:
        return formats.decode(self.data, self.name)

    def document(self) -> Document:
        """Nothing at all is an empty task: git shows a file that is new, or gone, like that."""
        if not self.data.strip():
            return Document(())
        try:
            return formats.loads(self.text, self.suffix)
        except DocumentError as error:
            raise DocumentError(f"{self.name}: {error.message}", hint=error.hint) from error


@dataclass(frozen=True, slots=True)
class NotebookDiff:
    old: str
    new: str
    text: str  # empty where they are equal; nbdime's, or a unified diff of two .py files
    operations: list[Any] | None = None  # nbdime's, where they were asked for

    @property
    def equal(self) -> bool:
        return not self.text and not self.operations


def is_file(name: str) -> bool:
    """Whether an argument names a task and not a run: a run's id has no suffix."""
    return PurePosixPath(name).suffix.lower() in formats.SUFFIXES


def version(workspace: Workspace, name: str) -> Version:
    """A file, or `REV:path` for the file as it is in a commit."""
    path = workspace.cwd / name
    suffix = PurePosixPath(name).suffix.lower()
    try:
        if ":" in name and not path.exists():
            return Version(name, suffix, _in_git(workspace, name))
        return Version(name, suffix, path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"there is no file {name}", hint="check the path") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {name!r}: {why}", hint="check the path") from error


def _in_git(workspace: Workspace, name: str) -> bytes:
    revision, _, path = name.partition(":")
    repository = workspace.repository
    if repository is None:
        raise UsageError(
            f"there is no file {name}, and no git repository here to have it",
            hint="name a file; REV:path works inside a repository",
        )
    if not _REVISION.fullmatch(revision) or revision.startswith("-"):
        raise UsageError(
            f"{revision!r} is not the name of a commit", hint="such as main:notebooks/x.ipynb"
        )
    commit = repository.resolve(revision)
    if commit is None:
        raise GitError(f"there is no commit {revision!r}", hint="check the name with git log")
    data = repository.blob(commit, _path_in_git(workspace, path))
    if data is None:
        raise GitError(f"{revision} has no file {path}", hint=f"git ls-tree -r {revision}")
    return data


def _path_in_git(workspace: Workspace, path: str) -> str:
    """From the root of the repository, as git has it; from here where it begins with `./`."""
    repository = workspace.repository
    assert repository is not None
    parts = PurePosixPath(path).parts
    if path.startswith("./") and repository.top is not None:
        parts = (*workspace.cwd.resolve().relative_to(repository.top.resolve()).parts, *parts)
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or "\n" in path:
        raise UsageError(
            f"{path!r} is not a path in a repository", hint="such as main:notebooks/x.ipynb"
        )
    return "/".join(parts)


def diff_files(
    workspace: Workspace, old: str, new: str, *, noise: bool = False, operations: bool = False
) -> NotebookDiff:
    versions = version(workspace, old), version(workspace, new)
    return diff_versions(workspace, *versions, noise=noise, operations=operations)


def diff_versions(
    workspace: Workspace,
    old: Version,
    new: Version,
    *,
    noise: bool = False,
    operations: bool = False,
) -> NotebookDiff:
    """`noise`: with ids, counts and metadata. `operations`: as data instead of text."""
    if old.suffix == new.suffix == ".py" and not operations:
        lines = [side.text.splitlines(keepends=True) for side in (old, new)]
        text = unified(lines[0], lines[1], PurePosixPath(new.name).name)
        return NotebookDiff(old.name, new.name, text)
    sides = _prepared(old, new, noise=noise)
    if sides[0] == sides[1]:
        return NotebookDiff(old.name, new.name, "", [] if operations else None)
    files = {
        name: json.dumps(side).encode()
        for name, side in zip(("old.ipynb", "new.ipynb"), sides, strict=True)
    }
    if operations:
        answer = nbdime.call(workspace, "nbdime.nbdiffapp", files, *files, out="diff.json")
        if answer.written is None:
            raise nbdime.broke(answer, "compare the notebooks")
        return NotebookDiff(old.name, new.name, "", json.loads(answer.written))
    plain = ("--no-color", "--no-git", "--no-use-diff")
    answer = nbdime.call(workspace, "nbdime.nbdiffapp", files, *plain, *files)
    if answer.code:
        raise nbdime.broke(answer, "compare the notebooks")
    return NotebookDiff(old.name, new.name, _body(answer.out))


def _prepared(old: Version, new: Version, *, noise: bool) -> tuple[dict[str, Any], ...]:
    documents = old.document(), new.document()
    if noise:
        return tuple(_whole(side, doc) for side, doc in zip((old, new), documents, strict=True))
    # A .py never has outputs: that is no difference between it and a notebook.
    outputs = ".py" not in (old.suffix, new.suffix)
    return tuple(quiet(doc, outputs=outputs) for doc in documents)


def _whole(side: Version, doc: Document) -> dict[str, Any]:
    """With everything the file has. Ids are made where it has none: nbformat would draw lots."""
    whole: dict[str, Any] = json.loads(ipynb.dumps(doc))
    if side.suffix == ".py" or not side.data.strip():
        return whole
    found = json.loads(side.text)
    if found.get("nbformat") != 4:
        return whole
    for cell, made in zip(found["cells"], whole["cells"], strict=True):
        if found.get("nbformat_minor", 0) >= 5:
            cell.setdefault("id", made["id"])
    return dict(found)


def _body(text: str) -> str:
    """Without nbdime's first lines: they name files that nobody has seen."""
    at = text.find("\n## ")
    return text[at + 1 :].rstrip("\n") + "\n" if at >= 0 else ""
