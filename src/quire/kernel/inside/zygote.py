"""The fork server: imports IPython once and forks a kernel whenever it is asked for one.

Started by path with one argument, the number of an inherited SEQPACKET socket. One thread, no
other sockets: what is forked from here is as clean as what was started. When the socket closes,
for whatever reason, it ends every kernel it made and goes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

# What a fork needs of the other side: the kernel's channel, its stdout and its stderr.
FDS = 3
GRACE = 0.4  # seconds before a child that is no kernel is ended
ROOM = 256  # pids that are kept before those of processes that ended are looked for
CHILDHOOD = 12.0  # the same for an announced copy of a kernel: somebody may be about to ask for it
QUIET = 0.2  # seconds without a request, after which there is time to warm up


class Zygote:
    def __init__(self, control: socket.socket, shell: Any) -> None:
        from . import reaper

        self.reaper = reaper
        self.control = control
        self.shell = shell
        self.kernels: dict[int, int | None] = {}  # pids, and when each was started
        self.room = ROOM
        self.warm = False
        self.newborn: dict[int, int | None] = {}  # announced copies, and when each was started
        self.strays: dict[tuple[int, int], float] = {}
        self.births, self.announced = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.wake, self.waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._leave)
        reaper.adopt_orphans()

    def _leave(self, *_: object) -> None:
        self.end_all()
        os._exit(0)

    def tell(self, **message: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.control.send(json.dumps(message).encode())

    def serve(self) -> None:
        control = self.control.fileno()
        waiting = select.poll()  # select() knows no descriptor beyond 1,023, as the owner's may be
        waiting.register(control, select.POLLIN)
        waiting.register(self.wake, select.POLLIN)
        while True:
            patience = self.patience()
            ready = dict(waiting.poll(None if patience is None else patience * 1000))
            if control in ready:
                try:
                    data, fds, _, _ = socket.recv_fds(self.control, 4096, FDS)
                except ConnectionResetError:
                    break  # it died before it had read all we said
                if not data:
                    break
                self.obey(json.loads(data), fds)
                continue  # before anybody is judged, all that is to be known is known
            if self.wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wake, 4096)
                self.bury()
            elif self.strays:
                self.end_strays()
            elif not ready and not self.warm:
                self.warm_up()
        self.end_all()

    def patience(self) -> float | None:
        if self.strays:
            return GRACE / 4
        return None if self.warm else QUIET

    def warm_up(self) -> None:
        """Nobody wants anything just now: do what the first cells of kernels would have to."""
        from . import shell as shells

        with contextlib.suppress(Exception):
            shells.warm_up(self.shell)
        gc.collect()
        gc.freeze()
        self.warm = True
        self.tell(warm=True)

    def obey(self, message: dict[str, Any], fds: list[int]) -> None:
        if message["do"] == "fork":
            self.fork(fds)
        elif message["do"] == "adopt":
            self.adopt(message["pid"])  # a snapshot, or a kernel woken from one
        elif not self.is_kernel(message["pid"]):
            return
        elif message["do"] == "kill":
            self.reaper.kill_tree(message["pid"], spare=self.is_ours)
        elif message["do"] == "interrupt":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(message["pid"], signal.SIGINT)

    def fork(self, fds: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            self.control.close()
            signal.set_wakeup_fd(-1)
            for fd in (self.births, self.wake, self.waker):
                os.close(fd)
            from . import worker

            worker.main(self.shell, self.announced, *fds)
        self.adopt(pid)
        for fd in fds:
            os.close(fd)
        self.tell(forked=pid)

    def adopt(self, pid: int) -> None:
        self.hear_births()  # the pipe must never be full
        self.newborn.pop(pid, None)
        self.kernels[pid] = self.reaper.start_time(pid)
        if len(self.kernels) + len(self.newborn) > self.room:
            # A kernel waits for its own snapshots, so we do not hear of their end.
            for known in (self.kernels, self.newborn):
                for old in [p for p, since in known.items() if self.reaper.start_time(p) != since]:
                    del known[old]
            self.room = 2 * (len(self.kernels) + len(self.newborn)) + ROOM

    def is_kernel(self, pid: int) -> bool:
        """Whether that process is the one we know: its number may be somebody else's by now."""
        since = self.kernels.get(pid)
        return since is not None and since == self.reaper.start_time(pid)

    def is_ours(self, pid: int) -> bool:
        return self.is_kernel(pid) or self.is_newborn(pid)

    def is_newborn(self, pid: int) -> bool:
        """Whether it is a copy of a kernel that nobody had the time to ask for. It was announced
        before it could become the child of anybody we look at."""
        self.hear_births()
        since = self.newborn.get(pid)
        return since is not None and since == self.reaper.start_time(pid)

    def hear_births(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for born in os.read(self.births, 1 << 16).split():
                self.newborn[int(born)] = self.reaper.start_time(int(born))

    def bury(self) -> None:
        """Report kernels that ended, and look for what they left behind."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if self.kernels.pop(pid, None) is not None:
                self.tell(
                    exited=pid,
                    signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                    status=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                    max_rss=usage.ru_maxrss * 1024,
                )
        self.end_strays()

    def end_strays(self, grace: float = GRACE) -> None:
        """End children that are no kernels of ours.

        Live kernels adopt their own orphans, so whoever else is our child has lost its kernel and
        must not outlive it. Except for the copies of kernels, which become our children a moment
        before we are told so: hence the grace, and a longer one for those that were announced. It
        counts from when they became our children: a copy may have been announced long before.
        """
        me, now = os.getpid(), time.monotonic()
        found: dict[tuple[int, int], float] = {}
        for process in self.reaper.children(me):
            if self.kernels.get(process[0]) == process[1]:
                continue
            found[process] = since = self.strays.get(process, now)
            patience = CHILDHOOD if grace and self.is_newborn(process[0]) else grace
            if now - since >= patience:
                self.reaper.kill_tree(process[0])
        self.strays = found

    def end_all(self) -> None:
        deadline = time.monotonic() + 4
        for pid in filter(self.is_kernel, tuple(self.kernels)):
            self.reaper.kill_tree(pid)
        self.kernels.clear()
        while time.monotonic() < deadline:
            self.end_strays(grace=0.0)
            try:
                os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            time.sleep(0.01)


def serve(fd: int) -> None:
    control = socket.socket(fileno=fd)
    os.set_inheritable(fd, False)
    config = json.loads(control.recv(65536))
    from . import start_environment

    start_environment.overwrite()  # before anything is loaded that may keep a pointer into it
    # pyplot picks its backend at import: a preloaded one must already be the inline one.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    from . import runtime_finder
    from . import shell as shells

    runtime_finder.install()
    shell = shells.make_shell()
    failed: dict[str, str] = {}
    for name in config["preload"]:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a kernel works without it
            failed[name] = f"{type(error).__name__}: {error}"
    zygote = Zygote(control, shell)
    gc.collect()
    gc.freeze()  # keeps the collector from touching, and so copying, pages shared by all kernels
    zygote.tell(
        ready=os.getpid(),
        python=sys.version.split()[0],
        executable=sys.executable,
        implementation=sys.implementation.name,
        path=[entry for entry in sys.path if entry][:200],
        preload_failed=failed,
    )
    zygote.serve()


if __name__ == "__main__":
    # Run by path in an environment that may not have Quire: the files beside this one become a
    # package of their own, and the folder leaves sys.path so that its names shadow nothing.
    import types

    here = os.path.dirname(os.path.abspath(__file__))
    package = types.ModuleType("_quire_inside")
    package.__path__ = [here]
    sys.modules["_quire_inside"] = package
    sys.path[0] = ""
    importlib.import_module("_quire_inside.zygote").serve(int(sys.argv[1]))
