"""P9: a run archived durably, one at a time and by many writers at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench import report, workloads
from bench.figures import Bench
from bench.measure import CannotMeasure, Contender, race
from bench.peers import clean_environment
from bench.report import Row
from bench.us import Us, workspace
from quire.archive.put import archive
from quire.record.record import Record
from quire.record.run_folders import RunFolder
from quire.workspace import Workspace

WRITERS, EACH = 8, 50
GOAL = 0.040


def archiving(bench: Bench) -> Iterator[Row]:
    yield from one_at_a_time(bench)
    yield from many_writers(bench)
    yield from whole_commands(bench)


def settings(folder: Path) -> dict[str, str]:
    """Neither the keys nor the git configuration of whoever runs this."""
    keys = folder / "keys"
    keys.mkdir(exist_ok=True)
    return {
        **clean_environment(),
        "QUIRE_KEYS": str(keys),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }


def repository(folder: Path, env: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, env, "init", "--quiet", "--initial-branch=main")
    git(folder, env, "config", "user.name", "bench")
    git(folder, env, "config", "user.email", "bench@example.org")
    return folder


def git(folder: Path, env: dict[str, str], *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CannotMeasure(f"git {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout.strip()


def a_run(bench: Bench, folder: Path, env: dict[str, str]) -> tuple[Workspace, RunFolder, Record]:
    """A real run of five cells that print, in a repository, not archived yet."""
    work = workloads.trivial(5)
    (folder / "quire.toml").write_text("")
    task = work.write(folder).task
    us = Us((*bench.quire,), folder)
    command = us.run(task, "--no-host", "--no-archive", "--json")
    replace(command, env=env).output()
    ws = Workspace(folder, cwd=folder, env=env)
    found = ws.runs.find("last")
    return ws, found, ws.runs.read(found)


def another(folder: RunFolder, record: Record, number: int) -> tuple[RunFolder, Record]:
    """The same run under another id, in a folder of its own."""
    stem, _, _ = record.run_id.rpartition("-")
    run_id = f"{stem}-{number:04x}"
    copy = RunFolder(folder.path.with_name(run_id))
    shutil.copytree(folder.path, copy.path, dirs_exist_ok=True)
    return copy, replace(record, run_id=run_id)


def one_at_a_time(bench: Bench) -> Iterator[Row]:
    env = settings(bench.folder)
    ws, folder, record = a_run(bench, repository(bench.folder / "one", env), env)
    archive(ws, *another(folder, record, 0))  # makes the key and the branch
    peer = repository(bench.folder / "peer", env)
    times, peers = [], []
    for number in range(1, bench.repeats(60, 15)):
        made = another(folder, record, number)
        began = time.perf_counter()
        archive(ws, *made)
        times.append(time.perf_counter() - began)
        peers.append(by_hand(ws, made[1].run_id, peer, env))
    count = len(ws.archive.ids())
    if count != len(times) + 1:
        raise CannotMeasure(f"{count} runs are in the archive, not {len(times) + 1}")
    yield Row(
        "P9",
        "archive one run durably: sign, commit, on the disk",
        peer=f"git add, git commit, not durable {report.seconds(median(peers))}",
        us=f"{report.seconds(median(times))} (min {report.seconds(min(times))})",
        ratio=report.ratio(median(times) / median(peers)),
        goal="≤ 40 ms",
        met=median(times) <= GOAL,
        values={"us": times, "peer": peers},
    )


def by_hand(ws: Workspace, run_id: str, peer: Path, env: dict[str, str]) -> float:
    """The same files in a working tree, as a person would commit them."""
    place = peer / ws.archive.path(run_id)
    place.mkdir(parents=True)
    for name, data in ws.archive.files(run_id).items():
        (place / name).write_bytes(data)
    began = time.perf_counter()
    git(peer, env, "add", ".")
    git(peer, env, "commit", "--quiet", "-m", run_id)
    return time.perf_counter() - began


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from bench.archiving import another
from quire.archive.put import archive
from quire.workspace import Workspace

root, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ws = Workspace(root, cwd=root)
folder = ws.runs.find("last")
record = ws.runs.read(folder)
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + count):
    made = another(folder, record, number)
    archive(ws, *made)
    print("archived", made[1].run_id, flush=True)
"""


def many_writers(bench: Bench) -> Iterator[Row]:
    """Each in a process of its own, all at the same moment."""
    env = settings(bench.folder)
    folder = repository(bench.folder / "many", env)
    ws, _, _ = a_run(bench, folder, env)
    each = bench.repeats(EACH, 10)
    world = {**env, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(n * each + 1), str(each)],
            env=world,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    began = time.perf_counter()
    told = [writer.communicate("go\n", timeout=600)[0] for writer in start_all(writers)]
    took = time.perf_counter() - began
    acknowledged = sum(text.count("archived ") for text in told)
    there = len(ws.archive.ids())
    steps = int(git(folder, env, "rev-list", "--count", "--min-parents=1", "reports"))
    merges = int(git(folder, env, "rev-list", "--count", "--min-parents=2", "reports"))
    damage = git(folder, env, "fsck", "--full", "--no-dangling")
    wanted = WRITERS * each
    good = (acknowledged, there, steps, merges, damage) == (wanted, wanted, wanted, 0, "")
    yield Row(
        "P9",
        f"{WRITERS} processes x {each} runs at once",
        us=f"{there} of {wanted} there, {report.seconds(took / wanted)} a run",
        goal="all there, linear, git fsck clean",
        met=good,
        values={"us": took, "there": there, "merges": merges},
    )


def start_all(writers: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    return writers


def whole_commands(bench: Bench) -> Iterator[Row]:
    """What the archive adds to a warm run of five small cells."""
    env = settings(bench.folder)
    work = workloads.trivial(5)
    with workspace(bench.quire, bench.folder / "p9") as us:
        repository(us.folder, env)
        task = work.write(us.folder).task
        us.warm_up(task, work.shows)
        kept = replace(us.run(task), env=env)
        plain = replace(us.run(task, "--no-archive"), env=env)
        kept.output(), plain.output()
        repeats = bench.repeats(15, 4)
        times = race([Contender("archived", kept, repeats), Contender("plain", plain, repeats)])
    more = times["archived"].median - times["plain"].median
    yield Row(
        "P9",
        f"{work.what}, warm, whole command, archived",
        peer=f"not archived {report.seconds(times['plain'].median)}",
        us=f"{report.seconds(times['archived'].median)}",
        ratio=f"{more * 1000:+.0f} ms",
        values={"us": times["archived"].seconds, "peer": times["plain"].seconds},
    )
