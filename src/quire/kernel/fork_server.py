"""Our side of a fork server: the process that imports IPython once and forks kernels."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ..errors import KernelError, KernelNotFound
from . import processes
from .exit_status import Exit
from .native_wire import Wire
from .snapshots import Snapshot

ZYGOTE = Path(__file__).parent / "inside" / "zygote.py"
START_TIMEOUT = 60.0


class Zygote:
    """Our side of one fork server."""

    def __init__(self, python: str, preload: tuple[str, ...], env: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [python, str(ZYGOTE), str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env=dict(env),
                    # A Ctrl-C in our terminal is ours to pass on, not for kernels to receive.
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise KernelNotFound(
                    f"cannot start the interpreter {python}: {error.strerror}",
                    hint="give --python the path of a Python that has IPython installed",
                ) from error
        processes.started(self.process.pid)
        self.python = python
        self.control = ours
        self.info: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._forked: list[int] = []
        self._watchers: dict[int, Callable[[], None]] = {}
        self._exits: dict[int, Exit] = {}
        self._expected: set[int] = set()
        self.states: WeakSet[Snapshot] = WeakSet()  # what its kernels have set aside
        self.alive = True
        with contextlib.suppress(OSError):  # it went at once: wait_ready says so
            ours.send(json.dumps({"preload": list(preload)}).encode())
        threading.Thread(target=self._listen, name="quire-zygote", daemon=True).start()

    def wait_ready(self) -> None:
        with self._changed:
            ready = self._changed.wait_for(lambda: self.info or not self.alive, START_TIMEOUT)
        if not ready or not self.alive:
            self.close()
            raise self._failure()

    def _failure(self) -> KernelError:
        said = b""
        if self.process.stderr is not None:
            with contextlib.suppress(OSError, ValueError):
                said = self.process.stderr.read()[-4000:]
        text = said.decode("utf-8", "replace")
        if "No module named 'IPython'" in text or "No module named 'traitlets'" in text:
            return KernelNotFound(  # type: ignore[return-value]
                f"{self.python} has no IPython",
                hint=f"install it there: {self.python} -m pip install ipykernel",
            )
        last = text.strip().splitlines()[-1:] or ["it gave no reason"]
        return KernelError(
            f"the kernel server of {self.python} did not start: {last[0]}",
            hint="run that interpreter by hand with -c 'import ipykernel' to see why",
        )

    def _listen(self) -> None:
        while True:
            try:
                data = self.control.recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            message = json.loads(data)
            with self._changed:
                if "ready" in message:
                    self.info = message
                elif "forked" in message:
                    self._expect(message["forked"])
                    self._forked.append(message["forked"])
                elif "exited" in message:
                    self._exited(message)
                self._changed.notify_all()
        # Where it went by itself, what its kernels started has nobody left to end it.
        processes.sweep()
        with self._changed:
            self.alive = False
            for gone in list(self._watchers.values()):
                gone()
            self._changed.notify_all()
        self.process.wait()
        if self.process.stderr is not None and self.info:
            self.process.stderr.close()

    def _exited(self, message: dict[str, Any]) -> None:
        pid = message["exited"]
        if pid not in self._expected:
            return
        self._expected.discard(pid)
        self._exits[pid] = Exit(message["status"], message["signal"], message["max_rss"])
        gone = self._watchers.pop(pid, None)
        if gone is not None:
            gone()

    def _expect(self, pid: int) -> None:
        """That process is a kernel. What is known of an earlier one with its number is void."""
        self._exits.pop(pid, None)
        self._expected.add(pid)

    def tell(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        try:
            socket.send_fds(self.control, [json.dumps(message).encode()], list(fds))
        except OSError as error:
            raise KernelError(
                "the kernel server has gone", hint="run the command again; it starts a new one"
            ) from error

    def fork(self) -> tuple[int, Wire]:
        """A new process that waits to be told what world it is in."""
        ours, theirs, (out_r, err_r, out_w, err_w) = channel()
        try:
            with self._lock:
                self.tell({"do": "fork"}, (theirs.fileno(), out_w, err_w))
                with self._changed:
                    self._changed.wait_for(lambda: self._forked or not self.alive, START_TIMEOUT)
                    if not self._forked:
                        raise KernelError("the kernel server has gone", hint="try again")
                    pid = self._forked.pop()
        except BaseException:
            ours.close()
            os.close(out_r)
            os.close(err_r)
            raise
        finally:
            theirs.close()
            os.close(out_w)
            os.close(err_w)
        return pid, Wire(ours, out_r, err_r)

    def watch(self, pid: int, gone: Callable[[], None]) -> None:
        """Call `gone` when that process ends, or at once if it has."""
        with self._changed:
            self._watchers[pid] = gone
            over = pid in self._exits or not self.alive
        if over:
            gone()

    def adopt(self, pid: int, *, kernel: bool = False) -> None:
        """A copy of a kernel is, or will be, the server's child, but no stray."""
        if kernel:
            with self._changed:
                self._expect(pid)
        self.tell({"do": "adopt", "pid": pid})

    def replace(
        self, old: int, new: int, gone: Callable[[], None], buried: Callable[[], None]
    ) -> None:
        """A kernel goes on in another process, which was adopted; the one it had is ended, and
        then `buried`."""

        def bury() -> None:
            self.forget(old)
            buried()

        with self._changed:
            lives = old in self._expected
            self._watchers[old] = bury
        self.watch(new, gone)
        if not lives:
            bury()
            return
        with contextlib.suppress(KernelError):
            self.tell({"do": "kill", "pid": old})

    def exit_of(self, pid: int, timeout: float) -> Exit | None:
        with self._changed:
            self._changed.wait_for(lambda: pid in self._exits or not self.alive, timeout)
            return self._exits.pop(pid, None)

    def forget(self, pid: int) -> None:
        """Nobody asks any more how that process ends."""
        with self._changed:
            self._expected.discard(pid)
            self._watchers.pop(pid, None)
            self._exits.pop(pid, None)

    def kernels(self) -> int:
        with self._changed:
            return len(self._watchers)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # Half-closed: the server sees the end, and we still hear it go.
            self.control.shutdown(socket.SHUT_WR)
        try:
            self.process.wait(6)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.alive = False
        self.control.close()


def channel() -> tuple[socket.socket, socket.socket, tuple[int, int, int, int]]:
    """A kernel's lines to the world: our socket, its socket, and pipes for stdout and stderr.

    The pipes are: our end of both, then its end of both.
    """
    ours, theirs = socket.socketpair()
    out_r, out_w = os.pipe2(os.O_CLOEXEC)
    err_r, err_w = os.pipe2(os.O_CLOEXEC)
    return ours, theirs, (out_r, err_r, out_w, err_w)
