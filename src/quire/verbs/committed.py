"""Executed notebooks in git: does an attested run cover the outputs they show?

Looked at is the working tree as git would take it: the index, and in its place files changed since
that no filter strips on their way in. The attribute `quire=unproven` in `.gitattributes` names
notebooks whose outputs are not meant as proof. It counts where it is committed: in the base, so
that a change cannot excuse itself, else in the current commit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ..errors import QuireError
from ..runs.finding import Finding
from ..runs.gate import TaskRun
from ..runs.summary import one_line
from ..store import commits
from ..store.git import Repository
from ..store.gitread import Objects
from ..workspace import Workspace
from .covered import Coverage
from .keys import trust_of

EXEMPT = "unproven"
SHOWN = 20  # cells of one notebook
BECAUSE = "it is in git with outputs"
_ALL = ":(icase)*.ipynb"
# A file without these shows no outputs, whatever else it may be.
_MARKS = (b'"outputs"', b'"execution_count"')


def uncovered_notebooks(ws: Workspace, base: str = "") -> Iterator[TaskRun]:
    """Those whose outputs no archived run covers. Whose signatures count is said by the list of
    keys in `base`, so that a change cannot bring its own key."""
    repository = ws.repository
    if repository is None or repository.top is None:
        return
    coverage: Coverage | None = None
    for path, data in _notebooks(ws, repository, base):
        if not any(mark in data for mark in _MARKS):
            continue
        try:
            coverage = coverage or Coverage(ws, trust_of(ws, revision=base or None))
            found = coverage.uncovered(data)
        except QuireError as error:
            yield _unknown(path, error)
            continue
        if found:
            yield _told(ws, path, found)


def _told(ws: Workspace, path: str, found: Sequence[Finding]) -> TaskRun:
    cells = [finding.where for finding in found]
    some = ", ".join(cells[:3]) + (" …" if len(cells) > 3 else "")
    lines = [one_line(str(finding)) for finding in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"… and {len(found) - SHOWN:,} more")
    hint = (
        "commit it without outputs (quire init sets up a filter), or say in .gitattributes of the "
        f"main branch that they prove nothing: {path} quire={EXEMPT}"
    )
    if not ws.archive.ids():
        branch = ws.config.archive.branch
        hint += f"; there are no archived runs here: is the branch {branch} fetched?"
    return TaskRun(
        path,
        "uncovered",
        BECAUSE,
        error=one_line(f"no archived run covers its outputs: {some}"),
        error_type="UncoveredOutputs",
        traceback="\n".join(lines),
        hint=hint,
    )


def _unknown(path: str, error: QuireError) -> TaskRun:
    return TaskRun(
        path,
        "error",
        BECAUSE,
        error=one_line(f"whether a run covers its outputs cannot be said: {error.message}"),
        error_type=type(error).__name__,
        hint=error.hint,
    )


def _notebooks(ws: Workspace, repository: Repository, base: str) -> Iterator[tuple[str, bytes]]:
    assert repository.top is not None
    top, root = repository.top.resolve(), ws.root.resolve()
    staged = _staged(repository)
    edited = set(_names(repository.raw("diff-files", "-z", "--name-only", "--", _ALL)))
    filters = _filters(repository, sorted(staged))
    rules = base or repository.head()
    names = [os.fsdecode(name) for name in sorted(staged)]
    said = commits.attribute(repository, rules, "quire", names) if rules else {}
    with Objects(repository) as objects:
        for name, ids in sorted(staged.items()):
            path = top / os.fsdecode(name)
            if not path.is_relative_to(root) or said.get(os.fsdecode(name)) == EXEMPT:
                continue
            shown = str(path.relative_to(root))
            contents = [objects.read(id_) for id_ in ids]
            if name in edited and filters.get(name, "unspecified") in ("unspecified", "unset"):
                contents = [path.read_bytes() if path.is_file() else None]
            yield from ((shown, data) for data in contents if data is not None)


def _names(listed: bytes) -> list[bytes]:
    return [name for name in listed.split(b"\0") if name]


def _staged(repository: Repository) -> dict[bytes, list[str]]:
    """Path to blobs: several in the middle of a merge."""
    found: dict[bytes, list[str]] = {}
    for line in _names(repository.raw("ls-files", "--stage", "-z", "--", _ALL)):
        facts, _, name = line.partition(b"\t")
        mode, id_, _ = facts.decode().split(" ")
        if mode.startswith("100"):  # no links, no submodules
            found.setdefault(name, []).append(id_)
    return found


def _filters(repository: Repository, names: Sequence[bytes]) -> dict[bytes, str]:
    told = repository.raw(
        "check-attr", "-z", "--stdin", "filter", input=b"".join(n + b"\0" for n in names)
    ).split(b"\0")
    found = zip(told[::3], told[2::3], strict=False)
    return {name: value.decode("utf-8", "replace") for name, value in found}
