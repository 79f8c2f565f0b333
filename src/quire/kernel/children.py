"""The processes of this one: those it started, and those that became its own by others' death.

Only for a process that is Quire's alone, such as a host. It adopts the orphans of its kernels when
the fork server between them is killed, and ends them: nothing of a run outlives it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

from .inside import reaper

_started: set[int] = set()
_alone = False


def alone() -> None:
    """This process is ours alone: whatever becomes its child without being started is a stray."""
    global _alone
    _alone = True
    reaper.adopt_orphans()


def started(pid: int) -> None:
    _started.add(pid)


def sweep(patience: float = 4.0) -> None:
    """End strays until there are none; they come one after another as their parents die."""
    if _alone:
        threading.Thread(target=_sweep, args=(patience,), name="quire-sweep", daemon=True).start()


def _sweep(patience: float) -> None:
    deadline = time.monotonic() + patience
    quiet = 0
    while quiet < 5 and time.monotonic() < deadline:
        strays = [pid for pid, _ in reaper.children(os.getpid()) if pid not in _started]
        quiet = 0 if strays else quiet + 1
        for pid in strays:
            reaper.kill_tree(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        time.sleep(0.05)
