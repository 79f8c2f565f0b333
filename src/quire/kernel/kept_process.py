"""Our end of `inside/keeper.py`, the process that keeps a Jupyter kernel, or a command,
from outliving us.
"""

from __future__ import annotations

import contextlib
import json
import math
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from . import processes
from .exit_status import Exit
from .inside import reaper

KEEPER = Path(__file__).parent / "inside" / "keeper.py"
# A polite shutdown may take this long before the kernel is killed.
GRACE = 1.0
# And what is kept may take this long to be ended by the keeper, before that is ended with it.
PATIENCE = 4.0


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
        self._directory = directory
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
            processes.started(self._process.pid)
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
            while self.exit is None and _ready(self._socket, 0):
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
            _ready(self._socket, left)
        return self.exit

    def tell(self, word: bytes) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(word, socket.MSG_NOSIGNAL)

    def end(self) -> None:
        """Kill the kernel and all it started; returns when they are gone."""
        self._go_on()
        self.tell(b"k")
        self.wait(GRACE)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # It is last to go: as long as it is there, even stopped, it has all of them below it.
            reaper.kill_tree(self._process.pid)
            self._process.wait()
        self.look()
        if self._process.returncode:
            self._end_what_is_left()

    def _go_on(self) -> None:
        """What it keeps may have stopped it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)

    def _end_what_is_left(self) -> None:
        """It did not end by itself: what it kept can have killed it, and has another parent now."""
        if self.pid:
            for pid in reaper.session(self.pid):
                reaper.kill_tree(pid)
        processes.sweep_now()
        shutil.rmtree(self._directory, ignore_errors=True)

    def close(self) -> None:
        self.end()
        with self._lock:
            if self.exit is None:
                self.exit = Exit()
            self._socket.close()


def _ready(sock: socket.socket, seconds: float) -> bool:
    waiting = select.poll()  # select() knows no descriptor beyond 1,023
    waiting.register(sock, select.POLLIN)
    return bool(waiting.poll(math.ceil(seconds * 1000)))
