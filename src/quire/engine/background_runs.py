"""Runs that go on by themselves: start one, wait for it, call it off.

The host owns them. Whoever started one may leave, and anybody may come and wait for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..archive.read import Found, find
from ..errors import Hint, HostError, NextStep, UsageError
from ..record import journal
from ..record.questions import Asker, Nobody
from ..workspace import Workspace
from .run import NotebookExecutor
from .run_underway import Attended, Progress, Underway

LOOK = 0.5  # seconds between two looks at whether somebody still waits
ENDING = 15.0  # seconds a run that was called off gets to write its record


@dataclass(frozen=True, slots=True)
class Waited:
    """What there is of the run. `over`: it has ended; otherwise it goes on."""

    found: Found
    over: bool
    progress: Progress


def start(
    ws: Workspace,
    path: str,
    parameters: Mapping[str, Any],
    *,
    attended: Attended | None = None,
    **options: Any,
) -> Underway:
    """Begin a run that outlives the call; `options` are those of NotebookExecutor."""
    return begin(
        ws,
        lambda here, attended: NotebookExecutor(
            path, parameters, workspace=here, attended=attended, **options
        ),
        attended,
    )


def begin(
    ws: Workspace,
    make: Callable[[Workspace, Attended], NotebookExecutor],
    attended: Attended | None = None,
) -> Underway:
    """Begin what `make` makes. What is wrong with the request raises here. Questions it has before
    it starts go to the workspace's asker, later ones to whoever waits for it. `attended` is for
    whoever is there from the first moment on: a run may ask before anybody waits for it."""
    if not ws.engine.outlives:
        raise HostError(
            "a run that goes on by itself needs a host",
            hint="leave out --no-host, and unset QUIRE_NO_HOST",
        )
    attended = attended or Attended()
    here = Workspace(
        ws.root,
        cwd=ws.cwd,
        env=ws.env,
        engine=ws.engine,
        world=ws.world,
        asker=attended,
        caller=ws.caller,
    )
    with attended.by(ws.asker):
        execution = make(here, attended)
    begun = threading.Event()
    failed: list[BaseException] = []

    def follow() -> None:
        try:
            for _ in execution:
                begun.set()
        except BaseException as error:  # noqa: BLE001 - for whoever waits, not for this thread
            if not begun.is_set():
                failed.append(error)
            elif execution.underway is not None:
                execution.underway.error = error
        finally:
            begun.set()

    threading.Thread(target=follow, name=f"quire-run-{execution.run_id}", daemon=True).start()
    begun.wait()
    if failed:
        raise failed[0]
    assert execution.underway is not None
    return execution.underway


def wait(
    ws: Workspace,
    name: str,
    timeout: float | None = None,
    *,
    told: Callable[[Progress], None] = lambda _: None,
    called_off: Callable[[], bool] = bool,
    asker: Asker | None = None,
) -> Waited:
    """Until the run has ended, time is up, or whoever waits has left: none of it ends the run."""
    run_id = _run_id(ws, name)
    deadline = None if timeout is None else time.monotonic() + timeout
    under = ws.engine.underway.get(run_id)
    if under is None:
        return _from_disk(ws, run_id, deadline, called_off)
    seen: Progress | None = None
    with under.attended.by(asker or Nobody()):
        while not under.over and not called_off():
            left = LOOK if deadline is None else min(LOOK, deadline - time.monotonic())
            if under.progress != seen:
                seen = under.progress
                told(seen)
            if under.attended.asking:
                left = LOOK
            if left <= 0:
                break
            under.wait(left, seen)
    return Waited(find(ws, run_id), under.over, under.progress)


def _run_id(ws: Workspace, name: str) -> str:
    """The whole id, of a run that is here or only in the archive."""
    if name in ws.engine.underway:
        return name
    return find(ws, name).record.run_id


def _from_disk(
    ws: Workspace, run_id: str, deadline: float | None, called_off: Callable[[], bool]
) -> Waited:
    """A run of another process, or one that has ended."""
    while True:
        found = find(ws, run_id)
        over = found.record.outcome != "running"
        if over or called_off() or (deadline is not None and time.monotonic() >= deadline):
            return Waited(found, over, _progress(found))
        assert found.folder is not None
        limit = time.monotonic() + LOOK
        while journal.is_live(found.folder.events) and time.monotonic() < limit:
            time.sleep(0.02)


def _progress(found: Found) -> Progress:
    code = [cell for cell in found.record.cells if cell.kind == "code"]
    current = next((cell for cell in code if cell.status == "running"), None)
    waiting = sum(cell.status in ("not run", "running") for cell in code)
    done = len(code) - waiting
    return Progress(
        done, len(code), current.id if current else "", current.title if current else ""
    )


def cancel(ws: Workspace, name: str, timeout: float = ENDING) -> Waited:
    """Call a run off and wait until its record is whole."""
    run_id = _run_id(ws, name)
    under = ws.engine.underway.get(run_id)
    if under is None:
        found = find(ws, run_id)
        if found.record.outcome == "running":
            raise UsageError(
                f"{run_id} is run by another process than the host",
                hint="press Ctrl-C where it runs, or send that process SIGINT",
            )
        raise UsageError(
            f"{run_id} is over: it ended {found.record.outcome}",
            hint=Hint("{}", NextStep("show", {"run": run_id})),
        )
    under.cancel()
    return wait(ws, run_id, timeout)
