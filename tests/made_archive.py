"""Runs, seals and archives as tests need them."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from quire.archive.branch import GitArchive
from quire.archive.layout import Archive, Link
from quire.git.repository import Repository


def seal(data: bytes) -> str:
    """Stands for a signature: anybody could make it, and nobody can move it elsewhere."""
    return f"test:{hashlib.sha256(data).hexdigest()}"


def run_id(number: int, task: str = "sum", day: int = 16) -> str:
    minutes, seconds = divmod(number % 3600, 60)
    return f"2026-11-{day:02d}-16{minutes:02d}{seconds:02d}-{task}-{number:04x}"


def run_files(run: str, more: bytes = b"") -> dict[str, bytes]:
    told = f'{{"run_id": "{run}", "parent": null, "started": "{run}"}}\n'
    return {
        "record.json": told.encode(),
        "notebook.ipynb": b'{"cells": []}\n' + more,
        "source.py": b"# %%\nprint(1)\n",
        "attestation.json": b"{}\n",
    }


def add(archive: Archive, number: int) -> str:
    run = run_id(number)
    archive.add(run, run_files(run))
    return run


def git(folder: Path, *args: str, given: bytes | None = None) -> str:
    done = subprocess.run(["git", *args], cwd=folder, input=given, capture_output=True, check=False)
    assert done.returncode == 0, (args, done.stderr.decode())
    return done.stdout.decode().rstrip("\n")


def repository(folder: Path, *options: str) -> Repository:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main", *options)
    git(folder, "config", "user.name", "Ada Tester")
    git(folder, "config", "user.email", "ada@example.org")
    found = Repository.find(folder)
    assert found is not None
    return found


def git_archive(folder: Path, branch: str = "reports") -> GitArchive:
    found = Repository.find(folder)
    assert found is not None
    return GitArchive(found, branch, seal)


def problems(archive: Archive) -> list[str]:
    """Everything `verify` would say of the history."""
    links = list(archive.history())
    told = [problem for link in links for problem in link.problems]
    told += [f"bad seal of {link.run_id}" for link in links if link.run_id and not is_good(link)]
    witness = archive.witness_problem()
    return told + ([witness] if witness else [])


def is_good(link: Link) -> bool:
    return link.seal == seal(link.sealed)
