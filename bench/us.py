"""The command under test, in a scratch workspace of its own."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measure import CannotMeasure, Command
from bench.peers import clean_environment


@dataclass(frozen=True, slots=True)
class Us:
    quire: tuple[str, ...]
    folder: Path

    def command(self, *argv: str) -> Command:
        return Command((*self.quire, *argv), cwd=self.folder, env=clean_environment())

    def run(self, task: Path, *options: str) -> Command:
        return self.command("run", str(task), *options)

    def json(self, *argv: str) -> dict[str, Any]:
        return parse(self.command(*argv, "--json").output(), argv)

    def host(self) -> int | None:
        """The pid of the workspace's host, when one is up."""
        pid = self.json("host", "status").get("pid")
        return int(pid) if pid else None

    def stop_host(self) -> None:
        """Stop the host and wait until its process is gone, so that the next run is a cold one."""
        pid = self.host()
        if pid is None:
            return
        self.command("host", "stop").output()
        deadline = time.monotonic() + 10
        while Path(f"/proc/{pid}").exists():
            if time.monotonic() > deadline:
                raise CannotMeasure(f"the host, process {pid}, is still there after `host stop`")
            time.sleep(0.01)

    def warm_up(self, task: Path, shows: str) -> Path:
        """Run once off the clock, with a check that the run did its work. Gives the notebook."""
        done = self.json("run", str(task))
        if done.get("outcome") != "ok":
            raise CannotMeasure(f"{task.name}: the outcome was {done.get('outcome')!r}")
        notebook = self.folder / str(done.get("notebook"))
        check(notebook, shows)
        return notebook


def parse(text: str, argv: tuple[str, ...]) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise CannotMeasure(f"`{' '.join(argv)} --json` did not print one object: {text[:200]!r}")
    return found


def check(notebook: Path, shows: str) -> None:
    """Both sides are held to this: a fast run that shows nothing has not run."""
    try:
        cells = json.loads(notebook.read_text())["cells"]
    except (OSError, ValueError, KeyError) as error:
        raise CannotMeasure(f"{notebook} is not a notebook: {error}") from error
    if shows not in json.dumps([cell.get("outputs") for cell in cells]):
        raise CannotMeasure(f"no output of {notebook} shows {shows!r}")


@contextmanager
def workspace(quire: tuple[str, ...], folder: Path, preload: tuple[str, ...] = ()) -> Iterator[Us]:
    folder.mkdir(parents=True)
    settings = f"preload = {json.dumps(preload)}\n" if preload else ""
    (folder / "quire.toml").write_text(settings)
    us = Us(quire, folder)
    try:
        yield us
    except BaseException:
        # What went wrong first is what the reader must see.
        with suppress(CannotMeasure, OSError):
            us.stop_host()
        raise
    us.stop_host()


def find_quire() -> tuple[str, ...]:
    beside = shutil.which("quire", path=str(Path(sys.executable).parent))
    if beside is None:
        raise CannotMeasure("there is no `quire` beside this Python: run `make setup` first")
    return (beside,)
