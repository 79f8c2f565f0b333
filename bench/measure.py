"""Seconds and memory of whole commands, read from outside: the clock and /proc."""

from __future__ import annotations

import os
import select
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

TIMEOUT = 900.0
GLANCE = 0.01  # seconds between two looks at a process's memory


class CannotMeasure(Exception):
    """A command that should have been timed did not do its work."""


@dataclass(frozen=True, slots=True)
class Command:
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]

    def seconds(self) -> float:
        """How long the whole command takes, process start and exit included."""
        # A file for stderr, not a pipe: nobody has to read it while the clock runs.
        with tempfile.TemporaryFile() as errors:
            start = time.perf_counter()
            process = self._start(subprocess.DEVNULL, errors.fileno())
            with ending(process) as ended:
                if not ended(TIMEOUT):
                    self._give_up(process)
            elapsed = time.perf_counter() - start
            self._must_be_ok(process.wait(), errors)
        return elapsed

    def output(self) -> str:
        """What it prints, outside any measurement."""
        return self.watched().stdout

    def watched(self, extra: int | None = None) -> Watched:
        """Run it and follow the memory of its processes, and of `extra` and its children."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            start = time.perf_counter()
            process = self._start(out.fileno(), errors.fileno())
            watch = Watch(process.pid, extra)
            with ending(process) as ended:
                while not ended(GLANCE):
                    watch.look()
                    if time.perf_counter() - start > TIMEOUT:
                        self._give_up(process)
            elapsed = time.perf_counter() - start
            self._must_be_ok(process.wait(), errors)
            out.seek(0)
            return Watched(elapsed, watch.high, watch.together, out.read().decode())

    def _start(self, out: int, errors: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.argv,
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
        )

    def _must_be_ok(self, code: int, errors: IO[bytes]) -> None:
        if code != 0:
            errors.seek(0)
            tail = errors.read().decode(errors="replace").strip()[-1500:]
            raise CannotMeasure(f"{' '.join(self.argv)} exited with {code}:\n{tail}")

    def _give_up(self, process: subprocess.Popen[bytes]) -> NoReturn:
        process.kill()
        process.wait()
        raise CannotMeasure(f"{' '.join(self.argv)} took longer than {TIMEOUT:.0f} s")


@contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """Gives a function that waits so many seconds and says whether the process has ended.

    `Popen.wait(timeout)` looks in steps that double up to 50 ms: too coarse for what is timed.
    """
    handle = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    try:
        yield lambda timeout: bool(poll.poll(timeout * 1000))
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Watched:
    seconds: float
    high: int  # peak resident bytes of the command's own process
    together: int  # peak of it and all its children, each shared page counted once
    stdout: str


@dataclass(slots=True)
class Watch:
    pid: int
    extra: int | None
    high: int = 0
    together: int = 0
    next_count: float = 0.0

    def look(self) -> None:
        # A high-water mark, so that a late look still sees an early peak.
        self.high = max(self.high, memory(self.pid, "VmHWM"))
        if time.monotonic() >= self.next_count:
            # The kernel walks every page for this sum: seldom, or it slows what it watches.
            pids = descendants(pid for pid in (self.pid, self.extra) if pid)
            self.together = max(self.together, sum(map(proportional, pids)))
            self.next_count = time.monotonic() + 0.1


def descendants(roots: Iterable[int]) -> list[int]:
    found: list[int] = []
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in found:
            continue
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting += map(int, task.read_text().split())
            except OSError:  # it ended while we looked
                continue
    return found


def memory(pid: int, name: str) -> int:
    """Bytes of one line of /proc/<pid>/status, 0 when the process is gone."""
    return _kilobytes(Path(f"/proc/{pid}/status"), name)


def proportional(pid: int) -> int:
    """Resident bytes with each page divided by how many share it: forked processes add up."""
    return _kilobytes(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def _kilobytes(path: Path, name: str) -> int:
    try:
        text = path.read_text()
    except OSError:  # it ended while we looked
        return 0
    for line in text.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


@dataclass(frozen=True, slots=True)
class Times:
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a comparison. `before` runs ahead of each repeat, off the clock."""

    name: str
    command: Command
    repeats: int
    before: Callable[[], object] | None = None


def race(contenders: Sequence[Contender]) -> dict[str, Times]:
    """Time all of them in turns, so that a busy moment of the machine meets both sides."""
    times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    rounds = max(contender.repeats for contender in contenders)
    for turn in range(rounds):
        for contender in contenders:
            # Spread the fewer repeats of a slow one over the whole race.
            due = (turn + 1) * contender.repeats // rounds
            if len(times[contender.name]) < due:
                if contender.before:
                    contender.before()
                times[contender.name].append(contender.command.seconds())
    return {name: Times(tuple(seconds)) for name, seconds in times.items()}


def load() -> float:
    return os.getloadavg()[0]
