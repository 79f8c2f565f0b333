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

from .inside.message_limits import LONGEST
from .native_messages import Message, NoMessage, read
from .protocol import Tick, milliseconds

READ = 1 << 18
# Of raw text that is read for the messages that came at once: each may ask for what is there, and a
# child can write as fast as that.
MOST_RAW = 1 << 24
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
        self._received = 0  # bytes of messages, since a cell ended last
        # One descriptor will be taken: a snapshot is awaited. What comes with plain recv() is
        # closed by the system.
        self._takes_fd = False
        self.broken = ""  # why nothing is read any more, although the kernel may go on

    def send(self, message: Message) -> None:
        self.sock.sendall(json.dumps(message).encode() + b"\n")

    def hang_up(self) -> None:
        """Make a reader in another thread see the end after what is still queued."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.sock.close()
        for fd in self.pipes:
            os.close(fd)
        self.pipes = {}
        self._let_go()

    def await_snapshot(self) -> None:
        """One that was asked for comes with a descriptor; nothing else does."""
        self._let_go()
        self._takes_fd = True

    def _let_go(self) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds, self._takes_fd = [], False

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
        """What came after the end of a cell; from here on nobody reads until something is asked."""
        self._waiting += messages
        self._received = 0

    def expect(self, answer: str, timeout: float) -> tuple[Message, int | None]:
        """The answer of a kernel at rest, and the descriptor that came with it.

        Everything else that arrives meanwhile (text of children or threads of earlier cells, the
        answer to something asked before) is kept for whoever reads next.
        """
        deadline = time.monotonic() + timeout
        seen = 0
        while True:
            for at in range(seen, len(self._waiting)):
                found = self._waiting[at]
                if found["m"] == answer:
                    del self._waiting[at]
                    return found, self._descriptor(found) if answer == "snapshot" else None
            seen = len(self._waiting)
            if self._received > LONGEST:
                self._break(
                    f"the kernel sent more than {LONGEST:,} bytes while no cell was running"
                )
            if time.monotonic() > deadline or self._ended:
                break
            if self._poll.poll(50):
                self._waiting += self._messages()
        raise ConnectionError("the kernel did not answer")

    def _descriptor(self, snapshot: Message) -> int | None:
        fd = self._fds.pop() if "pid" in snapshot and self._fds else None
        self._let_go()
        return fd

    def _break(self, why: str) -> None:
        """Who does not keep to the rules is not listened to."""
        self.broken, self._ended = why, True
        self._buffer.clear()

    def _take(self) -> bytes:
        with contextlib.suppress(ConnectionResetError, BlockingIOError):
            if not self._takes_fd:
                return self.sock.recv(READ)
            # A snapshot comes along with what was being read when it was made.
            data, fds, _, _ = socket.recv_fds(self.sock, READ, 1)
            self._fds += fds
            self._takes_fd = not self._fds
            return data
        return b""

    def _messages(self) -> list[Message]:
        data = self._take()
        if not data:
            self._ended = True
            return []
        self._received += len(data)
        self._buffer += data
        end = self._buffer.rfind(b"\n", self._scanned)
        if end < 0:
            self._scanned = len(self._buffer)
            if self._scanned > LONGEST:
                self._break(f"the kernel sent a message of more than {LONGEST:,} bytes")
            return []
        with memoryview(self._buffer) as view:
            lines = bytes(view[:end]).split(b"\n")
        del self._buffer[: end + 1]
        self._scanned = len(self._buffer)
        out: list[Message] = []
        raw = 0
        for line in lines:
            try:
                message = read(line)
            except NoMessage as error:
                self._break(str(error))
                break
            if raw <= MOST_RAW and (message.get("drain") or message["m"] == "done"):
                found = self._raw()
                raw += sum(len(one["text"]) for one in found)
                out += found
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
