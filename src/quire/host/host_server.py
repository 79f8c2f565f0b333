"""The host: one process per workspace that keeps kernels warm and runs what clients ask for.

A Unix socket, 0600, in the workspace's state folder. A client sends one request with its argument
list, folder, environment and its own three standard files, so what the host writes appears where
the client's user looks. A client that goes away takes its run with it. Or it makes a structured
call, whose line is described in `host_calls.py`.

This file knows the wire and the life of the process; what a request does is given to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import host_calls, host_socket
from .host_calls import Call

REQUEST_LIMIT = 16 << 20
FIRST_CLIENT = 2.0  # seconds
LOOK = 1.0  # seconds between two looks at what nobody uses
PAUSE = 0.05  # seconds until a client that could not be let in is tried again


@dataclass(slots=True)
class Request:
    argv: list[str]
    cwd: str
    env: Mapping[str, str]
    columns: int
    world: Mapping[str, Any]  # umask, niceness, cores and limits of the caller
    files: tuple[int, int, int]
    pid: int = 0  # of the client, which waits for the answer
    cancelled: threading.Event = field(default_factory=threading.Event)
    # Tells the client the name of what it asked for, in case we do not live to tell its end.
    announce: Callable[[str], None] = lambda _: None


Serve = Callable[[Request], int]
Answer = Callable[[Call], Mapping[str, Any]]


class Host:
    def __init__(
        self,
        path: str,
        serve: Serve,
        idle: float = 1800.0,
        describe: Callable[[], dict[str, Any]] = dict,
        in_use: Callable[[], bool] = bool,
        answer: Answer = lambda _: {},
    ) -> None:
        self.path = path
        self.serve_request = serve
        self.answer_call = answer
        self.idle = idle
        self.describe = describe
        self.in_use = in_use
        self.started = time.time()
        self._listener = socket.socket(socket.AF_UNIX)
        self._active: set[int] = set()
        self._requests: dict[int, Request] = {}
        self._calls: dict[int, Call] = {}
        self._changed = threading.Condition()
        self._last = time.monotonic()
        self._served = False
        self._stopping = False
        self._lock_fd = -1
        self._inode = 0

    def listen(self) -> bool:
        """False when another host of this workspace is already there."""
        folder = os.path.dirname(self.path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._lock_fd = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        old = os.umask(0o177)
        try:
            self._listener.bind(self.path)
        finally:
            os.umask(old)
        self._listener.listen(128)
        self._inode = os.stat(self.path).st_ino
        return True

    def serve(self) -> None:
        """Until told to stop, or nobody came for long enough."""
        self._listener.settimeout(LOOK)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        signal.signal(signal.SIGINT, lambda *_: self._stop())
        looked = time.monotonic()
        while not self._stopping:
            sock: socket.socket | None = None
            try:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._client, args=(sock,), daemon=True).start()
            except TimeoutError:
                pass
            except (OSError, RuntimeError):
                # No descriptor or no thread is left for it: what runs here must not end by that.
                if sock is not None:
                    sock.close()
                time.sleep(PAUSE)
            # Also while clients keep coming: what others left is to be let go of.
            if time.monotonic() - looked >= LOOK:
                if self._is_idle() or not self._is_reachable():
                    break
                looked = time.monotonic()
        self._finish()

    def status(self) -> dict[str, Any]:
        with self._changed:
            running = [request.argv for request in self._requests.values()]
            running += [["call", call.name] for call in self._calls.values()]
        return {
            "pid": os.getpid(),
            "socket": self.path,
            "uptime": round(time.time() - self.started, 1),
            "running": running,
            **self.describe(),
        }

    def _is_idle(self) -> bool:
        in_use = self.in_use()
        with self._changed:
            # Who started us comes at once, or was killed in the meantime.
            patience = self.idle if self._served else min(self.idle, FIRST_CLIENT)
            quiet = not self._active and time.monotonic() - self._last > patience
        return quiet and not in_use

    def _is_reachable(self) -> bool:
        """Whether the socket at our path is ours: the folder may have been removed or made anew."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def _stop(self) -> None:
        self._stopping = True
        # Wakes accept() at once, which shutting down a listener does not.
        sock = host_socket.connect(self.path)
        if sock is not None:
            sock.close()

    def _finish(self) -> None:
        """No new clients; runs that are under way are cancelled and write their records."""
        if self._is_reachable():
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        self._listener.close()
        with self._changed:
            for request in self._requests.values():
                request.cancelled.set()
            for call in self._calls.values():
                call.left.set()
            self._changed.wait_for(lambda: not self._active, 10.0)

    def _client(self, sock: socket.socket) -> None:
        ident = threading.get_ident()
        with self._changed:
            self._active.add(ident)
        try:
            with sock:
                try:
                    self._handle(sock, ident)
                finally:
                    # Closing alone would tell the client nothing while a thread still reads.
                    with contextlib.suppress(OSError):
                        sock.shutdown(socket.SHUT_RDWR)
        except (OSError, ValueError, LookupError):
            pass  # A client that talks nonsense or left: there is nobody to tell.
        finally:
            with self._changed:
                self._active.discard(ident)
                self._requests.pop(ident, None)
                self._calls.pop(ident, None)
                self._last = time.monotonic()
                self._changed.notify_all()

    def _served_code(self, request: Request) -> int:
        """The exit code, also where we ourselves are at fault: the client must hear something."""
        try:
            return self.serve_request(request)
        except Exception as error:  # noqa: BLE001 - the last place that can tell anybody
            traceback.print_exc()
            said = f"error: {type(error).__name__}: {error}\nhint: the host's log has the details\n"
            with contextlib.suppress(OSError):
                os.write(request.files[2], said.encode("utf-8", "replace"))
            return 2

    def _handle(self, sock: socket.socket, ident: int) -> None:
        data, fds, _, _ = socket.recv_fds(sock, 1 << 16, 3)
        try:
            if data == host_socket.STOP:
                self._stop()
                return
            if data == host_socket.STATUS:
                sock.sendall(json.dumps(self.status()).encode())
                return
            if data.startswith(host_socket.CALL):
                self._call(
                    host_calls.received(*_body(sock, data[len(host_socket.CALL) :]), sock), ident
                )
                return
            if len(fds) != 3:
                return
            files = (fds[0], fds[1], fds[2])
            request = Request(
                *host_socket.decode(_body(sock, data)[0]), files, host_socket.peer(sock)
            )
            with self._changed:
                self._requests[ident] = request
                self._served = True
            threading.Thread(target=_watch, args=(sock, request), daemon=True).start()
            request.announce = lambda name: sock.sendall(name.encode() + b"\n")
            sock.sendall(bytes([0, self._served_code(request) & 0xFF]))
        finally:
            for fd in fds:
                os.close(fd)

    def _call(self, call: Call, ident: int) -> None:
        with self._changed:
            self._calls[ident] = call
            self._served = True
        threading.Thread(target=call.listen, daemon=True).start()
        call.say({"begun": True})
        try:
            told = self.answer_call(call)
        except Exception as error:  # noqa: BLE001 - the caller must hear something
            traceback.print_exc()
            told = {"fault": f"{type(error).__name__}: {error}"}
        call.answer(told)


def _body(sock: socket.socket, data: bytes) -> tuple[bytes, bytes]:
    """A request whose first bytes came already, its length before it; and what came behind."""
    length = int.from_bytes(data[:4], "big")
    if length > REQUEST_LIMIT:
        raise ValueError("a request is too long")
    body = bytearray(data[4:])
    while len(body) < length:
        more = sock.recv(1 << 18)
        if not more:
            raise ConnectionError("the client left")
        body += more
    return bytes(body[:length]), bytes(body[length:])


def _watch(sock: socket.socket, request: Request) -> None:
    """The client asked to cancel, or is gone: both end its run."""
    with contextlib.suppress(OSError):
        sock.recv(1)
    request.cancelled.set()


def stop(path: str, timeout: float = 15.0) -> bool:
    """Ask the host to go and wait until it has. False when there was none."""
    sock = host_socket.connect(path)
    if sock is None:
        return False
    with contextlib.closing(sock):
        sock.sendall(host_socket.STOP)
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + timeout
    try:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                time.sleep(0.01)
    finally:
        os.close(fd)
    return True


def status(path: str) -> dict[str, Any] | None:
    """What the host says of itself, or None when there is none."""
    sock = host_socket.connect(path)
    if sock is None:
        return None
    with contextlib.closing(sock), contextlib.suppress(OSError, ValueError):
        sock.sendall(host_socket.STATUS)
        parts = []
        while data := sock.recv(1 << 16):
            parts.append(data)
        answer: dict[str, Any] = json.loads(b"".join(parts))
        return answer
    return None
