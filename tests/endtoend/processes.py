"""Find the processes a test's tasks started: by a mark in their environment, or by their folder.

Hosts, fork servers and kernels show no environment to others, so the folder is what tells of them.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


def marked(mark: str, root: Path | None = None) -> list[int]:
    """Pids of live processes that were started with QUIRE_TEST_MARK=mark, or work below `root`."""
    needle = f"QUIRE_TEST_MARK={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as file:
                ours = needle in file.read().split(b"\0")
            if not ours and root is not None:
                ours = Path(os.readlink(f"/proc/{name}/cwd")).is_relative_to(root)
            with open(f"/proc/{name}/stat") as stat:
                if ours and stat.read().rpartition(")")[2].split()[0] != "Z":
                    found.append(int(name))
    return found


def wait_until_none(mark: str, timeout: float = 5.0, root: Path | None = None) -> list[str]:
    """What is left of the marked processes after at most `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while (left := marked(mark, root)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [_command(pid) for pid in left]


def _command(pid: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return f"{pid} {file.read().replace(bytes(1), b' ').decode(errors='replace')}"
    return str(pid)
