"""Cells that were given to a session to run, and what became of them: they go on by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from ..errors import QuireError
from ..runs.events import CellSubmitted, Event, KernelReplaced, RunStarted
from ..runs.record import CellRecord, Fold


class Given:
    def __init__(self, name: str) -> None:
        self.name = name
        self.over = False
        self.error: QuireError | None = None
        self.replaced: KernelReplaced | None = None
        self.cells: list[tuple[CellSubmitted, Fold]] = []
        self._changed = threading.Condition()

    def follow(self, events: Iterator[Event]) -> None:
        """Begin, in a thread of its own."""
        thread = threading.Thread(
            target=self._follow, args=(events,), name=f"quire-{self.name}", daemon=True
        )
        thread.start()

    def _follow(self, events: Iterator[Event]) -> None:
        try:
            for event in events:
                with self._changed:
                    self._note(event)
        except QuireError as error:
            self.error = error
        finally:
            with self._changed:
                self.over = True
                self._changed.notify_all()

    def _note(self, event: Event) -> None:
        if isinstance(event, KernelReplaced):
            self.replaced = event
        elif isinstance(event, CellSubmitted):
            self.cells.append((event, _fold_of(event)))
            self._changed.notify_all()
        elif self.cells:
            self.cells[-1][1].add(event)

    def wait(self, timeout: float, seen: int = -1) -> bool:
        """Until all has run, or more cells than `seen` have begun, or time is up; whether over."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self.over and (seen < 0 or len(self.cells) <= seen):
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            return self.over

    def records(self) -> list[tuple[int | None, CellRecord]]:
        """The cells so far, each with its place in the notebook."""
        with self._changed:
            return [
                (given.index, fold.record(alive=not self.over).cells[0])
                for given, fold in self.cells
            ]


def _fold_of(given: CellSubmitted) -> Fold:
    """A cell by itself, told as that of a run is."""
    fold = Fold()
    cell = {"id": given.cell, "kind": "code", "source": given.source, "title": given.title}
    fold.add(RunStarted("", "", given.at, "", "", (cell,), {}))
    return fold
