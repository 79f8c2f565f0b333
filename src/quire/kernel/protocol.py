"""The seam between what runs code and everything else. Two implementations, one contract suite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..record.events import (
    CellFinished,
    KernelDied,
    OutputAdded,
    OutputsCleared,
    OutputUpdated,
    Warned,
)

KernelEvent = OutputAdded | OutputUpdated | OutputsCleared | Warned | CellFinished | KernelDied
# Seconds; what says them is asked before every wait, for whoever has to look at an exact time.
Tick = float | Callable[[], float]


def milliseconds(tick: Tick) -> int:
    """As a poll wants it: never none, and never shorter than asked for."""
    return max(1, math.ceil((tick() if callable(tick) else tick) * 1000))


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """Which kernel, and the world it starts in."""

    cwd: Path
    env: Mapping[str, str]
    name: str = ""  # a Jupyter kernel; empty means the native one
    python: str = ""  # the interpreter of a native kernel; empty means this one
    preload: tuple[str, ...] = ()
    # umask, niceness, cores and limits, where they are not those of this process.
    world: Mapping[str, Any] = field(default_factory=dict)
    # For the commands of its cells, where a cell chose `env`: that of whoever began all of it.
    commands: Mapping[str, str] | None = None
    # What the record says of an environment that was made for it; empty where none was asked for.
    environment: Mapping[str, Any] = field(default_factory=dict)


class Kernel(Protocol):
    kind: str  # "native" or "jupyter"
    language: str
    epoch: int

    def execute(
        self, code: str, cell: str, *, tick: Tick = 0.1, aside: bool = False
    ) -> Iterator[KernelEvent | None]:
        """Run one cell. Ends with exactly one CellFinished or KernelDied.

        Yields None at least every `tick` seconds while nothing happens, so that the caller can
        look at clocks and cancellations without a thread. A cell that raises is a CellFinished
        with status "failed"; nothing the cell does raises here. `aside` tells a kernel that can
        set its state aside that the state after this cell will be wanted.
        """
        ...

    def interrupt(self) -> None:
        """What Ctrl-C does. Safe from another thread, and when nothing runs."""
        ...

    def kill(self) -> None:
        """End the kernel and every process it started, now. `execute` then yields KernelDied."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """What the record says of the environment: interpreter, version, platform, pid."""
        ...

    def environment(self) -> Mapping[str, Any]:
        """What its code can import: `interpreter`, `platform`, `packages` with their versions.

        Takes a while the first time; safe from another thread.
        """
        ...

    def close(self) -> None:
        """End the kernel and every process it started. Safe to call twice."""
        ...
