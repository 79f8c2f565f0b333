"""A failure without what differs from run to run, so that the same one is known again."""

from __future__ import annotations

import re

from ..record.record import Record
from ..render.agent_failure import Frame, frames
from ..text import plain

LONGEST = 1_000
_PARTS = (
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
PLACES = frozenset(word.strip("<>") for _, word in _PARTS)  # what stands for what differs
_NAME = re.compile(r"([A-Za-z_][\w.]*)\s*(?::\s*(.*))?", re.DOTALL)
_ERROR = re.compile(
    r"[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|StopIteration|Group)\s*(?::|$)"
)
# What pytest and groups of exceptions put before a line.
_MARGIN = re.compile(r"^(?:E   +|[\s|]+)|\s+$")
_AT_FAULT = re.compile(r"^-+>\s*\d+\s?(.*)$", re.MULTILINE)


def fingerprint(name: str, value: str) -> str:
    """Such as `KeyError: <value>`. Some kernels name an error with its module, most do not."""
    text = plain(value)[:LONGEST].strip()
    for pattern, word in _PARTS:
        text = pattern.sub(word, text)
    return f"{plain(name)[:200].rpartition('.')[2]}: {' '.join(text.split())}"


def from_text(text: str) -> tuple[str, str]:
    """Name and message, from what a person pasted: of a traceback the last error counts, with what
    stands behind it. As runs keep it, a name has no module before it."""
    lines = [_MARGIN.sub("", line) for line in plain(text).split("\n")]
    lines = [line for line in lines if line.strip()]
    errors = [at for at, line in enumerate(lines) if _ERROR.match(line)]
    at = errors[-1] if errors else len(lines) - 1
    found = _NAME.fullmatch("\n".join(lines[at:])) if lines else None
    if found is None:
        return "", " ".join(lines)
    return found[1].rpartition(".")[2], (found[2] or "").strip()


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
