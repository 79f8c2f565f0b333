"""Stands between Quire and a Jupyter kernel so that no process outlives its owner.

Run by path, standard library only:  python -I -S keeper.py FD DIRECTORY ARGV…

FD is one end of a socket pair. Bytes from the owner: `i` interrupts the kernel, `k` or the end of
the stream ends it with everything it started. JSON lines to the owner: `{"pid": …}` once, then
`{"status" or "signal", "max_rss", "stderr"}` when the kernel is gone. DIRECTORY (connection file
and sockets) is removed at the end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KEPT = 8192  # bytes of the kernel's stderr that are remembered
DEAF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
GIVE_UP = 10.0  # seconds, for what cannot be killed: another user's, or stuck in the system

_libc = ctypes.CDLL(None, use_errno=True)


def children() -> list[int]:
    """Direct children only: unreaped, so their pid cannot have become someone else's.

    Their own children become ours when they die, because we are the subreaper.
    """
    me = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                # The command, in brackets, may hold spaces and brackets itself.
                state, ppid = stat.read().rpartition(b")")[2].split()[:2]
                if int(ppid) == me and state != b"Z":
                    found.append(int(name))
    return found


def end_all() -> None:
    """Kill until there is no child left, which means no descendant either."""
    deadline = time.monotonic() + GIVE_UP
    while time.monotonic() < deadline:
        for pid in children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def start(argv: list[str], owner: int) -> tuple[int, int]:
    """The kernel's pid, and the end of the pipe on which its stderr is read."""
    # ipykernel watches this process and leaves when it does.
    os.environ["JPY_PARENT_PID"] = str(os.getpid())
    reading, writing = os.pipe()
    keeper = os.getpid()
    pid = os.fork()
    if pid:
        os.close(writing)
        os.set_blocking(reading, False)
        return pid, reading
    try:
        os.setsid()
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)
        os.close(owner)
        os.dup2(writing, 2)
        for number in DEAF:
            signal.signal(number, signal.SIG_DFL)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    os._exit(127)


class Keeper:
    def __init__(self, owner: socket.socket, argv: list[str]) -> None:
        self.owner = owner
        self.parent = os.getppid()
        self.tail = b""
        self.awake, waker = os.pipe()
        for end in (self.awake, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        # SIGUSR1 comes when the owner's thread ends, which is only news if its process did too. It
        # covers what the socket cannot: a forked copy of the owner that still holds the other end.
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        for number in DEAF:
            signal.signal(number, signal.SIG_IGN)
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGUSR1, 0, 0, 0)
        self.kernel, self.stderr = start(argv, owner.fileno())
        self.watched = {owner.fileno(), self.awake, self.stderr}
        self.tell(pid=self.kernel)

    def tell(self, **news: object) -> None:
        with contextlib.suppress(OSError):
            self.owner.sendall(json.dumps(news).encode() + b"\n")

    def listen(self) -> None:
        """Remember the end of stderr; reading it also keeps the kernel from blocking on it."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.stderr, 65536):
                self.tail = (self.tail + chunk)[-KEPT:]
            self.watched.discard(self.stderr)

    def reaped(self) -> bool:
        """Collect whoever died; true when the kernel is among them."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return False
                if pid == self.kernel:
                    self.listen()
                    code = os.waitstatus_to_exitcode(status)
                    self.tell(
                        status=code if code >= 0 else None,
                        signal=-code if code < 0 else None,
                        max_rss=usage.ru_maxrss * 1024,
                        stderr=self.tail.decode("utf-8", "replace"),
                    )
                    return True
        return True

    def obeyed(self) -> bool:
        """Do what the owner says; false when the kernel is to end."""
        words = self.owner.recv(64)
        if not words or b"k" in words:
            return False
        # The kernel's own group, as Ctrl-C in a terminal would: also the command it waits for.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.kernel, signal.SIGINT)
        return True

    def keep(self) -> None:
        while not self.reaped() and os.getppid() == self.parent:
            ready, _, _ = select.select(self.watched, [], [])
            if self.stderr in ready:
                self.listen()
            if self.awake in ready:
                os.read(self.awake, 4096)
            if self.owner.fileno() in ready and not self.obeyed():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.kernel, signal.SIGKILL)
                self.watched.discard(self.owner.fileno())


def main() -> None:
    descriptor, directory, *argv = sys.argv[1:]
    try:
        Keeper(socket.socket(fileno=int(descriptor)), argv).keep()
    finally:
        end_all()
        with contextlib.suppress(OSError):
            for name in os.listdir(directory):
                os.unlink(os.path.join(directory, name))
            os.rmdir(directory)


if __name__ == "__main__":
    main()
