"""P6: rewind and run a cell again, against running the notebook again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench import report
from bench.figures import Bench
from bench.measure import CannotMeasure, Contender, race
from bench.report import Row
from bench.us import workspace
from quire.kernel.native import NativeKernel, NativeKernels
from quire.kernel.protocol import KernelSpec
from quire.kernel.snapshots import Snapshot
from quire.record.events import CellFinished, KernelDied

THINK = 0.02  # seconds between two calls of an agent, at the very least
CELL = "data[0] = 7.0; answer = float(data[0])"


def load(megabytes: int) -> str:
    return f"import numpy as np\ndata = np.ones({megabytes} * 2**20 // 8)"


def rewinding(bench: Bench) -> Iterator[Row]:
    yield from in_kernel(bench, 512)
    yield from snapshot_cost(bench, 50, goal=0.002)
    yield from whole_commands(bench)


def execute(kernel: NativeKernel, code: str, *, aside: bool = False) -> None:
    for event in kernel.execute(code, "c", aside=aside):
        if isinstance(event, KernelDied):
            raise CannotMeasure(f"{code!r}: {event.reason}")
        if isinstance(event, CellFinished) and event.status != "ok":
            raise CannotMeasure(f"{code!r} failed: {event.error}")


def set_aside(kernel: NativeKernel) -> Snapshot:
    made = kernel.snapshot()
    if isinstance(made, str):
        raise CannotMeasure(f"no snapshot: {made}")
    return made


def in_kernel(bench: Bench, megabytes: int) -> Iterator[Row]:
    with NativeKernels() as kernels:
        kernel = kernels.start(KernelSpec(Path(bench.folder), dict(os.environ)))
        began = time.perf_counter()
        execute(kernel, load(megabytes))
        execute(kernel, CELL)
        again = time.perf_counter() - began
        state = set_aside(kernel)
        times = []
        for _ in range(bench.repeats(15, 5)):
            began = time.perf_counter()
            kernel.rewind(state)
            execute(kernel, CELL)
            times.append(time.perf_counter() - began)
        kernel.close()
    yield Row(
        "P6",
        f"rewind and run a cell, {megabytes} MB, in the kernel",
        peer=f"cells again {report.seconds(again)}",
        us=f"{report.seconds(median(times))} (min {report.seconds(min(times))})",
        ratio=report.ratio(median(times) / again),
        goal="≤ 20 ms",
        met=median(times) <= 0.020,
        values={"us": times, "peer": [again]},
    )
    yield from snapshot_cost(bench, megabytes, goal=0.010)


def snapshot_cost(bench: Bench, megabytes: int, goal: float) -> Iterator[Row]:
    """A cell with and without its state being set aside, in turns.

    As a session does it: the state is set aside after the answer, before the next call comes. So
    both sides rest between cells, and what remains is what setting aside costs the cells.
    """
    with NativeKernels() as kernels:
        kernel = kernels.start(KernelSpec(Path(bench.folder), dict(os.environ)))
        execute(kernel, load(megabytes))
        plain, marked = [], []
        for _ in range(bench.repeats(40, 10)):
            time.sleep(THINK)
            began = time.perf_counter()
            execute(kernel, CELL, aside=True)
            plain.append(time.perf_counter() - began)
            time.sleep(THINK)
            began = time.perf_counter()
            state = set_aside(kernel)
            execute(kernel, CELL)
            marked.append(time.perf_counter() - began)
            state.drop()
        kernel.close()
    added = median(marked) - median(plain)
    yield Row(
        "P6",
        f"a snapshot adds to a cell, {megabytes} MB",
        peer=f"without {report.seconds(median(plain))}",
        us=f"+{report.seconds(max(added, 0.0))}",
        ratio="-",
        goal=f"≤ {report.seconds(goal)}",
        met=added <= goal,
        values={"us": marked, "peer": plain},
    )


def whole_commands(bench: Bench) -> Iterator[Row]:
    with workspace(bench.quire, bench.folder / "p6") as us:
        task = us.folder / "big.py"
        task.write_text(f"# %%\n{load(512)}\n\n# %%\n{CELL}\n")
        us.command("session", "open", str(task), "--name", "big").output()
        us.command("exec", "big", "all").output()
        us.command("rewind", "big", "1").output()
        us.command("exec", "big", "1").output()
        times = race([Contender("again", us.run(task), bench.repeats(5, 2))])
        rewinds, execs = [], []
        for _ in range(bench.repeats(9, 3)):
            us.command("exec", "big", "1").output()
            rewinds.append(us.command("rewind", "big", "1").seconds())
            execs.append(us.command("exec", "big", "1").seconds())
    again = times["again"]
    both = median(rewinds) + median(execs)
    yield Row(
        "P6",
        "quire rewind, whole command, 512 MB",
        peer=f"quire run again {report.seconds(again.median)}",
        us=f"{report.seconds(median(rewinds))}, then quire exec {report.seconds(median(execs))}",
        ratio=report.ratio(both / again.median),
        goal="≤ 150 ms",
        met=median(rewinds) <= 0.150 and median(execs) <= 0.150,
        values={"rewind": rewinds, "exec": execs, "peer": again.seconds},
    )
