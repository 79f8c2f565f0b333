"""Our end of `inside/keeper.py`, the process that keeps a Jupyter kernel, or a command,
from outliving us.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from . import children
from .exits import Exit

KEEPER = Path(__file__).parent / "inside" / "keeper.py"
# A polite shutdown may take this long before the kernel is killed.
GRACE = 1.0


class Keeper:
    """Safe from several threads."""

    def __init__(
        self,
        argv: list[str],
        directory: str,
        cwd: Path,
        env: Mapping[str, str],
        *,
        stdout: int = subprocess.DEVNULL,
    ) -> None:
        self._socket, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._received = b""
        self.pid = 0
        self.exit: Exit | None = None
        command = [sys.executable, "-I", "-S", str(KEEPER), str(theirs.fileno()), directory, *argv]
        try:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
            children.started(self._process.pid)
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def look(self) -> Exit | None:
        """Read what the keeper has said so far; the kernel's end if it has come."""
        with self._lock:
            while self.exit is None and select.select([self._socket], [], [], 0)[0]:
                try:
                    chunk = self._socket.recv(65536)
                except OSError:
                    chunk = b""
                if not chunk:
                    self.exit = Exit()
                self._received += chunk
                while b"\n" in self._received:
                    line, _, self._received = self._received.partition(b"\n")
                    news = json.loads(line)
                    if "pid" in news:
                        self.pid = news["pid"]
                    else:
                        self.exit = Exit(**news)
            return self.exit

    def wait(self, seconds: float) -> Exit | None:
        deadline = time.monotonic() + seconds
        while self.look() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            select.select([self._socket], [], [], left)
        return self.exit

    def tell(self, word: bytes) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(word, socket.MSG_NOSIGNAL)

    def end(self) -> None:
        """Kill the kernel and all it started; returns when they are gone."""
        self.tell(b"k")
        self.wait(GRACE)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.look()

    def close(self) -> None:
        self.end()
        with self._lock:
            if self.exit is None:
                self.exit = Exit()
            self._socket.close()
