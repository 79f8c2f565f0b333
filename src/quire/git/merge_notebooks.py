"""Merge two versions of a notebook that have a common past, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..errors import DocumentError, UsageError
from ..files import write_atomic
from ..task import formats
from ..task.ipynb import loads
from ..workspace import Workspace
from . import merge_documents
from . import nbdime_process as nbdime

_EMPTY: merge_documents.Notebook = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


class Merged(NamedTuple):
    """A valid notebook, also where there are conflicts: those are marked in it."""

    data: bytes
    conflicts: int
    note: str = ""  # why cells were not merged one by one, where they were not


def merge(
    workspace: Workspace,
    base: str | Path,
    ours: str | Path,
    theirs: str | Path,
    *,
    output: str | Path | None = None,
) -> Merged:
    """Read three files, merge them and write the outcome to `output`, if there is one."""
    paths = [workspace.cwd / name for name in (base, ours, theirs)]
    data = [_read(path, name) for path, name in zip(paths, (base, ours, theirs), strict=True)]
    target = None if output is None else workspace.cwd / output
    if target is not None:
        if target.suffix.lower() != ".ipynb":
            raise UsageError(f"{output} is no name for a notebook", hint="end it in .ipynb")
        if not target.parent.is_dir():
            raise UsageError(
                f"there is no folder {target.parent}", hint="make it, or choose another"
            )
        target = target.resolve()
    merged = merge_files(data[0], data[1], data[2], path=str(ours), workspace=workspace)
    if target is not None:
        write_atomic(target, merged.data)
    return merged


def _read(path: Path, name: str | Path) -> bytes:
    if path.suffix.lower() == ".py":
        raise UsageError(
            f"{name} is plain text, which git merges well by itself",
            hint="git merge-file OURS BASE THEIRS; for notebooks: quire merge BASE OURS THEIRS",
        )
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {str(name)!r}: {why}", hint="check the path") from error


def merge_files(
    base: bytes,
    ours: bytes,
    theirs: bytes,
    *,
    path: str = "notebook.ipynb",
    workspace: Workspace | None = None,
) -> Merged:
    """The contents of three files. An empty base: both sides added the file.

    Nothing a side added is ever lost: where the cells cannot be merged one by one, both versions
    stand in the outcome, one after the other.
    """
    ws = workspace or Workspace()
    if PurePosixPath(path).suffix.lower() == ".py":
        raise UsageError(f"{path} is plain text, which git merges by itself", hint="git merge-file")
    b = _parsed(base, f"the common past of {path}") if base.strip() else dict(_EMPTY)
    o, t = _parsed(ours, path), _parsed(theirs, f"the other version of {path}")
    for same, kept in ((o == t, ours), (o == b, theirs), (t == b, ours)):
        if same:
            return Merged(kept, 0)
    return _merged(ws, b, o, t)


def _parsed(data: bytes, name: str) -> merge_documents.Notebook:
    """Checked by the reader of tasks; then as it is, with everything we know nothing of."""
    try:
        text = formats.decode(data, name)
        loads(text)
    except DocumentError as error:
        raise DocumentError(f"{name}: {error.message}", hint=error.hint) from error
    found: merge_documents.Notebook = json.loads(text)
    if found["nbformat"] != 4:
        raise DocumentError(
            f"{name} has nbformat {found['nbformat']}", hint="open it in Jupyter and save it again"
        )
    return found


def _merged(
    ws: Workspace,
    base: merge_documents.Notebook,
    ours: merge_documents.Notebook,
    theirs: merge_documents.Notebook,
) -> Merged:
    kept = merge_documents.Kept()
    # Ours first: where both know an id for a cell, ours stays.
    o, t, b = (merge_documents.prepared(nb, kept) for nb in (ours, theirs, base))
    answer, conflict, note = _asked(ws, b, o, t)
    if not note:
        if gone := merge_documents.lost(b, o, t, answer):
            note = f"nbdime would have dropped {len(gone)} of the lines, tags and outputs added"
        elif conflict and not merge_documents.conflicts(answer):
            note = "nbdime marked no place for a conflict"
    if note:
        answer, conflict = merge_documents.side_by_side(o, t), True
    minor = max(_minor(nb) for nb in (base, ours, theirs))
    nb = merge_documents.restored(answer, kept, minor)
    return Merged(merge_documents.dumps(nb), merge_documents.conflicts(nb) if conflict else 0, note)


def _minor(nb: merge_documents.Notebook) -> int:
    minor = nb.get("nbformat_minor", 0)
    return minor if isinstance(minor, int) else 0


def _asked(
    ws: Workspace,
    base: merge_documents.Notebook,
    ours: merge_documents.Notebook,
    theirs: merge_documents.Notebook,
) -> tuple[merge_documents.Notebook, bool, str]:
    """nbdime's answer and whether there are conflicts, or why it gave none: it breaks at times."""
    files = {"base.ipynb": base, "ours.ipynb": ours, "theirs.ipynb": theirs}
    written = {name: json.dumps(nb).encode() for name, nb in files.items()}
    answer = nbdime.call(ws, "nbdime.nbmergeapp", written, *files, out="merged.ipynb")
    if answer.written is None:
        return {}, True, nbdime.broke(answer, "merge the cells one by one").message
    try:
        merged: merge_documents.Notebook = json.loads(answer.written)
        loads(json.dumps(merged))
    except (ValueError, DocumentError) as error:
        return {}, True, f"nbdime wrote no notebook: {error}"
    return merged, answer.code != 0, ""
