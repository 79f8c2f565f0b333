"""Run a run again: the same source, the same parameters, a clean kernel; then compare."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..archive.read import Found, find
from ..errors import Hint, NextStep, RunNotFound, UsageError
from ..record.compare import Comparison, compare
from ..record.plan import Change
from ..record.record import CHANGED, CellRecord, Record
from ..task import formats
from ..task.document import Cell, Document
from ..task.params import INJECTED_TAG, placed
from ..task.read_task import Source
from ..workspace import Workspace
from .planning import Again
from .run import NotebookExecutor, drained
from .run_plan import Cancel

_MASKED = "[masked:"


@dataclass(frozen=True, slots=True)
class Replay:
    """A run that is about to be repeated. Drain `execution`, then ask for the `outcome`."""

    old: Record
    execution: NotebookExecutor
    notes: tuple[str, ...]  # what a reader should know of how it is repeated

    def outcome(self, *, noise: bool = False) -> Comparison:
        """Both records as they are on disk, so that both have gone the same way."""
        new = find(self.execution.workspace, self.execution.run_id).record
        return compare(self.old, new, noise=noise)


def prepare(
    workspace: Workspace,
    run: str,
    *,
    cwd: str | Path | None = None,
    python: str | None = None,
    kernel: str | None = None,
    timeout: float | None = None,
    archives: bool | None = None,
    cancel: Cancel | None = None,
) -> Replay:
    """Everything that speaks against it is said here, before a kernel starts."""
    found = find(workspace, run)
    old = found.record
    if old.outcome == "running":
        raise UsageError(f"{old.run_id} is still running", hint="wait for its end")
    again = as_it_was(workspace, found)
    notes: list[str] = list(_about(old))
    if kernel is None and python is None:
        kernel, python = kernel_of(old, notes)
    if cwd is None:
        cwd = folder_of(workspace, old, notes)
    limits = old.plan.get("limits")
    limits = limits if isinstance(limits, Mapping) else {}
    execution = NotebookExecutor(
        again.source.path,
        workspace=workspace,
        cwd=cwd,
        python=python,
        kernel=kernel,
        cell_timeout=limits.get("cell_timeout"),
        timeout=timeout if timeout is not None else limits.get("timeout"),
        archives=archives,
        cancel=cancel,
        again=again,
    )
    return Replay(old, execution, tuple(notes))


def replay(workspace: Workspace, run: str, **options: Any) -> Comparison:
    """Repeat a run in this process and compare. `options` are those of `prepare`."""
    prepared = prepare(workspace, run, **options)
    drained(prepared.execution)
    return prepared.outcome()


def as_it_was(workspace: Workspace, found: Found) -> Again:
    """The source, the parameters and the changes of a run, to be run again."""
    old = found.record
    try:
        suffix, data = found.source()
    except OSError as error:
        raise RunNotFound(
            f"the source of {old.run_id} cannot be read: {error.strerror}",
            hint="its folder was damaged",
        ) from error
    text = _text(old, data)
    masked = [name for name, value in old.parameters.items() if _MASKED in str(value)]
    if masked:
        raise UsageError(
            f"{old.run_id} cannot be replayed: the record has not the value of the parameter "
            f"{', '.join(masked)}, which held a secret and is masked",
            hint=Hint(
                "run the task again with the secret: {}",
                NextStep("run", {"path": ..., "parameters": ...}),
            ),
        )
    kept = (old.plan.get("metadata") or {}).get("logbook") or {}
    document = formats.loads(text, suffix, frozenset(map(str, kept.get("kernels", ()))))
    source = Source(workspace.root / old.task, text, document)
    filled, changes = _filled(old, document)
    return Again(old.run_id, source, filled, old.parameters, changes)


def _text(old: Record, data: bytes) -> str:
    """The source as it was run. What is kept is UTF-8, whatever its coding line says."""
    text = data.decode("utf-8", "surrogatepass")
    if hashlib.sha256(data).hexdigest() == old.plan.get("source_sha256"):
        return text
    if _MASKED in text:
        raise UsageError(
            f"{old.run_id} cannot be replayed: its source held a secret, which is masked in the "
            "record",
            hint="read secrets from the environment, then run the task anew",
        )
    raise UsageError(
        f"{old.run_id} cannot be replayed: its source is not the one that was run",
        hint=f"somebody changed it; quire verify {old.run_id} says more of an archived run",
    )


def _filled(old: Record, document: Document) -> tuple[Document, dict[str, Change]]:
    """With the very cell that set the parameters then: a record has dates only as text. And with
    what was changed for that run."""
    cells = list(placed(document, old.parameters).cells)
    injected = [at for at, cell in enumerate(old.cells) if INJECTED_TAG in cell.tags]
    if injected and (old.parameters or document.format == "logbook"):
        cells = [cell for cell in cells if INJECTED_TAG not in cell.tags]
        at = injected[0]
        cells.insert(at, _as_cell(old.cells[at]))
    if [(c.kind, c.source) for c in cells] != [(c.kind, _original(c)) for c in old.cells]:
        raise UsageError(
            f"{old.run_id} cannot be replayed: its record has other cells than its source",
            hint=f"quire verify {old.run_id} says more of an archived run",
        )
    changes: dict[str, Change] = {}
    for at, (cell, then) in enumerate(zip(cells, old.cells, strict=True)):
        if CHANGED in then.metadata:
            told = then.metadata[CHANGED]
            said = (str(told.get("reason") or ""), str(told.get("by") or ""))
            changes[cell.id] = Change(cell.source, then.source, *said)
            cells[at] = replace(cell, source=then.source)
    return replace(document, cells=tuple(cells)), changes


def _original(cell: CellRecord) -> str:
    """What the task says, where the cell was changed for the run."""
    changed = cell.metadata.get(CHANGED)
    return str(changed.get("original", "")) if isinstance(changed, Mapping) else cell.source


def _as_cell(cell: CellRecord) -> Cell:
    return Cell("code", cell.source, cell.id, tags=(INJECTED_TAG,))


def _about(old: Record) -> Iterator[str]:
    if old.resumed_from:
        yield (
            f"{old.run_id} went on with {old.resumed_from}: some of its cells ran there. "
            "Now all run, in a clean kernel"
        )
    if old.outcome in ("cancelled", "died", "timed_out", "paused"):
        yield f"{old.run_id} did not come to its end: {old.outcome.replace('_', ' ')}"


def kernel_of(old: Record, notes: list[str]) -> tuple[str | None, str | None]:
    """The name of the kernel, or the interpreter, that the run had; what the workspace says where
    neither is here any more."""
    kernel = old.plan.get("kernel")
    kernel = kernel if isinstance(kernel, Mapping) else {}
    if kernel.get("kind") == "jupyter":
        return str(kernel.get("kernel", "")), None
    executable = str(kernel.get("executable", ""))
    if executable == sys.executable:
        return "", ""
    if os.path.isabs(executable) and os.access(executable, os.X_OK):
        return "", executable
    notes.append(f"the interpreter {executable or 'it had'} is not here: the workspace's is used")
    return None, None


def folder_of(workspace: Workspace, old: Record, notes: list[str]) -> Path:
    """Where it ran. Only inside the workspace: an archive may come from anywhere."""
    told = old.plan.get("cwd")
    if not told:
        notes.append("the record does not tell the folder it ran in: the workspace's root is used")
        return workspace.root
    folder = (workspace.root / str(told)).resolve()
    root = workspace.root.resolve()
    if folder.is_dir() and (folder == root or folder.is_relative_to(root)):
        return folder
    notes.append(f"the folder it ran in, {told}, is not in this workspace: its root is used")
    return workspace.root
