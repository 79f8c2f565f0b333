"""The record of a logbook's run in `logbooks/runs/`: begun, grown step by step, and finished.

The journal is the truth: the file is made from it and can be made again. While the run goes on,
steps are appended, each with one write, so that what it costs does not grow with the run; at the
end the whole is written anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DocumentError, QuireError, StorageError
from ..files import disk, write_atomic
from ..record.events import (
    Asked,
    CellFinished,
    Event,
    NoteAdded,
    ResultGlued,
    RunFinished,
    RunStarted,
    ToolCalled,
)
from ..record.listener import Notice, Scene
from ..record.record import Fold, Record, Result
from ..task.formats import LOGBOOK
from ..task.templates import folder
from ..workspace import Workspace
from . import page as logbook

_ASIDES = (ResultGlued, NoteAdded, Asked, ToolCalled)  # as `logbook.Around` has them
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(slots=True)
class _Page:
    """Grows with the events of its run. A disk that says no costs the page, not the run."""

    scene: Scene
    path: Path
    _failed: bool = False
    _written: int = 0  # cells of the record that are in the file
    _around: dict[str, tuple[list[Any], ...]] = field(default_factory=dict)
    _order: dict[str, int] = field(default_factory=dict)

    def on(self, event: Event, fold: Fold) -> None:
        if self._failed:
            return
        try:
            self._add(event, fold)
        except StorageError as error:
            self._failed = True
            self.scene.notices.append(Notice("the record for people is not written", error))

    def released(self, record: Record) -> None: ...

    def _add(self, event: Event, fold: Fold) -> None:
        if isinstance(event, RunStarted):
            self._order = {cell["id"]: at for at, cell in enumerate(event.cells)}
            with disk(str(self.path)):
                self.path.parent.mkdir(parents=True, exist_ok=True)
            head = logbook.head(fold.record(alive=True))
            write_atomic(self.path, head.encode("utf-8", "replace"), mode=0o644, durable=False)
        elif isinstance(event, _ASIDES):
            self._aside(event)
        elif isinstance(event, CellFinished):
            self._append(event.cell, fold)
        elif isinstance(event, RunFinished):
            write(self.path, fold.record(alive=False))

    def _aside(self, event: ResultGlued | NoteAdded | Asked | ToolCalled) -> None:
        around = self._around.setdefault(event.cell, tuple([] for _ in _ASIDES))
        around[_ASIDES.index(type(event))].append(event)

    def _append(self, cell: str, fold: Fold) -> None:
        """The cell that ended, and what stands above it."""
        upto = self._order.get(cell, -1) + 1
        names = list(self._order)[self._written : upto]
        self._written = max(self._written, upto)
        texts = []
        for name in names:
            results, *others = self._around.pop(name, ([],))
            glued = tuple(Result(r.name, r.kind, r.value, r.cell) for r in results)
            around = logbook.Around(glued, *map(tuple, others))
            text, files = logbook.cell_text(self.scene.plan.uuid, fold.cell(name), around)
            _save(self.path, files)
            texts.append(text)
        data = "".join(texts).encode("utf-8", "replace")
        with disk(str(self.path)):
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)


def listen(scene: Scene) -> _Page | None:
    """None for a task that is no logbook."""
    return _Page(scene, scene.ws.root / scene.plan.logbook) if scene.plan.logbook else None


def write(path: Path, record: Record) -> None:
    """The whole file, at once."""
    page = logbook.dumps(record)
    with disk(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
    _save(path, page.files)
    write_atomic(path, page.text.encode("utf-8", "replace"), mode=0o644)


def _save(path: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        target = path.parent / name
        with disk(str(target)):
            target.parent.mkdir(exist_ok=True)
        write_atomic(target, data, mode=0o644, durable=False)


def catch_up(ws: Workspace, record: Record) -> None:
    """The file of a run whose process was killed, from what its journal has."""
    told = record.plan.get("logbook")
    if not isinstance(told, str) or not told or record.outcome == "running":
        return
    try:
        path = ws.root / told
        if path.parent.parent != folder(ws) / "runs" or path.stem != record.uuid:
            return
        # What was being written when it was killed, perhaps the very first of it.
        for half in path.parent.glob(f".{path.name}.*.tmp"):
            half.unlink()
        if not path.exists() or f"\noutcome: {record.outcome}\n" not in _head(path):
            write(path, record)
    except (QuireError, OSError):
        return  # the journal still has it all


def written(ws: Workspace, name: str) -> Path | None:
    """The record that is named, by its path or the uuid of its run; None where there is none."""
    if name.lower().endswith(LOGBOOK):
        path = (ws.cwd / name).resolve()
        return path if path.is_relative_to(ws.root.resolve()) and path.is_file() else None
    if _UUID.fullmatch(name):
        return next((folder(ws) / "runs").glob(f"*/{name.lower()}.md"), None)
    return None


def read(ws: Workspace, path: Path) -> Record:
    """The record that a file holds, by nothing but that file and the pictures beside it."""
    from .read_back import loads

    def beside(name: str) -> bytes | None:
        try:
            return (path.parent / name).read_bytes()
        except OSError:
            return None

    with disk(str(path)):
        data = path.read_bytes()
    try:
        return loads(data.decode("utf-8", "replace"), beside)
    except DocumentError as error:
        raise DocumentError(f"{ws.named(path)}: {error}", hint=error.hint) from error


def _head(path: Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(65_536).partition("\n---\n")[0] + "\n"
