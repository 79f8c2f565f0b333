"""What of a record is searched: short texts, each with its field and cell; values; its failure.

Everything is bounded, so that a run with much output costs the index no more than others.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..record.record import CellRecord, Record
from ..render.agent_failure import Frame, frames
from ..render.blocks import display_block
from ..task.parameter_cell import INJECTED_TAG
from ..text import plain
from .breadcrumbs import build_facts, build_summary, searched_results

OF_AN_OUTPUT = 2_000  # characters of one cell's outputs, head and tail
OF_ALL_OUTPUTS = 12_000
OF_A_CELL = 20_000  # characters of its code or prose
OF_THE_SOURCE = 60_000
OF_A_VALUE = 500
OF_A_TEXT = 4_000  # a note, an error, a request
OF_A_MESSAGE = 1_000  # of an error, as it is compared
MOST_FACTS = 64
MOST_PIECES = 200  # of one field
DEPTH = 3  # of values in a result that can be compared


class Piece(NamedTuple):
    field: str
    cell: str  # its id; empty where it belongs to the run as a whole
    text: str


class Fact(NamedTuple):
    """A value that can be compared."""

    kind: str  # param or result
    name: str  # `metrics.f1` for a value inside another
    value: str | int | float | bool | None


def asked_by(record: Record) -> str:
    asked = record.origin.get("asked")
    asked = asked if isinstance(asked, Mapping) else {}
    by = " on behalf of ".join(str(asked[key]) for key in ("by", "behalf") if asked.get(key))
    return _brief(by, 200)


def own(record: Record, by: str) -> Iterator[Piece]:
    """What this run alone has; not its outcome, which is in a table anyway."""
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
    yield from _results(record)
    for name, value in list(_parameters(record).items())[:MOST_PIECES]:
        yield Piece("param", "", f"{_brief(str(name), 200)} = {_value(value)}")
    if record.error is not None:
        said = ": ".join(filter(None, (record.error.name, record.error.value)))
        for text in (said, failing_line(record)):
            if text:
                yield Piece("error", record.error.cell, _brief(text, OF_A_TEXT))
    for call in record.tool_calls[:MOST_PIECES]:
        yield Piece("tool", call.cell, f"{call.tool} {_value(call.arguments)}")
    left = OF_ALL_OUTPUTS
    for cell in record.cells:
        text = _outputs(cell)[:left]
        if text:
            left -= len(text)
            yield Piece("output", cell.id, text)


def _results(record: Record) -> Iterator[Piece]:
    values = _json_results(record)
    built, values = build_summary(values), searched_results(values)
    for name, result in list(record.results.items())[:MOST_PIECES]:
        most = OF_A_TEXT if name in built else OF_A_VALUE
        shown = result.kind != "display"
        value = _value(values.get(name, result.value), most) if shown else ""
        said = f" ({built[name]})" if name in built else ""
        yield Piece("result", result.cell, f"{_brief(name, 200)} = {value}{said}")


def _json_results(record: Record) -> dict[str, Any]:
    return {name: r.value for name, r in record.results.items() if r.kind == "json"}


def _parameters(record: Record) -> dict[str, Any]:
    defaults = record.plan.get("defaults")
    given = record.parameters if isinstance(record.parameters, Mapping) else {}
    return {**(defaults if isinstance(defaults, Mapping) else {}), **given}


def version_of(record: Record) -> bytes:
    """The same for all runs of one version of a task."""
    cells = [(c.id, c.kind, c.title, c.source) for c in record.cells if INJECTED_TAG not in c.tags]
    # The format 0 is quick to write, and the same for the same texts.
    return hashlib.blake2b(marshal.dumps(cells, 0), digest_size=16).digest()


def shared(record: Record) -> Iterator[Piece]:
    """The source."""
    left = OF_THE_SOURCE
    for cell in record.cells:
        if INJECTED_TAG in cell.tags or left <= 0:
            continue
        text = plain(cell.source[:OF_A_CELL])[:left]
        left -= len(text)
        lines = text.split("\n")
        if cell.kind == "code":
            heads, field, rest = [_brief(cell.title, 300)], "code", text
        else:
            heads = [line.lstrip("# ") for line in lines if line.startswith("#")]
            field = "prose"
            rest = "\n".join(line for line in lines if not line.startswith("#")).strip()
        if any(heads):
            yield Piece("heading", cell.id, "\n".join(heads))
        if rest.strip():
            yield Piece(field, cell.id, rest)


def _outputs(cell: CellRecord) -> str:
    """What a person would have read, its head and its tail."""
    parts: list[str] = []
    size = 0
    for output in cell.outputs or ():
        if size > 50 * OF_AN_OUTPUT:
            break
        data = output.get("data")
        if output.get("output_type") == "stream":
            text = str(output.get("text", ""))
        elif isinstance(data, Mapping):  # an error has none: it is in the field `error`
            block = display_block(data, "index")
            text = block.text if block and block.kind in ("text", "markdown") else ""
        else:
            continue
        size += len(text)
        parts.append(_ends(text, OF_AN_OUTPUT))
    return _ends(plain("\n".join(parts)).strip(), OF_AN_OUTPUT) if parts else ""


def _ends(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = most * 3 // 5
    return f"{text[:head]}\n…\n{text[len(text) - (most - head) :]}"


def facts(record: Record) -> Iterator[Fact]:
    results = _json_results(record)
    found = [Fact("result", name, number) for name, number in build_facts(results)]
    for kind, values in (("result", results), ("param", _parameters(record))):
        found += [Fact(kind, name, value) for name, value in _flat(values, "", DEPTH)]
    yield from found[:MOST_FACTS]


def _flat(values: Mapping[str, Any], above: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{above}{key}"[:200]
        if isinstance(value, Mapping) and depth > 1:
            yield from _flat(value, f"{name}.", depth - 1)
        elif isinstance(value, str):
            yield name, _brief(value, OF_A_VALUE)
        elif value is None or isinstance(value, int | float):
            yield name, value if abs(value or 0) < float("inf") else str(value)  # nan, inf


def _value(value: Any, most: int = OF_A_VALUE) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _brief(text, most)


def _brief(text: str, most: int) -> str:
    return plain(text[: most + 1])[:most].strip()


# Failures.

# What differs from run to run, so that the same failure is known again.
_VARYING = (
    (re.compile(r"0x[0-9a-fA-F]+"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"),
     "<time>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)]+", re.IGNORECASE), "<url>"),
    (re.compile(r"(?<![\w/])(?:[A-Za-z]:)?(?:[\\/][\w.@+-]+)+"), "<path>"),
    (re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`"), "<value>"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "<id>"),
    (re.compile(r"(?<![A-Za-z_])[-+]?\d[\d_,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"), "<number>"),
)  # fmt: skip
PLACES = frozenset(word.strip("<>") for _, word in _VARYING)
_AT_FAULT = re.compile(r"^-+>\s*\d+\s?(.*)$", re.MULTILINE)


def fingerprint(name: str, value: str) -> str:
    """Such as `KeyError: <value>`. Some kernels name an error with its module, most do not."""
    text = plain(value)[:OF_A_MESSAGE].strip()
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return f"{plain(name)[:200].rpartition('.')[2]}: {' '.join(text.split())}"


def failing_line(record: Record) -> str:
    """The line of the task that a failure came from: the innermost one of its cell. Of another
    kernel, or an older record, the line that its traceback marks."""
    error = record.error
    cell = next((c for c in record.cells if error and c.id == error.cell), None)
    if error is None or cell is None:
        return ""
    source = cell.source.split("\n")
    found = [
        source[one.line - 1].strip()
        for one in (frames(cell.error) if cell.error else ())
        if isinstance(one, Frame) and one.count is not None and one.line is not None
        and cell.execution_count in (None, one.count) and 0 < one.line <= len(source)
    ]  # fmt: skip
    if not found:
        told = plain("\n".join(error.traceback[:200])[:50_000])
        marked = [line.strip() for line in _AT_FAULT.findall(told)]
        found = [line for line in marked if line in map(str.strip, source)] or marked
    return found[-1][:300] if found else ""
