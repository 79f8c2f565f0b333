"""End a process and everything it started, also what called setsid or was orphaned.

Linux only: it reads /proc and uses prctl. A process is known by pid and start time, never by name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)

Process = tuple[int, int]  # pid, start time in clock ticks


def die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans(*, on: bool = True) -> None:
    """Descendants whose parent dies become our children instead of init's."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def children(pid: int) -> list[Process]:
    """Its children that live."""
    found = (_live(child) for child in child_pids(pid))
    return [process for process in found if process is not None]


def child_pids(pid: int) -> list[int]:
    """Also of children that have ended and were not waited for."""
    if not _LISTS_CHILDREN:
        return [child for child in _all_pids() if parent(child) == pid]
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    return found


# Not in every kernel; without it one has to look at every process there is.
_LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; empty when there is no such process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        # The command name may hold spaces and brackets: fields start after the last one.
        return file.read().rpartition(")")[2].split()
    return []


def parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def standing(pid: int) -> Process | None:
    """Its parent, and when it was started; of one that ended and was not waited for, too."""
    fields = _stat(pid)
    return (int(fields[1]), int(fields[19])) if fields else None


def _live(pid: int) -> Process | None:
    fields = _stat(pid)
    return (pid, int(fields[19])) if fields and fields[0] != "Z" else None


def none(pid: int) -> bool:
    return False


def descendants(root: int, spare: Callable[[int], bool] = none) -> list[Process]:
    """All below `root`, except for the trees under the spared ones."""
    out: list[Process] = []
    queue = [root]
    while queue:
        for process in children(queue.pop()):
            if not spare(process[0]):
                out.append(process)
                queue.append(process[0])
    return out


def session(leader: int) -> list[int]:
    """The processes that live in the session of that one, which itself need not be there."""
    stats = ((pid, _stat(pid)) for pid in _all_pids())
    return [
        pid for pid, fields in stats if fields and fields[0] != "Z" and fields[3] == str(leader)
    ]


def start_time(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def kill(process: Process) -> None:
    pid, started = process
    if start_time(pid) == started:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def kill_tree(root: int, *, spare: Callable[[int], bool] = none, patience: float = 2.0) -> None:
    """Kill `root` and all below it. Repeats, since a process may fork while it is being found."""
    started = start_time(root)
    deadline = time.monotonic() + patience
    while True:
        below = descendants(root, spare)
        # The root goes last: while it lives, its orphans come back to it and stay findable.
        for process in below:
            kill(process)
        if not below or time.monotonic() > deadline:
            break
    if started is not None:
        kill((root, started))
