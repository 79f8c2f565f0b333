"""Searching files for a cell: the folder is opened here, the looking is `searching.py`'s."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ToolError
from .command import bounded_run
from .files import whole
from .places import Places, opened

WORKER = Path(__file__).with_name("searching.py")
_LONGEST = 10_000  # characters of a pattern
_MOST = 10_000  # matches
_ANSWER = 32 << 20  # bytes, more than the worker ever says


def search_files(
    places: Places,
    given: Mapping[str, Any],
    seconds: float,
    called_off: Callable[[], bool],
) -> dict[str, Any]:
    pattern, glob = _text(given.get("pattern"), "pattern"), given.get("glob") or ""
    if glob:
        _text(glob, "glob")
    target = given.get("target", "content")
    if target not in ("content", "files"):
        raise ToolError(f"target is {target!r}", hint="it is 'content' or 'files'")
    wanted = {
        "pattern": pattern,
        "glob": glob,
        "target": target,
        "limit": min(whole(given.get("limit", 50), "limit", least=1), _MOST),
        "offset": whole(given.get("offset", 0), "offset", least=0),
        "context": min(whole(given.get("context", 0), "context", least=0), 20),
        "protected": places.protected,
        "harmless": places.harmless,
        "closed": places.closed,
        "parent": os.getpid(),
    }
    path = given.get("path") or "."
    with places.at(path, given.get("cwd")) as spot:
        fd = opened(spot)
        try:
            name = "" if spot.is_folder else spot.name
            shown = str(path).removeprefix("./").rstrip("/")
            shown = "" if shown == "." else shown
            request = {**wanted, "fd": fd, "file": name, "path": spot.path, "shown": shown}
            command = [sys.executable, "-I", "-S", str(WORKER)]
            asked = json.dumps(request).encode()
            done = bounded_run(command, asked, fd, seconds, _ANSWER, called_off)
        finally:
            os.close(fd)
    if done is None:
        raise ToolError(
            f"the search took longer than {seconds:g} s",
            hint="look through fewer files, or with a simpler pattern",
        )
    try:
        told: dict[str, Any] = json.loads(done)
    except ValueError:
        raise ToolError("the search broke off", hint="try a simpler pattern") from None
    if "error" in told:
        raise ToolError(told["error"], hint="mend the pattern, or the path")
    return told


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ToolError(f"{name} must be a text that is not empty", hint=f"{name}='…'")
    if len(value) > _LONGEST:
        raise ToolError(f"{name} has more than {_LONGEST:,} characters", hint="shorten it")
    return value
