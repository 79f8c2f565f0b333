"""Cells that were given to a session to run, and what became of them: they go on by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from ..errors import QuireError
from ..record.events import CellSubmitted, Event
from ..record.session_answer import Answer, AnswerFold
from ..render.images import Shrinker


class Given:
    def __init__(self, name: str, shrink: Shrinker) -> None:
        self.name = name
        self.shrink = shrink
        self.over = False
        self.began = 0  # cells
        self.error: QuireError | None = None
        self._fold = AnswerFold()
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
                    self._fold.add(event)
                    if isinstance(event, CellSubmitted):
                        self.began += 1
                        self._changed.notify_all()
        except QuireError as error:
            self.error = error
        finally:
            self.shrink.over()
            with self._changed:
                self.over = True
                self._changed.notify_all()

    def wait(self, timeout: float, seen: int) -> bool:
        """Until all has run, or more cells than `seen` have begun, or time is up; whether over."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not self.over and self.began <= seen:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            return self.over

    def answer(self) -> Answer:
        with self._changed:
            return self._fold.answer()
