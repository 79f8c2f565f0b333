"""Stands between Quire and a Jupyter kernel so that no process outlives its owner.

Run by path, standard library only:  python -I -S keeper.py FD DIRECTORY ARGV…
FD is one end of a socket pair. Bytes from the owner: `i` interrupts the kernel, `k` or the end of
the stream ends it with all it started. JSON lines to the owner: `{"pid"}` once, `{"status",
"signal", "max_rss", "stderr"}` when the kernel is gone. DIRECTORY is removed at the end.
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
GIVE_UP = 10.0  # seconds, for what cannot be killed: another user's, or stuck in the system
DEAF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)

_libc = ctypes.CDLL(None, use_errno=True)


def children() -> list[int]:
    """Direct children only: unreaped, so their pid cannot have become someone else's."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            # The command, in brackets, may hold spaces and brackets itself.
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
            if int(parent) == os.getpid() and state != b"Z":
                found.append(int(name))
    return found


def end_all() -> None:
    """Kill until no child is left: orphans come to us, so then there is no descendant either."""
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


def become(argv: list[str], keeper: int, stderr: int) -> None:
    """Turn this forked process into the kernel."""
    os.setsid()
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.dup2(stderr, 2)
    for number in DEAF:
        signal.signal(number, signal.SIG_DFL)
    # ipykernel watches this process and leaves when it does.
    os.environ["JPY_PARENT_PID"] = str(keeper)
    try:
        if os.getppid() == keeper:
            os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())


class Keeper:
    def __init__(self, owner: socket.socket, argv: list[str]) -> None:
        self.owner, self.parent, self.tail = owner, os.getppid(), b""
        owner.set_inheritable(False)
        self.awake, waker = os.pipe()
        self.stderr, stderr = os.pipe()
        for end in (self.awake, waker, self.stderr):
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
        keeper, self.kernel = os.getpid(), os.fork()
        if not self.kernel:
            become(argv, keeper, stderr)
            os._exit(127)
        os.close(stderr)
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
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid in (0, self.kernel):
                break
        if pid == 0:
            return False
        self.listen()
        code = os.waitstatus_to_exitcode(status)
        status_and_signal = (code, None) if code >= 0 else (None, -code)
        news = dict(zip(("status", "signal"), status_and_signal, strict=True))
        self.tell(**news, max_rss=usage.ru_maxrss * 1024, stderr=self.tail.decode(errors="replace"))
        return True

    def ready(self) -> list[int]:
        waiting = select.poll()  # select() knows no descriptor beyond 1,023, as the owner's may be
        for fd in self.watched:
            waiting.register(fd, select.POLLIN)
        return [fd for fd, _ in waiting.poll()]

    def keep(self) -> None:
        while not self.reaped() and os.getppid() == self.parent:
            ready = self.ready()
            if self.stderr in ready:
                self.listen()
            if self.awake in ready:
                os.read(self.awake, 4096)
            if self.owner.fileno() in ready:
                words = self.owner.recv(64)
                if words and b"k" not in words:
                    # Its group, as Ctrl-C in a terminal would: also the command it waits for.
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(self.kernel, signal.SIGINT)
                else:
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
