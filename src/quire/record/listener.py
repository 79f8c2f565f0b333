"""Listeners: what follows the events of a run without the engine knowing of it.

Each run makes its own listeners, by the table below and in its order. An event reaches them after
it is in the journal. What they have to tell the caller of the run goes into the scene.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from ..errors import QuireError
from ..workspace import Workspace
from .events import Event, RunFinished
from .plan import Plan
from .record import Fold, Record
from .run_folders import RunFolder

# Dotted names, loaded when a run begins: rooms further to the right are not imported from here.
LISTENERS = (
    "quire.logbooks.page_files:listen",
    "quire.record.listener:listen",
    "quire.engine.origin:listen",
    "quire.archive.put:listen",
    "quire.search.after_run:listen",
    "quire.engine.output_file:listen",
)
# Told of a record that was finished from the journal of a writer that died.
RECOVERED = ("quire.logbooks.page_files:catch_up",)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that did not work out, though the run itself is good."""

    what: str
    why: QuireError | None = None

    def __str__(self) -> str:
        return f"{self.what}: {self.why.message}" if self.why is not None else self.what


@dataclass(slots=True)
class Scene:
    """One run, as its listeners see it."""

    ws: Workspace
    plan: Plan
    folder: RunFolder
    archives: bool = True
    pushes: bool = True  # False where one push serves many runs
    output: Path | None = None  # where the executed notebook goes too
    archived: Mapping[str, Any] | None = None  # its place in the archive
    notices: list[Notice] = field(default_factory=list)


class Listener(Protocol):
    def on(self, event: Event, fold: Fold) -> None:
        """An event that the journal has. The last one comes while the journal is still held."""
        ...

    def released(self, record: Record) -> None:
        """The run is over and its journal released: for what may take longer."""
        ...


class Finisher:
    """A listener that only cares for the end of a run."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def on(self, event: Event, fold: Fold) -> None:
        if isinstance(event, RunFinished):
            self.finished(fold.record(alive=False))

    def finished(self, record: Record) -> None: ...

    def released(self, record: Record) -> None: ...


class _Files(Finisher):
    """The executed notebook and the summary in the folder of the run."""

    def finished(self, record: Record) -> None:
        self.scene.folder.save(record, self.scene.ws.runs.version)


def listen(scene: Scene) -> Listener:
    return _Files(scene)


def listeners(scene: Scene) -> list[Listener]:
    made = (_named(name)(scene) for name in LISTENERS)
    return [one for one in made if one is not None]


def recovered(ws: Workspace, record: Record) -> None:
    for name in RECOVERED:
        _named(name)(ws, record)


def _named(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
