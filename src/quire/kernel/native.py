"""The native Python kernel: forked from a warm parent, no ZMQ, about the cost of a script.

`NativeKernels` owns the fork servers (one for each interpreter, set of preloaded modules and
environment that matters at start-up) and hands out kernels. Safe to use from several threads.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import KernelError
from ..host import host_socket
from ..record.events import KernelDied
from .exit_status import Exit
from .fork_server import Zygote, channel
from .installed_packages import installed, platform
from .native_messages import event, finished
from .native_wire import Wire
from .protocol import KernelEvent, KernelSpec, Tick
from .snapshots import Snapshot

REQUEST_TIMEOUT = 10.0
MOST_SERVERS = 6


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
        self._ahead = False  # a snapshot was asked for with the last cell
        self.when_closed: Callable[[], None] | None = None
        zygote.watch(pid, self.wake)

    def wake(self) -> None:
        """The process is gone. A child of a cell may still hold the wire: do not wait for it."""
        self.alive = False
        self.wire.hang_up()

    def begin(self, spec: KernelSpec, context: Mapping[str, Any] | None = None) -> None:
        """Give a freshly forked kernel its world."""
        self.wire.send(
            {
                "env": dict(spec.env),
                "cwd": str(spec.cwd),
                "world": dict(spec.world),
                "context": dict(context or {}),
            }
        )

    def execute(
        self, code: str, cell: str, *, tick: Tick = 0.1, aside: bool = False
    ) -> Iterator[KernelEvent | None]:
        """`aside`: the state after it will be asked for by `snapshot`; make it without delay."""
        with self._busy:
            yield from self._execute(code, cell, tick, aside)

    def _execute(
        self, code: str, cell: str, tick: Tick, aside: bool
    ) -> Iterator[KernelEvent | None]:
        try:
            if self._ahead:
                made = self._collect()
                if isinstance(made, Snapshot):
                    made.drop()
            if aside:
                self.wire.await_snapshot()
            self.wire.send({"m": "execute", "code": code, "aside": aside})
        except OSError:
            yield self._death(cell)
            return
        for batch in self.wire.batches(tick):
            if batch is None:
                yield None
                continue
            for place, message in enumerate(batch):
                if message["m"] == "done":
                    self._ahead = aside
                    self.wire.put_back(batch[place + 1 :])
                    yield finished(message, cell)
                    return
                said = event(message, cell)
                if said is not None:
                    yield said
        yield self._death(cell)

    def snapshot(self) -> Snapshot | str:
        """Set the state aside as it is now; or the reason why that cannot be."""
        with self._busy:
            try:
                made = self._collect() if self._ahead else None
                if made is None:
                    self.wire.await_snapshot()
                    self.wire.send({"m": "snapshot"})
                    made = self._collect()
            except OSError:
                return "the kernel is gone"
        return made or "the kernel gave no reason"

    def _collect(self) -> Snapshot | str | None:
        """The snapshot that was asked for, now or with the last cell. None: it was put off."""
        self._ahead = False
        said, fd = self.wire.expect("snapshot", REQUEST_TIMEOUT)
        if said.get("later"):
            return None
        if fd is None:
            return str(said.get("reason", ""))
        control = _socket(fd)
        # It outlives the process it was made from, and then becomes the server's child.
        self.zygote.adopt(said["pid"])
        return Snapshot(control, said["pid"], self.zygote.states)

    def variables(self) -> list[Mapping[str, Any]]:
        with self._busy:
            try:
                self.wire.send({"m": "variables"})
                said, _ = self.wire.expect("variables", REQUEST_TIMEOUT)
            except OSError as error:
                # Where it has just ended the server says so in a moment, and `alive` is right.
                self._end = self._end or self.zygote.exit_of(self.pid, timeout=1.0)
                raise KernelError("the kernel is gone", hint="restart the session") from error
        found: list[Mapping[str, Any]] = said["found"]
        return found

    def rewind(self, snapshot: Snapshot) -> None:
        """Be again what was set aside. The present process and all it started are ended."""
        with self._busy:
            # Nothing of ours has changed until there is somebody to be.
            pid, wire = _woken(self.zygote, snapshot)
            old, left = self.pid, self.wire
            self.pid, self.wire = pid, wire
            self.alive, self._end, self._ahead = True, None, False
            # The line to the old one stays open until it has been ended: seeing its end it would
            # tidy up, and that is not for a branch that is left behind.
            self.zygote.replace(old, pid, self.wake, left.close)

    def tell(self, context: Mapping[str, Any]) -> None:
        """Where calls from cells go from now on."""
        with contextlib.suppress(OSError):
            self.wire.send({"m": "context", "context": dict(context)})

    def _death(self, cell: str) -> KernelDied:
        self.alive = False
        if self.wire.broken:
            self.kill()  # it may be in the best of health
        end = self._end = self._end or self.zygote.exit_of(self.pid, timeout=5.0)
        if end is None and not self.zygote.alive:
            return KernelDied(cell, "the kernel server died, and its kernels with it")
        end = end or Exit()  # the server has not said it yet, or the process only left its line
        memory = {"max_rss": end.max_rss}
        if self.wire.broken:
            return KernelDied(cell, self.wire.broken, memory=memory)
        return KernelDied(cell, end.reason, end.signal, end.status, memory)

    def interrupt(self) -> None:
        if not self._busy.locked():  # it takes a way round, and would find the cell after
            return
        with contextlib.suppress(KernelError):
            self.zygote.tell({"do": "interrupt", "pid": self.pid})

    def kill(self) -> None:
        self.alive = False
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

    def environment(self) -> Mapping[str, Any]:
        info = self.zygote.info
        interpreter = {
            "language": self.language,
            "implementation": info.get("implementation", ""),
            "version": info.get("python", ""),
            "executable": info.get("executable", ""),
        }
        packages = installed(info.get("path", ()))
        return {"interpreter": interpreter, "platform": platform(), "packages": packages}

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
        return not self.wire.broken


def _socket(fd: int) -> socket.socket:
    try:
        return socket.socket(fileno=fd)
    except OSError:  # it is none
        os.close(fd)
        raise


def _woken(server: Zygote, snapshot: Snapshot) -> tuple[int, Wire]:
    """A live copy of what was set aside: its pid, and the wire to it. The server knows of it."""
    ours, theirs, pipes = channel()
    wire = Wire(ours, *pipes[:2])
    try:
        # Without waiting: what sleeps has read all it was told, and a forged one need not read.
        what = [theirs.fileno(), *pipes[2:]]
        socket.send_fds(snapshot.control, [b"w"], what, socket.MSG_DONTWAIT)
        said, _ = wire.expect("awake", REQUEST_TIMEOUT)
        server.adopt(said["pid"], kernel=True)
    except KernelError:
        wire.close()  # a copy that sees the end of its wire goes
        raise
    except OSError as error:
        wire.close()
        gone = not snapshot.alive
        raise KernelError(
            "that state is gone: its snapshot is no longer there"
            if gone
            else f"that state could not be woken: {error}",
            hint="rewind further back, or start afresh" if gone else "try again",
        ) from error
    finally:
        theirs.close()
        for fd in pipes[2:]:
            os.close(fd)
    return said["pid"], wire


def wake(server: Zygote, snapshot: Snapshot, context: Mapping[str, Any]) -> NativeKernel:
    """A kernel of its own from a state that another one left behind."""
    pid, wire = _woken(server, snapshot)
    kernel = NativeKernel(server, pid, wire)
    kernel.tell(context)
    return kernel


class NativeKernels:
    """The fork servers of one process."""

    def __init__(self, *, spare: bool = False) -> None:
        self._zygotes: dict[tuple[Any, ...], Zygote] = {}
        self._lock = threading.Lock()
        self._keeps_spare = spare
        self._spares: dict[Zygote, NativeKernel] = {}

    def __enter__(self) -> NativeKernels:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def zygote(self, spec: KernelSpec) -> Zygote:
        python = spec.python or sys.executable
        env = host_socket.start_variables(spec.env)
        loaded = sorted(item for item in env.items() if item[0].startswith(host_socket.LOADED_WITH))
        key = (python, spec.preload, tuple(loaded))
        with self._lock:
            zygote = self._zygotes.get(key)
            if zygote is None or not zygote.alive:
                zygote = Zygote(python, spec.preload, env)
            # The one used last stands last.
            self._zygotes.pop(key, None)
            self._zygotes[key] = zygote
            idle = self._too_many()
        for one in idle:
            one.close()
        return zygote

    def _too_many(self) -> list[Zygote]:
        """Fork servers of worlds that nobody has asked for lately: a host sees many of them."""
        out: list[Zygote] = []
        for key, zygote in list(self._zygotes.items())[:-MOST_SERVERS]:
            spare = self._spares.get(zygote)
            # States outlive their kernel, but not their server.
            if zygote.kernels() <= (spare is not None) and not zygote.states:
                del self._zygotes[key]
                self._spares.pop(zygote, None)
                out.append(zygote)
        return out

    def start(self, spec: KernelSpec, context: Mapping[str, Any] | None = None) -> NativeKernel:
        zygote = self.zygote(spec)
        zygote.wait_ready()
        kernel = self._take(zygote)
        try:
            kernel.begin(spec, context)
        except OSError:
            kernel.close()
            kernel = NativeKernel(zygote, *zygote.fork())
            kernel.begin(spec, context)
        if self._keeps_spare:
            # Not now: the new kernel is about to need the processor that forking would take.
            kernel.when_closed = lambda: self._refill_soon(zygote)
        return kernel

    def _take(self, zygote: Zygote) -> NativeKernel:
        """The kernel forked ahead of time, or a new one."""
        with self._lock:
            spare = self._spares.pop(zygote, None)
        if spare is not None and spare.alive:
            return spare
        return NativeKernel(zygote, *zygote.fork())

    def _refill_soon(self, zygote: Zygote) -> None:
        threading.Thread(target=self._refill, args=(zygote,), daemon=True).start()

    def _refill(self, zygote: Zygote) -> None:
        """Fork the next kernel before anybody waits for it."""
        with self._lock:
            if zygote in self._spares or not zygote.alive:
                return
        # The spare is a convenience; who needs a kernel next will see why there is none.
        with contextlib.suppress(KernelError, OSError):
            spare = NativeKernel(zygote, *zygote.fork())
            with self._lock:
                kept = self._spares.setdefault(zygote, spare)
            if kept is not spare:
                spare.close()

    def status(self) -> list[dict[str, Any]]:
        with self._lock:
            zygotes = list(self._zygotes.values())
        return [
            {"pid": z.process.pid, "interpreter": z.python, "kernels": z.kernels()}
            | {key: z.info.get(key) for key in ("ready", "python", "executable", "preload_failed")}
            for z in zygotes
            if z.alive
        ]

    def close(self) -> None:
        with self._lock:
            zygotes = list(self._zygotes.values())
            self._zygotes.clear()
            self._spares.clear()
        for zygote in zygotes:
            zygote.close()


__all__ = ["NativeKernel", "NativeKernels", "wake"]
