"""What others can see of a process in /proc: the variables it was started with, and its memory.

Standard library only: fork servers use it, and so does the host.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4
# Fields of /proc/self/stat, counted from the state on.
_ENV_START, _ENV_END = 47, 48

_libc = ctypes.CDLL(None, use_errno=True)


def close_to_others() -> None:
    """No process without privileges may read our memory, our environment or our open files, nor
    trace us. What we start is as open as ever."""
    _libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def is_closed_to_others() -> bool:
    return bool(_libc.prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)


def overwrite() -> None:
    """Overwrite the block that /proc/self/environ shows, here and in every fork. The variables
    themselves stay: they are copied first. Where the system does not say where the block is (some
    sandboxes) it stays too, with the start-up variables in it."""
    for name, value in os.environb.items():
        os.putenv(name, value)  # C code finds this copy from now on
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        if 0 < start < end:
            ctypes.memset(start, 0, end - start)
