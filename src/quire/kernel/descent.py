"""Whether a process was started by a kernel: what it asks for comes from a cell, not from a person.

Kernels adopt their orphans, and so do fork servers, keepers and hosts: whatever a cell starts has
one of them above it as long as they live, whatever it does about its session or its parents.
"""

from __future__ import annotations

import os

from .inside import reaper

_TRIES = 5
UNSEEN = "the process that asks cannot be seen from here"
BELOW = "the process that asks was started by a cell"


def objection(pid: int) -> str:
    """Why that process cannot speak for a person; empty where it can."""
    for _ in range(_TRIES):
        above = _and_above(pid)
        if above is not None:
            me = os.getpid()
            return BELOW if any(_is_ours(one) or one == me != pid for one in above) else ""
    return UNSEEN


def _and_above(pid: int) -> list[int] | None:
    """A process and all above it. None where one of them ended meanwhile: whoever has its number
    now says nothing."""
    found: list[int] = []
    last = None
    while pid > 0:
        stat = reaper.standing(pid)
        if stat is None:
            # The system may hide those of other users, and none of ours is one.
            return found if found and reaper.parent(found[-1]) == pid else None
        parent, began = stat
        if last is not None and began > last:
            return None
        found.append(pid)
        pid, last = parent, began
    return found or None


def _is_ours(pid: int) -> bool:
    """Whether it is a host, a fork server or a keeper, by what it was started with."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = [os.fsdecode(word) for word in file.read(1 << 16).split(b"\0")[1:5]]
    except OSError:
        return False
    match words:
        case ["-m", "quire.cli.host_main", *_] | ["-I", "-S", _, _]:
            return words[0] == "-m" or words[2].endswith("/kernel/inside/keeper.py")
        case [script, descriptor, *_]:
            return script.endswith("/kernel/inside/zygote.py") and descriptor.isdecimal()
    return False
