"""What a program gets told of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .plan import jsonable
from .record import Record


def report(record: Record, notebook: str, archived: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a program gets told of a run: the one object of `--json`, and a parent task's answer."""
    error = record.error
    return {
        "run_id": record.run_id,
        "outcome": record.outcome,
        "results": jsonable(record.values),
        "notebook": notebook,
        "duration": record.duration,
        "cells": [
            {"id": c.id, "kind": c.kind, "status": c.status, "duration": c.duration}
            for c in record.cells
        ],
        "error": error
        and {
            "cell": error.cell,
            "name": error.name,
            "value": error.value,
            "traceback": short_traceback(error.traceback),
        },
        "archived": archived,
        "environment": record.plan.get("environment"),
        "logbook": str(record.plan.get("logbook") or ""),
        "recovered": record.recovered,
    }


def short_traceback(lines: tuple[str, ...], limit: int = 30) -> str:
    """Without colours, and without the middle when it is long."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", "\n".join(lines))
    rows = text.splitlines()
    if len(rows) > limit:
        cut = len(rows) - limit
        half = limit // 2
        rows = [*rows[:half], f"    … {cut} lines …", *rows[-half:]]
    return "\n".join(row[:500] for row in rows)
