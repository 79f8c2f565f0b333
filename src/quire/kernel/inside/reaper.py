"""End a process and everything it started, also what called setsid or was orphaned.

Linux only: it reads /proc and uses prctl. A process is known by pid and start time, never by name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)

Process = tuple[int, int]  # pid, start time in clock ticks


def die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans(*, on: bool = True) -> None:
    """Descendants whose parent dies become our children instead of init's."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def parents() -> dict[Process, int]:
    """Every live process and its parent's pid."""
    found: dict[Process, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat") as f:
            # The command name may hold spaces and brackets: fields start after the last one.
            fields = f.read().rpartition(")")[2].split()
            if fields[0] != "Z":
                found[(int(name), int(fields[19]))] = int(fields[1])
    return found


def descendants(root: int, spare: Collection[int] = ()) -> list[Process]:
    """All below `root`, except for the trees under the spared ones."""
    children: dict[int, list[Process]] = {}
    for process, parent in parents().items():
        children.setdefault(parent, []).append(process)
    out: list[Process] = []
    queue = [root]
    while queue:
        for process in children.get(queue.pop(), ()):
            if process[0] not in spare:
                out.append(process)
                queue.append(process[0])
    return out


def start_time(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def kill(process: Process) -> None:
    pid, started = process
    if start_time(pid) == started:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def kill_tree(root: int, *, spare: Collection[int] = (), patience: float = 2.0) -> None:
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
