"""P7: 200 MB of stdout: what remains of it, and what it costs in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import report, workloads
from bench.figures import Bench
from bench.measure import CannotMeasure, Watched, memory
from bench.report import Row
from bench.us import Us, check, parse, workspace

RECORD = 10_000_000
GROWTH = 100_000_000


@dataclass(frozen=True, slots=True)
class Flooded:
    """One of our runs. The engine is the host and its client, or the command itself without one.

    `grown` is how far its peak lies above its size before the flood.
    """

    watched: Watched
    peak: int
    grown: int
    record: int
    spilled: int
    marked: bool


def flooding(bench: Bench) -> Iterator[Row]:
    megabytes = 40 if bench.quick else 200
    work = workloads.flood(megabytes)
    peer, notebook = with_papermill(bench, work)
    # A run of this size is repeated by hand when in doubt: one pass each, host and no host.
    with workspace(bench.quire, bench.folder / "p7") as us:
        hosted = with_host(us, work)
        us.stop_host()
        alone = without_host(us, work)
    for way, run in (("warm", hosted), ("no-host", alone)):
        yield from rows(f"{work.what}, {way}", peer, notebook, run)
        yield remainder(f"{work.what}, {way}", megabytes * 1_000_000, run)


def with_papermill(bench: Bench, work: workloads.Workload) -> tuple[Watched, int]:
    files = work.write(bench.folder)
    output = bench.folder / "flood.papermill.ipynb"
    watched = bench.peers.papermill(files.notebook, output).watched()
    notebook = output.stat().st_size
    output.unlink()
    return watched, notebook


def with_host(us: Us, work: workloads.Workload) -> Flooded:
    small = workloads.trivial(5)
    task = work.write(us.folder).task
    small_task = small.write(us.folder).task
    us.warm_up(small_task, small.shows)
    host = us.host()
    if host is None:
        raise CannotMeasure("no host is up after a run")
    client = us.run(small_task, "--json").watched()
    # Its size now, not its earlier peak: a high mark from before would hide what this run adds.
    before = memory(host, "VmRSS")
    watched = us.run(task, "--json").watched(extra=host)
    peak = memory(host, "VmHWM")
    return judged(us, work, watched, peak, peak - before + max(0, watched.high - client.high))


def without_host(us: Us, work: workloads.Workload) -> Flooded:
    small = workloads.trivial(5).write(us.folder).task
    task = work.write(us.folder).task
    idle = us.run(small, "--no-host", "--json").watched()
    watched = us.run(task, "--no-host", "--json").watched()
    return judged(us, work, watched, watched.high, watched.high - idle.high)


def judged(us: Us, work: workloads.Workload, watched: Watched, peak: int, grown: int) -> Flooded:
    done = parse(watched.stdout, ("run", "flood"))
    notebook = us.folder / str(done.get("notebook"))
    check(notebook, work.shows)
    folder = us.folder / ".quire" / "runs" / str(done.get("run_id"))
    if not folder.is_dir():
        folder = notebook.parent
    spills = spill_files(folder, us.folder)
    files = {path.resolve() for path in folder.rglob("*") if path.is_file()} | {notebook.resolve()}
    return Flooded(
        watched=watched,
        peak=peak,
        grown=grown,
        record=sum(path.stat().st_size for path in files - spills),
        spilled=sum(path.stat().st_size for path in spills),
        marked=bool(spills) and all(path.name in notebook.read_text() for path in spills),
    )


def spill_files(folder: Path, workspace: Path) -> set[Path]:
    """The files that the run's own journal names as holding what was cut."""
    found: set[Path] = set()
    with (folder / "events.jsonl").open() as journal:
        for line in journal:
            event = json.loads(line)
            if event.get("event") == "OutputCut":
                places = (folder / event["path"], workspace / event["path"])
                found |= {place.resolve() for place in places if place.is_file()}
    return found


def rows(what: str, peer: Watched, notebook: int, run: Flooded) -> Iterator[Row]:
    yield Row(
        "P7",
        f"{what}: record",
        peer=f"papermill {report.size(notebook)}",
        us=f"{report.size(run.record)}, marker {'there' if run.marked else 'MISSING'}",
        ratio=report.ratio(run.record / notebook),
        goal=f"≤ {report.size(RECORD)}, marker",
        met=run.record <= RECORD and run.marked,
        values={"peer": notebook, "us": run.record, "marker": run.marked},
    )
    yield Row(
        "P7",
        f"{what}: engine memory",
        peer=f"papermill peak {report.size(peer.high)}",
        us=f"+{report.size(run.grown)} (peak {report.size(run.peak)})",
        ratio=report.ratio(run.grown / peer.high),
        goal=f"≤ +{report.size(GROWTH)}",
        met=run.grown <= GROWTH,
        values={"peer": peer.high, "us": run.grown},
    )
    yield Row(
        "P7",
        f"{what}: all processes",
        peer=f"papermill peak {report.size(peer.together)}",
        us=f"peak {report.size(run.watched.together)}",
        ratio=report.ratio(run.watched.together / peer.together),
        values={"peer": peer.together, "us": run.watched.together},
    )
    yield Row(
        "P7",
        f"{what}: time",
        peer=f"papermill {report.seconds(peer.seconds)}",
        us=report.seconds(run.watched.seconds),
        ratio=report.ratio(run.watched.seconds / peer.seconds),
        values={"peer": peer.seconds, "us": run.watched.seconds},
    )


def remainder(what: str, printed: int, run: Flooded) -> Row:
    return Row(
        "P7",
        f"{what}: the rest on disk",
        us=report.size(run.spilled),
        goal="nothing lost",
        met=run.spilled + run.record >= printed,
        values={"us": run.spilled},
    )
