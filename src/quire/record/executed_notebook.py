"""A record as the notebook people open: nbformat 4.5, with papermill's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .cell_calls import calls_outputs
from .plan import jsonable
from .record import CellRecord, Record

_PAPERMILL_STATUS = {
    "ok": "completed",
    "carried": "completed",
    "not run": "pending",
    "skipped": "pending",
    "text": None,
}
_IDLE = ("text", "not run", "skipped")


def notebook(record: Record, *, output_path: str = "", version: str = "") -> dict[str, Any]:
    plan = record.plan
    language = plan.get("language", "python")
    kernel = plan.get("kernel", {})
    metadata = dict(plan.get("metadata", {}))
    if not isinstance(metadata.get("kernelspec"), dict):
        metadata["kernelspec"] = {
            "name": kernel.get("name") or "python3",
            "display_name": kernel.get("display_name") or "Python 3",
            "language": language,
        }
    if not isinstance(metadata.get("language_info"), dict):
        metadata["language_info"] = {"name": language}
    metadata["papermill"] = {
        "default_parameters": plan.get("defaults", {}),
        "parameters": plan.get("parameters", {}),
        "environment_variables": {},
        "version": version,
        "input_path": record.task,
        "output_path": output_path,
        "start_time": record.started or None,
        "end_time": record.finished or None,
        "duration": record.duration,
        "exception": None if record.outcome == "ok" else True,
    }
    metadata["quire"] = {
        "run_id": record.run_id,
        "uuid": record.uuid,
        "outcome": record.outcome,
        "parent": record.parent,
    }
    cells = [_cell(cell) for cell in record.cells]
    for cell_id, output in calls_outputs(record).items():
        for cell in cells:
            if cell["id"] == cell_id and "outputs" in cell:
                cell["outputs"].append(output)
    return {
        "cells": cells,
        "metadata": metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(cell: CellRecord) -> dict[str, Any]:
    metadata = dict(cell.metadata)
    if cell.title:
        metadata.setdefault("title", cell.title)
    if cell.tags:
        metadata["tags"] = list(dict.fromkeys(cell.tags))
    out: dict[str, Any] = {
        "cell_type": cell.kind,
        "id": cell.id,
        "metadata": metadata,
        "source": cell.source.splitlines(keepends=True),
    }
    if cell.attachments and cell.kind != "code":
        out["attachments"] = cell.attachments
    metadata["papermill"] = _timing(cell)
    if cell.kind == "code":
        metadata["quire"] = {"status": cell.status}
        out["execution_count"] = cell.execution_count
        out["outputs"] = [output_json(o) for o in cell.outputs]
    return out


def _timing(cell: CellRecord) -> dict[str, Any]:
    raised = None if cell.status in _IDLE else cell.status not in ("ok", "carried")
    return {
        "exception": raised,
        "start_time": cell.started or None,
        "end_time": cell.finished or None,
        "duration": cell.duration,
        "status": _PAPERMILL_STATUS.get(cell.status, "failed"),
    }


def output_json(output: Mapping[str, Any]) -> dict[str, Any]:
    """An output as a notebook has it."""
    kind = output["output_type"]
    if kind == "stream":
        lines = output["text"].splitlines(keepends=True)
        return {"output_type": kind, "name": output["name"], "text": lines}
    if kind == "error":
        return {
            "output_type": kind,
            "ename": str(output.get("ename", "")),
            "evalue": str(output.get("evalue", "")),
            "traceback": [str(line) for line in output.get("traceback", ())],
        }
    out = {"output_type": kind, "data": output["data"], "metadata": output.get("metadata", {})}
    if kind == "execute_result":
        out["execution_count"] = output.get("execution_count")
    return out


def dumps(nb: Mapping[str, Any]) -> bytes:
    """One cell a line: quick to write, and a text tool still finds its way around in it."""
    try:
        return _dumped(nb).encode()
    except UnicodeEncodeError:
        return escaped(_dumped(paired(jsonable(nb))))


def _dumped(nb: Mapping[str, Any]) -> str:
    cells = ",\n".join(_json(cell) for cell in nb["cells"])
    rest = _json({key: value for key, value in nb.items() if key != "cells"})
    return f'{{"cells": [\n{cells}\n],\n{rest[1:]}\n'


def paired(value: Any) -> Any:
    """As whoever reads JSON gets it: two surrogates that make a character are that character."""
    return json.loads(json.dumps(value))


def escaped(text: str) -> bytes:
    """JSON in UTF-8, which has no lone surrogates. JSON writes them as Python does: `\\ud800`."""
    return text.encode("utf-8", "backslashreplace")


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:  # nan and inf are no JSON, whatever Python thinks of them
        return json.dumps(jsonable(value), ensure_ascii=False)
