"""P8: finding runs among many; how the index grows; git grep and ripgrep over the same archive."""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from bench import made_archive, report
from bench.archiving import repository, settings
from bench.figures import Bench
from bench.measure import CannotMeasure
from bench.report import Row
from quire.search.fill import index_of, rebuild
from quire.search.find import find
from quire.workspace import Workspace

COUNTS, QUICK = (1_000, 10_000, 100_000), (1_000, 10_000)
QUERIES = 200
P95, RATE, SHARE = 0.050, 2_000.0, 1 / 3
LOOKS = 3  # of each peer: one takes seconds


@dataclass(frozen=True, slots=True)
class Filled:
    ws: Workspace
    count: int
    size: int  # bytes of all records and notebooks
    seconds: float  # that the index took
    processor: float  # seconds of it, in all processes
    index: int  # bytes


def searching(bench: Bench) -> Iterator[Row]:
    env = settings(bench.folder)
    counts = QUICK if bench.quick else COUNTS
    for count in counts:
        folder = repository(bench.folder / str(count), env)
        (folder / "quire.toml").write_text("")
        filled = fill(Workspace(folder, cwd=folder, env=env), count)
        goals = count == counts[-1]
        yield from index_rows(filled, goals)
        queries = drawn(count)
        taken = [timed(filled.ws, query) for query in queries]
        yield query_row(filled, taken, goals)
        if goals:
            ours = median(clock for clock, _ in taken)
            yield from peer_rows(bench, filled, env, queries, ours)
        shutil.rmtree(folder, ignore_errors=True)


def fill(ws: Workspace, count: int) -> Filled:
    size = made_archive.write(ws.root, count)
    began, before = time.perf_counter(), processor()
    done = rebuild(ws)
    took, used = time.perf_counter() - began, processor() - before
    if done.added != count or done.damaged:
        raise CannotMeasure(f"{done.added} of {count} runs were indexed")
    return Filled(ws, count, size, took, used, index_of(ws).size())


def processor() -> float:
    """Seconds of this process and of those it has seen end, whoever else is at work here."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def index_rows(filled: Filled, goals: bool) -> Iterator[Row]:
    rate, share = filled.count / filled.seconds, filled.index / filled.size
    yield Row(
        "P8",
        f"{filled.count:,} runs: index made from the archive",
        us=f"{rate:,.0f} runs/s, processor {report.seconds(filled.processor / filled.count)} each",
        goal="≥ 2,000 runs/s" if goals else "-",
        met=rate >= RATE if goals else None,
        values={"us": rate, "processor": filled.processor},
    )
    yield Row(
        "P8",
        f"{filled.count:,} runs: size of the index",
        peer=f"records {report.size(filled.size)}",
        us=report.size(filled.index),
        ratio=report.ratio(share),
        goal="≤ 1/3" if goals else "-",
        met=share <= SHARE if goals else None,
        values={"us": filled.index, "peer": filled.size, "ratio": share},
    )


def drawn(count: int, seed: int = 7) -> list[dict[str, object]]:
    """A mixed set: what people and agents ask, of common and of rare words."""
    draw = random.Random(seed)
    words = made_archive.Words.made(1)

    def rare() -> str:
        return words.all[draw.randint(2_000, len(words.all) - 1)]

    def common() -> str:
        return words.all[draw.randint(0, 60)]

    name, _ = made_archive.FAILURES[0]
    kinds = (
        lambda: {"query": rare()},
        lambda: {"query": common()},
        lambda: {"query": f"{common()} {common()}"},
        lambda: {"query": f"{common()} {rare()} {draw.choice(made_archive.SUBJECTS)}"},
        lambda: {"query": f'"{common()} {common()}"'},
        lambda: {"query": f"note:{common()} {draw.choice(made_archive.SUBJECTS)}"},
        lambda: {"query": f"{rare()[:5]}*"},
        lambda: {"query": f"{name}: '{draw.choice(made_archive.SUBJECTS)[:-1]}_id'"},
        lambda: {"query": f"/data/{draw.choice(made_archive.SUBJECTS)}"},
        lambda: {"query": "pandas.read_csv" if draw.random() < 0.2 else f"error:{rare()}"},
        lambda: {"results": [f"score>0.{draw.randint(90, 99)}"], "params": ["region=eu"]},
        lambda: {"query": common(), "outcome": ["failed"], "since": "2025-01-20"},
        lambda: {"query": draw.choice(made_archive.SUBJECTS), "who": "ada"},
    )
    return [kinds[at % len(kinds)]() for at in range(QUERIES)]


def timed(ws: Workspace, query: dict[str, object]) -> tuple[float, float]:
    """By the clock, and of the processor."""
    began, before = time.perf_counter(), processor()
    find(ws, **query)  # type: ignore[arg-type]
    return time.perf_counter() - began, processor() - before


def query_row(filled: Filled, taken: list[tuple[float, float]], goals: bool) -> Row:
    times, used = [clock for clock, _ in taken], [used for _, used in taken]
    p95, p95_used = quantiles(times, n=20)[-1], quantiles(used, n=20)[-1]
    return Row(
        "P8",
        f"{filled.count:,} runs: {QUERIES} mixed queries, with a look for new runs",
        us=f"p95 {report.seconds(p95)} (processor {report.seconds(p95_used)}), "
        f"median {report.seconds(median(times))}",
        goal="p95 ≤ 50 ms" if goals else "-",
        met=p95 <= P95 if goals else None,
        values={"us": times, "processor": used, "p95": p95},
    )


def peer_rows(
    bench: Bench,
    filled: Filled,
    env: dict[str, str],
    queries: list[dict[str, object]],
    ours: float,
) -> Iterator[Row]:
    looked = [str(q["query"]) for q in queries if str(q.get("query", " ")).isalpha()][:LOOKS]
    grep = ("git", "grep", "-l", "-i", "-F", "-e", "{}", "reports", "--", "*/record.json",
            "*/notebook.ipynb")  # fmt: skip
    yield peer_row("git grep", filled, [run(grep, q, filled.ws.root, env) for q in looked], ours)
    tool = ripgrep(bench.folder)
    if tool is None:
        return
    files = bench.folder / "files"
    files.mkdir()
    archive = subprocess.Popen(
        ["git", "archive", "reports"], cwd=filled.ws.root, env=env, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "-x", "-C", str(files)], stdin=archive.stdout, check=True)
    archive.wait()
    search = (tool, "-l", "-i", "-F", "-e", "{}", "-g", "record.json", "-g", "notebook.ipynb", ".")
    yield peer_row("ripgrep", filled, [run(search, q, files, env) for q in looked], ours)
    shutil.rmtree(files, ignore_errors=True)


def peer_row(name: str, filled: Filled, times: list[float], ours: float) -> Row:
    return Row(
        "P8",
        f"{filled.count:,} runs: one word, unranked, in files, against our median",
        peer=f"{name} {report.seconds(median(times))}",
        us=report.seconds(ours),
        ratio=report.ratio(ours / median(times)),
        values={"peer": times, "us": ours},
    )


def run(command: tuple[str, ...], word: str, folder: Path, env: dict[str, str]) -> float:
    argv = [part if part != "{}" else word for part in command]
    began = time.perf_counter()
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=False)
    if done.returncode > 1:
        raise CannotMeasure(f"{argv[0]}: {done.stderr.decode(errors='replace')[:300]}")
    return time.perf_counter() - began


def ripgrep(folder: Path) -> str | None:
    """The one that is installed, else Debian's, unpacked beside."""
    found = shutil.which("rg")
    if found or not shutil.which("dpkg") or not shutil.which("apt-get"):
        return found
    where = folder / "rg"
    where.mkdir()
    got = subprocess.run(["apt-get", "download", "ripgrep"], cwd=where, capture_output=True)
    packages = list(where.glob("ripgrep*.deb"))
    if got.returncode or not packages:
        return None
    subprocess.run(["dpkg", "-x", str(packages[0]), "."], cwd=where, check=True)
    return str(where / "usr" / "bin" / "rg")
