"""A run as an agent reads it: what it gave, why it failed, any lines of any stream."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..archive.read import Found, find
from ..engine.planning import resumable
from ..errors import DocumentError, QuireError, UsageError
from ..next_steps import NextStep, as_tool
from ..record import journal
from ..record.cell_positions import Standing, needs_the_task, standing
from ..record.record import CellRecord, Record, Result
from ..record.run_folders import RunFolder
from ..record.session_answer import Answered, answer_of
from ..render.agent_outputs import DISPLAYS, STREAMS, Limits, displays_of, stream_of
from ..render.agent_page import FIRST, Lines, Whole, asked_lines, lines_of, tell_lines
from ..render.agent_results import value_text
from ..render.agent_run import Told, tell_execution, tell_run
from ..sessions.session import find as find_session
from ..sessions.session import named
from ..sessions.session_task import as_it_runs
from ..task import formats
from ..task.document import Document
from ..text import inline, mentioned
from ..workspace import Workspace

BLOCK = 1 << 20
SHOWN = 10  # executions that a refusal names
NAMES = 50  # results that one names


def tell(
    workspace: Workspace,
    run: str,
    *,
    cell: str = "",
    stream: str = "",
    lines: str = "",
    result: str = "",
    limits: Limits | None = None,
) -> Told:
    """The run; or of it one cell, lines of one stream of a cell, or one named result."""
    found = find(workspace, run)
    return tell_found(workspace, found, cell, stream, lines, result, limits=limits)


def _some(names: Iterable[str]) -> str:
    shown = [mentioned(name) for name in names]
    more = f", and {len(shown) - NAMES} more" if len(shown) > NAMES else ""
    return f"{', '.join(shown[:NAMES])}{more}" if shown else "none"


def tell_found(
    workspace: Workspace,
    found: Found,
    cell: str = "",
    stream: str = "",
    lines: str = "",
    result: str = "",
    *,
    limits: Limits | None = None,
) -> Told:
    record = found.record
    if result and result not in record.results:
        raise UsageError(
            f"the run has no result {result!r}",
            hint=f"it has: {_some(record.results)}",
        )
    if result and (stream or lines):
        if stream or cell:
            raise UsageError("a result has no cell and no stream", hint="result and lines alone")
        return _of_result(record, record.results[result], asked_lines(lines), limits)
    stands = standing(record, written(found))
    one = cell_of(record, cell, stands) if cell else None
    if stream or lines:
        if one is None:
            raise UsageError(
                "lines are of a stream of a cell, or of a result",
                hint="name the cell, by id, index or title, or the result",
            )
        wanted = asked_lines(lines) if lines else Lines(1, FIRST)
        return _lines(found, one, stream or "stdout", wanted, limits or Limits())
    places = Beside(found.folder) if found.folder is not None else None
    return tell_run(
        record,
        limits=limits,
        places=places,
        cell=one.id if one else "",
        notebook=found.notebook,
        result=result,
        taken_up=found.taken_up.run_id if found.taken_up is not None else "",
        resumable=resumable(workspace, record.run_id),
        stands=stands,
    )


def tell_session_output(
    workspace: Workspace,
    session: str,
    cell: str,
    stream: str = "",
    lines: str = "",
    *,
    limits: Limits | None = None,
) -> Told:
    """What a cell gave out when it last ran in that session; with `stream` or `lines`, those."""
    name = named(workspace, session)
    one = _that_ran(workspace, name, cell)
    places = BesideSession(workspace.sessions.folder(name), (one,))
    if not stream and not lines:
        return tell_execution(one, session=name, limits=limits, places=places)
    stream = stream or "stdout"
    _check(stream)
    # By its order: it names this one also when the cell has run again meanwhile.
    cell = f"#{one.order}"
    what = f"{stream} of cell {one.cell.id} ({cell}) in session {name}"
    wanted = asked_lines(lines) if lines else Lines(1, FIRST)

    def more(lines: str) -> str:
        asked = {"session": name, "cell": cell, "stream": stream, "lines": lines}
        return as_tool(NextStep("output", asked))

    path = places.path(one.cell, stream)
    return _of_stream(path, one.cell, stream, wanted, what, limits or Limits(), more)


def _that_ran(workspace: Workspace, session: str, cell: str) -> Answered:
    """The last execution that is meant: `#N`, an id, a title, or a cell's place as it is now."""
    ran = answer_of(journal.read(workspace.sessions.folder(session).events)).cells
    if cell.startswith("#"):
        hits = [one for one in ran if cell == f"#{one.order}"]
    else:
        hits = [one for one in ran if one.cell.id == cell] or _titled(ran, cell)
    if not hits and not cell.startswith("#"):
        live = find_session(workspace, session)
        document = as_it_runs(workspace, live)
        place = document.find(cell)
        hits = [one for one in ran if one.cell.id == document.cells[place].id]
        # The cell was edited since it ran: it is still the cell at its place.
        hits = hits or [one for one in ran if one.index == place]
    if not hits:
        known = ", ".join(f"#{one.order} ({one.cell.id})" for one in ran[-SHOWN:])
        raise UsageError(
            f"no cell {cell!r} ran in the session {session}",
            hint=f"the last that ran: {known}" if known else "nothing has run in it",
        )
    return hits[-1]


def _titled(ran: Sequence[Answered], title: str) -> list[Answered]:
    hits = [one for one in ran if title and one.cell.title == title]
    if len({one.index for one in hits}) > 1 or (hits and hits[0].index is None and len(hits) > 1):
        raise DocumentError(
            f"{title!r} names several cells that ran",
            hint=f"use an id, or one of {', '.join(f'#{one.order}' for one in hits[-SHOWN:])}",
        )
    return hits


def written(found: Found) -> Document | None:
    """The task as it was run, where only that says how its cells are called there."""
    if not needs_the_task(found.record):
        return None
    with suppress(QuireError, UnicodeDecodeError):  # its folder was damaged, or is elsewhere
        suffix, source = found.source()
        return formats.loads(source.decode(), suffix)
    return None


def cell_of(record: Record, cell: str, stands: Mapping[str, Standing]) -> CellRecord:
    """By id, index or title, as in the task."""
    hits = [one for one in record.cells if one.id == cell]
    if not hits and cell.isdigit():
        place = int(cell)
        hits = [one for one in record.cells if one.id in stands and stands[one.id].index == place]
    hits = hits or [one for one in record.cells if one.title == cell]
    if len(hits) == 1:
        return hits[0]
    if hits:
        raise DocumentError(f"{cell!r} names {len(hits)} cells", hint="use an id or an index")
    last = max((one.index for one in stands.values()), default=-1)
    hint = f"use an id, a title or 0 to {last}" if last >= 0 else "it has none"
    raise DocumentError(f"the run has no cell {cell!r}", hint=hint)


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies in a run's folder because it was too much for the record."""

    folder: RunFolder

    def path(self, cell: CellRecord, stream: str) -> Path | None:
        return self.folder.spilled(cell.id, stream)

    def whole(self, cell: CellRecord, stream: str) -> Whole | None:
        path = self.path(cell, stream)
        if path is None:
            return None
        with suppress(OSError):
            return _measured(path)
        return None


@dataclass(frozen=True, slots=True)
class BesideSession(Beside):
    """The same of a session, where a cell may have run several times."""

    ran: Sequence[Answered] = ()

    def path(self, cell: CellRecord, stream: str) -> Path | None:
        name = next((one.beside.get(stream) for one in self.ran if one.cell is cell), None)
        return self.folder.beside(name) if name else None


def _measured(path: Path) -> Whole:
    """Read through once, without keeping it."""
    lines = characters = 0
    last = b"\n"
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            lines += block.count(b"\n")
            # Bytes that go on with a character begin with 10.
            characters += len(block) if block.isascii() else _characters(block)
            last = block[-1:]
    return Whole(characters, lines + (last != b"\n"))


def _characters(block: bytes) -> int:
    return len(block.translate(None, _FOLLOW))


_FOLLOW = bytes(byte for byte in range(256) if byte & 0xC0 == 0x80)


def _lines(found: Found, cell: CellRecord, stream: str, wanted: Lines, limits: Limits) -> Told:
    _check(stream)
    path = Beside(found.folder).path(cell, stream) if found.folder is not None else None
    what = f"{stream} of cell {cell.id} of run {found.record.run_id}"

    def more(lines: str) -> str:
        asked = {"run": found.record.run_id, "cell": cell.id, "stream": stream, "lines": lines}
        return as_tool(NextStep("show", asked))

    return _of_stream(path, cell, stream, wanted, what, limits, more)


def _check(stream: str) -> None:
    if stream not in (*STREAMS, DISPLAYS):
        raise UsageError(
            f"there is no stream {stream!r}", hint=f"{', '.join(STREAMS)} or {DISPLAYS}"
        )


def _of_result(record: Record, result: Result, wanted: Lines, limits: Limits | None) -> Told:
    what = f"result {inline(result.name)} of run {record.run_id}"
    text = value_text(result)
    if not text:
        return Told(f"{what} has no text")

    def more(lines: str) -> str:
        return as_tool(
            NextStep("show", {"run": record.run_id, "result": result.name, "lines": lines})
        )

    rows = lines_of(text)
    whole = (limits or Limits()).whole
    return Told(tell_lines(rows, len(rows), wanted, what=what, limit=whole, more=more))


def _of_stream(
    path: Path | None,
    cell: CellRecord,
    stream: str,
    wanted: Lines,
    what: str,
    limits: Limits,
    more: Callable[[str], str],
) -> Told:
    """`path` has all of it, where that was too much for the record."""
    if path is not None:
        total = _measured(path).lines or 0
        with _opened(path) as file:
            text = tell_lines(file, total, wanted, what=what, limit=limits.whole, more=more)
        return Told(text)
    if stream == DISPLAYS:
        rows = displays_of(cell)
    else:
        rows = stream_of(cell, stream).removesuffix("\n").split("\n")
    if rows in ([], [""]):
        return Told(f"{what}: it is empty")
    text = tell_lines(rows, len(rows), wanted, what=what, limit=limits.whole, more=more)
    return Told(text)


class _opened:
    """Lines of a file without their newlines; only a newline ends one."""

    def __init__(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._file = os.fdopen(fd, encoding="utf-8", errors="replace", newline="\n")

    def __enter__(self) -> Iterator[str]:
        return (line.removesuffix("\n") for line in self._file)

    def __exit__(self, *_: object) -> None:
        self._file.close()
