"""Set a copy of this process aside, and wake copies of it later: that is rewind.

A snapshot is a forked process that sleeps until its control socket says something, or closes.
Waking it forks it again, so that it can be woken any number of times. While the kernel it was made
from lives, it is that kernel's child: `Copies` keeps `os.wait()` and its kin from meeting it. What
is woken becomes a child of the fork server (an intermediate process forks it and ends).

What a fork cannot copy faithfully is a reason not to set a copy aside: `obstacle` names it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Collection
from typing import Any

from . import reaper

# Their native threads do not come back after a fork, or hang when they are needed.
_UNFORKABLE = ("torch", "tensorflow", "jax", "polars", "cupy", "grpc", "duckdb", "cv2")
_GPU = ("/dev/nvidia", "/dev/kfd", "/dev/dri")


def obstacle(own: Collection[int]) -> str:
    """Why this process cannot be set aside now, or ''. `own` are the engine's descriptors."""
    return _threads() or _children() or _files(own)


def _threads() -> str:
    others = set(sys._current_frames()) - {threading.get_ident()}
    if others:
        names = sorted(t.name for t in threading.enumerate() if t.ident in others)
        what = ", ".join(names[:3]) or f"{len(others)} of them"
        return f"threads are still running ({what})"
    native = len(os.listdir("/proc/self/task")) - 1
    if native:
        found = [name for name in _UNFORKABLE if name in sys.modules]
        if found:
            return f"{found[0]} has threads of its own that do not survive a fork"
    return ""


def _children() -> str:
    try:
        # Copies have process groups of their own; what a cell starts is in the kernel's.
        os.waitid(os.P_PGID, os.getpgrp(), os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return ""
    return "a child process is still there, or its end was not waited for"


class Copies:
    """The snapshots that are children of this process, kept out of the cells' sight."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self._waitpid = os.waitpid
        self._wait3 = os.wait3
        # Only the forms that wait for any child; waiting for a given one needs no care.
        os.wait = lambda: self._waitpid_any(0)
        os.waitpid = lambda pid, options: (
            self._waitpid(pid, options) if pid > 0 else self._waitpid_any(options, pid)
        )
        os.wait3 = self._wait3_any

    def bury(self) -> None:
        """Wait for copies that were dropped."""
        for pid in tuple(self.pids):
            try:
                gone = self._waitpid(pid, os.WNOHANG)[0]
            except ChildProcessError:
                gone = pid
            if gone:
                self.pids.discard(pid)

    def _next_of_others(self, options: int) -> int:
        """The pid of a child of the cell that has ended; 0 when none has and none is awaited."""
        while True:
            self.bury()
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None and ended.si_pid not in self.pids:
                return ended.si_pid
            if ended is None and not self._has_others():
                raise ChildProcessError(errno.ECHILD, os.strerror(errno.ECHILD))
            if options & os.WNOHANG:
                return 0
            time.sleep(0.002)

    def _has_others(self) -> bool:
        me = os.getpid()
        return any(
            parent == me and process[0] not in self.pids
            for process, parent in reaper.parents().items()
        )

    def _waitpid_any(self, options: int, pid: int = -1) -> tuple[int, int]:
        if not self.pids or pid != -1:
            return self._waitpid(pid, options)
        ended = self._next_of_others(options)
        return self._waitpid(ended, options) if ended else (0, 0)

    def _wait3_any(self, options: int) -> Any:
        if not self.pids:
            return self._wait3(options)
        ended = self._next_of_others(options)
        return os.wait4(ended, options) if ended else self._wait3(os.WNOHANG)


def _files(own: Collection[int]) -> str:
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd in own or fd < 3:
            continue
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
            mode = os.fstat(fd).st_mode
            writes = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        except OSError:
            continue  # the descriptor of the listing itself
        if target.startswith(_GPU):
            return "a GPU is in use"
        if stat.S_ISSOCK(mode):
            return "a network connection or socket is open"
        if stat.S_ISFIFO(mode):
            return "a pipe is open"
        if stat.S_ISREG(mode) and writes:
            return f"{target} is open for writing"
    return ""


def own_files() -> None:
    """Give files that are open for reading a position of their own."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        with contextlib.suppress(OSError):
            if fd > 2 and stat.S_ISREG(os.fstat(fd).st_mode):
                position = os.lseek(fd, 0, os.SEEK_CUR)
                inheritable = os.get_inheritable(fd)
                fresh = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
                os.lseek(fresh, position, os.SEEK_SET)
                os.dup2(fresh, fd, inheritable)
                os.close(fresh)


def fork_away() -> bool:
    """Fork a child of the fork server. True in the copy, False here."""
    # While we adopt orphans the copy would become ours when the intermediate process ends.
    reaper.adopt_orphans(on=False)
    intermediate = os.fork()
    if intermediate == 0:
        middle = os.getpid()
        if os.fork() != 0:
            os._exit(0)
        while os.getppid() == middle:
            os.sched_yield()
        reaper.die_with_parent()
        os.setpgid(0, 0)
        return True
    os.waitpid(intermediate, 0)
    reaper.adopt_orphans()
    return False


def sleep(control: socket.socket) -> tuple[int, int, int]:
    """Be a snapshot: returns only in copies that are woken, with their channel, stdout, stderr."""
    own_files()
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(control, 16, 3)
        except OSError:
            os._exit(0)
        if not data or len(fds) != 3:
            os._exit(0)
        if fork_away():
            control.close()
            own_files()
            return fds[0], fds[1], fds[2]
        for fd in fds:
            os.close(fd)
