"""Calls from inside a kernel to the process that runs it, over a Unix socket with a run's token.

One line of JSON each way. The server knows nothing of what the calls do: a run registers what it
answers, and takes it back when it ends.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import QuireError

REQUEST_LIMIT = 8 << 20


class HungUp:
    """Whether the caller has gone, asked the way a cancellation is."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def is_set(self) -> bool:
        waiting = select.poll()  # select() knows no descriptor beyond 1,023
        waiting.register(self._sock, select.POLLIN)
        if not waiting.poll(0):
            return False
        with contextlib.suppress(BlockingIOError):
            return not self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return False


Answer = Callable[[str, Mapping[str, Any], HungUp], Any]


@dataclass(frozen=True, slots=True)
class Line:
    """What a kernel needs to call: it is in the kernel's memory, not in its environment."""

    socket: str
    token: str

    def as_context(self) -> dict[str, str]:
        return {"socket": self.socket, "token": self.token}


class CallServer:
    def __init__(self) -> None:
        self._answers: dict[str, Answer] = {}
        self._lock = threading.Lock()
        self._address = ""
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def register(self, answer: Answer) -> Line:
        with self._lock:
            if self._listener is None:
                self._listen()
            token = secrets.token_urlsafe(24)
            self._answers[token] = answer
            return Line(self._address, token)

    def forget(self, line: Line) -> None:
        with self._lock:
            self._answers.pop(line.token, None)

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
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            if self._listener is not listener:
                sock.close()
                listener.close()
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            if _user(sock) != os.getuid():
                return
            request = _read(sock)
            reply = json.dumps(self._reply(request, HungUp(sock)), default=str)
            sock.sendall(reply.encode() + b"\n")

    def _reply(self, request: Any, hung_up: HungUp) -> dict[str, Any]:
        if not isinstance(request, dict):
            return _refusal("call", "that is not a call")
        answer = self._answer_for(str(request.get("token", "")))
        if answer is None:
            return _refusal("call", "this run is over, or the call is not from its kernel")
        try:
            value = answer(str(request.get("call")), request.get("arguments") or {}, hung_up)
        except QuireError as error:
            return {"error": error.as_dict()}
        except Exception as error:  # noqa: BLE001 - the cell must get an answer, whatever happened
            return _refusal("internal", f"{type(error).__name__}: {error}")
        return {"value": value}

    def _answer_for(self, token: str) -> Answer | None:
        with self._lock:
            for known, answer in self._answers.items():
                if hmac.compare_digest(known.encode(), token.encode("utf-8", "replace")):
                    return answer
        return None

    def close(self) -> None:
        """Nobody is answered any more when it returns."""
        with self._lock:
            listener, self._listener = self._listener, None
            self._answers.clear()
        if listener is None:
            return
        # Closing a listener does not end the accept() that waits on it; a knock does.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as knock:
            knock.connect(self._address.replace("@", "\0", 1))
        if self._thread is not None:
            self._thread.join(1.0)


def _user(sock: socket.socket) -> int:
    """The user at the other end, as the system says."""
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


def _refusal(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "hint": ""}}


def _read(sock: socket.socket) -> Any:
    parts: list[bytes] = []
    size = 0
    while size <= REQUEST_LIMIT:
        data = sock.recv(1 << 16)
        parts.append(data)
        size += len(data)
        if not data or data.endswith(b"\n"):
            break
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(b"".join(parts))
    return None
