"""The native Python kernel: forked from a warm parent, no ZMQ, about the cost of a script.

`NativeKernels` owns the fork servers (one for each interpreter, set of preloaded modules and
environment that matters at start-up) and hands out kernels. Safe to use from several threads.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import KernelError, KernelNotFound
from ..runs.events import CellError, CellFinished, KernelDied
from .nativewire import Wire
from .protocol import KernelEvent, KernelSpec

ZYGOTE = Path(__file__).parent / "inside" / "zygote.py"
START_TIMEOUT = 60.0
REQUEST_TIMEOUT = 10.0

# Read by the interpreter or by libraries while they load: forking cannot change them afterwards.
_STARTUP_ENV = (
    "PYTHON",
    "LD_",
    "LC_",
    "LANG",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "MPL",
    "HOME",
    "IPYTHON",
)


@dataclass(frozen=True, slots=True)
class Exit:
    signal: int | None
    status: int | None
    max_rss: int


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
        self.python = python
        self.control = ours
        self.info: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._forked: list[int] = []
        self._kernels: dict[int, NativeKernel] = {}
        self._exits: dict[int, Exit] = {}
        self._copies: set[int] = set()
        self._spare: NativeKernel | None = None
        self.alive = True
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
                    self._forked.append(message["forked"])
                elif "exited" in message:
                    self._exited(message)
                self._changed.notify_all()
        with self._changed:
            self.alive = False
            for kernel in self._kernels.values():
                kernel.wake()
            self._changed.notify_all()
        self.process.wait()
        if self.process.stderr is not None and self.info:
            self.process.stderr.close()

    def _exited(self, message: dict[str, Any]) -> None:
        pid = message["exited"]
        if pid in self._copies:
            self._copies.discard(pid)
            return
        self._exits[pid] = Exit(message["signal"], message["status"], message["max_rss"])
        kernel = self._kernels.pop(pid, None)
        if kernel is not None:
            # A child of the cell may still hold the channel open: do not wait for its end.
            kernel.wake()

    def tell(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        try:
            socket.send_fds(self.control, [json.dumps(message).encode()], list(fds))
        except OSError as error:
            raise KernelError(
                "the kernel server has gone", hint="run the command again; it starts a new one"
            ) from error

    def fork(self) -> NativeKernel:
        ours, theirs, (out_r, err_r, out_w, err_w) = _channel()
        try:
            with self._lock:
                self.tell({"do": "fork"}, (theirs.fileno(), out_w, err_w))
                with self._changed:
                    self._changed.wait_for(lambda: self._forked or not self.alive, START_TIMEOUT)
                    if not self._forked:
                        raise KernelError("the kernel server has gone", hint="try again")
                    pid = self._forked.pop()
                    kernel = NativeKernel(self, pid, Wire(ours, out_r, err_r))
                    self._kernels[pid] = kernel
                    if pid in self._exits:
                        kernel.wake()
        except BaseException:
            ours.close()
            os.close(out_r)
            os.close(err_r)
            raise
        finally:
            theirs.close()
            os.close(out_w)
            os.close(err_w)
        return kernel

    def adopt(self, pid: int) -> None:
        """A copy of a kernel is the server's child now; it must not take it for a stray."""
        with self._changed:
            self._copies.add(pid)
        self.tell({"do": "adopt", "pid": pid})

    def replace(self, kernel: NativeKernel, pid: int) -> None:
        """The kernel goes on in another process; the one it had is ended."""
        self.tell({"do": "adopt", "pid": pid})
        with self._changed:
            self._kernels.pop(kernel.pid, None)
            self._copies.add(kernel.pid)
            self._kernels[pid] = kernel
        with contextlib.suppress(KernelError):
            self.tell({"do": "kill", "pid": kernel.pid})
        kernel.pid = pid

    def take(self) -> NativeKernel:
        """The kernel forked ahead of time, or a new one."""
        with self._changed:
            spare, self._spare = self._spare, None
        if spare is not None and spare.alive:
            return spare
        return self.fork()

    def refill(self) -> None:
        """Fork the next kernel before anybody waits for it."""
        with self._changed:
            if self._spare is not None or not self.alive:
                return
        spare = self.fork()
        with self._changed:
            if self._spare is None:
                self._spare = spare
                return
        spare.close()

    def refill_soon(self) -> None:
        threading.Thread(target=self._try_refill, name="quire-refill", daemon=True).start()

    def _try_refill(self) -> None:
        # The spare is a convenience; who needs a kernel next will see why there is none.
        with contextlib.suppress(KernelError, OSError):
            self.refill()

    def exit_of(self, pid: int, timeout: float) -> Exit | None:
        with self._changed:
            self._changed.wait_for(lambda: pid in self._exits or not self.alive, timeout)
            return self._exits.pop(pid, None)

    def forget(self, pid: int) -> None:
        with self._changed:
            self._exits.pop(pid, None)

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


class Snapshot:
    """A sleeping copy of a kernel. Gone when dropped, or when the kernel's owner goes."""

    def __init__(self, control: socket.socket, pid: int) -> None:
        self.control = control
        self.pid = pid

    @property
    def alive(self) -> bool:
        try:
            return not self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def memory(self) -> int:
        """Its share of memory in bytes: what it has alone, and its part of what it shares."""
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{self.pid}/smaps_rollup") as file:
                for line in file:
                    if line.startswith("Pss:"):
                        return int(line.split()[1]) * 1024
        return 0

    def drop(self) -> None:
        self.control.close()


class NativeKernel:
    kind = "native"
    language = "python"
    epoch = 1

    def __init__(self, zygote: Zygote, pid: int, wire: Wire) -> None:
        self.zygote = zygote
        self.pid = pid
        self.wire = wire
        self.alive = True
        self._closed = False
        self._busy = threading.Lock()
        self._end: Exit | None = None
        self.when_closed: Callable[[], None] | None = None

    def wake(self) -> None:
        self.alive = False
        self.wire.hang_up()

    def begin(self, spec: KernelSpec, context: Mapping[str, Any] | None = None) -> None:
        """Give a freshly forked kernel its world."""
        self.wire.send(
            {"env": dict(spec.env), "cwd": str(spec.cwd), "context": dict(context or {})}
        )

    def execute(self, code: str, cell: str, *, tick: float = 0.1) -> Iterator[KernelEvent | None]:
        with self._busy:
            yield from self._execute(code, cell, tick)

    def _execute(self, code: str, cell: str, tick: float) -> Iterator[KernelEvent | None]:
        try:
            self.wire.send({"m": "execute", "code": code})
        except OSError:
            yield self._death(cell)
            return
        for batch in self.wire.batches(tick):
            if batch is None:
                yield None
                continue
            for message in batch:
                if message["m"] == "done":
                    yield _finished(message, cell)
                    return
                event = self.wire.event(message, cell)
                if event is not None:
                    yield event
        yield self._death(cell)

    def snapshot(self) -> Snapshot | str:
        """Set the state aside as it is now; or the reason why that cannot be."""
        with self._busy:
            try:
                said, fd = self.wire.ask({"m": "snapshot"}, "snapshot", REQUEST_TIMEOUT)
            except OSError:
                return "the kernel is gone"
        if fd is None:
            return str(said.get("reason", "the kernel gave no reason"))
        control = socket.socket(fileno=fd)
        control.settimeout(REQUEST_TIMEOUT)
        try:
            pid = int(control.recv(32))
        except (OSError, ValueError):
            control.close()
            return "the copy died at once"
        control.settimeout(None)
        self.zygote.adopt(pid)
        return Snapshot(control, pid)

    def rewind(self, snapshot: Snapshot) -> None:
        """Be again what was set aside. The present process and all it started are ended."""
        with self._busy:
            ours, theirs, pipes = _channel()
            try:
                socket.send_fds(snapshot.control, [b"w"], [theirs.fileno(), *pipes[2:]])
                wire = Wire(ours, *pipes[:2])
                said, _ = wire.expect("awake", REQUEST_TIMEOUT)
            except OSError as error:
                ours.close()
                raise KernelError(
                    "that state is gone: its snapshot is no longer there",
                    hint="rewind further back, or restart the session",
                ) from error
            finally:
                theirs.close()
                for fd in pipes[2:]:
                    os.close(fd)
            self.zygote.replace(self, said["pid"])
            self.wire.close()
            self.wire, self.alive, self._end = wire, True, None

    def _death(self, cell: str) -> KernelDied:
        self.alive = False
        end = self._end = self._end or self.zygote.exit_of(self.pid, timeout=5.0)
        if end is None:
            return KernelDied(cell, "the kernel server died, and its kernels with it")
        return KernelDied(cell, _reason(end), end.signal, end.status, {"max_rss": end.max_rss})

    def interrupt(self) -> None:
        with contextlib.suppress(KernelError):
            self.zygote.tell({"do": "interrupt", "pid": self.pid})

    def kill(self) -> None:
        with contextlib.suppress(KernelError):
            self.zygote.tell({"do": "kill", "pid": self.pid})

    def describe(self) -> Mapping[str, Any]:
        info = self.zygote.info
        return {
            "kind": self.kind,
            "language": self.language,
            "name": "python3",
            "version": info.get("python", ""),
            "executable": info.get("executable", ""),
            "pid": self.pid,
        }

    def close(self, *, grace: float = 2.0) -> None:
        if self._closed:
            return
        self._closed = True
        # A cell that is still running, in another thread, gets no time to finish anything.
        idle = self._busy.acquire(blocking=False)
        if not (idle and self.alive and self._say_goodbye(grace)):
            self.kill()
            self._busy.acquire(timeout=5.0) if not idle else self._gone(5.0)
        self.wire.close()
        self.zygote.forget(self.pid)
        if self.when_closed is not None:
            self.when_closed()

    def _say_goodbye(self, grace: float) -> bool:
        """The task's own exit handlers and files are finished before the run is."""
        with contextlib.suppress(OSError):
            self.wire.send({"m": "close"})
        return self._gone(grace)

    def _gone(self, timeout: float) -> bool:
        """Wait for the end of the wire; what still comes over it is nobody's any more."""
        deadline = time.monotonic() + timeout
        for batch in self.wire.batches(0.05):
            if any(message["m"] == "bye" for message in batch or ()):
                return True
            if time.monotonic() > deadline:
                return False
        return True


class NativeKernels:
    """The fork servers of one process."""

    def __init__(self, *, spare: bool = False) -> None:
        self._zygotes: dict[tuple[Any, ...], Zygote] = {}
        self._lock = threading.Lock()
        self._spare = spare

    def __enter__(self) -> NativeKernels:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def zygote(self, spec: KernelSpec) -> Zygote:
        python = spec.python or sys.executable
        startup = {k: v for k, v in spec.env.items() if k.startswith(_STARTUP_ENV)}
        key = (python, spec.preload, tuple(sorted(startup.items())))
        with self._lock:
            zygote = self._zygotes.get(key)
            if zygote is None or not zygote.alive:
                zygote = Zygote(python, spec.preload, spec.env)
                self._zygotes[key] = zygote
        return zygote

    def start(self, spec: KernelSpec, context: Mapping[str, Any] | None = None) -> NativeKernel:
        zygote = self.zygote(spec)
        zygote.wait_ready()
        kernel = zygote.take()
        try:
            kernel.begin(spec, context)
        except OSError:
            kernel.close()
            kernel = zygote.fork()
            kernel.begin(spec, context)
        if self._spare:
            # Not now: the new kernel is about to need the processor that forking would take.
            kernel.when_closed = zygote.refill_soon
        return kernel

    def status(self) -> list[dict[str, Any]]:
        with self._lock:
            zygotes = list(self._zygotes.values())
        return [
            {"pid": z.process.pid, "python": z.python, "kernels": len(z._kernels), **z.info}
            for z in zygotes
            if z.alive
        ]

    def close(self) -> None:
        with self._lock:
            zygotes = list(self._zygotes.values())
            self._zygotes.clear()
        for zygote in zygotes:
            zygote.close()


def _channel() -> tuple[socket.socket, socket.socket, tuple[int, int, int, int]]:
    """A kernel's lines to the world: our socket, its socket, and pipes for stdout and stderr.

    The pipes are: our end of both, then its end of both.
    """
    ours, theirs = socket.socketpair()
    out_r, out_w = os.pipe2(os.O_CLOEXEC)
    err_r, err_w = os.pipe2(os.O_CLOEXEC)
    return ours, theirs, (out_r, err_r, out_w, err_w)


def _finished(message: dict[str, Any], cell: str) -> CellFinished:
    error = None
    if message["status"] == "failed":
        error = CellError(message["ename"], message["evalue"], tuple(message["traceback"]))
    return CellFinished(
        cell,
        message["status"],
        execution_count=message["count"],
        error=error,
        stop=message["stop"],
    )


def _reason(end: Exit) -> str:
    import signal

    if end.signal is not None:
        try:
            name = signal.Signals(end.signal).name
        except ValueError:
            name = f"signal {end.signal}"
        text = f"the kernel was killed by {name}"
        if end.signal == signal.SIGKILL:
            text += ", as the system does when memory runs out"
    else:
        text = f"the kernel exited with status {end.status}"
    return f"{text} (its memory peaked at {end.max_rss / 2**20:,.0f} MB)"


__all__ = ["NativeKernel", "NativeKernels", "Snapshot", "Zygote"]
