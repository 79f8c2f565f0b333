"""P1 to P5 and P10: seconds of whole commands, the peer and us in turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import report, workloads
from bench.measure import Contender, Times, race
from bench.peers import Peers
from bench.report import Row
from bench.us import Us, check, workspace

NOISE = 0.0001  # seconds a cell: a smaller first slope says nothing
PRELOAD = ("pandas", "matplotlib.pyplot")


@dataclass(frozen=True, slots=True)
class Bench:
    """What every figure needs: both sides, a scratch folder and how thorough to be."""

    peers: Peers
    quire: tuple[str, ...]
    folder: Path
    quick: bool

    def repeats(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def papermill(self, workload: workloads.Workload, repeats: int) -> Contender:
        files = workload.write(self.folder)
        output = self.folder / f"{workload.name}.papermill.ipynb"
        return Contender("papermill", self.peers.papermill(files.notebook, output), repeats)

    def checked_papermill(self, workload: workloads.Workload, repeats: int) -> Contender:
        """With a run off the clock first: file caches are warm, and the notebook shows its work."""
        contender = self.papermill(workload, repeats)
        contender.command.output()
        check(self.folder / f"{workload.name}.papermill.ipynb", workload.shows)
        return contender


def compare(
    figure: str, what: str, peer: Times, us: Times, most: float | None = None, unit: str = ""
) -> Row:
    """A row whose goal, if any, is that our median is at most `most` of the peer's."""
    quotient = us.median / peer.median
    goal = "-"
    if most is not None:
        goal = f"≤ 1/{1 / most:.0f}" if most < 1 else f"≤ {most:.0f} x"
    return Row(
        figure,
        what,
        peer=f"{unit}{report.seconds(peer.median)} (min {report.seconds(peer.best)})",
        us=f"{report.seconds(us.median)} (min {report.seconds(us.best)})",
        ratio=report.ratio(quotient),
        goal=goal,
        met=None if most is None else quotient <= most,
        values={"peer": peer.seconds, "us": us.seconds, "ratio": quotient},
    )


def small(bench: Bench) -> Iterator[Row]:
    """P1: five trivial cells: warm host, no host yet, and without any host."""
    work = workloads.trivial(5)
    papermill = bench.checked_papermill(work, bench.repeats(7, 3))
    with workspace(bench.quire, bench.folder / "p1") as us:
        task = work.write(us.folder).task
        us.warm_up(task, work.shows)
        in_process = us.run(task, "--no-host")
        in_process.output()
        repeats = bench.repeats(15, 4)
        # The cold run leaves a host behind, so the warm one that follows it finds it up.
        times = race(
            [
                papermill,
                Contender("cold", us.run(task), bench.repeats(7, 3), before=us.stop_host),
                Contender("warm", us.run(task), repeats),
                Contender("no-host", in_process, bench.repeats(7, 3)),
            ]
        )
    for way, most in (("warm", 1 / 12), ("cold", 1 / 2), ("no-host", None)):
        yield compare(
            "P1", f"{work.what}, {way}", times["papermill"], times[way], most, "papermill "
        )


def many(bench: Bench) -> Iterator[Row]:
    """P2: 100, 400 and 1,600 trivial cells, and what one more cell costs."""
    with workspace(bench.quire, bench.folder / "p2") as us:
        times = {count: race(contenders(bench, us, count)) for count in (100, 400, 1600)}
        for count in (100, 400):
            work = workloads.trivial(count)
            check(bench.folder / f"{work.name}.papermill.ipynb", work.shows)
            check(us.folder / f"{work.name}.nbclient.ipynb", work.shows)
    for count, goal in ((100, None), (400, 1 / 100)):
        what = f"{count} trivial cells, warm"
        found = times[count]
        yield compare("P2", what, found["papermill"], found["us"], goal, "papermill ")
        yield compare("P2", what, found["nbclient"], found["us"], None, "nbclient ")
    last = times[1600]["us"]
    text = f"{report.seconds(last.median)} (min {report.seconds(last.best)})"
    yield Row("P2", "1600 trivial cells, warm", us=text, values={"us": last.seconds})
    yield from growth(times)


def contenders(bench: Bench, us: Us, count: int) -> list[Contender]:
    work = workloads.trivial(count)
    files = work.write(us.folder)
    us.warm_up(files.task, work.shows)
    ours = Contender("us", us.run(files.task), bench.repeats(9, 3))
    if count > 400:  # minutes for papermill, and no goal compares it
        return [ours]
    # A papermill run of 400 cells is long enough to need no warm-up of its own.
    papermill = bench.papermill(work, bench.repeats(2 if count == 400 else 3, 1))
    output = us.folder / f"{work.name}.nbclient.ipynb"
    nbclient = bench.peers.nbclient(files.notebook, output)
    return [papermill, Contender("nbclient", nbclient, bench.repeats(3, 1)), ours]


def growth(times: dict[int, dict[str, Times]]) -> Iterator[Row]:
    def slope(name: str, small: int, large: int) -> float:
        more = times[large][name].median - times[small][name].median
        return more / (large - small)

    ours = [slope("us", 100, 400), slope("us", 400, 1600)]
    papermill = slope("papermill", 100, 400)
    for (low, high), cost in zip(((100, 400), (400, 1600)), ours, strict=True):
        first = low == 100
        yield Row(
            "P2",
            f"cost of a cell, {low} → {high}",
            peer=f"papermill {report.seconds(papermill)}" if first else "-",
            us=report.seconds(cost),
            ratio=report.ratio(cost / papermill) if first else "-",
            goal="≤ 0.6 ms",
            met=cost <= 0.0006,
            values={"us": cost, **({"peer": papermill} if first else {})},
        )
    # A slope over 300 cells is a small difference of two times: leave room for noise, not for n².
    steeper = ours[1] / max(ours[0], NOISE)
    yield Row(
        "P2",
        "growth: second slope to first",
        us=f"{steeper:.2f} x",
        ratio=f"{steeper:.2f} x",
        goal="≤ 1.5 x (linear)",
        met=steeper <= 1.5,
        values={"us": steeper},
    )


def talkative(bench: Bench) -> Iterator[Row]:
    """P3: a hundred cells that print 20 KB each."""
    work = workloads.talkative()
    papermill = bench.checked_papermill(work, bench.repeats(4, 1))
    with workspace(bench.quire, bench.folder / "p3") as us:
        task = work.write(us.folder).task
        us.warm_up(task, work.shows)
        times = race([papermill, Contender("us", us.run(task), bench.repeats(10, 3))])
    yield compare("P3", f"{work.what}, warm", times["papermill"], times["us"], 1 / 15, "papermill ")


def script(bench: Bench) -> Iterator[Row]:
    """P4: the hundred cells of P2 against the same statements as a plain script."""
    work = workloads.trivial(100)
    with workspace(bench.quire, bench.folder / "p4") as us:
        files = work.write(us.folder)
        us.warm_up(files.task, work.shows)
        # The peers' Python: ours may have .pth files that make its start slower.
        python = bench.peers.script(str(files.script), cwd=us.folder)
        python.output()
        repeats = bench.repeats(20, 6)
        times = race(
            [Contender("python", python, repeats), Contender("us", us.run(files.task), repeats)]
        )
    yield compare("P4", f"{work.what}, warm", times["python"], times["us"], 5, "CPython ")


def plotting(bench: Bench) -> Iterator[Row]:
    """P5: pandas and matplotlib imported, one plot; preloaded, and without preloading."""
    work = workloads.plot()
    papermill = bench.checked_papermill(work, bench.repeats(6, 3))
    with (
        workspace(bench.quire, bench.folder / "p5-preloaded", PRELOAD) as preloaded,
        workspace(bench.quire, bench.folder / "p5-plain") as plain,
    ):
        sides = {"preloaded": preloaded, "not preloaded": plain}
        ours: list[Contender] = []
        for name, us in sides.items():
            task = work.write(us.folder).task
            us.warm_up(task, work.shows)
            ours.append(Contender(name, us.run(task), bench.repeats(9, 3)))
        times = race([papermill, *ours])
    for name, most in (("preloaded", 1 / 8), ("not preloaded", None)):
        what = f"{work.what}, {name}"
        yield compare("P5", what, times["papermill"], times[name], most, "papermill ")


def start(bench: Bench) -> Iterator[Row]:
    """P10: what `quire --help` takes above an interpreter that does nothing."""
    nothing = bench.peers.script("-c", "pass", cwd=bench.folder)
    us = Us(bench.quire, bench.folder).command("--help")
    nothing.output(), us.output()
    repeats = bench.repeats(20, 6)
    times = race([Contender("python", nothing, repeats), Contender("us", us, repeats)])
    python, ours = times["python"], times["us"]
    more = ours.median - python.median
    yield Row(
        "P10",
        "quire --help against python -c pass",
        peer=f"CPython {report.seconds(python.median)} (min {report.seconds(python.best)})",
        us=f"{report.seconds(ours.median)} (min {report.seconds(ours.best)})",
        ratio=f"{more * 1000:+.0f} ms",
        goal="≤ +120 ms",
        met=more <= 0.12,
        values={"peer": python.seconds, "us": ours.seconds, "more": more},
    )
