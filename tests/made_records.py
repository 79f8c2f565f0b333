"""Records built by hand, for the views of one."""

from __future__ import annotations

import base64
from typing import Any

from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    OutputAdded,
    ResultGlued,
    RunFinished,
    RunStarted,
)
from quire.record.record import Record, fold

AT = "2026-11-16T15:55:01+00:00"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()


def made(
    *outputs: dict[str, Any],
    before: tuple[tuple[str, str], ...] = (),
    source: str = "work()",
    error: CellError | None = None,
    results: tuple[ResultGlued, ...] = (),
    title: str = "Health",
    plan: dict[str, Any] | None = None,
) -> Record:
    """A record of some cells, one code cell with these outputs, and one that comes after it."""
    cells = [*before, ("code", source), ("code", "after()")]
    specs = tuple(
        {"id": f"c{n}", "kind": kind, "source": text, "title": "", "tags": [], "metadata": {}}
        for n, (kind, text) in enumerate(cells)
    )
    it = f"c{len(before)}"
    events: list[Event] = [
        RunStarted("run-1", "u", AT, "tasks/health.py", title, specs, plan or {})
    ]
    events.append(CellStarted(it, AT))
    events += [OutputAdded(it, output) for output in outputs]
    events += results
    status = "failed" if error else "ok"
    events.append(CellFinished(it, status, AT, 0.12, 1, error))
    events.append(RunFinished(status, AT, 1.5))
    return fold(events)


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(**data: Any) -> dict[str, Any]:
    named = {mime.replace("__", "/"): value for mime, value in data.items()}
    return {"output_type": "display_data", "data": named, "metadata": {}}
