"""Many writers at once, writers killed at random moments, and clones that push at the same time."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from made_archive import git, git_archive, problems, repository, run_files, run_id, seal
from quire.archive.folder_archive import FolderArchive
from quire.archive.layout import Archive
from quire.git.housekeeping import tidy

TESTS = Path(__file__).parent.parent
WRITER = Path(__file__).parent / "archive_writer.py"
Writer = subprocess.Popen[str]


def writer(kind: str, folder: Path, first: int, count: int, *more: str) -> Writer:
    return subprocess.Popen(
        [sys.executable, str(WRITER), kind, str(folder), str(first), str(count), *more],
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent / 'src'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def go(*writers: Writer) -> None:
    """All of them at the same moment."""
    for process in writers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in writers:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def said(process: Writer) -> list[str]:
    """The rest of what it says; it must end well."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out.splitlines()


def acknowledged(lines: list[str], word: str = "archived") -> list[str]:
    return [line.split()[1] for line in lines if line.startswith(f"{word} ")]


def opened(kind: str, tmp_path: Path) -> tuple[Archive, Path]:
    if kind == "folder":
        folder = tmp_path / "state" / "archive"
        return FolderArchive(folder, seal), folder
    folder = repository(tmp_path / "repo").here
    return git_archive(folder), folder


def whole(archive: Archive, runs: set[str]) -> None:
    """Exactly what was added: each run with all its bytes, each step in its place."""
    for run, files in archive.each(archive.ids()):
        assert files == run_files(run, b"x" * 20_000), run
    assert runs <= set(archive.ids())
    assert problems(archive) == []
    if archive.kind == "git" and archive.ids():
        place = archive.repository.here  # type: ignore[attr-defined]
        assert git(place, "rev-list", "--count", "--min-parents=2", "reports") == "0"
        assert git(place, "fsck", "--full", "--no-dangling") == ""


def all_land(kind: str, tmp_path: Path, writers: int, count: int) -> None:
    archive, folder = opened(kind, tmp_path)
    processes = [writer(kind, folder, n * count, count) for n in range(writers)]
    go(*processes)
    told = [run for process in processes for run in acknowledged(said(process))]
    assert len(told) == len(set(told)) == writers * count
    whole(archive, set(told))
    assert len(archive.ids()) == len(list(archive.history())) == writers * count


@pytest.mark.parametrize("kind", ["git", "folder"])
def test_many_writers_all_land(kind: str, tmp_path: Path) -> None:
    all_land(kind, tmp_path, writers=4, count=6)


@pytest.mark.torture
@pytest.mark.parametrize("kind", ["git", "folder"])
def test_eight_writers_of_fifty_runs(kind: str, tmp_path: Path) -> None:
    all_land(kind, tmp_path, writers=8, count=50)


@pytest.mark.torture
def test_eight_writers_while_packs_are_rolled_up(tmp_path: Path) -> None:
    archive, folder = opened("git", tmp_path)
    processes = [writer("git", folder, n * 50, 25) for n in range(8)]
    go(*processes)
    rolled = 0
    while any(process.poll() is None for process in processes):
        rolled += tidy(archive.repository, most=10)  # type: ignore[attr-defined]
    told = {run for process in processes for run in acknowledged(said(process))}
    assert rolled > 0
    assert len(told) == 200
    whole(archive, told)


# Killed at random moments.


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # pid (name) state parent: a name may hold anything, the last bracket ends it.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid:
                    found.append(int(entry.name))
    return found


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def held(process: Writer) -> Iterator[list[int]]:
    """It stands still, so that the children we see are the children there are."""
    os.kill(process.pid, signal.SIGSTOP)
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TZ":
        time.sleep(0.001)
    yield children(process.pid)
    os.kill(process.pid, signal.SIGCONT)


def kill_loop(kind: str, tmp_path: Path, times: int) -> None:
    rng = random.Random(9)
    archive, folder = opened(kind, tmp_path)
    told: set[str] = set()
    for turn in range(times):
        process = writer(kind, folder, turn * 40, 40)
        go(process)
        # A moment, not a wait: anywhere in the first few of its forty runs.
        time.sleep(rng.uniform(0.0, 0.15))
        victim = rng.choice(["writer", "git", "both"])
        if victim == "git":
            with held(process) as gits:
                kill(*gits)
            # What it says next is whether the run was archived all the same.
            assert process.stdout is not None
            told.update(acknowledged([process.stdout.readline()]))
        with held(process) as gits:
            kill(process.pid, *(gits if victim == "both" else []))
        out, _ = process.communicate(timeout=60)
        told.update(acknowledged(out.splitlines()))
        if kind == "git":
            unlock(folder, gits)
        whole(archive, told)
    assert told
    # And it goes on as if nothing had been.
    process = writer(kind, folder, times * 40, 3)
    go(process)
    assert len(acknowledged(said(process))) == 3
    whole(archive, told | {run_id(times * 40 + n) for n in range(3)})


def unlock(folder: Path, gits: list[int]) -> None:
    """As a person does who is told of a lock: no git is at work any more, so it goes."""
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in gits):
        assert time.monotonic() < deadline, "a git outlives its writer"
        time.sleep(0.01)
    for lock in (folder / ".git").rglob("*.lock"):
        if lock.name != "tidy.lock":
            lock.unlink()


@pytest.mark.parametrize("kind", ["git", "folder"])
def test_killed_writers_lose_nothing_that_was_acknowledged(kind: str, tmp_path: Path) -> None:
    kill_loop(kind, tmp_path, 8)


@pytest.mark.torture
@pytest.mark.parametrize("kind", ["git", "folder"])
def test_a_hundred_killed_writers(kind: str, tmp_path: Path) -> None:
    kill_loop(kind, tmp_path, 100)


# Clones.


def clones_push(tmp_path: Path, clones: int, count: int) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "hub.git")
    folders = []
    for n in range(clones):
        git(tmp_path, "clone", "--quiet", "hub.git", f"clone{n}")
        git(tmp_path / f"clone{n}", "config", "user.name", f"clone {n}")
        git(tmp_path / f"clone{n}", "config", "user.email", "c@example.org")
        folders.append(tmp_path / f"clone{n}")
    processes = [writer("git", folder, n * 100, count, "push") for n, folder in enumerate(folders)]
    go(*processes)
    told = {run for process in processes for run in acknowledged(said(process), "pushed")}
    assert len(told) == clones * count
    archives = [git_archive(folder) for folder in folders]
    for archive in archives:
        archive.push("origin")
    assert {archive.log.tip() for archive in archives} == {
        git(tmp_path / "hub.git", "rev-parse", "reports")
    }
    for archive in archives:
        whole(archive, told)
        assert len(archive.ids()) == len(list(archive.history())) == clones * count
    assert git(tmp_path / "hub.git", "fsck", "--full", "--no-dangling") == ""


def test_clones_that_push_at_the_same_time(tmp_path: Path) -> None:
    clones_push(tmp_path, 3, 3)


@pytest.mark.torture
def test_many_clones_that_push_at_the_same_time(tmp_path: Path) -> None:
    clones_push(tmp_path, 6, 10)
