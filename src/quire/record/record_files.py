"""A record as the archive keeps it: a few files in memory, and back.

record.json      everything but the cells' code and outputs
notebook.ipynb   the executed notebook: code and outputs
source.*         the task as it was run

Outputs that are too large for git are replaced by a pointer: a display that names the digest of
the output's canonical JSON, which is kept elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from .cell_calls import is_ours
from .events import Asked, CellError, NoteAdded, ToolCalled
from .executed_notebook import dumps, escaped, notebook, paired
from .plan import jsonable
from .record import CellRecord, Record, Result, RunError

FORMAT = 1
POINTER = "application/vnd.quire.pointer+json"
RECORD, NOTEBOOK, SOURCE = "record.json", "notebook.ipynb", "source"

Keep = Callable[[bytes], object]
ReadObject = Callable[[str], bytes | None]


def archive_files(
    record: Record,
    source: bytes,
    suffix: str,
    *,
    version: str,
    large: int | None = None,
    keep: Keep | None = None,
) -> dict[str, bytes]:
    """`keep` gets what is larger than `large` bytes before a pointer to it is written."""
    nb = notebook(record, version=version)
    if large is not None and keep is not None:
        for cell in nb["cells"]:
            if "outputs" in cell:
                cell["outputs"] = [
                    output if is_ours(output) else _pointed(output, large, keep)
                    for output in cell["outputs"]
                ]
    return {
        RECORD: _record_json(record),
        NOTEBOOK: dumps(nb),
        f"{SOURCE}{suffix}": source,
    }


def source_name(files: Mapping[str, bytes]) -> str:
    return next(name for name in files if name.partition(".")[0] == SOURCE)


def canonical(value: Any) -> bytes:
    """The same bytes for the same JSON value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode()


def _pointed(output: dict[str, Any], large: int, keep: Keep) -> dict[str, Any]:
    data = canonical(jsonable(output))
    if len(data) <= large:
        return output
    keep(data)
    digest = hashlib.sha256(data).hexdigest()
    kind = output["output_type"]
    pointer = {"sha256": digest, "size": len(data), "output_type": kind}
    text = f"{len(data):,} bytes of {kind} are kept outside git: sha256 {digest}"
    return {
        "output_type": "display_data",
        "data": {POINTER: pointer, "text/plain": text},
        "metadata": {},
    }


def pointer_of(output: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The pointer, where the output is one."""
    data = output.get("data")
    found = data.get(POINTER) if isinstance(data, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _record_json(record: Record) -> bytes:
    origin = record.origin
    told = {
        "format": FORMAT,
        "run_id": record.run_id,
        "uuid": record.uuid,
        "task": record.task,
        "title": record.title,
        "outcome": record.outcome,
        "reason": record.reason,
        "started": record.started,
        "finished": record.finished,
        "duration": record.duration,
        "parent": record.parent,
        "plan": record.plan,
        "results": {
            name: {"kind": r.kind, "value": r.value, "cell": r.cell}
            for name, r in record.results.items()
        },
        "error": asdict(record.error) if record.error else None,
        **({"recovered": True} if record.recovered else {}),
        "warnings": list(record.warnings),
        "tool_calls": [asdict(call) for call in record.tool_calls],
        "notes": [asdict(note) for note in record.notes],
        "questions": [asdict(asked) for asked in record.asked],
        "cells": [_cell(cell) for cell in record.cells],
        "environment": origin.get("environment", {}),
        "engine": origin.get("engine", {}),
        "kernel": record.plan.get("kernel", {}),
        "git": origin.get("git"),
        "asked": origin.get("asked", {}),
    }
    told = jsonable(told)
    try:
        return _lines(told).encode()
    except UnicodeEncodeError:
        return escaped(_lines(paired(told)))


def _lines(told: dict[str, Any]) -> str:
    """A key a line, and a cell a line: as quick to write as JSON without any, and still legible."""

    def dumps(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    rows = []
    for key, value in told.items():
        text = dumps(value)
        if key == "cells" and value:
            text = "[\n  " + ",\n  ".join(map(dumps, value)) + "\n ]"
        rows.append(f" {dumps(key)}: {text}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _cell(cell: CellRecord) -> dict[str, Any]:
    return {
        "id": cell.id,
        "kind": cell.kind,
        "title": cell.title,
        "tags": list(cell.tags),
        "status": cell.status,
        "started": cell.started,
        "finished": cell.finished,
        "duration": cell.duration,
        "execution_count": cell.execution_count,
        "error": _error(cell.error) if cell.error else None,
        **({"variables": list(map(dict, cell.variables))} if cell.variables else {}),
    }


def read_record(files: Mapping[str, bytes], read_object: ReadObject | None = None) -> Record:
    """The record again. Raises ValueError, KeyError or TypeError for files that are not one.

    Pointers become what they point at where `read_object` has it.
    """
    told = json.loads(files[RECORD])
    nb = json.loads(files[NOTEBOOK])
    if told["format"] != FORMAT:
        raise ValueError(f"record.json has the format {told['format']!r}, this reads {FORMAT}")
    cells = tuple(
        _read_cell(cell, shown, read_object)
        for cell, shown in zip(told["cells"], nb["cells"], strict=True)
    )
    error = told["error"]
    keys = ("environment", "engine", "git", "asked")
    return Record(
        **{key: told[key] for key in _PLAIN},
        cells=cells,
        results={
            name: Result(name, r["kind"], r["value"], r["cell"])
            for name, r in told["results"].items()
        },
        warnings=tuple(told["warnings"]),
        tool_calls=tuple(ToolCalled(**call) for call in told["tool_calls"]),
        notes=tuple(NoteAdded(**note) for note in told.get("notes", ())),
        asked=tuple(
            Asked(**{**asked, "choices": tuple(asked["choices"])})
            for asked in told.get("questions", ())
        ),
        error=RunError(**{**error, "traceback": tuple(error["traceback"])}) if error else None,
        recovered=bool(told.get("recovered")),
        origin={key: told[key] for key in keys} if told["environment"] else {},
    )


_PLAIN = (
    "run_id",
    "uuid",
    "task",
    "title",
    "outcome",
    "started",
    "finished",
    "duration",
    "reason",
    "parent",
    "plan",
)
_ADDED = ("papermill", "quire", "tags")


def _error(error: CellError) -> dict[str, Any]:
    told = asdict(error)
    if not error.frames:
        del told["frames"]
    return told


def _read_error(told: Mapping[str, Any]) -> CellError:
    return CellError(
        **{**told, "traceback": tuple(told["traceback"]), "frames": tuple(told.get("frames", ()))}
    )


def _read_cell(
    cell: Mapping[str, Any], shown: Mapping[str, Any], read_object: ReadObject | None
) -> CellRecord:
    plain = dict(cell)
    error, tags = plain.pop("error"), plain.pop("tags")
    variables = tuple(plain.pop("variables", ()))
    return CellRecord(
        **plain,
        source="".join(shown["source"]),
        tags=tuple(tags),
        metadata={k: v for k, v in shown["metadata"].items() if k not in _ADDED},
        attachments=shown.get("attachments", {}),
        outputs=tuple(
            _read_output(output, read_object)
            for output in shown.get("outputs", ())
            if not is_ours(output)
        ),
        error=_read_error(error) if error else None,
        variables=variables,
    )


def _read_output(output: Mapping[str, Any], read_object: ReadObject | None) -> dict[str, Any]:
    pointer = pointer_of(output)
    if pointer is not None and read_object is not None:
        data = read_object(str(pointer.get("sha256")))
        if data is not None:
            output = json.loads(data)
    if output["output_type"] == "stream":
        return {**output, "text": "".join(output["text"])}
    return dict(output)
