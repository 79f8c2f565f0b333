"""Find the processes a test's tasks started: they carry a mark in their environment."""

from __future__ import annotations

import contextlib
import os
import time


def marked(mark: str) -> list[int]:
    """Pids of live processes with QUIRE_TEST_MARK=mark in their initial environment."""
    needle = f"QUIRE_TEST_MARK={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as file:
                if needle not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{name}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] != "Z":
                    found.append(int(name))
    return found


def wait_until_none(mark: str, timeout: float = 5.0) -> list[str]:
    """What is left of the marked processes after at most `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while (left := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [_command(pid) for pid in left]


def _command(pid: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return f"{pid} {file.read().replace(bytes(1), b' ').decode(errors='replace')}"
    return str(pid)
