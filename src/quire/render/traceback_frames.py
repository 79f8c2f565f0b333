"""A Python traceback as IPython prints it, taken apart: whose each frame is, and which line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from ..text import without_escapes

_CELL = re.compile(
    r"^\s*(?:Cell |Input )In ?\[(?P<count>\d+)\](?:, line (?P<line>\d+))?(?:, in (?P<where>.+?))?$"
)
_FILE = re.compile(
    r'^\s*File "?(?P<file>[^"\n]+?)"?(?::(?P<line>\d+)|, line (?P<line2>\d+))?'
    r"(?:, in (?P<where>.+?))?$"
)
_POINTED = re.compile(r"^-+> ?(\d+)(?: (.*))?$")
_LISTED = re.compile(r"^(?:\s*\d+(?: .*)?|\s+\(\.\.\.\).*)$")
_HEADER = re.compile(r"^\S+\s+Traceback \(most recent call last\):?$|^-{20,}$")
# The standard library, what is installed, the tools in cells: nobody who wrote the task can mend it
# there.
_LIBRARY = re.compile(
    r"(?:/quire/kernel/inside/|site-packages|dist-packages|/lib(?:64)?/python\d|\.pyenv/|<frozen|<string>|<__array)"
    # Compiled ones name their source by where it was when they were built.
    r"|^[^/~<].*\.p(?:yx|xd|xi)$"
)
_PART = re.compile(r"Error \d+ of \d+ in the group: |and \d+ more errors in the group$")
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
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
    """A line between frames: what was raised first, and that another came of it."""

    text: str


def frames(traceback: Iterable[str]) -> list[Frame | Said]:
    """Empty where it is not a traceback of Python."""
    found = list(_parsed(without_escapes("\n".join(traceback)).split("\n")))
    return found if any(isinstance(one, Frame) for one in found) else []


def notes(traceback: Iterable[str], name: str, value: str) -> str:
    """What was added to an error after it was made: it stands below the error's own text."""
    text = without_escapes("\n".join(traceback)).rstrip()
    _, said, rest = text.rpartition(f"{name}: {value}" if value.strip() else name)
    if not said or not rest.startswith("\n"):
        return ""
    rows = takewhile(lambda row: not is_part(row.strip()), rest[1:].split("\n"))
    return "\n".join(rows).strip("\n")


def _parsed(rows: list[str]) -> Iterator[Frame | Said]:
    frame: Frame | None = None
    for row in rows:
        row = row.rstrip()
        opened = _frame(row)
        if opened is not None:
            if frame is not None:
                yield frame
            frame = opened
            continue
        pointed = _POINTED.match(row)
        if pointed and frame is not None:
            if frame.line in (None, int(pointed[1])):
                code = (pointed[2] or "").strip()
                frame = Frame(frame.where, int(pointed[1]), frame.count, frame.file, code)
            continue
        if not row or _HEADER.match(row) or (frame is not None and _LISTED.match(row)):
            continue
        if frame is not None:
            yield frame
            frame = None
        yield Said(row)
    if frame is not None:
        yield frame


def _frame(row: str) -> Frame | None:
    found = _CELL.match(row)
    if found is not None:
        line = int(found["line"]) if found["line"] else None
        return Frame(found["where"] or "", line, int(found["count"]))
    found = _FILE.match(row)
    if found is None or not ("/" in found["file"] or "<" in found["file"] or "line" in row):
        return None
    number = found["line"] or found["line2"]
    return Frame(found["where"] or "", int(number) if number else None, None, found["file"])


def is_chain(text: str) -> bool:
    return text in _CHAINED


def is_part(text: str) -> bool:
    """Whether what follows is of one of the errors that a group holds."""
    return _PART.match(text) is not None
