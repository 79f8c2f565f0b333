"""The outer end of a native kernel's channel: one socket for messages, two pipes for raw text."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Iterator
from typing import Any

from ..runs.events import OutputAdded, OutputsCleared, OutputUpdated
from .protocol import KernelEvent, Tick, milliseconds

Message = dict[str, Any]
READ = 1 << 18
# A short cell answers within a few hundred microseconds; going to sleep and being woken takes
# about as long again. So look again for that long before sleeping, where there is a core for it.
EAGER = 0.0004 if (os.cpu_count() or 1) > 1 else 0.0


class Wire:
    def __init__(self, sock: socket.socket, out_fd: int, err_fd: int) -> None:
        self.sock = sock
        self.pipes = {out_fd: "stdout", err_fd: "stderr"}
        self._decoders = {fd: codecs.getincrementaldecoder("utf-8")("replace") for fd in self.pipes}
        for fd in self.pipes:
            os.set_blocking(fd, False)
        self._poll = select.poll()
        for fd in (sock.fileno(), *self.pipes):
            self._poll.register(fd, select.POLLIN)
        self._buffer = bytearray()
        self._scanned = 0
        self._ended = False
        self._waiting: list[Message] = []
        self._fds: list[int] = []

    def send(self, message: Message) -> None:
        self.sock.sendall(json.dumps(message).encode() + b"\n")

    def hang_up(self) -> None:
        """Make a reader in another thread see the end after what is still queued."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.sock.close()
        for fd in (*self.pipes, *self._fds):
            os.close(fd)
        self.pipes, self._fds = {}, []

    def batches(self, tick: Tick) -> Iterator[list[Message] | None]:
        """Messages as they come, several at a time; None when `tick` passed without any.

        Ends when the kernel is gone. Raw text arrives as stream messages in its place.
        """
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            yield waiting
        eager = time.perf_counter() + EAGER
        while not self._ended:
            ready = self._poll.poll(0)
            if not ready:
                if time.perf_counter() < eager:
                    continue
                ready = self._poll.poll(milliseconds(tick))
            if not ready:
                yield None
                continue
            # The socket first: what it holds was sent before what is only now in the pipes,
            # except where a message says otherwise by `drain`.
            batch = self._messages() if any(fd == self.sock.fileno() for fd, _ in ready) else []
            if not batch or self._ended:
                batch += self._raw()
            if batch:
                yield batch

    def put_back(self, messages: list[Message]) -> None:
        self._waiting += messages

    def expect(self, answer: str, timeout: float) -> tuple[Message, int | None]:
        """The answer of a kernel at rest, and the descriptor that came with it.

        Everything else that arrives meanwhile (text of children or threads of earlier cells, the
        answer to something asked before) is kept for whoever reads next.
        """
        deadline = time.monotonic() + timeout
        while True:
            for at, found in enumerate(self._waiting):
                if found["m"] == answer:
                    del self._waiting[at]
                    is_copy = answer == "snapshot" and "pid" in found
                    return found, self._fds.pop(0) if is_copy and self._fds else None
            if time.monotonic() > deadline or self._ended:
                break
            if self._poll.poll(50):
                self._waiting += self._messages()
        raise ConnectionError("the kernel did not answer")

    def _messages(self) -> list[Message]:
        try:
            # Descriptors of snapshots come along with what was being read when they were made.
            data, fds, _, _ = socket.recv_fds(self.sock, READ, 4)
            self._fds += fds
        except (ConnectionResetError, BlockingIOError):
            data = b""
        if not data:
            self._ended = True
            return []
        self._buffer += data
        end = self._buffer.rfind(b"\n", self._scanned)
        if end < 0:
            self._scanned = len(self._buffer)
            return []
        lines = bytes(self._buffer[:end]).split(b"\n")
        del self._buffer[: end + 1]
        self._scanned = len(self._buffer)
        out: list[Message] = []
        for line in lines:
            message = json.loads(line)
            if message.get("drain") or message["m"] == "done":
                out += self._raw()
            last = out[-1] if out else None
            if (
                message["m"] == "stream"
                and last is not None
                and last.get("name") == message["name"]
                and last.get("area") == message.get("area")
            ):
                last.setdefault("parts", [last["text"]]).append(message["text"])
            else:
                out.append(message)
        return out

    def _raw(self) -> list[Message]:
        """All text that is in the pipes now."""
        out: list[Message] = []
        for fd, name in self.pipes.items():
            parts: list[str] = []
            # At most a few megabytes at once: a child that writes for ever must not fill memory.
            for _ in range(16):
                try:
                    data = os.read(fd, READ)
                except (BlockingIOError, InterruptedError):
                    break
                except OSError:
                    data = b""
                if not data:
                    with contextlib.suppress(KeyError):
                        self._poll.unregister(fd)
                    break
                parts.append(self._decoders[fd].decode(data))
            if text := "".join(parts):
                out.append({"m": "stream", "name": name, "text": text})
        return out

    @staticmethod
    def event(message: Message, cell: str) -> KernelEvent | None:
        """A message in the words of the protocol, or None where it is of no concern."""
        kind, area = message["m"], message.get("area", "")
        if kind == "stream":
            text = "".join(message["parts"]) if "parts" in message else message["text"]
            output = {"output_type": "stream", "name": message["name"], "text": text}
            return OutputAdded(cell, output, area=area)
        content = message.get("content", {})
        if kind in ("display_data", "execute_result"):
            output = {
                "output_type": kind,
                "data": content["data"],
                "metadata": content.get("metadata", {}),
            }
            if kind == "execute_result":
                output["execution_count"] = content.get("execution_count")
            return OutputAdded(cell, output, content.get("transient", {}).get("display_id"), area)
        if kind == "update_display_data":
            display_id = content.get("transient", {}).get("display_id", "")
            return OutputUpdated(cell, display_id, content["data"], content.get("metadata", {}))
        if kind == "clear_output":
            return OutputsCleared(cell, bool(content.get("wait")), area)
        if kind == "error":
            return OutputAdded(cell, {"output_type": "error", **content})
        return None
