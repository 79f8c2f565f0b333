"""Keeps [tool.quire] of a pyproject.toml, where the policy may be; cells may change the rest."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from ..errors import Refused, ToolError
from .allowed_paths import Spot

NAME = "pyproject.toml"
_MARK = b"[tool.quire"  # by this a folder is known to be a workspace
_LARGEST = 10_000_000  # bytes


def keep(spot: Spot, data: bytes) -> None:
    """Refuses data whose [tool.quire] is another than that of the file that is there."""
    if spot.name.lower() != NAME:
        return
    before = _there(spot)
    was: Any = None
    with contextlib.suppress(ValueError):  # then it says nothing that counts
        was = _table(before)
    try:
        says = _table(data)
    except ValueError as error:
        raise ToolError(f"{spot.path} would not be TOML: {error}", hint="mend the text") from None
    if says != was or (_MARK in data) != (_MARK in before):
        raise Refused(
            f"{spot.path}: [tool.quire] is protected",
            hint="a cell may change the rest of it; the policy is a person's to write",
        )


def _there(spot: Spot) -> bytes:
    if spot.status is None:
        return b""
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(spot.name, flags, dir_fd=spot.folder)
        with open(fd, "rb") as file:
            return file.read(_LARGEST)
    return b""


def _table(data: bytes) -> Any:
    import tomllib

    try:
        found = tomllib.loads(data.decode())
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    tools = found.get("tool")
    return tools.get("quire") if isinstance(tools, dict) else None
