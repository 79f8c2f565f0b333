"""Searching files for a cell: what is asked is checked here, and `file_search_worker.py` looks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ToolError
from . import deadline_process
from .allowed_paths import SECRET, Places, opened
from .file_tools import whole

_LONGEST = 10_000  # characters of a pattern
_MOST = 10_000  # matches


def search_files(
    places: Places,
    given: Mapping[str, Any],
    seconds: float,
    called_off: Callable[[], bool],
) -> dict[str, Any]:
    target = given.get("target", "content")
    if target not in ("content", "files"):
        raise ToolError(f"target is {target!r}", hint="it is 'content' or 'files'")
    wanted = {
        "pattern": _text(given.get("pattern"), "pattern"),
        "glob": given.get("glob") and _text(given["glob"], "glob"),
        "target": target,
        "limit": min(whole(given.get("limit", 50), "limit", least=1), _MOST),
        "offset": whole(given.get("offset", 0), "offset", least=0),
        "context": min(whole(given.get("context", 0), "context", least=0), 20),
        "secret": [name for name, kind in places.protected.items() if kind is SECRET],
        "harmless": places.harmless,
        "closed": places.closed,
    }
    path = given.get("path") or "."
    with places.at(path, given.get("cwd")) as spot:
        shown = os.path.normpath(str(path))
        fd = opened(spot)
        try:
            request = {
                **wanted,
                "fd": fd,
                "file": "" if spot.is_folder else spot.name,
                "path": spot.path,
                "shown": "" if shown == "." else shown,
            }
            found = deadline_process.ask(
                "quire.cell_tools.file_search_worker", request, seconds, called_off, (fd,)
            )
        finally:
            os.close(fd)
    if found is None:
        raise ToolError(
            f"the search took longer than {seconds:g} s",
            hint="look through fewer files, or with a simpler pattern",
        )
    return found


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ToolError(f"{name} must be a text that is not empty", hint=f"{name}='…'")
    if len(value) > _LONGEST:
        raise ToolError(f"{name} has more than {_LONGEST:,} characters", hint="shorten it")
    return value
