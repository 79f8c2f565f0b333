"""What a cell prints and shows, on its way out: JSON lines over one socket.

Text written to file descriptors 1 and 2 by child processes or C code goes through pipes that the
other side reads. A message says `drain` when such text was waiting as it was sent, so that both
come out in the order in which they were written.
"""

from __future__ import annotations

import array
import binascii
import contextlib
import datetime
import fcntl
import io
import json
import numbers
import os
import socket
import termios
import threading
import time
from collections.abc import Iterable
from typing import Any

from . import message_limits

CHUNK = 32_768  # characters of a stream in one message
FREE_SENDS = 8  # lines of a cell that are sent one by one before they are gathered
GATHER = 0.02  # seconds for which lines are gathered after that
# How long to look for the next cell before going to sleep: being woken takes longer than this.
EAGER = 0.0002 if (os.cpu_count() or 1) > 1 else 0.0


def _as_json(value: Any) -> Any:
    """As Jupyter has it: pictures are bytes and travel as base64."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return binascii.b2a_base64(value, newline=False).decode()
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, Iterable):
        return list(value)
    if isinstance(value, numbers.Real):
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    return str(value)


class Channel:
    def __init__(self, sock: socket.socket, watched: Iterable[int]) -> None:
        self.sock = sock
        self.watched = tuple(watched)
        self.lock = threading.RLock()
        self.area = ""  # the output widget that is being written to
        self.open = True  # False in a forked child: the wire belongs to the kernel alone
        self._waiting = array.array("i", [0])
        self._received = bytearray()

    def pipes_hold_text(self) -> bool:
        for fd in self.watched:
            with contextlib.suppress(OSError):
                fcntl.ioctl(fd, termios.FIONREAD, self._waiting)
                if self._waiting[0]:
                    return True
        return False

    def send(self, message: dict[str, Any], fd: int | None = None) -> None:
        if not self.open:
            return
        with self.lock:
            if self.area:
                message["area"] = self.area
            if self.pipes_hold_text():
                message["drain"] = True
            line = json.dumps(message, default=_as_json).encode() + b"\n"
            # What is printed comes in pieces.
            if message["m"] != "stream" and message_limits.is_too_much(len(line), message):
                cut = message_limits.cut(message, len(line))
                line = json.dumps(cut, default=_as_json).encode() + b"\n"
            if fd is not None:
                socket.send_fds(self.sock, [line[:1]], [fd])
                line = line[1:]
            self.sock.sendall(line)

    def receive(self) -> dict[str, Any] | None:
        """The next message from the other side, or None when it has gone."""
        eager = time.perf_counter() + EAGER
        while (end := self._received.find(b"\n")) < 0:
            try:
                data = self.sock.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                if time.perf_counter() < eager:
                    continue
                data = self.sock.recv(1 << 16)
            if not data:
                return None
            self._received += data
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        message: dict[str, Any] = json.loads(line)
        return message

    def pending(self) -> bool:
        return b"\n" in self._received


class OutStream(io.TextIOBase):
    """sys.stdout or sys.stderr of a cell. Line-buffered, so that progress is seen as it happens."""

    def __init__(self, name: str, fd: int, channel: Channel) -> None:
        self.name = name
        self.fd = fd
        self.channel = channel
        self._parts: list[str] = []
        self._size = 0
        self._sends = 0
        self._last = 0.0
        self._flusher: threading.Thread | None = None
        self._cell_over = threading.Event()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "UTF-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "strict"

    @property
    def buffer(self) -> io.FileIO:
        return io.FileIO(self.fd, "w", closefd=False)

    def fileno(self) -> int:
        return self.fd

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not self.channel.open:
            os.write(self.fd, text.encode("utf-8", "backslashreplace"))
            return len(text)
        with self.channel.lock:
            self._parts.append(text)
            self._size += len(text)
            if self._size >= CHUNK:
                self._send()
            elif "\n" in text or "\r" in text:
                self._line_ended()
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._parts and self.channel.open:
            with self.channel.lock:
                self._send()

    def _line_ended(self) -> None:
        now = time.monotonic()
        if self._sends < FREE_SENDS or now - self._last > GATHER:
            self._send()
            self._last = now
        elif self._flusher is None:
            # A cell that prints thousands of lines: gather them, and let a thread see to it that
            # none waits for long while the cell is busy with something else.
            self._cell_over.clear()
            self._flusher = threading.Thread(
                target=self._flush_regularly, name=f"quire-{self.name}", daemon=True
            )
            self._flusher.start()

    def _flush_regularly(self) -> None:
        while not self._cell_over.wait(GATHER):
            self.flush()

    def _send(self) -> None:
        text = "".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._sends += 1
        for start in range(0, len(text), CHUNK):
            self.channel.send(
                {"m": "stream", "name": self.name, "text": text[start : start + CHUNK]}
            )

    def end_cell(self) -> None:
        """Nothing stays behind, no thread either: the process may be forked between cells."""
        self.flush()
        self._sends = 0
        if self._flusher is not None:
            self._cell_over.set()
            self._flusher.join()
            self._flusher = None

    def forget(self) -> None:
        """In a forked child: what the parent had buffered is the parent's to send."""
        self._parts = []
        self._size = 0
        self._flusher = None
