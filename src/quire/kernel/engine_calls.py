"""Calls from inside a kernel to the process that runs it, over a Unix socket with a run's token.

A connection is one call. We begin with a challenge; the caller answers with the name of its line, a
digest of challenge, call and token, and the call as JSON; we end with one line of JSON. So a token
never travels, and a call that was recorded cannot be made again. The caller must also be the very
process that the line was made for: its children have its memory, and no say.

The server knows nothing of what the calls do: a run registers what it answers, and takes it back
when it ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import resource
import secrets
import select
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import QuireError, Refused
from .inside import reaper

REQUEST_LIMIT = 16 << 20  # bytes
HEADER_LIMIT = 256
VALUES = 200_000  # in one call: each costs far more memory than what it is written with
SMALL = 1 << 20  # bytes of a call that is held without further ado
HELD = 128 << 20  # bytes of larger ones at a time; others wait
HELD_OF_ONE = HELD // 4  # and of those of one run
PATIENCE = 10.0  # seconds that a caller may take to say its call, and to take its answer
MOST_OF_ONE = 64  # connections of the kernels of one run at a time
FEW = 8  # and of all that they started, which is not answered
MOST = 512  # and of all
STEPS = 40  # from a process up to its kernel
TICK = 0.05  # seconds until a socket that could not be had is tried for again

# One that is never closed is all of the rest: not looked for anew from each quote in it.
_TEXT = re.compile(rb'"(?:[^"\\]+|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_GONE = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
HELLO = "hello"  # only says which process a line is for
STRANGER = "this run is over, or the call is not from its kernel"


class HungUp:
    """Whether the caller has gone, asked the way a cancellation is."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def is_set(self) -> bool:
        waiting = select.poll()  # select() knows no descriptor beyond 1,023
        waiting.register(self._sock, select.POLLIN | _GONE)
        ready = waiting.poll(0)
        if not ready:
            return False
        if ready[0][1] & _GONE:
            return True
        with contextlib.suppress(BlockingIOError):
            return not self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return False


Answer = Callable[[str, Mapping[str, Any], HungUp], Any]
_Group = tuple[str | int, bool]  # a run or a process, and whether it is what that started


@dataclass(frozen=True, slots=True)
class Line:
    """What a kernel needs to call: it is in the kernel's memory, not in its environment."""

    socket: str
    name: str
    token: str

    def as_context(self) -> dict[str, str]:
        return {"socket": self.socket, "line": self.name, "token": self.token}


@dataclass(slots=True)
class _Registered:
    line: Line
    answer: Answer
    # The process it is for, as that is now. Without it the first to call rightly is.
    pid: Callable[[], int] | None
    turned_away: Callable[[str], object]  # told why a call on this line was no call
    first: int = 0

    def is_for(self, pid: int) -> bool:
        if self.pid is not None:
            return pid == self.pid()
        self.first = self.first or pid
        return pid == self.first

    def kernel(self) -> int:
        """0 where it is not known yet."""
        return self.pid() if self.pid is not None else self.first

    def may_be_for(self, pid: int) -> bool:
        kernel = self.kernel()
        return kernel == pid or (self.pid is None and not kernel)


class CallServer:
    def __init__(self, descriptors: int | None = None) -> None:
        """`descriptors`: how many this process may have, if not what the system says."""
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if descriptors is None else descriptors
        # The most are for what the calls do, and for everything else.
        self._most = MOST if soft < 0 else min(MOST, max(4, soft // 4))
        self._lines: dict[str, _Registered] = {}
        self._lock = threading.Lock()
        self._address = ""
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._open: Counter[_Group] = Counter()
        self._space = threading.Condition()
        self._held: Counter[str] = Counter()  # bytes of large calls, by the token of the run
        self.strangers = 0  # calls that belonged to no run of ours

    def register(
        self,
        answer: Answer,
        *,
        pid: Callable[[], int] | None = None,
        turned_away: Callable[[str], object] = lambda _: None,
    ) -> Line:
        with self._lock:
            if self._listener is None:
                self._listen()
            line = Line(self._address, secrets.token_hex(8), secrets.token_urlsafe(24))
            self._lines[line.name] = _Registered(line, answer, pid, turned_away)
            return line

    def another(self, line: Line) -> Line:
        """The same for one more kernel of the run, under a name that only that kernel knows."""
        with self._lock:
            found = self._lines[line.name]
            other = replace(line, name=secrets.token_hex(8))
            self._lines[other.name] = replace(found, line=other, pid=None, first=0)
            return other

    def forget(self, line: Line) -> None:
        with self._lock:
            for name, one in list(self._lines.items()):
                if one.line.token == line.token:
                    del self._lines[name]

    def expect(self, line: Line) -> None:
        """A new process will have the line: where it is not known which, the next to say so."""
        with self._lock:
            if line.name in self._lines:
                self._lines[line.name].first = 0

    def _listen(self) -> None:
        # An abstract address: no file that a kill could leave behind. It has no permissions, so
        # the caller's user is checked instead.
        self._address = f"@quire-{secrets.token_hex(8)}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._address.replace("@", "\0", 1))
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._accept, name="quire-calls", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        listener = self._listener
        assert listener is not None
        while True:
            sock = None
            with contextlib.suppress(OSError):  # the caller has gone, or no descriptor is left
                sock, _ = listener.accept()
            if self._listener is not listener:
                if sock is not None:
                    sock.close()
                listener.close()
                return
            if sock is None:
                time.sleep(TICK)
            else:
                self._take(sock)

    def _take(self, sock: socket.socket) -> None:
        pid, uid = _peer(sock)
        kernel, token = self._kernel_of(pid)
        is_below = bool(token) and kernel != pid
        group = (token or kernel, is_below)
        most = min(FEW if is_below else MOST_OF_ONE, self._most)
        with self._lock:
            full = self._open[group] >= most or self._open.total() >= self._most
            full = full or uid != os.getuid()
            self._open[group] += not full
        if not full:
            try:
                threading.Thread(target=self._serve, args=(sock, pid, group), daemon=True).start()
                return
            except RuntimeError:  # the system has no thread for it
                self._left(group)
        self._turn_away(None, pid, "there were too many calls at a time")
        sock.close()

    def _kernel_of(self, pid: int) -> tuple[int, str]:
        """The kernel that a process is, or was started by, with the token of its run. Its session
        does not say: every process can have one of its own. Without a token: who it belongs to
        besides, such as a fork server, and 0 where that is nobody of ours."""
        with self._lock:
            lines = list(self._lines.values())
        kernels = {one.kernel(): one.line.token for one in lines}
        kernels.pop(0, None)
        ours = os.getpid()
        for _ in range(STEPS):
            if pid in kernels or pid == ours:
                return pid, kernels.get(pid, "")
            parent = reaper.parent(pid) or 0
            if parent == ours and ours not in kernels:
                return pid, ""
            if parent <= 1:
                break
            pid = parent
        return 0, ""

    def _left(self, group: _Group) -> None:
        with self._lock:
            self._open[group] -= 1
            if not self._open[group]:
                del self._open[group]

    def _serve(self, sock: socket.socket, pid: int, group: _Group) -> None:
        try:
            with sock, contextlib.suppress(OSError):
                sock.settimeout(PATIENCE)
                reply = json.dumps(self._reply(sock, pid), default=str)
                sock.settimeout(PATIENCE)
                sock.sendall(reply.encode() + b"\n")
                # What was not read of a refused call would make the system drop the answer.
                _drain(sock)
        finally:
            self._left(group)

    def _reply(self, sock: socket.socket, pid: int) -> dict[str, Any]:
        challenge = secrets.token_hex(16).encode()
        sock.sendall(challenge + b"\n")
        try:
            name, proof, size, rest = _header(sock)
            with self._lock:
                found = self._lines.get(name)
            # Before it is known whose it is, nothing is held for it.
            if size > SMALL and (found is None or not found.may_be_for(pid)):
                return self._turn_away(found, pid, STRANGER)
            with self._room(size, found.line.token if found else ""):
                return self._answered(sock, pid, (challenge, name, proof), _body(sock, size, rest))
        except ValueError as error:
            return self._turn_away(None, pid, str(error))

    @contextlib.contextmanager
    def _room(self, size: int, token: str) -> Iterator[None]:
        held = size if size > SMALL else 0

        def fits() -> bool:
            of_one = self._held[token] + held <= max(HELD_OF_ONE, REQUEST_LIMIT)
            return of_one and self._held.total() + held <= HELD

        with self._space:
            if held and not self._space.wait_for(fits, PATIENCE):
                raise ValueError("there were too many large calls at a time")
            self._held[token] += held
        try:
            yield
        finally:
            with self._space:
                self._held[token] -= held
                if not self._held[token]:
                    del self._held[token]
                self._space.notify_all()

    def _answered(
        self, sock: socket.socket, pid: int, said: tuple[bytes, str, str], body: bytes
    ) -> dict[str, Any]:
        challenge, name, proof = said
        with self._lock:
            found = self._lines.get(name)
        if found is None:
            return self._turn_away(None, pid, STRANGER)
        wanted = hmac.new(found.line.token.encode(), challenge + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(wanted.encode(), proof.encode("utf-8", "replace")):
            return self._turn_away(found, pid, STRANGER)
        if not found.is_for(pid):
            return self._turn_away(found, pid, "the call is from a child process of the kernel")
        request = _loads(body)
        if not isinstance(request, dict) or not isinstance(request.get("call"), str):
            return self._turn_away(found, pid, "that is not a call")
        if request["call"] == HELLO:
            return {"value": None}
        arguments = request.get("arguments")
        try:
            given = arguments if isinstance(arguments, dict) else {}
            return {"value": found.answer(request["call"], given, HungUp(sock))}
        except QuireError as error:
            return {"error": error.as_dict()}
        except Exception as error:  # noqa: BLE001 - the cell must get an answer, whatever happened
            return _refusal("internal", f"{type(error).__name__}: {error}")

    def _turn_away(self, line: _Registered | None, pid: int, why: str) -> dict[str, Any]:
        """Told to the run it was meant for, or whose kernel or child it came from."""
        if line is None:
            token = self._kernel_of(pid)[1]
            with self._lock:
                lines = list(self._lines.values())
            line = next((one for one in lines if one.line.token == token), None)
        if line is None:
            self.strangers += 1
        else:
            line.turned_away(why)
        return _refusal(Refused.code, why)

    def close(self) -> None:
        """Nobody is answered any more when it returns."""
        with self._lock:
            listener, self._listener = self._listener, None
            self._lines.clear()
        if listener is None:
            return
        # Closing a listener does not end the accept() that waits on it; a knock does. It does not
        # wait: where so many knock that there is no room, accept() does not wait either.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as knock:
            knock.setblocking(False)
            knock.connect(self._address.replace("@", "\0", 1))
        if self._thread is not None:
            self._thread.join(1.0)


def _peer(sock: socket.socket) -> tuple[int, int]:
    """Process and user at the other end, as the system says."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid), int(uid)


def _refusal(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "hint": ""}}


def _header(sock: socket.socket) -> tuple[str, str, int, bytes]:
    """Name of the line, proof, size of the call and its beginning. ValueError says what is wrong
    with it."""
    data = b""
    for chunk in _chunks(sock):
        data += chunk
        if b"\n" in data or len(data) > HEADER_LIMIT:
            break
    header, newline, rest = data.partition(b"\n")
    words = header.decode("ascii", "replace").split(" ")
    if not newline or len(words) != 3 or not words[2].isdecimal() or len(header) > HEADER_LIMIT:
        raise ValueError("that is not a call")
    size = int(words[2])
    if size > REQUEST_LIMIT:
        raise ValueError(f"a call has at most {REQUEST_LIMIT:,} bytes, this one {size:,}")
    return words[0], words[1], size, rest


def _body(sock: socket.socket, size: int, rest: bytes) -> bytes:
    parts, have = [rest], len(rest)
    if have < size:
        for chunk in _chunks(sock):
            parts.append(chunk)
            have += len(chunk)
            if have >= size:
                break
    if have != size:
        raise ValueError("the call is not as long as it says")
    return b"".join(parts)


def _chunks(sock: socket.socket) -> Iterator[bytes]:
    """What comes, until PATIENCE is over: not each time anew."""
    deadline = time.monotonic() + PATIENCE
    while (left := deadline - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            chunk = sock.recv(1 << 16)
        except TimeoutError:
            return
        if not chunk:
            return
        yield chunk


def _loads(body: bytes) -> Any:
    if len(body) > SMALL and _values(body) > VALUES:
        raise ValueError(f"a call has at most {VALUES:,} values in it")
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(body.decode())
    return None


def _values(body: bytes) -> int:
    """How many there are at most, without making them."""
    rest = _TEXT.sub(b"", body)
    return rest.count(b",") + rest.count(b"[") + rest.count(b"{")


def _drain(sock: socket.socket) -> None:
    sock.shutdown(socket.SHUT_WR)
    for _ in _chunks(sock):
        pass
