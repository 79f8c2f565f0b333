"""Put runs into the archive: signed, and durable before anybody is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from .. import __version__
from ..errors import GitError, QuireError, StorageError
from ..proof.attestation import ATTESTATION, envelope, statement
from ..proof.signatures import opened
from ..record.listener import Finisher, Notice, Scene
from ..record.listener import recovered as tell_recovered
from ..record.record import Record
from ..record.record_files import archive_files, canonical, read_record
from ..record.run_folders import RunFolder
from ..workspace import STATE, Workspace
from .branch import GitArchive

PUSH_TIMEOUT = 10.0  # seconds that a run waits for a remote
SILENCE = 60.0  # seconds for which a remote that failed is not tried again
NOT_ARCHIVED = "the record is not archived yet"
NOT_PUSHED = "the archive is not pushed yet"


@dataclass(frozen=True, slots=True)
class Owed:
    """A run that could not be archived, and why."""

    run_id: str
    error: QuireError


def archive(ws: Workspace, folder: RunFolder, record: Record) -> dict[str, Any]:
    """Sign the record and add it. What cannot be archived now is owed, and tried again later: as
    it is signed now, by who knows that it is so."""
    files = _files(ws, folder, record)
    signed = files[ATTESTATION] = envelope(_statement(files), ws.keys.own())
    try:
        return _add(ws, folder, files)
    except QuireError:
        ws.engine.vouch(record.run_id, signed)
        with suppress(QuireError):  # it may be the disk that is full
            folder.vouch(signed)
        raise


def _files(ws: Workspace, folder: RunFolder, record: Record) -> dict[str, bytes]:
    suffix, source = folder.source()
    return archive_files(
        record,
        source,
        suffix,
        version=__version__,
        large=ws.config.archive.large,
        keep=ws.objects.put,
    )


def _add(ws: Workspace, folder: RunFolder, files: dict[str, bytes]) -> dict[str, Any]:
    _must_be_owed_to(ws, folder)
    return _paid(ws, folder, ws.archive.add(folder.run_id, files))


def _paid(ws: Workspace, folder: RunFolder, place: str) -> dict[str, Any]:
    where = {"archive": ws.archive.where, "place": place}
    ws.runs.paid(folder, where)
    ws.engine.vouched.pop(folder.run_id, None)
    return where


def _must_be_owed_to(ws: Workspace, folder: RunFolder) -> None:
    """A run is not given to a repository that came to lie where its own was."""
    whose, here = ws.runs.owed_to(folder), ws.repository
    if not whose or (here is not None and here.id == whose):
        return
    note = f"{STATE}/unarchived/{folder.run_id}"
    place = f"{here.git_dir} is not" if here is not None else "here is no longer"
    raise GitError(
        f"{place} the repository that the run {folder.run_id} was begun in",
        hint=f"put that one back; or, if the run shall be archived here: truncate -s 0 {note}, "
        "then quire push",
    )


def send(ws: Workspace) -> None:
    """Push the archive where that is asked for and there is a remote. A remote that did not answer
    is left alone for a while: what it lacks is pushed with a later run, or by `quire push`."""
    settings, archive, engine = ws.config.archive, ws.archive, ws.engine
    if not settings.push or not isinstance(archive, GitArchive):
        return
    remote = archive.repository.remote(settings.remote)
    if remote is None:
        return
    if time.monotonic() < engine.silent_remotes.get(remote, 0.0):
        raise GitError(
            f"{remote} failed a moment ago, and is left alone for {SILENCE:.0f} s",
            hint="see that it can be reached",
        )
    try:
        archive.push(remote, PUSH_TIMEOUT)
    except QuireError:
        engine.silent_remotes[remote] = time.monotonic() + SILENCE
        raise


def tidy(ws: Workspace) -> None:
    """Runs that are still owed, and the housekeeping of the archive: in a host, when nobody waits.
    There is something to keep house about once in many runs."""

    def chore() -> None:
        catch_up(ws)
        ws.archive.tidy()

    if ws.engine.outlives:
        ws.engine.later(f"archive of {ws.root}", chore)
    else:
        chore()


class _Keeper(Finisher):
    """Archives the run before anybody hears that it is over, and pushes once it is released.

    A run that cannot be archived is still good: its record is here, and is archived as soon as that
    is possible.
    """

    def finished(self, record: Record) -> None:
        scene = self.scene
        try:
            scene.archived = archive(scene.ws, scene.folder, record)
        except QuireError as error:
            scene.notices.append(Notice(NOT_ARCHIVED, error))
            return
        if scene.ws.archive.warning:
            scene.notices.append(Notice(scene.ws.archive.warning))

    def released(self, record: Record) -> None:
        scene = self.scene
        if scene.archived is None or record.parent:
            return  # a run that another run asked for is pushed with that one
        try:
            if scene.pushes:
                send(scene.ws)
        except QuireError as error:
            scene.notices.append(Notice(NOT_PUSHED, error))
        with suppress(QuireError):  # it is still owed, and `quire doctor` says so
            tidy(scene.ws)


def listen(scene: Scene) -> _Keeper | None:
    return _Keeper(scene) if scene.archives else None


def _statement(files: dict[str, bytes]) -> dict[str, Any]:
    try:
        return statement(files)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StorageError(
            f"the record cannot be signed: {error}", hint="its journal was damaged, or is no run's"
        ) from error


def catch_up(ws: Workspace) -> list[Owed]:
    """Archive the runs that are still owed; those that cannot be, with the reason."""
    left: list[Owed] = []
    for folder in ws.runs.owed():
        try:
            _pay(ws, folder)
        except QuireError as error:
            left.append(Owed(folder.run_id, error))
    return left


def _pay(ws: Workspace, folder: RunFolder) -> None:
    """Archive what another process has run, or this one at another time. Anybody may have written
    what lies there: either the process that ran it has signed it as it is, or it is recovered."""
    _must_be_owed_to(ws, folder)
    if folder.run_id in ws.archive.ids():  # it was killed before it could say so
        _paid(ws, folder, ws.archive.path(folder.run_id))
        return
    record = _recovered(ws, folder)
    if not record.recovered:
        files = _files(ws, folder, record)
        signed = _vouched(ws, folder, files)
        if signed is not None:
            _add(ws, folder, {**files, ATTESTATION: signed})
            return
        record = _recovered(ws, folder, unwitnessed=True)
        if not record.recovered:
            raise StorageError(
                f"the journal of {folder.run_id} cannot be written to",
                hint="see that its folder can be written to, and that the disk is not full",
            )
    archive(ws, folder, record)


def _recovered(ws: Workspace, folder: RunFolder, *, unwitnessed: bool = False) -> Record:
    changed = ws.runs.recover(folder, unwitnessed=unwitnessed)
    record = ws.runs.read(folder)
    if changed:
        tell_recovered(ws, record)
    return record


def _vouched(ws: Workspace, folder: RunFolder, files: dict[str, bytes]) -> bytes | None:
    """What was signed of just these files when it ran, with a key of this machine."""
    wanted = canonical(_statement(files))
    for signed in (ws.engine.vouched.get(folder.run_id), folder.vouched()):
        if signed is not None:
            seen = opened(signed, ws.keys.own_trust())
            if not seen.findings and canonical(seen.payload) == wanted:
                return signed
    return None


def log(ws: Workspace, limit: int | None = 20) -> Iterator[dict[str, Any]]:
    """Archived runs, newest first, each in a few words."""
    archive = ws.archive
    ids = archive.ids()
    # Ids sort by the second; runs of the same second by the time they began.
    for _, same in groupby(archive.each(ids), key=lambda found: found[0][:17]):
        group = [_told(run_id, files) for run_id, files in same]
        for told in sorted(group, key=lambda told: told["started"] or "", reverse=True):
            yield told
            if limit is not None and (limit := limit - 1) <= 0:
                return


def _told(run_id: str, files: Any) -> dict[str, Any]:
    try:
        record = read_record(files)
    except (ValueError, KeyError, TypeError, RecursionError) as broken:
        # Not what Quire has written; `verify` says more.
        return {"run_id": run_id, "outcome": "unreadable", "error": str(broken)} | dict.fromkeys(
            ("task", "title", "started", "duration", "asked", "commit", "results")
        )
    git, asked = record.origin.get("git") or {}, record.origin.get("asked") or {}
    error = record.error
    return {
        "run_id": run_id,
        "outcome": record.outcome,
        "error": f"{error.name}: {error.value}"[:500] if error else None,
        "task": record.task,
        "title": record.title,
        "started": record.started,
        "duration": record.duration,
        "asked": asked.get("by"),
        "commit": git.get("commit"),
        "results": record.values,
    }
