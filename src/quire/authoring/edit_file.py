"""Change one cell of a task on disk."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import stat
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DocumentError, StorageError, UsageError
from ..files import write_atomic
from ..task import edit as editing
from ..task import formats
from ..task.document import CellKind, Document
from ..task.edit import Address, Edited, Task, Where
from ..task.lint import Finding, lint
from ..task.read_task import read
from ..task.stale import Ran, stale
from ..workspace import Workspace


@dataclass(frozen=True, slots=True)
class Edit:
    """What became of the task, and what a linter says about it now."""

    path: Path
    edited: Edited
    findings: tuple[Finding, ...]
    # By session: the cells that it ran and that no longer stand, with the reason.
    stale: Mapping[str, Sequence[tuple[int, str, str]]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        edited = self.edited
        return {
            "path": str(self.path),
            "cell": edited.cell_id or None,
            "index": edited.index if edited.cell_id else None,
            "diff": edited.diff,
            "replaced": edited.replaced,
            "findings": [
                {
                    "cell": finding.cell_id,
                    "index": finding.index,
                    "line": finding.line,
                    "column": finding.column,
                    "kind": finding.kind,
                    "message": finding.message,
                }
                for finding in self.findings
            ],
            "stale": {
                name: [{"index": at, "cell": cell, "reason": why} for at, cell, why in cells]
                for name, cells in self.stale.items()
            },
        }


def stale_in_sessions(
    workspace: Workspace, path: Path, document: Document
) -> dict[str, list[tuple[int, str, str]]]:
    """What each open session on this task would have to run again. Read from their journals."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    store = workspace.sessions
    for state in store.states(store.on(path)):
        if state.closed:
            continue
        ran = [
            Ran("", one.source, one.order)
            if one.index is None
            else Ran(one.cell, one.source, one.order, one.index, one.title)
            for one in (given.cell for given in state.ran)
        ]
        reasons = stale(document.cells, ran)
        found[state.name] = [
            (at, cell.id, reasons[cell.id])
            for at, cell in enumerate(document.cells)
            if cell.id in reasons
        ]
    return found


def edit(
    workspace: Workspace,
    path: str | Path,
    cell: Address,
    *,
    new_source: str | None = None,
    insert: Where | None = None,
    kind: CellKind | None = None,
    delete: bool = False,
    move_before: Address | None = None,
    move_after: Address | None = None,
    find: str | None = None,
    replace: str | None = None,
    all: bool = False,
    expect: str | None = None,
    title: str | None = None,
    tags: Sequence[str] | None = None,
) -> Edit:
    """One edit of one cell. Refused when the cell is not the one the caller has read.

    `new_source` replaces the cell, or with `insert` is a new one beside it. `kind`, `title` and
    `tags` are those of the new cell, or change the one that is there.
    """
    if insert is not None and new_source is None:
        raise UsageError("a new cell needs a source", hint="give the text of the cell: --source")
    if (find is None) != (replace is None):
        missing = "replace" if replace is None else "find"
        hint = f"--{missing}"
        raise UsageError(f"find and replace go together: {missing} is missing", hint=hint)
    asked = {
        "deleting": delete,
        "moving before": move_before is not None,
        "moving after": move_after is not None,
        "replacing text": find is not None,
        "changing": any(value is not None for value in (new_source, kind, title, tags)),
    }
    _check_one([name for name, wanted in asked.items() if wanted])

    def apply(task: Task) -> Edited:
        if delete:
            return editing.delete(task, cell, expect=expect)
        if move_before is not None:
            return editing.move(task, cell, where="before", other=move_before, expect=expect)
        if move_after is not None:
            return editing.move(task, cell, where="after", other=move_after, expect=expect)
        if find is not None and replace is not None:
            return editing.substitute(task, cell, find, replace, everywhere=all, expect=expect)
        if insert is not None and new_source is not None:
            return editing.insert(
                task, cell, new_source, where=insert, kind=kind or "code", title=title or "",
                tags=tags or (), expect=expect,
            )  # fmt: skip
        return editing.change(
            task, cell, source=new_source, kind=kind, title=title, tags=tags, expect=expect
        )

    return _edited(workspace, path, apply)


def _check_one(wanted: Sequence[str]) -> None:
    if len(wanted) != 1:
        said = f"{' and '.join(wanted)} at once" if wanted else "no edit was asked for"
        hint = "give --source, --kind, --title or --tag, or --find and --replace, or --delete"
        raise UsageError(f"one edit at a time: {said}", hint=hint)


def _edited(workspace: Workspace, path: str | Path, apply: Callable[[Task], Edited]) -> Edit:
    full = read(workspace, path).path
    with _alone(full):
        data = full.read_bytes()
        task = Task(formats.decode(data, str(path)), full.suffix, workspace.named(full))
        try:
            edited = apply(task)
        except DocumentError as error:
            raise DocumentError(f"{path}: {error.message}", hint=error.hint) from error
        if edited.text != task.text:
            _write(full, data, _encoded(edited.text, data, full), str(path))
    behind = stale_in_sessions(workspace, full, edited.document)
    return Edit(full, edited, tuple(lint(edited.document)), behind)


def _encoded(text: str, before: bytes, path: Path) -> bytes:
    """The text as the bytes of a file that was read from `before`."""
    encoding = "utf-8-sig" if before.startswith(b"\xef\xbb\xbf") else "utf-8"
    try:
        if path.suffix == ".py":
            encoding, _ = tokenize.detect_encoding(io.BytesIO(before).readline)
        data = text.encode(encoding)
    except (SyntaxError, UnicodeEncodeError) as error:
        raise DocumentError(
            f"{path.name} is {encoding} text, which cannot hold the edit: {error}",
            hint="save the file as UTF-8 first",
        ) from error
    if formats.decode(data, path.name) != text:
        raise DocumentError(
            "the edit would change the encoding of the file",
            hint="keep the word `coding` out of the first two lines",
        )
    return data


def _write(path: Path, before: bytes, after: bytes, name: str) -> None:
    if path.read_bytes() != before:  # by an editor, which takes no lock
        raise DocumentError(
            f"{name} was written by another program meanwhile; nothing was changed",
            hint="look at the task again and repeat the edit",
        )
    if not os.access(path, os.W_OK):
        raise StorageError(f"{name} is read-only", hint="chmod u+w, if it is yours to change")
    write_atomic(path, after, mode=stat.S_IMODE(path.stat().st_mode))


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One edit after the other: each is of the text that the one before it left."""
    while True:
        with path.open("rb") as file:
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX)
            # An edit leaves another file in the place of the one that was waited for.
            if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                continue
            yield
            return
