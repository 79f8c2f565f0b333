"""A structured call to the host, both ends: one request, then lines of JSON in both directions.

The host says that it has begun (before that, nothing was done and one may ask another host), how
far it is, and may ask back; the caller answers, or calls the work off:

    host      {"say": {...}}  {"ask": N, "questions": [...]}  {"answer": {...}}
    caller    {"answers": N, "values": [...] or null, "by": "..."}  {"cancel": true}

A caller that goes away only stops listening.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import host_socket

LINE_LIMIT = 16 << 20  # bytes of one message
LOOK = 0.2  # seconds between two looks at whether an answer is still wanted


@dataclass(slots=True)
class Call:
    """The host's end."""

    name: str
    arguments: Mapping[str, Any]
    cwd: str
    env: Mapping[str, str]
    world: Mapping[str, Any]
    sock: socket.socket
    pid: int = 0  # of the caller; 0 where it cannot be seen from here
    rest: bytes = b""  # what came behind the request
    left: threading.Event = field(default_factory=threading.Event)  # nobody listens any more
    cancelled: threading.Event = field(default_factory=threading.Event)  # said, not guessed
    _sending: threading.Lock = field(default_factory=threading.Lock)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _answers: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    _heard: threading.Condition = field(default_factory=threading.Condition)

    def say(self, what: Mapping[str, Any]) -> None:
        self._send({"say": what})

    def answer(self, what: Mapping[str, Any]) -> None:
        self._send({"answer": what})

    def ask(
        self, questions: Sequence[Mapping[str, Any]], called_off: Callable[[], bool]
    ) -> Mapping[str, Any] | None:
        """What the caller answers; None once nobody is there or the answer is not wanted."""
        number = next(self._numbers)
        self._send({"ask": number, "questions": list(questions)})
        with self._heard:
            while number not in self._answers:
                if self.left.is_set() or called_off():
                    return None
                self._heard.wait(LOOK)
            return self._answers.pop(number)

    def listen(self) -> None:
        """Until the caller is gone. In a thread of its own."""
        with contextlib.suppress(OSError, ValueError):
            for message in messages(self.sock, self.rest):
                if "answers" in message:
                    with self._heard:
                        self._answers[int(message["answers"])] = message
                        self._heard.notify_all()
                elif message.get("cancel"):
                    self.cancelled.set()
        with self._heard:
            self.left.set()
            self._heard.notify_all()

    def _send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        with self._sending, contextlib.suppress(OSError):
            self.sock.sendall(data)


def received(body: bytes, rest: bytes, sock: socket.socket) -> Call:
    """The request of a caller. ValueError or KeyError where it is none."""
    data = json.loads(body)
    if not isinstance(data, dict) or not isinstance(data.get("env"), dict):
        raise ValueError("that is no request")
    world = host_socket.read_world(str(data["world"])) if data.get("world") else {}
    env = {str(name): str(value) for name, value in data["env"].items()}
    return Call(
        str(data["call"]),
        data["arguments"],
        str(data["cwd"]),
        env,
        world,
        sock,
        host_socket.peer(sock),
        rest,
    )


class Lost(ConnectionError):
    """The host went away before it had answered."""


class Line:
    """The caller's end: send one request, then follow what the host says."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()

    def request(
        self, name: str, arguments: Mapping[str, Any], cwd: str, env: Mapping[str, str]
    ) -> None:
        asked = {
            "call": name,
            "arguments": arguments,
            "cwd": cwd,
            "env": dict(env),
            "world": host_socket.world(),
        }
        body = json.dumps(asked).encode()
        self._write(host_socket.CALL + len(body).to_bytes(4, "big") + body)

    def follow(self) -> Iterator[dict[str, Any]]:
        """What the host says, the answer last."""
        try:
            for message in messages(self._sock):
                yield message
                if "answer" in message:
                    return
        except (OSError, ValueError) as error:
            raise Lost(str(error)) from error
        raise Lost("the host went away")

    def reply(
        self,
        number: int,
        values: Sequence[str] | None,
        by: str,
        *,
        declined: bool,
        missing: Sequence[str] = (),
    ) -> None:
        told = {"values": values, "by": by, "declined": declined, "missing": list(missing)}
        self.send({"answers": number, **told})

    def send(self, message: Mapping[str, Any]) -> None:
        self._write(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """Also wakes whoever reads in another thread."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def _write(self, data: bytes) -> None:
        try:
            with self._sending:
                self._sock.sendall(data)
        except OSError as error:
            raise Lost(str(error)) from error


def dial(root: str, version: str) -> Line | None:
    """A line to the host of a workspace, which is started where there is none."""
    path = host_socket.address(root, version)
    sock = host_socket.connect(path)
    if sock is None and host_socket.start(root):
        sock = host_socket.connect(path)
    return None if sock is None else Line(socket.socket(fileno=sock.detach()))


def messages(sock: socket.socket, before: bytes = b"") -> Iterator[dict[str, Any]]:
    """What the other side says, one object at a time; `before` has come already."""
    data, rest = before, bytearray()
    while data or (data := sock.recv(1 << 16)):
        rest += data
        if len(rest) > LINE_LIMIT:
            raise ValueError("a message is too long")
        whole, data = b"\n" in data, b""
        if not whole:
            continue
        *lines, tail = bytes(rest).split(b"\n")
        rest = bytearray(tail)
        for line in lines:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise ValueError("a message is an object")
            yield message
