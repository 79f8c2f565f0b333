"""Sleeping copies of a kernel, as seen from outside."""

from __future__ import annotations

import contextlib
import os
import socket
from weakref import WeakSet


class Snapshot:
    """A sleeping copy of a kernel. Gone when dropped, or when the kernel's owner goes."""

    def __init__(
        self, control: socket.socket, pid: int, held: WeakSet[Snapshot] | None = None
    ) -> None:
        """`held` are those that somebody may still go back to, this one from now on."""
        self.control = control
        self.pid = pid
        self._held = WeakSet() if held is None else held
        self._held.add(self)

    @property
    def alive(self) -> bool:
        try:
            return self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def resident(self) -> int:
        """Upper bound of `memory`, at the cost of one small read."""
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{self.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return 0

    def memory(self) -> int:
        """Its share of memory in bytes: what it has alone, and its part of what it shares."""
        with (
            contextlib.suppress(OSError, ValueError),
            open(f"/proc/{self.pid}/smaps_rollup") as file,
        ):
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
        return 0

    def share(self) -> Snapshot:
        """The same for somebody else: it is gone when both have dropped it."""
        return Snapshot(self.control.dup(), self.pid, self._held)

    def drop(self) -> None:
        self._held.discard(self)
        self.control.close()
