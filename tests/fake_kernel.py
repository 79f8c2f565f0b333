"""A kernel in memory: each cell's source names what it does, or is a script of events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from quire.kernel.protocol import KernelEvent, Tick
from quire.record.events import CellError, CellFinished, KernelDied, OutputAdded

Script = Callable[["FakeKernel", str, Tick], Iterator[KernelEvent | None]]


def said(cell: str, text: str) -> OutputAdded:
    return OutputAdded(cell, {"output_type": "stream", "name": "stdout", "text": text})


@dataclass
class FakeKernel:
    """`scripts` maps a cell's source to what running it yields."""

    scripts: Mapping[str, Script] = field(default_factory=dict)
    kind: str = "fake"
    language: str = "python"
    epoch: int = 1
    asked: list[str] = field(default_factory=list)
    interrupts: int = 0
    kills: int = 0

    def execute(
        self, code: str, cell: str, *, tick: Tick = 0.1, aside: bool = False
    ) -> Iterator[KernelEvent | None]:
        self.asked.append(code)
        yield from self.scripts.get(code, fine)(self, cell, tick)

    def interrupt(self) -> None:
        self.interrupts += 1

    def kill(self) -> None:
        self.kills += 1

    def describe(self) -> Mapping[str, Any]:
        return {"kind": self.kind}

    def environment(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        self.kill()


def fine(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
    yield said(cell, f"{kernel.asked[-1]}\n")
    yield CellFinished(cell, "ok", execution_count=len(kernel.asked))


def fails(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
    yield said(cell, "before\n")
    yield CellFinished(cell, "failed", error=CellError("ValueError", "no", ("line",)))


def leaves(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
    """sys.exit(0)"""
    yield CellFinished(cell, "ok", execution_count=1, stop=True)


def dies(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
    yield said(cell, "last words")
    yield KernelDied(cell, "the kernel was killed by SIGSEGV", 11, None, {"max_rss": 1})


def hangs(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
    """Until it is interrupted."""
    yield said(cell, "begun\n")
    while not kernel.interrupts:
        time.sleep(0.005)
        yield None
    yield CellFinished(cell, "failed", error=CellError("KeyboardInterrupt", "", ()))


def ignores(kernel: FakeKernel, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
    """Until it is killed."""
    while not kernel.kills:
        time.sleep(0.005)
        yield None
    yield KernelDied(cell, "the kernel was killed by SIGKILL", 9)
