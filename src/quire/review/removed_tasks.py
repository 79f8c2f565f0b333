"""Tasks that are in the current commit and were taken out of the working tree: removed or renamed.

A task is gone when its `.py` is. The notebook beside it was made from it and goes too, unless
somebody has edited it since; left there, it would bring the task back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from shlex import quote

from ..errors import UsageError
from ..git.repository import Repository
from ..task import formats
from ..task.sync import SKIPPED, STAMP
from ..workspace import Workspace
from . import change_set
from .regenerate import side


@dataclass(frozen=True, slots=True)
class Removal:
    """`names` are the files that leave the commit, as git names them; `left` one to delete."""

    py: str
    names: tuple[str, ...]
    left: Path | None = None


def removals(ws: Workspace, repository: Repository, below: str) -> Iterator[Removal]:
    """The tasks of a folder of the repository that are gone. `below` is empty for all of it."""
    where = ["--", f"{below}/"] if below else []
    listed = repository.raw("ls-tree", "-r", "-z", "--full-tree", "--name-only", "HEAD", *where)
    names = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    tasks = {
        str(PurePosixPath(name).with_suffix(".py"))
        for name in names
        if PurePosixPath(name).suffix in formats.SUFFIXES and not _is_skipped(name, below)
    }
    yield from removed(ws, repository, sorted(tasks))


def removed(ws: Workspace, repository: Repository, tasks: Iterable[str]) -> Iterator[Removal]:
    """Those of some tasks, each named by its `.py`, that are gone. Raises where it is not clear."""
    assert repository.top is not None
    top = repository.top.resolve()
    for py in tasks:
        nb = str(PurePosixPath(py).with_suffix(".ipynb"))
        if os.path.lexists(top / py):
            continue
        text, twin = repository.blob("HEAD", py), repository.blob("HEAD", nb)
        if text is None:
            is_gone = twin is not None and not os.path.lexists(top / nb)
        else:
            is_gone = change_set.is_task(text, py) or (twin is not None and STAMP in twin)
        names = tuple(name for name, data in ((py, text), (nb, twin)) if data is not None)
        if is_gone and not _is_elsewhere(repository, names):
            yield Removal(py, names, _left(ws, py, top / nb, text))


def _left(ws: Workspace, py: str, nb: Path, text: bytes | None) -> Path | None:
    """The notebook that is still there, if it says nothing of its own."""
    if not os.path.lexists(nb):
        return None
    here = side(text, py)
    there = side(nb.read_bytes(), nb.name) if nb.is_file() and not nb.is_symlink() else None
    made = there is not None and there.stamp is not None and there.stamp.cells == there.digest
    same = there is not None and here is not None and here.digest == there.digest
    if not made and not same:
        raise UsageError(
            f"{py} is gone but {nb.name} is there, and was edited",
            hint=f"remove {nb.name} too, or bring the task back: "
            f"quire sync --take ipynb {quote(ws.named(nb))}",
        )
    return nb


def _is_skipped(name: str, below: str) -> bool:
    """Where nobody looks for tasks; see `sync`."""
    inner = name[len(below) + 1 :] if below else name
    return any(part.startswith(".") or part in SKIPPED for part in inner.split("/"))


def _is_elsewhere(repository: Repository, names: Iterable[str]) -> bool:
    """Whether git itself keeps it out of the working tree, in a sparse checkout."""
    listed = repository.raw("ls-files", "-z", "-t", "--", *(f":(literal){n}" for n in names))
    return any(entry.startswith(b"S ") for entry in listed.split(b"\0"))
