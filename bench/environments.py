"""ENV: what it costs, once it is made, that a task declares what it needs."""

from __future__ import annotations

import os
from collections.abc import Iterator

from bench import report, workloads
from bench.figures import Bench
from bench.measure import Command, Contender, race
from bench.peers import clean_environment
from bench.report import Row
from bench.us import workspace
from quire.environments.uv import binary

MOST = 0.050  # seconds that the second run may take longer
BLOCK = '# /// script\n# dependencies = ["six==1.17.0"]\n# ///\n\n'


def environments(bench: Bench) -> Iterator[Row]:
    work = workloads.trivial(5)
    with workspace(bench.quire, bench.folder / "environments") as us:
        plain = work.write(us.folder).task
        declares = us.folder / "declares.py"
        declares.write_text(BLOCK + plain.read_text())
        for task in (plain, declares):
            us.warm_up(task, work.shows)
        script = Command(
            (binary(os.environ), "run", "--quiet", "--script", str(declares)),
            cwd=us.folder,
            env=clean_environment(),
        )
        script.output()
        repeats = bench.repeats(25, 6)
        times = race(
            [
                Contender("plain", us.run(plain), repeats),
                Contender("declares", us.run(declares), repeats),
                Contender("uv", script, bench.repeats(9, 3)),
            ]
        )
    plainly, declared, uv = times["plain"], times["declares"], times["uv"]
    cost = declared.median - plainly.median
    yield Row(
        "ENV",
        "5 trivial cells, warm, with dependencies",
        peer=f"without {report.seconds(plainly.median)} (min {report.seconds(plainly.best)})",
        us=f"{report.seconds(declared.median)} (min {report.seconds(declared.best)})",
        ratio=f"{cost * 1000:+.1f} ms",
        goal=f"≤ +{MOST * 1000:.0f} ms",
        met=cost <= MOST,
        values={"peer": plainly.seconds, "us": declared.seconds, "cost": cost},
    )
    yield Row(
        "ENV",
        "the same as a script",
        peer=f"uv run {report.seconds(uv.median)} (min {report.seconds(uv.best)})",
        us=report.seconds(declared.median),
        ratio=report.ratio(declared.median / uv.median),
        values={"peer": uv.seconds, "us": declared.seconds},
    )
