"""A cell that failed, for an agent: where, by what, through which frames, with which values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..record.events import CellError
from ..record.record import CellRecord
from ..text import inline, without_escapes
from .agent_page import Excerpt, Page

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


def error_text(error: CellError) -> str:
    return f"{error.value}\n{notes(error)}".strip("\n")


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


SOURCE = 4_000  # characters of the cell's source
AROUND = 12  # lines of a long source, before and after the failing one
WHOLE_SOURCE = 60  # lines
TRACEBACK = 2_500
MESSAGE = 2_000
VALUES = 2_500
MOST_FRAMES = 12
# What a cell is stopped by; a Jupyter kernel has another name for one that awaits.
STOPS = ("KeyboardInterrupt", "CancelledError")


@dataclass(frozen=True, slots=True)
class Ran:
    """What ran at an execution count: the cell as it is called, and its source."""

    name: str
    source: str


def tell_failure(
    page: Page,
    cell: CellRecord,
    ran: Mapping[int, Ran],
    *,
    message: int = MESSAGE,
    more: Callable[[Excerpt], str],
) -> None:
    """`ran` has for each execution count the cell that ran then. `message` is how much of the
    error's text is told, `more` how to read the rest."""
    error = cell.error
    if error is None:
        return
    found = frames(error)
    line = failing_line(cell, found)
    at = f", line {line}" if line is not None else ""
    # What stops a cell is ours, and no error of the task.
    stopped = cell.status in ("timed_out", "cancelled") and error.name in STOPS
    if not stopped:
        page.say(f"error{at}: {inline(error.name, 100)}")
        text = error_text(error)
        if text.strip():
            page.quote(text, message, lambda cut: f"… {cut.omitted} omitted; read on: {more(cut)}")
    marks = "the line it was stopped in" if stopped else "the failing line"
    page.say(f"source of the cell, > marks {marks}:" if line else "source of the cell:")
    page.quote(*_source(cell.source, line))
    if found:
        lines = list(_told(found, ran))
        if len(lines) > 1:
            page.say("traceback, the task's own frames:")
            page.quote("\n".join(lines), TRACEBACK)
    elif error.traceback:
        page.say("traceback:")
        page.quote(without_escapes("\n".join(error.traceback)), TRACEBACK)
    tell_variables(page, cell.variables)


def failing_line(cell: CellRecord, found: Iterable[Frame | Said]) -> int | None:
    """Of the last thing raised: the outermost line of this cell that led to it."""
    line: int | None = None
    fresh = True
    for one in found:
        if isinstance(one, Said):
            fresh = fresh or one.how == "chain"
        elif fresh and one.count is not None and one.count == cell.execution_count:
            line, fresh = one.line, False
    if line is None or not 1 <= line <= cell.source.count("\n") + 1:
        return None
    return line


def _source(source: str, line: int | None) -> tuple[str, int]:
    rows = source.split("\n")
    first, last = 1, len(rows)
    if last > WHOLE_SOURCE or len(source) > SOURCE:
        middle = line or 1
        first, last = max(1, middle - AROUND), min(last, middle + AROUND)
    width = len(str(last))
    shown = [
        f"{'>' if number == line else ' '} {number:>{width}}  {rows[number - 1]}".rstrip()
        for number in range(first, last + 1)
    ]
    if first > 1:
        shown.insert(0, f"  … {first - 1:,} lines above")
    if last < len(rows):
        shown.append(f"  … {len(rows) - last:,} lines below")
    return "\n".join(shown), SOURCE + 500


def _told(found: list[Frame | Said], ran: Mapping[int, Ran]) -> Iterator[str]:
    """A line for each frame of the task; repeated ones once; libraries by their last frame."""
    rows: list[str] = []
    for at, one in enumerate(found):
        if isinstance(one, Said):
            if one.how in ("cut", "chain", "part", "cause"):
                rows.append(one.text[:500])
            continue
        if one.is_users:
            rows.append(_line(one, ran))
            continue
        if at + 1 == len(found) or isinstance(found[at + 1], Said):
            rows.append(f"{_line(one, ran)} (of a library)")
    rows = _collapsed(rows)
    if len(rows) > MOST_FRAMES:
        half = MOST_FRAMES // 2
        rows = [*rows[:half], f"… {len(rows) - 2 * half} more …", *rows[-half:]]
    yield from rows


def _line(frame: Frame, ran: Mapping[int, Ran]) -> str:
    cell = ran.get(frame.count) if frame.count is not None else None
    shown = frame.code
    if cell is not None:
        place = f"cell {cell.name}"
        # Of a generator or a comprehension IPython may show another line than it names.
        rows = cell.source.split("\n")
        if frame.line is not None and 1 <= frame.line <= len(rows):
            shown = rows[frame.line - 1].strip()
    else:
        place = f"In [{frame.count}]" if frame.count is not None else frame.file
    line = f" line {frame.line}" if frame.line is not None else ""
    where = f" in {frame.where}" if frame.where else ""
    code = f": {shown}" if shown else ""
    return f"{place}{line}{where}{code}"[:300]


def _collapsed(rows: list[str]) -> list[str]:
    out: list[str] = []
    times = 1
    for at, row in enumerate(rows):
        if at + 1 < len(rows) and rows[at + 1] == row:
            times += 1
            continue
        out.append(row if times == 1 else f"{row} ({times:,} times)")
        times = 1
    return out


def tell_variables(page: Page, variables: Iterable[Mapping[str, Any]]) -> None:
    rows = list(map(_variable, variables))
    if not rows:
        return
    page.say("variables that it used:")
    page.quote("\n".join(rows), VALUES, _fewer)


def _fewer(cut: Excerpt) -> str:
    return f"… {cut.omitted} omitted"


def _variable(found: Mapping[str, Any]) -> str:
    def part(key: str) -> str:
        return " ".join(str(found.get(key) or "").split())

    where = f" (in {part('scope')})" if found.get("scope") else ""
    size = f" [{part('size')}]" if found.get("size") else ""
    value = f" = {part('value')}" if found.get("value") else ""
    return f"{part('name')}{where}: {part('type')}{size}{value}"
