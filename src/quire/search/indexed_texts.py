"""What of a record is searched: short pieces of text, each with its field and its cell, and values.

Pure. Everything is bounded, so that one talkative run costs an index no more than others.
"""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..record.record import CellRecord, Record
from ..render.blocks import display_block
from ..task.parameter_cell import INJECTED_TAG
from ..text import plain
from .breadcrumb import summary
from .build_results import facts as building_facts
from .build_results import searched, told
from .failure_signature import failing_line, fingerprint

OF_AN_OUTPUT = 2_000  # characters of one cell's outputs, head and tail
OF_ALL_OUTPUTS = 12_000
OF_A_CELL = 20_000  # characters of its code or prose
OF_THE_SOURCE = 60_000
OF_A_VALUE = 500
OF_A_TEXT = 4_000  # a note, an error, a request
MOST_FACTS = 64
MOST_PIECES = 200  # of one field
DEPTH = 3  # of values in a result that can be compared


@dataclass(frozen=True, slots=True)
class Piece:
    field: str
    cell: str  # its id; empty where it belongs to the run as a whole
    text: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A value that can be compared: of a parameter or of a result."""

    kind: str  # param or result
    name: str  # `metrics.f1` for a value inside another
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Source:
    cells: tuple[tuple[str, str], ...]  # id and title of each
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Indexed:
    run_id: str
    task: str
    title: str
    outcome: str
    started: str
    duration: float | None
    parent: str
    by: str
    summary: str
    pieces: tuple[Piece, ...]  # what this run alone has
    facts: tuple[Fact, ...]
    # What every run of this version of the task has, under the digest of the cells; None where
    # whoever asked has that already.
    version: bytes
    source: Source | None
    error: str = ""  # the failure without what differs from run to run; see `failure_signature.py`
    line: str = ""  # the line that failed


def indexed(record: Record, known: Container[bytes] = ()) -> Indexed:
    """`known` are the versions of tasks whose source need not be told again."""
    asked = record.origin.get("asked")
    asked = asked if isinstance(asked, Mapping) else {}
    by = " on behalf of ".join(str(asked[key]) for key in ("by", "behalf") if asked.get(key))
    error = record.error
    version = version_of(record)
    return Indexed(
        run_id=record.run_id,
        task=record.task,
        title=record.title,
        outcome=record.outcome,
        started=record.started,
        duration=record.duration,
        parent=record.parent or "",
        by=_brief(by, 200),
        summary=summary(record),
        pieces=tuple(_pieces(record, by)),
        facts=tuple(_facts(record)),
        version=version,
        source=None if version in known else source_of(record),
        error=fingerprint(error.name, error.value) if error else "",
        line=failing_line(record) if error else "",
    )


def _pieces(record: Record, by: str) -> Iterator[Piece]:
    yield Piece("title", "", _brief(record.title, 300))
    yield Piece("task", "", _brief(record.task, 300))
    request = record.plan.get("request")
    for text in (request if isinstance(request, str) else "", by):
        if text:
            yield Piece("request", "", _brief(text, OF_A_TEXT))
    for note in record.notes[:MOST_PIECES]:
        yield Piece("note", note.cell, _brief(note.text, OF_A_TEXT))
    for asked in record.asked[:MOST_PIECES]:
        answer = f" {asked.answer}" if asked.answer else ""
        yield Piece("note", asked.cell, _brief(f"{asked.question}{answer}", OF_A_TEXT))
    values = _values(record)
    built, values = told(values), searched(values)
    for name, result in list(record.results.items())[:MOST_PIECES]:
        most = OF_A_TEXT if name in built else OF_A_VALUE
        value = values.get(name, result.value)
        value = _value(value, most) if result.kind != "display" else ""
        said = f" ({built[name]})" if name in built else ""
        yield Piece("result", result.cell, f"{_brief(name, 200)} = {value}{said}")
    for name, value in list(_parameters(record).items())[:MOST_PIECES]:
        yield Piece("param", "", f"{_brief(str(name), 200)} = {_value(value)}")
    if record.error is not None:
        yield from _error(record)
    for call in record.tool_calls[:MOST_PIECES]:
        yield Piece("tool", call.cell, f"{call.tool} {_value(call.arguments)}")
    left = OF_ALL_OUTPUTS
    for cell in record.cells:
        text = _outputs(cell)[:left]
        if text:
            left -= len(text)
            yield Piece("output", cell.id, text)


def _values(record: Record) -> dict[str, Any]:
    return {name: r.value for name, r in record.results.items() if r.kind == "json"}


def _parameters(record: Record) -> dict[str, Any]:
    defaults = record.plan.get("defaults")
    given = record.parameters if isinstance(record.parameters, Mapping) else {}
    return {**(defaults if isinstance(defaults, Mapping) else {}), **given}


def _error(record: Record) -> Iterator[Piece]:
    error = record.error
    assert error is not None
    said = f"{error.name}: {error.value}" if error.value else error.name
    yield Piece("error", error.cell, _brief(said, OF_A_TEXT))
    line = failing_line(record)
    if line:
        yield Piece("error", error.cell, line)


def version_of(record: Record) -> bytes:
    cells = [(c.id, c.kind, c.title, c.source) for c in record.cells if INJECTED_TAG not in c.tags]
    # The format 0 is quick to write, and the same for the same texts.
    return hashlib.blake2b(marshal.dumps(cells, 0), digest_size=16).digest()


def source_of(record: Record) -> Source:
    return Source(
        tuple((cell.id, _brief(cell.title, 120)) for cell in record.cells),
        tuple(_source(record)),
    )


def _source(record: Record) -> Iterator[Piece]:
    left = OF_THE_SOURCE
    for cell in record.cells:
        if INJECTED_TAG in cell.tags or left <= 0:
            continue
        text = plain(cell.source[:OF_A_CELL])[:left]
        left -= len(text)
        if cell.kind == "code":
            if cell.title:
                yield Piece("heading", cell.id, _brief(cell.title, 300))
            if text.strip():
                yield Piece("code", cell.id, text)
        elif text.strip():
            yield from _prose(cell.id, text)


def _prose(cell: str, text: str) -> Iterator[Piece]:
    lines = text.split("\n")
    headings = [line.lstrip("# ") for line in lines if line.startswith("#")]
    rest = "\n".join(line for line in lines if not line.startswith("#")).strip()
    if headings:
        yield Piece("heading", cell, "\n".join(headings))
    if rest:
        yield Piece("prose", cell, rest)


def _outputs(cell: CellRecord) -> str:
    """What a person would have read, its head and its tail."""
    if not cell.outputs:
        return ""
    parts: list[str] = []
    size = 0
    for output in cell.outputs:
        if size > 50 * OF_AN_OUTPUT:
            break
        kind = output.get("output_type")
        if kind == "stream":
            text = str(output.get("text", ""))
        elif kind in ("display_data", "execute_result"):
            data = output.get("data")
            block = display_block(data, "index") if isinstance(data, Mapping) else None
            text = block.text if block and block.kind in ("text", "markdown") else ""
        else:
            continue  # what it raised is in the field `error`
        size += len(text)
        parts.append(_ends(text, OF_AN_OUTPUT))
    return _ends(plain("\n".join(parts)).strip(), OF_AN_OUTPUT)


def _ends(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = most * 3 // 5
    return f"{text[:head]}\n…\n{text[len(text) - (most - head) :]}"


def _facts(record: Record) -> Iterator[Fact]:
    count = 0
    results = _values(record)
    for name, number in building_facts(results):
        count += 1
        yield Fact("result", name, number)
    for kind, values in (("result", results), ("param", _parameters(record))):
        for name, value in _flat(values, "", DEPTH):
            if count >= MOST_FACTS:
                return
            count += 1
            yield Fact(kind, name, value)


def _flat(values: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{above}{key}"[:200]
        if isinstance(value, Mapping):
            if depth > 1:
                yield from _flat(value, f"{name}.", depth - 1)
        elif value is None or isinstance(value, bool):
            yield name, value
        elif isinstance(value, int | float):
            # Beyond 64 bits a database has no number for it.
            yield name, value if abs(value) < 2**63 and value == value else str(value)[:OF_A_VALUE]
        elif isinstance(value, str):
            yield name, _brief(value, OF_A_VALUE)


def _value(value: Any, most: int = OF_A_VALUE) -> str:
    if isinstance(value, str):
        return _brief(value, most)
    return _brief(json.dumps(value, ensure_ascii=False, default=str), most)


def _brief(text: str, most: int) -> str:
    return plain(text[: most + 1])[:most].strip()


def moment(text: str) -> float:
    """Seconds since 1970; 0 where the text is no time."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
