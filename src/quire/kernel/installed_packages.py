"""What is installed where a kernel's interpreter looks, by name and version."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache

# name-1.2.3.dist-info, name-1.2.3.egg-info, name-1.2.3-py3.11.egg-info
_INFO = re.compile(r"^([A-Za-z0-9][\w.]*)-([^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info$")
_seen: dict[str, tuple[int, dict[str, str]]] = {}


def installed(path: Iterable[str]) -> dict[str, str]:
    """From the names of their folders alone: reading the metadata of each would take longer than
    most runs. Of two with one name the first on the path counts, as for an import."""
    out: dict[str, str] = {}
    for folder in path:
        for name, version in _listed(folder or ".").items():
            out.setdefault(name, version)
    return dict(sorted(out.items()))


def _listed(folder: str) -> dict[str, str]:
    try:
        changed = os.stat(folder).st_mtime_ns
        known = _seen.get(folder)
        if known is not None and known[0] == changed:
            return known[1]
        names = os.listdir(folder)
    except OSError:
        return {}
    found = {}
    for name in names:
        match = _INFO.match(name)
        if match:
            found[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    _seen[folder] = changed, found
    return found


@cache
def search_path(executable: str) -> Sequence[str]:
    """Where another Python looks for modules."""
    code = "import sys; print(*filter(None, sys.path), sep='\\0', end='')"
    try:
        done = subprocess.run(
            [executable, "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")


@cache
def platform() -> str:
    told = os.uname()
    return f"{told.sysname} {told.release} {told.machine}"
