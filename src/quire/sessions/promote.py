"""Make a task of a session, if it holds: hidden state is the classic notebook lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine.run import NotebookExecutor
from ..engine.run_cell import Cancel
from ..errors import Hint, Option, UsageError
from ..files import write_atomic
from ..record.plan import jsonable
from ..record.record import CellRecord, Record
from ..task import formats, params
from ..task.read_task import read
from ..workspace import Workspace
from .last_runs import last_seen
from .live_session import Execution
from .session import find


@dataclass(frozen=True, slots=True)
class Promoted:
    run_id: str
    path: Path | None  # None: nothing was written
    difference: str = ""
    outcome: str = "ok"  # of the clean run; "failed" where the session failed in the same way


def promote(
    workspace: Workspace,
    name: str,
    target: str | Path,
    cancel: Cancel,
    *,
    force: bool = False,
    begun: Callable[[NotebookExecutor], None] = lambda _: None,
) -> Promoted:
    """Run the session's document in a clean kernel; write the task if both saw the same. `begun`
    hears of the clean run when it has started."""
    live = find(workspace, name)
    path = workspace.cwd / target
    source = read(workspace, live.path)
    if formats.LOGBOOK in (source.path.suffix, path.suffix) and path.suffix != source.path.suffix:
        raise UsageError(
            f"{target} is no name for it: a logbook stays a logbook, and nothing else becomes one",
            hint=f"name a file that ends in {source.path.suffix}",
        )
    if path.suffix not in (*formats.SUFFIXES, source.path.suffix):
        raise UsageError(
            f"{target} is no task: it ends in {path.suffix or 'nothing'}",
            hint=f"name a file that ends in {' or '.join(formats.SUFFIXES)}",
        )
    same = path.exists() and path.samefile(source.path)
    if path.exists() and not force and not same:
        raise UsageError(
            f"{target} is already there",
            hint=Hint("choose another name, or use {}", Option("--force", "force")),
        )
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", hint="make it first")
    execution = NotebookExecutor(
        live.path,
        dict(live.parameters),
        workspace=workspace,
        cwd=live.spec.cwd,
        python=live.spec.python or None,
        kernel=live.spec.name or None,
        cancel=cancel,
    )
    for n, _ in enumerate(execution):
        if n == 0:
            begun(execution)
    record = execution.record
    if record.outcome == "cancelled":
        return Promoted(record.run_id, None, f"the clean run was called off: {record.reason}")
    own = [cell.id for cell in source.document.cells]
    difference = first_difference(last_seen(workspace, live), record, own)
    if difference:
        return Promoted(record.run_id, None, difference)
    if not same:
        text = source.text
        if path.suffix != source.path.suffix:
            text = formats.dumps(source.document, path.suffix)
        write_atomic(path, text.encode())
    return Promoted(record.run_id, path, outcome=record.outcome)


def first_difference(executions: list[Execution], record: Record, ids: Sequence[str] = ()) -> str:
    """What a clean run did otherwise than the session saw; '' when nothing. `ids` are those that
    the session has for the cells: in a logbook a run has others, by what values made of it."""
    saw = {e.cell.id: e for e in executions}
    own = [cell for cell in record.cells if params.INJECTED_TAG not in cell.tags]
    for index, cell in enumerate(own):
        if cell.kind != "code":
            continue
        where = f"cell {index}" + (f" ({cell.title})" if cell.title else "")
        known = ids[index] if index < len(ids) else cell.id
        told = _compare(where, cell, saw.get(known), record)
        if told:
            return told
    if record.outcome not in ("ok", "failed"):
        return f"the clean run ended {record.outcome}: {record.reason}"
    return ""


def _compare(where: str, cell: CellRecord, seen: Execution | None, record: Record) -> str:
    failed = cell.status not in ("ok", "skipped", "not run")
    error = f"{cell.error.name}: {cell.error.value}" if cell.error else cell.status
    if seen is None:
        return f"{where} never ran in the session and fails in a clean kernel: {error}" * failed
    if seen.status == "ok" and failed:
        return f"{where} ran in the session but fails in a clean kernel: {error}"
    if seen.status != "ok" and not failed:
        had = f"{seen.error.name}: {seen.error.value}" if seen.error else seen.status
        return f"{where} failed in the session ({had}) but not in a clean kernel"
    if seen.error and cell.error and seen.error.name != cell.error.name:
        return f"{where} failed with {seen.error.name} in the session, now with {error}"
    for name, value in seen.results.items():
        now: Any = record.results.get(name)
        if now is None:
            return f"{where} gave the result {name} in the session, but not in a clean kernel"
        if jsonable(now.value) != jsonable(value):
            return (
                f"{where} gave {name} = {_short(value)} in the session, "
                f"but {_short(now.value)} in a clean kernel"
            )
    return ""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
