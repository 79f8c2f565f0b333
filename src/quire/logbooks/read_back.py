"""Read the Markdown record of a logbook's run again, also one that ends in the middle."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ..errors import DocumentError
from ..record.events import Asked, CellError, NoteAdded
from ..record.record import CHANGED, CellRecord, Record, Result, RunError
from ..record.summary import one_line
from ..render.markdown import quotation
from ..task import fences, frontmatter, logbook
from ..task.document import digest_id
from ..task.logbook import Part
from ..task.params import INJECTED_TAG
from . import page as writing
from .page_outputs import Shown

ReadFile = Callable[[str], bytes | None]


@dataclass(slots=True)
class _Reading:
    record: str  # the uuid
    read: ReadFile
    cells: list[CellRecord] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    notes: list[NoteAdded] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


def loads(text: str, read_file: ReadFile = lambda name: None) -> Record:
    """The record. Raises DocumentError for a text that is none."""
    lines = logbook.split(text)
    front = _front(lines)
    kernels = frozenset(map(str, front.get("kernels") or ()))
    parts, rest = _parts(lines, kernels)
    reading = _Reading(str(front["uuid"]), read_file)
    _cells(reading, lines, parts, rest)
    return _record(front, reading)


def _front(lines: list[str]) -> Mapping[str, Any]:
    try:
        end = next(at for at in range(1, len(lines)) if lines[at] == "---")
        values = frontmatter.parse("\n".join(lines[: end + 1])).values
        datetime.fromisoformat(str(values["executed_at"]))
        if lines[0] == "---" and isinstance(values["uuid"], str):
            return values
    except (StopIteration, DocumentError, KeyError, ValueError):
        pass
    raise DocumentError(
        "this is not the record of a logbook's run",
        hint="records are in logbooks/runs/, a file for each run",
    )


def _parts(lines: list[str], kernels: frozenset[str]) -> tuple[list[Part], int]:
    """The cells and, where the text was cut off within a block, the line from which on it is
    broken."""
    try:
        return logbook.read(lines, kernels), len(lines)
    except DocumentError:
        blocks = fences.blocks(lines)
        cut = next((block.first for block in blocks if not block.closed), len(lines))
        return logbook.read(lines[:cut], kernels), cut


def _cells(reading: _Reading, lines: list[str], parts: list[Part], stop: int) -> None:
    at = 0  # the line up to which everything is read
    waiting: Part | None = None  # the step as the template has it, where it was changed
    for part in parts:
        cell = part.cell
        if cell.kind == "raw":
            at = part.last + 1
        elif cell.kind == "code":
            if part.first < at:
                continue
            _prose(reading, lines, at, part.first)
            at = part.last + 1
            mark = _next(lines, at, stop)
            if (
                waiting is None
                and lines[mark : mark + 1]
                and lines[mark].startswith(writing.MODIFIED)
            ):
                waiting, at = part, mark + 1
                continue
            at = _results(reading, lines, stop, waiting, part)
            waiting = None
    _prose(reading, lines, at, stop)


def _next(lines: list[str], at: int, stop: int) -> int:
    while at < stop and not lines[at].strip():
        at += 1
    return at


def _prose(reading: _Reading, lines: list[str], first: int, last: int) -> None:
    text = "\n".join(lines[first:last]).strip("\n")
    if text.strip():
        reading.cells.append(CellRecord(_free(reading, text), "markdown", text, status="text"))


def _free(reading: _Reading, text: str) -> str:
    return free_id({cell.id for cell in reading.cells}, text)


def free_id(taken: set[str], text: str) -> str:
    """The id of a piece of prose. Those of steps are kept in the record."""
    stem = found = digest_id("markdown", text)
    n = 1
    while found in taken:
        n += 1
        found = f"{stem}-{n}"
    return found


def _results(
    reading: _Reading, lines: list[str], stop: int, original: Part | None, part: Part
) -> int:
    """What stands under a step, and the line after it."""
    at = _next(lines, part.last + 1, stop)
    told: dict[str, Any] = {}
    outputs: list[Mapping[str, Any]] = []
    source = part.cell.source
    if at < stop and lines[at].startswith(writing.RESULTS):
        told = _comment(lines[at + 1]) if at + 1 < stop else {}
        end = _end(lines, at + 2, stop)
        outputs = list(_outputs(reading, lines[at + 2 : end], told))
        at = min(end + 1, stop)
    else:
        at = part.last + 1
    status = told.get("status", "died")
    error = told.get("error")
    metadata = dict(told.get("metadata") or {})
    changed = told.get("changed")
    if changed or original is not None:
        metadata[CHANGED] = changed or {
            "original": (original or part).cell.source,
            "reason": "",
            "by": "",
        }
    cell = CellRecord(
        str(told.get("id") or part.cell.id),
        "code",
        str(told.get("source", source)),
        title=str(told.get("title", "")),
        tags=tuple(told.get("tags") or ()),
        metadata=metadata,
        status=status,
        started=str(told.get("started", "")),
        finished=str(told.get("finished", "")),
        duration=told.get("duration"),
        execution_count=told.get("count"),
        outputs=tuple(outputs),
        error=CellError(str(error[0]), str(error[1])) if error else None,
    )
    reading.cells.append(cell)
    for name, value in (told.get("results") or {}).items():
        reading.results[name] = Result(name, "json", value, cell.id)
    reading.notes += [NoteAdded(cell.id, str(t), str(when)) for t, when in told.get("notes") or ()]
    reading.asked += [_asked(cell.id, asked) for asked in told.get("asked") or ()]
    return at


def _asked(cell: str, told: Mapping[str, Any]) -> Asked:
    return Asked(
        cell,
        str(told.get("question", "")),
        told.get("answer"),
        str(told.get("by", "")),
        str(told.get("kind", "question")),
        tuple(told.get("choices") or ()),
        str(told.get("at", "")),
    )


def _comment(line: str) -> dict[str, Any]:
    if line.startswith(writing.OPEN) and line.endswith(" -->"):
        try:
            found = json.loads(line[len(writing.OPEN) : -len(" -->")])
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
    return {}


def _end(lines: list[str], at: int, stop: int) -> int:
    """The line that ends the results: the first that says so outside of a fence."""
    covered = {
        line
        for block in fences.blocks(lines[at:stop])
        for line in range(at + block.first, at + block.last + 1)
    }
    return next(
        (n for n in range(at, stop) if lines[n] == writing.CLOSE and n not in covered), stop
    )


def _outputs(
    reading: _Reading, lines: list[str], told: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """The outputs in the order the comment names them."""
    at = 0
    for one in told.get("outputs") or ():
        at = _next(lines, at, len(lines))
        if at >= len(lines):
            return
        kind = one[0]
        if kind in ("table", "markdown", "picture"):
            end = at
            while end < len(lines) and lines[end].strip():
                end += 1
            body = lines[at:end]
            at = end
        else:
            block = next((b for b in fences.blocks(lines, at) if b.first == at), None)
            if block is None:
                return
            body = fences.content(lines, block)
            at = block.last + 1
        yield _output(reading, one, body, told)


def _output(
    reading: _Reading, one: list[Any], body: list[str], told: Mapping[str, Any]
) -> dict[str, Any]:
    text = "\n".join(body)
    match one[0]:
        case "stdout" | "stderr":
            ended = text if one[1:] == ["open"] else f"{text}\n"
            return {"output_type": "stream", "name": one[0], "text": ended}
        case "error":
            return {"output_type": "error", "ename": one[1], "evalue": one[2], "traceback": body}
        case "picture":
            return _displayed(_picture(reading, one[1], text))
        case "markdown":
            return _displayed({"text/markdown": "\n".join(_unquoted(line) for line in body)})
        case "table" | "source":
            return _displayed({"text/markdown": text})
        case "json":
            return _displayed(_json(text))
        case "latex":
            return _displayed({"text/latex": text})
        case "result":
            count = told.get("count")
            data = {"text/plain": text}
            return _displayed(data) | {"output_type": "execute_result", "execution_count": count}
    return _displayed({"text/plain": text})


def _json(text: str) -> dict[str, Any]:
    """A text that was cut off, or edited by hand, is shown as what it is."""
    try:
        return {"application/json": json.loads(text)}
    except ValueError:
        return {"text/plain": text}


def _displayed(data: dict[str, Any]) -> dict[str, Any]:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _unquoted(line: str) -> str:
    return line.removeprefix(">").removeprefix(" ")


def _picture(reading: _Reading, mime: str, line: str) -> dict[str, Any]:
    alt, _, path = line.removeprefix("![").removesuffix(")").partition("](")
    # Only files of this record: the text may come from anywhere.
    own = path.startswith(f"{reading.record}.files/") and "/" not in path.partition("/")[2]
    raw = reading.read(path) if own else None
    if raw is None:
        return {"text/plain": alt}
    data = (
        raw.decode("utf-8", "replace") if mime.endswith("xml") else base64.b64encode(raw).decode()
    )
    return {mime: data, "text/plain": alt}


def _record(front: Mapping[str, Any], reading: _Reading) -> Record:
    outcome = front.get("outcome")
    started = datetime.fromisoformat(str(front["executed_at"])).astimezone(UTC).isoformat()
    reason = str(front.get("reason") or "")
    if outcome == "running" and not reason:
        outcome = "died"
    plan: dict[str, Any] = {"parameters": dict(front.get("parameters") or {})}
    if front.get("user_request"):
        plan["request"] = str(front["user_request"])
    if front.get("sources"):
        plan["sources"] = dict(front["sources"])
    if front.get("replays"):
        plan["replays"] = front["replays"]
    if front.get("resumed_from"):
        plan["resumed"] = {"run": front["resumed_from"]}
    before = [_asked("", told) for told in front.get("questions") or ()]
    return Record(
        run_id=str(front.get("run_id", "")),
        uuid=reading.record,
        task=str(front.get("task", "")),
        title=title_of(reading.cells),
        outcome=outcome,  # type: ignore[arg-type]
        started=started,
        finished="",
        duration=front.get("duration"),
        reason=reason,
        parent=front.get("parent"),
        plan=plan,
        cells=tuple(reading.cells),
        results=reading.results,
        warnings=tuple(map(str, front.get("warnings") or ())),
        notes=tuple(reading.notes),
        asked=(*before, *reading.asked),
        error=_error(str(outcome), reading.cells, reason),
    )


def title_of(cells: list[CellRecord]) -> str:
    for cell in cells:
        for line in cell.source.split("\n") if cell.kind == "markdown" else ():
            if line.startswith("#"):
                return line.lstrip("#").strip()
    return ""


def _error(outcome: str, cells: list[CellRecord], reason: str) -> RunError | None:
    if outcome in ("ok", "running", "paused"):
        return None
    bad = ("failed", "timed_out", "cancelled", "died")
    cell = next((c for c in cells if c.status in bad), None)
    if cell is not None and cell.error is not None:
        return RunError(cell.id, cell.error.name, cell.error.value)
    return RunError(cell.id if cell else "", outcome, reason)


def kept(record: Record) -> Record:
    """What a record's Markdown keeps of it: `loads` of `dumps` gives this."""
    cells: list[CellRecord] = []
    ids: set[str] = {c.id for c in record.cells if c.kind == "code"}
    for cell in record.cells:
        if cell.kind == "raw" or INJECTED_TAG in cell.tags:
            continue
        cells.append(_kept_prose(cell, ids) if cell.kind == "markdown" else _kept_step(cell))
        ids.add(cells[-1].id)
    plan: dict[str, Any] = {"parameters": writing.parameters(record)}
    plan |= {k: record.plan[k] for k in ("request", "sources", "replays") if record.plan.get(k)}
    if record.resumed_from:
        plan["resumed"] = {"run": record.resumed_from}
    at = datetime.fromisoformat(record.started).replace(microsecond=0)
    outcome = "died" if record.outcome == "running" else record.outcome
    shown_ids = {cell.id for cell in cells} | {""}
    asked = sorted((a for a in record.asked if a.cell in shown_ids), key=lambda a: a.cell != "")
    return replace(
        record,
        title=title_of(cells),
        outcome=outcome,
        started=at.astimezone(UTC).isoformat(),
        finished="",
        plan=plan,
        cells=tuple(cells),
        results={
            n: r for n, r in record.results.items() if writing.fits(r) and r.cell in shown_ids
        },
        tool_calls=(),
        asked=tuple(asked),
        error=_error(outcome, cells, record.reason),
        origin={},
    )


def _kept_prose(cell: CellRecord, ids: set[str]) -> CellRecord:
    text = writing.prose(cell.source)
    return CellRecord(free_id(ids, text), "markdown", text, status="text")


def _kept_step(cell: CellRecord) -> CellRecord:
    outputs = writing.outputs_of(cell)
    metadata = {k: v for k, v in cell.metadata.items() if k != logbook.KEPT}
    error = cell.error and CellError(cell.error.name, cell.error.value)
    return replace(
        cell,
        metadata=metadata,
        attachments={},
        outputs=tuple(_kept_output(one, cell) for one in outputs),
        error=error,
        variables=(),
    )


def _kept_output(one: Shown, cell: CellRecord) -> dict[str, Any]:
    reading = _Reading("x", lambda name: one.data)
    text = f"![{one.body}](x.files/y)" if one.kind == "picture" else one.body
    if one.kind == "markdown":
        text = quotation(one.body)
    return _output(reading, one.told, text.split("\n"), {"count": cell.execution_count})


__all__ = ["kept", "loads", "one_line"]
