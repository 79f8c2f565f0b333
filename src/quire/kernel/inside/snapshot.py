"""Set a copy of this process aside, and wake copies of it later: that is rewind.

A snapshot is a forked process that sleeps until its control socket says something, or closes.
Waking it forks it again, so that it can be woken any number of times. While the kernel it was made
from lives, it is that kernel's child: `Copies` keeps `os.wait()` and its kin from meeting it. What
is woken is forked by an intermediate process that ends, and so becomes a child of that kernel too,
or of the fork server where that kernel has gone, as it will when it has been replaced.

What a fork cannot copy faithfully is a reason not to set a copy aside: `obstacle` names it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from typing import Any

from . import reaper

# Their native threads do not come back after a fork, or hang when they are needed.
_UNFORKABLE = ("torch", "tensorflow", "jax", "polars", "cupy", "grpc", "duckdb", "cv2")
_GPU = ("/dev/nvidia", "/dev/kfd", "/dev/dri")


def obstacle(own: Collection[int], copies: Copies) -> str:
    """Why this process cannot be set aside now, or ''. `own` are the engine's descriptors."""
    return _threads() or _children(copies) or _files(own) or _shared_memory()


def _threads() -> str:
    frames = sys._current_frames()
    del frames[threading.get_ident()]
    threads = {thread.ident: thread for thread in threading.enumerate()}
    others = {n for n, frame in frames.items() if not _is_dispensable(threads.get(n), frame)}
    if others:
        names = sorted(thread.name for ident, thread in threads.items() if ident in others)
        what = ", ".join(names[:3]) or f"{len(others)} of them"
        return f"threads are still running ({what})"
    native = len(os.listdir("/proc/self/task")) - 1
    if native:
        found = [name for name in _UNFORKABLE if name in sys.modules]
        if found:
            return f"{found[0]} has threads of its own that do not survive a fork"
    return ""


def _is_dispensable(thread: threading.Thread | None, frame: Any) -> bool:
    """The thread of tqdm that looks after bars, which it never ends; asleep, so it holds no lock.
    A copy does without it."""
    asleep = frame.f_code.co_name == "wait" and frame.f_code.co_filename == threading.__file__
    return asleep and type(thread).__module__ == "tqdm._monitor"


def _children(copies: Copies) -> str:
    if not copies.has_others():
        return ""
    return "a child process is still there, or its end was not waited for"


class Copies:
    """The snapshots that are children of this process, kept out of the cells' sight."""

    def __init__(self) -> None:
        self.pids: set[int] = set()
        self._waitpid, self._wait3 = os.waitpid, os.wait3
        self._wait4, self._waitid = os.wait4, os.waitid
        # Only the forms that wait for any child; waiting for a given one needs no care.
        os.wait = lambda: self._waitpid_any(-1, 0)
        os.waitpid = self._waitpid_any
        os.wait3 = lambda options: self._wait4_any(-1, options)
        os.wait4 = self._wait4_any
        os.waitid = self._waitid_any
        # Looking at every process there is takes milliseconds: only where a cell has started one.
        self.started = False
        self.aside = False  # the fork that is being made is ours
        os.register_at_fork(after_in_parent=self._forked)
        for module, name in ((subprocess, "_fork_exec"), (os, "posix_spawn"), (os, "posix_spawnp")):
            if hasattr(module, name):
                setattr(module, name, self._noticed(getattr(module, name)))
            else:
                self.started = True

    def _forked(self) -> None:
        self.started = self.started or not self.aside

    def _noticed(self, start: Any) -> Any:
        def noticed(*args: Any, **kwargs: Any) -> Any:
            self.started = True
            return start(*args, **kwargs)

        return noticed

    def bury(self) -> None:
        """Wait for copies that were dropped."""
        for pid in tuple(self.pids):
            try:
                gone = self._waitpid(pid, os.WNOHANG)[0]
            except ChildProcessError:
                gone = pid
            if gone:
                self.pids.discard(pid)

    def has_others(self) -> bool:
        """Whether there is a child, alive or not waited for, that is none of the copies."""
        if not self.pids:
            try:
                self._waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            return True
        if not self.started:
            try:
                # Copies have process groups of their own; what is left is what C code started.
                self._waitid(os.P_PGID, os.getpgrp(), os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            return True
        return any(pid not in self.pids for pid in reaper.child_pids(os.getpid()))

    def _next_of_others(self, options: int) -> int:
        """The pid of a child of the cell that has ended; 0 when none has and none is awaited."""
        while True:
            self.bury()
            ended = self._waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None and ended.si_pid not in self.pids:
                return ended.si_pid
            if ended is None and not self.has_others():
                raise ChildProcessError(errno.ECHILD, os.strerror(errno.ECHILD))
            if options & os.WNOHANG:
                return 0
            time.sleep(0.002)

    def _waitpid_any(self, pid: int, options: int, /) -> tuple[int, int]:
        if not self.pids or pid != -1:
            return self._waitpid(pid, options)
        ended = self._next_of_others(options)
        return self._waitpid(ended, options) if ended else (0, 0)

    def _wait4_any(self, pid: int, options: int) -> Any:
        if not self.pids or pid != -1:
            return self._wait4(pid, options)
        ended = self._next_of_others(options)
        # Only to get an answer of the right shape: nothing has happened.
        return self._wait4(ended, options) if ended else self._wait3(os.WNOHANG)

    def _waitid_any(self, kind: int, number: int, options: int, /) -> Any:
        if not self.pids or kind != os.P_ALL:
            return self._waitid(kind, number, options)
        ended = self._next_of_others(options)
        return self._waitid(os.P_PID, ended, options) if ended else None


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
        if target.startswith("anon_inode:"):
            return f"a descriptor is open that copies would share ({target[11:]})"
    return ""


def _shared_memory() -> str:
    if "mmap" not in sys.modules:
        return ""
    with open("/proc/self/maps") as file:
        for line in file:
            # Semaphores of multiprocessing are at rest, or somebody else would be running.
            if " rw-s " in line and "/dev/shm/sem." not in line:
                return "memory is shared with other processes"
    return ""


def open_files() -> list[int]:
    """Regular files, which have a position."""
    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            if fd > 2 and stat.S_ISREG(os.fstat(fd).st_mode):
                found.append(fd)
    return found


def own_files() -> None:
    """Give files that are open for reading a position of their own."""
    for fd in open_files():
        with contextlib.suppress(OSError):
            position = os.lseek(fd, 0, os.SEEK_CUR)
            inheritable = os.get_inheritable(fd)
            fresh = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
            os.lseek(fresh, position, os.SEEK_SET)
            os.dup2(fresh, fd, inheritable)
            os.close(fresh)


def announce(births: int, copy: int) -> None:
    """Tell the server of a copy before it can find it among the children it ends, and wonder."""
    with contextlib.suppress(OSError):
        os.write(births, b"%d\n" % copy)


def fork_away(births: int) -> bool:
    """Fork a copy that is no child of this process. True in the copy, False here."""
    # While we adopt orphans the copy would become ours when the intermediate process ends.
    reaper.adopt_orphans(on=False)
    intermediate = os.fork()
    if intermediate == 0:
        middle = os.getpid()
        copy = os.fork()
        if copy != 0:
            announce(births, copy)
            os._exit(0)
        while os.getppid() == middle:
            os.sched_yield()
        os.setpgid(0, 0)
        return True
    os.waitpid(intermediate, 0)
    reaper.adopt_orphans()
    return False


def sleep(control: socket.socket, births: int) -> tuple[int, int, int]:
    """Be a snapshot: returns only in copies that are woken, with their channel, stdout, stderr."""
    # A cell may have its own way with children that end; ours are none of its business.
    handler = signal.getsignal(signal.SIGCHLD)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        try:
            data, fds, _, _ = socket.recv_fds(control, 16, 3)
        except OSError:
            os._exit(0)
        if not data or len(fds) != 3:
            os._exit(0)
        if fork_away(births):
            control.close()
            own_files()
            if handler is not None:
                signal.signal(signal.SIGCHLD, handler)
            return fds[0], fds[1], fds[2]
        for fd in fds:
            os.close(fd)
