"""A promotion that goes on by itself: whoever asked for it may leave, and come back for its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from ..engine.run_underway import Progress, Underway

LOOK = 0.1  # seconds between two looks at how far its clean run is


class CleanRun(Protocol):
    @property
    def run_id(self) -> str: ...
    @property
    def underway(self) -> Underway | None: ...


Work = Callable[[Callable[[CleanRun], None]], Any]


class Promotion:
    """Does `work`, which says when its clean run begins. What is wrong before that raises here."""

    def __init__(self, name: str, target: str, work: Work, *, force: bool = False) -> None:
        self.name = name
        self.target = target
        self.force = force
        self._run: CleanRun | None = None
        self._begun, self._over = threading.Event(), threading.Event()
        self._made: Any = None
        self._error: BaseException | None = None

        def begun(run: CleanRun) -> None:
            self._run = run
            self._begun.set()

        def follow() -> None:
            try:
                self._made = work(begun)
            except BaseException as error:  # noqa: BLE001 - for whoever waits, not for this thread
                self._error = error
            finally:
                self._over.set()
                self._begun.set()

        threading.Thread(target=follow, name=f"quire-promote-{name}", daemon=True).start()
        self._begun.wait()
        if self._run is None:
            self.made()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    @property
    def run_id(self) -> str:
        return self._run.run_id if self._run is not None else ""

    @property
    def progress(self) -> Progress:
        under = self._run.underway if self._run is not None else None
        return under.progress if under is not None else Progress()

    def call_off(self) -> None:
        """End its clean run, and so all of it: nothing is written then."""
        under = self._run.underway if self._run is not None else None
        if under is not None:
            under.cancel()

    def wait(
        self, timeout: float, told: Callable[[Progress], None], called_off: Callable[[], bool]
    ) -> bool:
        """Until it is over, or time is up, or whoever waits has left. Whether it is over."""
        deadline = time.monotonic() + timeout
        seen: Progress | None = None
        while not self._over.wait(max(0.0, min(LOOK, deadline - time.monotonic()))):
            if (now := self.progress) != seen:
                seen = now
                told(now)
            if called_off() or time.monotonic() >= deadline:
                return self.over
        return True

    def made(self) -> Any:
        """What `work` gave, once it is over."""
        if self._error is not None:
            raise self._error
        return self._made
