"""Change one cell of a task on disk."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import stat
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DocumentError, Hint, Option, StorageError, UsageError
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
    wish = _Wish(
        cell, expect, new_source, insert, kind, title, tags, delete, move_before, move_after,
        find, replace, all,
    )  # fmt: skip
    wish.check()
    return _edit(workspace, path, wish)


@dataclass(frozen=True, slots=True)
class _Wish:
    cell: Address
    expect: str | None
    source: str | None
    insert: Where | None
    kind: CellKind | None
    title: str | None
    tags: Sequence[str] | None
    delete: bool
    before: Address | None
    after: Address | None
    find: str | None
    replace: str | None
    everywhere: bool

    def check(self) -> None:
        if self.insert is not None and self.source is None:
            raise UsageError(
                "a new cell needs a source",
                hint=Hint("give the text of the cell: {}", Option("--source", "new_source")),
            )
        if self.find is not None and self.replace is None:
            raise UsageError(
                "find and replace go together: replace is missing",
                hint=Hint("{}", Option("--replace", "replace")),
            )
        if self.replace is not None and self.find is None:
            raise UsageError(
                "find and replace go together: find is missing",
                hint=Hint("{}", Option("--find", "find")),
            )
        asked = {
            "deleting": self.delete,
            "moving before": self.before is not None,
            "moving after": self.after is not None,
            "replacing text": self.find is not None,
            "changing": any(
                value is not None for value in (self.source, self.kind, self.title, self.tags)
            ),
        }
        wanted = [name for name, given in asked.items() if given]
        if len(wanted) != 1:
            said = f"{' and '.join(wanted)} at once" if wanted else "no edit was asked for"
            hint: str = Hint(
                "give {}, {}, {} or {}, or {} and {}, or {}",
                Option("--source", "new_source"),
                *(Option(f"--{name}", name) for name in ("kind", "title")),
                Option("--tag", "tags"),
                *(Option(f"--{name}", name) for name in ("find", "replace", "delete")),
            )
            raise UsageError(f"one edit at a time: {said}", hint=hint)

    def apply(self, task: Task) -> Edited:
        cell, expect = self.cell, self.expect
        if self.delete:
            return editing.delete(task, cell, expect=expect)
        if self.before is not None:
            return editing.move(task, cell, where="before", other=self.before, expect=expect)
        if self.after is not None:
            return editing.move(task, cell, where="after", other=self.after, expect=expect)
        if self.find is not None and self.replace is not None:
            return editing.substitute(
                task, cell, self.find, self.replace, everywhere=self.everywhere, expect=expect
            )
        if self.insert is not None and self.source is not None:
            return editing.insert(
                task,
                cell,
                self.source,
                where=self.insert,
                kind=self.kind or "code",
                title=self.title or "",
                tags=self.tags or (),
                expect=expect,
            )
        return editing.change(
            task,
            cell,
            source=self.source,
            kind=self.kind,
            title=self.title,
            tags=self.tags,
            expect=expect,
        )


def _edit(workspace: Workspace, path: str | Path, wish: _Wish) -> Edit:
    full = read(workspace, path).path
    with _alone(full):
        data = full.read_bytes()
        task = Task(formats.decode(data, str(path)), full.suffix, workspace.named(full))
        try:
            edited = wish.apply(task)
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
    if path.read_bytes() != before:  # by an editor, which asks nobody
        raise DocumentError(
            f"{name} was written by somebody else in this moment; nothing was changed",
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
