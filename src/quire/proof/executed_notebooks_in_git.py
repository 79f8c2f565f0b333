"""Notebooks in git: does an attested run cover the outputs they show, and does each say what its
`.py` says? What cannot be read may show anything, and fails.

Looked at is the working tree as git would take it: the index, and in its place files changed since
that no filter strips on their way in. The attribute `quire=unproven` in `.gitattributes` names
notebooks whose outputs are not meant as proof. It counts where it is committed: in the base, so
that a change cannot excuse itself, else in the current commit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..ci.gate_report import TaskRun
from ..errors import Hint, NextStep, QuireError
from ..git import commit_files
from ..git.objects import Objects
from ..git.repository import Repository
from ..record.finding import Finding
from ..record.summary import one_line
from ..review import notebook_pairs
from ..review.notebook_pairs import LINK, Stored
from ..task.sync import taking
from ..workspace import Workspace
from . import strict_json
from .coverage import Coverage, coded
from .keys import trust_of
from .trust import Trust

EXEMPT = "unproven"
SHOWN = 20  # cells of one notebook
BECAUSE = "it is in git with outputs"
_ALL = ":(icase)*.ipynb"
_LFS = b"version https://git-lfs"


def disagreeing_pairs(ws: Workspace) -> Iterator[TaskRun]:
    """Pairs of the index that do not say the same."""
    repository = ws.repository
    if repository is None or repository.top is None:
        return
    top, root = repository.top.resolve(), ws.root.resolve()
    for name, wrong in notebook_pairs.disagreeing(repository, notebook_pairs.of_index(repository)):
        path = top / name
        if path.is_relative_to(root):
            shown = str(path.relative_to(root))
            yield TaskRun(
                shown,
                "differs",
                "it stands beside its .py",
                error=one_line(wrong),
                error_type="PairDiffers",
                hint=Hint(
                    "{}; then commit both: {}", taking(shown), NextStep("commit", {"path": shown})
                ),
            )


def uncovered_notebooks(ws: Workspace, base: str | None = "") -> Iterator[TaskRun]:
    """Those whose outputs no archived run covers. Whose signatures count is said by the list of
    keys in `base`, so that a change cannot bring its own key. None: there is a base and it is not
    here, so that nobody says more than this machine; '': there is none."""
    repository = ws.repository
    if repository is None or repository.top is None:
        return
    coverage: Coverage | None = None
    for path, data in _notebooks(ws, repository, base):
        if isinstance(data, str):
            yield _told(ws, path, [Finding("notebook", data, "form")])
            continue
        if _shows_nothing(data):
            continue
        try:
            coverage = coverage or Coverage(ws, _trust(ws, base))
            found = coverage.uncovered(data)
        except QuireError as error:
            yield _unknown(path, error)
            continue
        if found:
            yield _told(ws, path, found)


def _trust(ws: Workspace, base: str | None) -> Trust:
    return ws.keys.own_trust() if base is None else trust_of(ws, revision=base or None)


def _shows_nothing(data: bytes) -> bool:
    """Whether it is an honest notebook without outputs; the empty file is one."""
    try:
        return not data or not any(cell.claims for cell in coded(strict_json.loads(data)))
    except (ValueError, RecursionError):
        return False


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


def _notebooks(
    ws: Workspace, repository: Repository, base: str | None
) -> Iterator[tuple[str, bytes | str]]:
    """Each with what git has of it, or with why that cannot be read; several times in the middle
    of a merge."""
    assert repository.top is not None
    top, root = repository.top.resolve(), ws.root.resolve()
    staged = _staged(repository)
    edited = set(_names(repository.raw("diff-files", "-z", "--name-only", "--", _ALL)))
    filters = _filters(repository, sorted(staged))
    rules = None if base is None else base or repository.head()
    names = [os.fsdecode(name) for name in sorted(staged)]
    said = commit_files.attribute(repository, rules, "quire", names) if rules else {}
    with Objects(repository) as objects:
        for name, ids in sorted(staged.items()):
            path = top / os.fsdecode(name)
            if not path.is_relative_to(root) or said.get(os.fsdecode(name)) == EXEMPT:
                continue
            shown = str(path.relative_to(root))
            if any(stored.mode == LINK for stored in ids):
                if not _is_known(path, top, staged):
                    yield shown, _linked(path, top)
                continue
            unfiltered = filters.get(name, "unspecified") in ("unspecified", "unset")
            if name in edited and unfiltered:
                if path.is_file():
                    yield shown, path.read_bytes()
                continue
            for data in (objects.read(stored.id) for stored in ids):
                is_pointer = data is not None and data.startswith(_LFS) and path.is_file()
                yield shown, path.read_bytes() if is_pointer else data or _missing(data)


def _is_known(link: Path, top: Path, staged: Mapping[bytes, list[Stored]]) -> bool:
    """Whether a link leads to a notebook that is looked at by itself."""
    try:
        place = link.resolve()
    except (OSError, RuntimeError):
        return False
    found = staged.get(os.fsencode(place.relative_to(top))) if place.is_relative_to(top) else None
    return found is not None and all(stored.mode != LINK for stored in found)


def _missing(data: bytes | None) -> bytes | str:
    return "git does not have its content here" if data is None else data


def _linked(link: Path, top: Path) -> bytes | str:
    """What a reader sees behind a link, if that is in the repository."""
    try:
        place = link.resolve()
        if place.is_relative_to(top):
            return place.read_bytes()
    except (OSError, RuntimeError):
        return "it is a link that leads nowhere"
    return "it is a link that leads out of the repository"


def _names(listed: bytes) -> list[bytes]:
    return [name for name in listed.split(b"\0") if name]


def _staged(repository: Repository) -> dict[bytes, list[Stored]]:
    """Path to blobs: several in the middle of a merge."""
    found: dict[bytes, list[Stored]] = {}
    for line in _names(repository.raw("ls-files", "--stage", "-z", "--", _ALL)):
        facts, _, name = line.partition(b"\t")
        mode, id_, _ = facts.decode().split(" ")
        if mode.startswith("100") or mode == LINK:  # no submodules
            found.setdefault(name, []).append(Stored(mode, id_))
    return found


def _filters(repository: Repository, names: Sequence[bytes]) -> dict[bytes, str]:
    told = repository.raw(
        "check-attr", "-z", "--stdin", "filter", input=b"".join(n + b"\0" for n in names)
    ).split(b"\0")
    found = zip(told[::3], told[2::3], strict=False)
    return {name: value.decode("utf-8", "replace") for name, value in found}
