"""Set a copy of this process aside, and wake copies of it later: that is rewind.

A snapshot is a forked process that sleeps. Waking it forks it again, so that it can be woken any
number of times. Every copy becomes a child of the fork server (an intermediate process forks it
and ends), so the cell's own `os.wait()` never meets one, and all go when the server goes.

What a fork cannot copy faithfully is a reason not to set a copy aside: `obstacle` names it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import sys
import threading
from collections.abc import Collection

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
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return ""
    return "a child process is still there, or its end was not waited for"


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


def fork_aside() -> bool:
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
    with contextlib.suppress(OSError):
        control.sendall(b"%d\n" % os.getpid())
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(control, 16, 3)
        except OSError:
            os._exit(0)
        if not data or len(fds) != 3:
            os._exit(0)
        if fork_aside():
            control.close()
            own_files()
            return fds[0], fds[1], fds[2]
        for fd in fds:
            os.close(fd)
