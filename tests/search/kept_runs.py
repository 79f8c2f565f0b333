"""Runs in an archive, made without running anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from made_runs import ADA, TASK, files_of, ran, signed
from quire.record.events import NoteAdded
from quire.search.find import find
from quire.workspace import Workspace

FAILS = TASK.replace('print("total", n)', 'print(frame["user_id"])')
MENDED = TASK.replace('print("total", n)', 'print(frame["customer"])')


def run_id(number: int) -> str:
    return f"2026-11-16-1555{number:02d}-report-{number:04x}"


def keep(ws: Workspace, number: int, source: str = TASK, note: str = "", **how: Any) -> str:
    record = ran(source, run_id=run_id(number), **how)
    at = f"2026-11-16T15:55:{number:02d}+00:00"
    notes = (NoteAdded(record.cells[1].id, note, at),) if note else ()
    record = replace(record, notes=notes, started=at)
    ws.archive.add(record.run_id, signed(files_of(record, source), ADA))
    return record.run_id


def ids(ws: Workspace, query: str = "", **how: Any) -> list[str]:
    return [hit.run_id for hit in find(ws, query, **how).hits]
