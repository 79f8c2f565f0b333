"""What jupytext reads in the same text, in the shape of our cells."""

from __future__ import annotations

import json
from typing import Any

import jupytext

from quire.task import percent
from quire.task.document import Cell


def theirs(text: str) -> list[dict[str, Any]]:
    notebook = jupytext.reads(text, fmt="py:percent")
    out = []
    for cell in notebook.cells:
        metadata = json.loads(json.dumps(cell.metadata))
        metadata.pop("lines_to_next_cell", None)
        out.append({"kind": cell.cell_type, "source": cell.source, "metadata": metadata})
    return out


def shape(cell: Cell) -> dict[str, Any]:
    metadata = dict(cell.metadata)
    if cell.title:
        metadata["title"] = cell.title
    if cell.tags:
        metadata["tags"] = list(cell.tags)
    return {"kind": cell.kind, "source": cell.source, "metadata": metadata}


def ours(text: str) -> list[dict[str, Any]]:
    return [shape(cell) for cell in percent.loads(text).cells]
