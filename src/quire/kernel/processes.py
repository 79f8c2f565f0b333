"""The processes of this one: those it started, and those that became its own by others' death.

Only for a process that is Quire's alone, such as a host. It adopts the orphans of its kernels when
the fork server between them is killed, and ends them: nothing of a run outlives it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from typing import Any

from .inside import reaper, start_environment

_started: set[reaper.Process] = set()
_starting = threading.Lock()  # nobody is judged between a start and our knowing of it
_alone = False
_ROOM = 1_000


def alone() -> None:
    """This process is ours alone: whatever becomes its child without being started is a stray."""
    global _alone
    if not _alone:
        _alone = True
        _know_own()
        # It holds keys, and the environments of whoever it works for.
        start_environment.close_to_others()
    reaper.adopt_orphans()


def _know_own() -> None:
    """Whatever is started from here, git above all, is no stray, whichever part of Quire did it."""
    begin = subprocess.Popen.__init__

    def begin_known(self: Any, *args: Any, **options: Any) -> None:
        with _starting:
            begin(self, *args, **options)
            started(self.pid)

    subprocess.Popen.__init__ = begin_known  # type: ignore[method-assign]


def started(pid: int) -> None:
    """By number and start time: a number may be somebody else's later."""
    since = reaper.start_time(pid)
    if since is None:
        return
    _started.add((pid, since))
    if len(_started) > _ROOM:
        gone = {process for process in _started if reaper.start_time(process[0]) != process[1]}
        _started.difference_update(gone)


def sweep(patience: float = 4.0) -> None:
    """End strays until there are none; they come one after another as their parents die."""
    if _alone:
        threading.Thread(target=_sweep, args=(patience,), name="quire-sweep", daemon=True).start()


def sweep_now(patience: float = 4.0) -> None:
    """The same, and wait for it."""
    if _alone:
        _sweep(patience)


def _sweep(patience: float) -> None:
    deadline = time.monotonic() + patience
    quiet = 0
    while quiet < 5 and time.monotonic() < deadline:
        with _starting:
            strays = [one for one in reaper.children(os.getpid()) if one not in _started]
        quiet = 0 if strays else quiet + 1
        for pid, _ in strays:
            reaper.kill_tree(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        time.sleep(0.05)
    _bury()


def _bury() -> None:
    """Strays that somebody else has ended: nobody but us can wait for them."""
    with _starting:
        for pid in reaper.child_pids(os.getpid()):
            if (pid, reaper.start_time(pid)) not in _started:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
