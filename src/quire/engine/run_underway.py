"""A run that goes on in this process: whoever waits hears how far it is, and can call it off.

Also the place where its questions find somebody: they go to whoever waits for the run just now.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..record.events import CellFinished, CellStarted, Event, RunStarted
from ..record.questions import Answers, Asker, Question


@dataclass(frozen=True, slots=True)
class Progress:
    """Of the code cells: how many are done, how many there are, and which one runs."""

    done: int = 0
    total: int = 0
    cell: str = ""
    title: str = ""

    def __str__(self) -> str:
        """Such as `cell 3 of 8 (load)`."""
        at = min(self.done + 1, self.total)
        name = f" ({self.title})" if self.title else ""
        return f"cell {at} of {self.total}{name}"


class Attended:
    """Asks whoever attends to the run; where nobody does, nobody is asked."""

    def __init__(self) -> None:
        self._askers: list[Asker] = []
        self._lock = threading.Lock()
        self._open = 0

    @property
    def asking(self) -> bool:
        """Whether somebody thinks about an answer: whoever waits for the run waits for them too."""
        return self._open > 0

    @contextmanager
    def by(self, asker: Asker) -> Iterator[None]:
        with self._lock:
            self._askers.append(asker)
        try:
            yield
        finally:
            with self._lock:
                self._askers.remove(asker)

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        with self._lock:
            # The latest first, as the others may have stopped listening; each of them once.
            askers = list({id(asker): asker for asker in reversed(self._askers)}.values())
            self._open += 1
        try:
            for asker in askers:
                answers = asker.ask(questions, called_off)
                if answers is not None:
                    return answers
            return None
        finally:
            with self._lock:
                self._open -= 1


class Underway:
    def __init__(
        self, run_id: str, cancel: Callable[[], None], attended: Attended | None = None
    ) -> None:
        self.run_id = run_id
        self.cancel = cancel
        self.attended = attended or Attended()
        self.over = False
        self.error: BaseException | None = None  # what Quire itself met
        self._progress = Progress()
        self._titles: dict[str, str] = {}
        self._changed = threading.Condition()

    @property
    def progress(self) -> Progress:
        with self._changed:
            return self._progress

    def note(self, event: Event) -> None:
        """The run tells what happens."""
        with self._changed:
            now = self._progress
            if isinstance(event, RunStarted):
                code = [cell for cell in event.cells if cell["kind"] == "code"]
                self._titles = {str(cell["id"]): str(cell["title"]) for cell in code}
                self._progress = Progress(0, len(code))
            elif isinstance(event, CellStarted):
                title = self._titles.get(event.cell, "")
                self._progress = Progress(now.done, now.total, event.cell, title)
            elif isinstance(event, CellFinished):
                self._progress = Progress(now.done + 1, now.total)
            else:
                return
            self._changed.notify_all()

    def end(self) -> None:
        """Nothing more will come; what there is to know is on the disk."""
        with self._changed:
            self.over = True
            self._changed.notify_all()

    def wait(self, timeout: float, seen: Progress | None = None) -> bool:
        """Until it is over, or further than `seen`, or time is up. Whether it is over."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self.over and (seen is None or self._progress == seen):
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            return self.over
