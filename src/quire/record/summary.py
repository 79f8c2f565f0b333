"""What a reader is told of a record first: facts, parameters, results, in short texts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ..text import one_line as one_line
from ..text import plain
from .plan import jsonable
from .record import RECOVERED, CellRecord, Record, Result

VALUE_LIMIT = 300


def heading(record: Record) -> str:
    return one_line(record.title or record.task or record.run_id or "A run that left no journal")


def took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def when(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError):
        return at


def worded(status: str) -> str:
    return status.replace("_", " ")


def facts(record: Record) -> Iterator[tuple[str, str]]:
    yield "Run", record.run_id
    yield "Task", record.task
    yield "Started", when(record.started)
    if record.duration is not None:
        yield "Duration", took(record.duration)
    yield "Cells", counted(record)
    if record.recovered:
        yield "Recovered", RECOVERED.removeprefix("recovered ")
    kernel = record.plan.get("kernel")
    if isinstance(kernel, Mapping) and kernel.get("display_name"):
        yield "Kernel", str(kernel["display_name"])
    git, asked = record.origin.get("git") or {}, record.origin.get("asked") or {}
    if git.get("commit"):
        changes = ", with changes that are not committed" if git.get("dirty") else ""
        yield "Commit", f"{git['commit']}{changes}"
    if asked.get("by"):
        behalf = f", on behalf of {asked['behalf']}" if asked.get("behalf") else ""
        yield "Asked for by", f"{asked['by']}{behalf}"
    if record.parent:
        yield "Run by", record.parent


def counted(record: Record) -> str:
    """Such as `7 ok, 1 failed, 3 not run`."""
    counts = Counter(cell.status for cell in record.cells if cell.kind == "code")
    return ", ".join(f"{n} {worded(status)}" for status, n in counts.items()) or "none"


def parameters(record: Record) -> Iterator[tuple[str, str, bool]]:
    """Name, value and whether it is the declared default."""
    defaults = record.plan.get("defaults")
    defaults = defaults if isinstance(defaults, Mapping) else {}
    for name, value in {**defaults, **record.parameters}.items():
        yield str(name), brief_json(value), name in defaults and defaults[name] == value


def brief_json(value: Any) -> str:
    text = plain(json.dumps(jsonable(value), ensure_ascii=False))
    if len(text) <= VALUE_LIMIT:
        return text
    return f"{text[:VALUE_LIMIT]} … {len(text) - VALUE_LIMIT:,} more characters"


def is_table(result: Result) -> bool:
    """A run's journal is read back from disk: what it calls a table may be anything."""
    value = result.value
    return (
        result.kind == "table"
        and isinstance(value, Mapping)
        and isinstance(value.get("columns"), list)
        and isinstance(value.get("rows"), list)
        and all(isinstance(row, list) for row in value["rows"])
    )


def row_count(value: Mapping[str, Any], shown: int) -> str:
    total = value.get("total", len(value["rows"]))
    return f"{total:,} rows" if total == shown else f"the first {shown:,} of {total:,} rows"


def failure(record: Record) -> tuple[CellRecord | None, str]:
    """The cell that ended the run, and the one line that says why. Empty when it is well."""
    error = record.error
    if error is None:
        return None, ""
    cell = next((c for c in record.cells if c.id == error.cell), None)
    said = one_line(f"{error.name}: {error.value}" if error.value else error.name)
    return cell, said if len(said) <= 500 else f"{said[:500]} …"


def sayable(parameters: Mapping[str, Any]) -> Any:
    """To be given again as they were; `...` where that is not known or long."""
    text = brief_json(dict(parameters))
    unknown = "[masked:" in text or len(text) > VALUE_LIMIT
    return ... if unknown else dict(parameters)
