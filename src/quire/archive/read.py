"""Look at runs: list them, read one back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import AmbiguousRun, QuireError, RunNotFound, StorageError, UsageError
from ..logbooks import page_files
from ..record.record import Record
from ..record.record_files import NOTEBOOK, read_record, source_name
from ..record.run_folders import RunFolder, is_id
from ..workspace import Workspace


@dataclass(frozen=True, slots=True)
class TakenUpBy:
    run_id: str
    outcome: str  # empty where there is no record of it any more


@dataclass(frozen=True, slots=True)
class Found:
    """A run, from its own folder or, where that is gone or elsewhere, from the archive, or from the
    record of a logbook alone."""

    record: Record
    folder: RunFolder | None
    notebook: str  # where it is kept
    archived: Mapping[str, Any] | None = None  # where, if it is
    files: Mapping[str, bytes] = field(default_factory=dict)  # as archived
    taken_up: TakenUpBy | None = None  # where it waited for a person: the run that goes on with it

    def source(self) -> tuple[str, bytes]:
        """The task as it was run: its suffix and its bytes."""
        if self.folder is not None:
            return self.folder.source()
        if not self.files:
            raise UsageError(
                f"of {self.record.run_id} there is only the record here, not the task itself",
                hint="fetch the archive that has it",
            )
        name = source_name(self.files)
        return Path(name).suffix, self.files[name]


def runs(workspace: Workspace, limit: int | None = 20) -> Iterator[dict[str, Any]]:
    """Summaries, newest first. Runs whose process was killed are brought to order on the way."""
    for run_id in workspace.runs.ids()[:limit]:
        recover(workspace, RunFolder(workspace.runs.root / run_id))
        told = workspace.runs.summary(run_id)
        paused = told["outcome"] == "paused" and workspace.taken_up.by(run_id)
        taken = find(workspace, run_id).taken_up if paused else None
        yield told | {"taken_up_by": taken and taken.run_id}


def recover(workspace: Workspace, folder: RunFolder) -> None:
    """Finish the books of a run whose process was killed, the one for people too."""
    if workspace.runs.recover(folder):
        page_files.catch_up(workspace, workspace.runs.read(folder))


def find(workspace: Workspace, name: str) -> Found:
    """A run by id, unique beginning of one, or `last`; here, or in the archive. One of a logbook by
    its uuid or the path of its record, too.

    What the archive has is what counts: anybody can write into a run's own folder, and nothing
    there is signed.
    """
    found = _found(workspace, name)
    if found.record.outcome != "paused":
        return found
    return replace(found, taken_up=taken_up(workspace, found.record))


def taken_up(workspace: Workspace, paused: Record) -> TakenUpBy | None:
    """The run that goes on with it. Not one that ended before it had run anything more: what waited
    still waits."""
    by = workspace.taken_up.by(paused.run_id)
    if not by:
        return None
    try:
        taker = _found(workspace, by).record
    except QuireError:
        return TakenUpBy(by, "")  # who knows what it ran
    waited = {cell.id for cell in paused.cells if cell.kind == "code" and cell.status == "not run"}
    more = any(c.id in waited and c.status not in ("not run", "skipped") for c in taker.cells)
    if more or taker.outcome in ("running", "paused", "ok"):
        return TakenUpBy(by, taker.outcome)
    return None


def _found(workspace: Workspace, name: str) -> Found:
    file = page_files.written(workspace, name)
    return _kept(workspace, name) if file is None else _written(workspace, file)


def _written(workspace: Workspace, file: Path) -> Found:
    """The run that a record is of or, where nothing else is known of it, what the record says."""
    record = page_files.read(workspace, file)
    if is_id(record.run_id):
        try:
            found = _kept(workspace, record.run_id)
            if found.record.uuid == record.uuid:
                return found
        except RunNotFound:
            pass
    named = workspace.named(file)
    warning = f"this is what {named} says: there is nothing else of the run here, and no proof"
    plan = {**record.plan, "logbook": named}
    return Found(replace(record, plan=plan, warnings=(warning, *record.warnings)), None, "")


def _kept(workspace: Workspace, name: str) -> Found:
    store = workspace.runs
    try:
        folder = store.find(name)
    except RunNotFound as error:
        if not workspace.config.archive.enabled or isinstance(error, AmbiguousRun):
            raise
        return _only_archived(workspace, name, error)
    recover(workspace, folder)
    notebook, archived = str(folder.notebook), folder.archived()
    if archived is None:
        return Found(store.read(folder), folder, notebook)
    try:
        kept = find_archived(workspace, folder.run_id)
    except QuireError:  # `verify` says what became of it
        return Found(store.read(folder), folder, notebook)
    return replace(kept, folder=folder, notebook=notebook, archived=archived)


def _only_archived(workspace: Workspace, name: str, not_here: RunNotFound) -> Found:
    try:
        return find_archived(workspace, name)
    except AmbiguousRun:
        raise
    except RunNotFound:
        raise not_here from None


def only(record: Record, name: str) -> Record:
    """The record with one of its cells, by id, a unique beginning of one, or title."""
    cells = record.cells
    hits = [c for c in cells if c.id == name] or [c for c in cells if name and c.title == name]
    hits = hits or [c for c in cells if name and c.id.startswith(name)]
    if len(hits) != 1:
        many = f"has {len(hits)} cells {name!r}" if hits else f"has no cell {name!r}"
        ids = ", ".join(c.id for c in (hits or cells)[:6])
        raise UsageError(f"{record.run_id} {many}", hint=f"give the id of one: {ids}")
    return replace(record, cells=(hits[0],))


def find_archived(workspace: Workspace, name: str) -> Found:
    archive = workspace.archive
    run_id = archive.find(name)
    files = archive.files(run_id)
    try:
        record = read_record(files, workspace.objects.get)
        source_name(files)
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError) as error:
        raise StorageError(
            f"what the archive has of {run_id} is no record: {type(error).__name__}: {error}",
            hint=f"quire verify {run_id} says what is wrong with it",
        ) from error
    place = archive.path(run_id)
    where = {"archive": archive.where, "place": place}
    return Found(record, None, f"{archive.where}: {place}/{NOTEBOOK}", where, files)
