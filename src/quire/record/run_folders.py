"""The runs of a workspace: `.quire/runs/<run id>/`, one folder each.

events.jsonl     the journal; everything else here can be made again from it
source.py        the task as it was run
notebook.ipynb   the executed notebook
summary.json     a few lines for listings
spill/           what was too much for the record
archived.json    where the archive keeps it; not there as long as it does not
signed.json      what the process that ran it has signed, where the archive could not have it then

`.quire/unarchived/` has a file for each run that the archive still lacks. It says for which
repository that was; an empty one is for whichever is there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count, groupby
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import AmbiguousRun, Hint, NextStep, RunNotFound, StorageError
from ..files import disk, locked, write_atomic
from . import journal
from .events import RunFinished
from .executed_notebook import dumps, notebook
from .record import Record, fold

_ID = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{6}-[a-z0-9-]+$")
_CELL = re.compile(r"[A-Za-z0-9_-]{1,100}")


def is_id(name: str) -> bool:
    return bool(_ID.match(name)) and "\n" not in name


@dataclass(frozen=True, slots=True)
class RunFolder:
    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def notebook(self) -> Path:
        return self.path / "notebook.ipynb"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    def source(self) -> tuple[str, bytes]:
        """The task as it was run: its suffix and its bytes."""
        for path in self.path.glob("source.*"):
            return path.suffix, path.read_bytes()
        raise RunNotFound(f"the run {self.run_id} has no source", hint="its folder was damaged")

    def archived(self) -> dict[str, Any] | None:
        """Where the archive keeps it, or None as long as it does not."""
        with contextlib.suppress(OSError, ValueError):
            found = json.loads((self.path / "archived.json").read_bytes())
            return found if isinstance(found, dict) else None
        return None

    def vouch(self, signed: bytes) -> None:
        """Keep what the process that ran it says of it, for whoever archives it later."""
        write_atomic(self.path / "signed.json", signed)

    def vouched(self) -> bytes | None:
        with contextlib.suppress(OSError):
            return (self.path / "signed.json").read_bytes()
        return None

    def write(self, cell: str, what: str, text: str, path: str = "") -> str:
        """Spill: append what a record does not keep, to that file or to a new one."""
        suffix = "displays.jsonl" if what == "display" else f"{what}.txt"
        folder = self.path / "spill"
        with disk(path or str(folder)):
            folder.mkdir(mode=0o700, exist_ok=True)
            with open(path, "ab") if path else _new(folder, cell, suffix) as file:
                file.write(text.encode("utf-8", "replace"))
                return str(file.name)

    def spilled(self, cell: str, stream: str) -> Path | None:
        """Where all of a stream lies, if it was too much for the record."""
        if not _CELL.fullmatch(cell) or stream not in ("stdout", "stderr"):
            return None
        return self.beside(f"{cell}.{stream}.txt")

    def beside(self, name: str) -> Path | None:
        """A file of what was too much, by its name."""
        path = self.path / "spill" / Path(name).name
        return path if path.is_file() and not path.is_symlink() else None

    def save_source(self, source: str, suffix: str) -> None:
        with disk(str(self.path)):
            (self.path / f"source{suffix}").write_bytes(source.encode("utf-8", "surrogatepass"))

    def discard(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def save(self, record: Record, version: str) -> None:
        """The executed notebook and the summary, each whole or not at all."""
        nb = notebook(record, output_path=str(self.notebook), version=version)
        write_atomic(self.notebook, dumps(nb))
        text = json.dumps(summary_of(record)) + "\n"
        write_atomic(self.summary, text.encode(), durable=False)


def _new(folder: Path, cell: str, suffix: str) -> BinaryIO:
    for n in count(1):
        with contextlib.suppress(FileExistsError):
            return open(folder / (f"{cell}.{suffix}" if n == 1 else f"{cell}-{n}.{suffix}"), "xb")
    raise AssertionError


class RunStore:
    def __init__(self, root: Path, version: str) -> None:
        self.root = root
        self.version = version

    def create(self, run_id: str) -> RunFolder:
        """A folder for a run. Its id differs from the wanted one if that is already taken."""
        with disk(str(self.root / run_id)):
            self.root.mkdir(parents=True, exist_ok=True)
            ignore = self.root.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            while True:
                folder = RunFolder(self.root / run_id)
                try:
                    folder.path.mkdir(mode=0o700)
                    return folder
                except FileExistsError:
                    run_id = _next_id(run_id)

    @property
    def _owed(self) -> Path:
        return self.root.parent / "unarchived"

    def owe(self, folder: RunFolder, whose: str = "") -> None:
        """The archive of that repository shall have this run; until it does, that is remembered."""
        with disk(str(self._owed)):
            self._owed.mkdir(exist_ok=True)
            (self._owed / folder.run_id).write_text(whose, "ascii")

    def owed_to(self, folder: RunFolder) -> str:
        """The repository whose archive shall have it; empty where that is not said."""
        with contextlib.suppress(OSError, ValueError):
            return (self._owed / folder.run_id).read_text("ascii").strip()
        return ""

    def owed(self) -> list[RunFolder]:
        """Runs that ended and that the archive still lacks, oldest first."""
        try:
            names = sorted(name for name in os.listdir(self._owed) if _ID.match(name))
        except FileNotFoundError:
            return []
        folders = [RunFolder(self.root / name) for name in names]
        return [f for f in folders if f.events.exists() and not journal.is_live(f.events)]

    def paid(self, folder: RunFolder, where: Mapping[str, Any]) -> None:
        """The archive has it."""
        text = json.dumps(dict(where)) + "\n"
        write_atomic(folder.path / "archived.json", text.encode(), durable=False)
        self._owe_no_more(folder)

    def withdraw(self, folder: RunFolder) -> None:
        """There was no run after all."""
        folder.discard()
        self._owe_no_more(folder)

    def _owe_no_more(self, folder: RunFolder) -> None:
        with disk(str(self._owed)), contextlib.suppress(FileNotFoundError):
            (self._owed / folder.run_id).unlink()

    def ids(self) -> list[str]:
        """All run ids, newest first."""
        try:
            names = os.listdir(self.root)
        except FileNotFoundError:
            return []
        ids = sorted((name for name in names if _ID.match(name)), reverse=True)
        # Ids sort by the second; runs of the same second by the clock of their journals.
        out: list[str] = []
        for _, same in groupby(ids, key=lambda run_id: run_id[:17]):
            group = list(same)
            out += group if len(group) == 1 else sorted(group, key=self._began, reverse=True)
        return out

    def _began(self, run_id: str) -> str:
        return self._first(run_id, "at")

    def _first(self, run_id: str, key: str) -> str:
        """What the first event of a run says."""
        events = RunFolder(self.root / run_id).events
        with contextlib.suppress(OSError, ValueError, KeyError), open(events, "rb") as file:
            return str(json.loads(file.readline())[key])
        return ""

    def of_uuid(self, uuid: str) -> str:
        """The run that has it; empty where none has."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (self._uuids / uuid).read_text("utf-8").strip() or "another"
        return next((i for i in self.ids() if self._first(i, "uuid") == uuid), "")

    def claim_uuid(self, uuid: str, run_id: str) -> bool:
        """For a run whose uuid somebody chose. Of two at the same moment one gets it."""
        with disk(str(self._uuids)):
            self._uuids.mkdir(exist_ok=True)
            try:
                with open(self._uuids / uuid, "x", encoding="utf-8") as file:
                    file.write(f"{run_id}\n")
            except FileExistsError:
                return False
        return True

    @property
    def _uuids(self) -> Path:
        return self.root.parent / "uuids"

    def find(self, name: str) -> RunFolder:
        """A run by its id, a unique beginning of it, or `last`."""
        if _ID.match(name) and (self.root / name).is_dir():
            return RunFolder(self.root / name)  # no need to look at all the others
        ids = self.ids()
        if name == "last":
            return RunFolder(self.root / self._newest(ids))
        hits = [i for i in ids if name and i.startswith(name)]
        if len(hits) == 1:
            return RunFolder(self.root / hits[0])
        if hits:
            some = ", ".join(hits[:4])
            raise AmbiguousRun(
                f"{name!r} fits {len(hits)} runs: {some}", hint="give more of the id"
            )
        raise RunNotFound(
            f"there is no run {name!r}", hint=Hint("`{}` lists them", NextStep("runs"))
        )

    def _newest(self, ids: list[str]) -> str:
        if not ids:
            raise RunNotFound(
                "no task has run here yet",
                hint=Hint("run one: {}", NextStep("run", {"path": "notebooks/x.py"})),
            )
        # What a task ran belongs to that task: the last run is the last one somebody asked for.
        return next((i for i in ids if not self.summary(i)["parent"]), ids[0])

    def read(self, folder: RunFolder) -> Record:
        """The record, from the journal alone."""
        alive = journal.is_live(folder.events)
        try:
            record = fold(journal.read(folder.events), alive=alive)
        except FileNotFoundError:
            raise RunNotFound(
                f"the run {folder.run_id} has no journal", hint="its folder was damaged or is new"
            ) from None
        # A run killed before its first event has an id all the same.
        return record if record.run_id else replace(record, run_id=folder.run_id)

    def recover(self, folder: RunFolder, *, unwitnessed: bool = False) -> bool:
        """Finish the books of a run whose process was killed; leaves others alone. True if so.
        `unwitnessed`: also where they look finished, and nobody who was there has signed them.

        What cannot be written (a read-only disk, a full one) is left as it is: the journal can
        still be read.
        """
        if not self._is_abandoned(folder, unwitnessed):
            return False
        with contextlib.suppress(StorageError), locked(folder.path):
            if not self._is_abandoned(folder, unwitnessed):
                return False  # somebody else was quicker
            said = journal.finished(folder.events)
            known = said is not None and folder.archived() is not None and not unwitnessed
            if said is None or not (said.recovered or known):
                written = folder.events.stat().st_mtime
                record = fold(journal.read(folder.events))
                if not record.run_id:
                    return False
                end = _end_of(record, written) if said is None else said
                # Anybody can have written that it ended well: nobody who was there is left to say.
                journal.amend(folder.events, replace(end, recovered=True))
            folder.save(self.read(folder), self.version)
            return True
        return False

    @staticmethod
    def _is_abandoned(folder: RunFolder, unwitnessed: bool) -> bool:
        return (
            folder.events.exists()
            and (unwitnessed or not folder.summary.exists())
            and not journal.is_live(folder.events)
        )

    def summary(self, run_id: str) -> dict[str, Any]:
        folder = RunFolder(self.root / run_id)
        with contextlib.suppress(OSError, ValueError, RecursionError):
            found = json.loads(folder.summary.read_bytes())
            if isinstance(found, dict) and {"run_id", *_EMPTY} <= found.keys():
                return found
        with contextlib.suppress(RunNotFound):
            return summary_of(self.read(folder)) | {"run_id": run_id}
        return _EMPTY | {"run_id": run_id}

    def summaries(self, limit: int | None = None) -> Iterator[dict[str, Any]]:
        for run_id in self.ids()[:limit]:
            self.recover(RunFolder(self.root / run_id))
            yield self.summary(run_id)


def _end_of(record: Record, written: float) -> RunFinished:
    """As far as the journal tells: the run went on at least until it last wrote there."""
    at = max((c.finished or c.started for c in record.cells), default="") or record.started
    duration = 0.0
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        began = datetime.fromisoformat(record.started)
        end = max(datetime.fromisoformat(at), datetime.fromtimestamp(written, began.tzinfo))
        at, duration = end.isoformat(), round(max(0.0, (end - began).total_seconds()), 6)
    return RunFinished("died", at, duration, record.reason)


def _next_id(run_id: str) -> str:
    """The id with the next of its 65,536 endings."""
    stem, _, ending = run_id.rpartition("-")
    return f"{stem}-{(int(ending, 16) + 1) % 0x10000:04x}"


def summary_of(record: Record) -> dict[str, Any]:
    error = record.error
    return {
        "run_id": record.run_id,
        "task": record.task,
        "title": record.title,
        "outcome": record.outcome,
        "started": record.started,
        "duration": record.duration,
        "parent": record.parent,
        "error": f"{error.name}: {error.value}"[:500] if error else None,
    }


_EMPTY: dict[str, Any] = {
    "task": "",
    "title": "",
    "outcome": "died",
    "started": "",
    "duration": None,
    "parent": None,
    "error": "the journal holds nothing",
}
