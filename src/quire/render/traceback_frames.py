"""The frames of a traceback as the kernel sends them: whose each is, and at which line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..record.events import CellError

# The standard library, what is installed, the tools in cells: not to be mended by a task's author.
_LIBRARY = re.compile(
    r"(?:/quire/kernel/inside/|site-packages|dist-packages|/lib(?:64)?/python\d|\.pyenv/"
    r"|<frozen|<string>|<__array)"
    # Compiled ones name their source by where it was when they were built.
    r"|^[^/~<].*\.p(?:yx|xd|xi)$"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """`count` is the number of the execution whose cell it is, None for a file."""

    where: str
    line: int | None
    count: int | None = None
    file: str = ""
    code: str = ""

    @property
    def is_users(self) -> bool:
        return self.count is not None or not _LIBRARY.search(self.file)


@dataclass(frozen=True, slots=True)
class Said:
    """A text between frames: an error that another came of ("cause"), that it did ("chain"), the
    next error of a group ("part"), that frames were left out ("cut"), the error's own text and
    what was added to it ("error", "note")."""

    how: str
    text: str


def frames(error: CellError) -> list[Frame | Said]:
    """Empty where the kernel sent none, as in records of other kernels than Python's."""
    return [_read(one) for one in error.frames]


def notes(error: CellError) -> str:
    """What was added to an error after it was made."""
    return "\n".join(
        one.text for one in frames(error) if isinstance(one, Said) and one.how == "note"
    )


def _read(one: Mapping[str, Any]) -> Frame | Said:
    if "how" in one:
        return Said(str(one["how"]), str(one.get("text") or ""))
    line, count = (one.get(key) for key in ("line", "count"))
    return Frame(
        str(one.get("where") or ""),
        line if type(line) is int else None,
        count if type(count) is int else None,
        str(one.get("file") or ""),
        str(one.get("code") or ""),
    )
