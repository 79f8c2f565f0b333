"""A notebook without what changes by itself: ids, counts, timings, what editors leave behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..task.document import Cell, Document

_MEANT = ("title", "name", "tags")  # what of a cell's metadata has a meaning here


def quiet(doc: Document, *, outputs: bool = True) -> dict[str, Any]:
    """As nbformat 4.4, which knows no ids."""
    kernel = doc.kernel_name
    return {
        "cells": [_cell(cell, outputs) for cell in doc.cells],
        "metadata": {} if kernel in ("", "python3", "python") else {"kernel": kernel},
        "nbformat": 4,
        "nbformat_minor": 4,
    }


def _cell(cell: Cell, outputs: bool) -> dict[str, Any]:
    meant = {"title": cell.title, "name": cell.name, "tags": list(cell.tags)}
    out: dict[str, Any] = {
        "cell_type": cell.kind,
        "metadata": {key: meant[key] for key in _MEANT if meant[key]},
        "source": cell.source,
    }
    if cell.kind == "code":
        shown = list(_outputs(cell.outputs)) if outputs else []
        return out | {"execution_count": None, "outputs": shown}
    return out | ({"attachments": cell.attachments} if cell.attachments else {})


def _outputs(outputs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each stream in one piece, first: how two streams interleave is luck."""
    streams: dict[str, str] = {}
    rest: list[dict[str, Any]] = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            name = str(output.get("name", "stdout"))
            streams[name] = streams.get(name, "") + str(output.get("text", ""))
        elif kind == "error":
            said = {key: str(output.get(key, "")) for key in ("ename", "evalue")}
            rest.append({"output_type": kind, **said, "traceback": []})
        else:
            count = {"execution_count": None} if kind == "execute_result" else {}
            data = output.get("data", {})
            rest.append({"output_type": kind, "data": data, "metadata": {}} | count)
    for name in sorted(streams, reverse=True):
        yield {"output_type": "stream", "name": name, "text": streams[name]}
    yield from rest
