"""A task with steps in other languages: one kernel for each, started when its first step comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .protocol import Kernel, KernelEvent, Tick

Start = Callable[[str], Kernel]


class SeveralKernels:
    """Looks like its main kernel. `others` says which cell belongs to another one, by its name."""

    def __init__(self, main: Kernel, others: Mapping[str, str], start: Start) -> None:
        self.main = main
        self.others = others
        self.kind = main.kind
        self.language = main.language
        self.epoch = main.epoch
        self._start = start
        self._started: dict[str, Kernel] = {}
        self._current: Kernel = main

    def execute(
        self, code: str, cell: str, *, tick: Tick = 0.1, aside: bool = False
    ) -> Iterator[KernelEvent | None]:
        name = self.others.get(cell)
        if name is None:
            self._current = self.main
            yield from self.main.execute(code, cell, tick=tick, aside=aside)
            return
        if name not in self._started:
            self._started[name] = self._start(name)
        self._current = self._started[name]
        yield from self._current.execute(code, cell, tick=tick)

    def interrupt(self) -> None:
        self._current.interrupt()

    def kill(self) -> None:
        for kernel in self._all():
            kernel.kill()

    def describe(self) -> Mapping[str, Any]:
        return self.main.describe()

    def environment(self) -> Mapping[str, Any]:
        return self.main.environment()

    def close(self) -> None:
        for kernel in self._all():
            kernel.close()

    def _all(self) -> list[Kernel]:
        return [*self._started.values(), self.main]


class SessionKernels(SeveralKernels):
    """The same for a session, which looks at its kernel and goes back. All of what the main kernel
    can do, it can, as long as nothing ran in another one: those have states of their own."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.main, name)
        if name == "snapshot":
            return lambda: self._why_not() or found()
        if name == "rewind":
            return lambda snapshot: self._back(found, snapshot)
        return found

    @property
    def alive(self) -> bool:
        return all(getattr(kernel, "alive", True) for kernel in self._all())

    def _why_not(self) -> str:
        names = ", ".join(sorted(self._started))
        return f"a step ran in another kernel ({names}), which cannot be set aside" if names else ""

    def _back(self, rewind: Callable[[Any], None], snapshot: Any) -> None:
        """States are set aside only before the first step of another kernel, so at that moment
        there was no other."""
        rewind(snapshot)
        while self._started:
            _, kernel = self._started.popitem()
            kernel.close()
        self._current = self.main
