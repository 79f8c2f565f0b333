"""What a change does to tasks, and the archived runs that show what became of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath
from typing import Literal

from ..errors import DocumentError, UsageError
from ..git.filters import strip
from ..git.repository import Repository
from ..record.record import Record
from ..record.record_files import SOURCE, read_record
from ..task import formats, percent, percent_marker
from ..task.document import Document
from ..task.waiting_cells import Waiting, waiting
from ..workspace import Workspace
from .notebook_pairs import is_pair, source

LOOKED_AT = 200  # runs of one task that are read to find one of a certain version

Kind = Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True)
class File:
    """A file of a change, before and after; None where it was or is not there."""

    path: str  # from the top of the repository
    old: bytes | None
    new: bytes | None

    @property
    def kind(self) -> Kind:
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    @property
    def suffix(self) -> str:
        return _suffix(self.path)

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The cells that nobody has written yet."""
        return waiting(document(self.new, self.path))


def _suffix(path: str) -> str:
    """X.IPYNB is a notebook as well: nothing may hide behind its name."""
    suffix = PurePosixPath(path).suffix
    return suffix.lower() if suffix.lower() == ".ipynb" else suffix


@dataclass(frozen=True, slots=True)
class Ran:
    """An archived run, as far as it can be read."""

    run_id: str
    record: Record
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a branch changes, against where it left its base."""

    onto: str  # the base as it is now
    since: str  # where the branch left it
    head: str
    files: tuple[File, ...]  # those that may be tasks or notebooks
    others: tuple[str, ...]  # the paths of the rest


def difference(repository: Repository, base: str, head: str) -> Difference:
    """Both are commits. Raises where the two have nothing to do with each other."""
    said = repository.ask("merge-base", base, head)
    if said.code or not said.text:
        shallow = repository.ask("rev-parse", "--is-shallow-repository").text == "true"
        raise UsageError(
            "the branch and its base have no common history",
            hint="git fetch --unshallow" if shallow else "start the branch from its base again",
        )
    since = said.text.split("\n")[0]
    raw = repository.raw("diff-tree", "-r", "-z", "--name-only", "--no-renames", since, head)
    names = [os.fsdecode(name) for name in raw.split(b"\0") if name]
    wanted = [name for name in names if _suffix(name) in formats.SUFFIXES]
    files = tuple(
        File(name, repository.blob(since, name), repository.blob(head, name)) for name in wanted
    )
    return Difference(base, since, head, files, tuple(name for name in names if name not in wanted))


def tasks(repository: Repository, change: Difference) -> tuple[File, ...]:
    """The tasks of a change: each `.py` with cells, and each `.ipynb` that no `.py` speaks for."""
    found = []
    for file in change.files:
        if file.suffix == ".py":
            if any(data is not None and is_task(data, file.path) for data in (file.old, file.new)):
                found.append(file)
            continue
        commit, data = (change.since, file.old) if file.new is None else (change.head, file.new)
        py = repository.blob(commit, source(file.path))
        if py is None or not is_pair(py, data, source(file.path)):
            found.append(file)
    return tuple(found)


def is_task(data: bytes, path: str) -> bool:
    """Whether a `.py` has cells; one that cannot be read is none that ran."""
    try:
        text = formats.decode(data, path)
        lines = percent.split_lines(text)
        return any(percent_marker.MARKER.match(lines[start]) for start, _ in percent.spans(text))
    except DocumentError:
        return False


def document(data: bytes | None, path: str) -> Document:
    """An empty one for what is no task: a stranger's file may be anything."""
    if data is None:
        return Document(())
    try:
        return formats.loads(formats.decode(data, path), _suffix(path))
    except DocumentError:
        return Document(())


def task_name(ws: Workspace, repository: Repository, path: str) -> str:
    """A path of the repository as records name the task."""
    assert repository.top is not None
    full, root = repository.top.resolve() / path, ws.root.resolve()
    return str(full.relative_to(root)) if full.is_relative_to(root) else str(full)


def runs_of(ws: Workspace, task: str) -> Iterator[Ran]:
    """The archived runs of a task, newest first. What cannot be read is left to `verify`."""
    archive = ws.archive
    slug = run_slug(task)
    # The name of the task is in the id: most need not be read.
    ids = [run_id for run_id in archive.ids() if run_id[18:].rpartition("-")[0] == slug]
    for _, same in groupby(archive.each(ids[:LOOKED_AT]), key=lambda kept: kept[0][:17]):
        found = [ran for ran in map(_read, same) if ran is not None and ran.record.task == task]
        # Ids sort by the second; runs of the same second by their own clock.
        yield from sorted(found, key=lambda ran: ran.record.started, reverse=True)


def _read(kept: tuple[str, Mapping[str, bytes]]) -> Ran | None:
    run_id, files = kept
    try:
        record = read_record(files)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Ran(run_id, record, files) if record.run_id == run_id else None


def archived(ws: Workspace, name: str) -> Ran:
    """A run that somebody names: an id, a beginning of one, or `last`."""
    run_id = ws.archive.find(name)
    files = ws.archive.files(run_id)
    try:
        return Ran(run_id, read_record(files), files)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"the run {run_id} cannot be read: {error}", hint=f"quire verify {run_id}"
        ) from error


def run_slug(task: str) -> str:
    from datetime import UTC, datetime

    from ..record.plan import run_id

    return run_id(task, datetime.now(UTC), "0000")[18:-5]


def named(ws: Workspace, ids: Iterable[str]) -> Iterator[Ran]:
    """Those of some runs that are in the archive and can be read."""
    there = set(ws.archive.ids())
    found = map(_read, ws.archive.each([run_id for run_id in ids if run_id in there]))
    return (ran for ran in found if ran is not None)


def ran_text(files: Mapping[str, bytes], source: bytes) -> bool:
    """Whether a run ran this text, outputs aside. Line ends are git's to choose."""
    name = next((name for name in files if name.partition(".")[0] == SOURCE), None)
    return name is not None and _text(files[name], name) == _text(source, name)


def _text(data: bytes, name: str) -> str:
    if name.endswith(".ipynb"):
        data = strip(data).data
    # A record keeps its source as UTF-8, whatever the file itself was.
    for as_name in (name, "utf-8"):
        try:
            return formats.decode(data, as_name).replace("\r\n", "\n")
        except DocumentError:
            continue
    return data.decode("latin-1")
