"""Jupyter's own format. Read and written as plain JSON; nbformat only upgrades old notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from ..errors import DocumentError
from .document import Cell, Document, cell_from, identified, language_of, metadata_of

_SURROGATE = re.compile("[\ud800-\udfff]")
_VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}$")
_SPLIT = ("application/javascript", "image/svg+xml")
_NOT_IN_ID = re.compile(r"[^a-zA-Z0-9_-]+")


def loads(text: str) -> Document:
    data = _parsed(text)
    if not isinstance(data, dict):
        _refuse(f"it holds a JSON {_json_type(data)}, not an object")
    version = data.get("nbformat")
    if type(version) is not int:
        _refuse("the key `nbformat` is missing or not a number")
    if version < 4:
        data = _upgraded(text, version)
    elif version > 4:
        raise DocumentError(
            f"the notebook has nbformat {version}, which is newer than 4",
            hint="save it as nbformat 4: jupyter nbconvert --to notebook",
        )
    cells = data.get("cells")
    if not isinstance(cells, list):
        _refuse("the key `cells` is missing or not a list")
    metadata = data.get("metadata", {})
    if not isinstance(metadata, dict):
        _refuse("`metadata` is not an object")
    return Document(
        cells=identified(_cell(cell, at) for at, cell in enumerate(cells)),
        metadata=metadata,
        language=language_of(metadata),
        format="ipynb",
    )


def dumps(doc: Document) -> str:
    """An nbformat 4.5 notebook. The same document always gives the same text."""
    notebook = {
        "cells": [_cell_json(cell, id_) for cell, id_ in zip(doc.cells, _ids(doc), strict=True)],
        "metadata": _notebook_metadata(doc.metadata),
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
    # UTF-8 has no lone surrogates, JSON has an escape for them.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise DocumentError(
            f"the notebook is not valid JSON: {error.msg} on line {error.lineno}, "
            f"column {error.colno}",
            hint="an .ipynb is a JSON file; an unfinished save or a merge conflict may have cut it",
        ) from error
    except (ValueError, RecursionError) as error:
        raise DocumentError(
            f"the notebook cannot be read: {error}",
            hint="a number in it is too long, or its lists are nested too deeply",
        ) from error


def _upgraded(text: str, version: int) -> dict[str, Any]:
    import nbformat

    reads: Any = nbformat.reads
    try:
        notebook = reads(text, as_version=4)
        return dict(json.loads(json.dumps(notebook)))
    except Exception as error:  # nbformat's upgrade trusts the notebook: anything can come out
        raise DocumentError(
            f"the notebook has nbformat {version} and cannot be upgraded: {error!r}",
            hint="open it in Jupyter and save it again",
        ) from error


def _refuse(why: str) -> NoReturn:
    raise DocumentError(
        f"the file is not a Jupyter notebook: {why}",
        hint="an .ipynb needs `nbformat` 4, `metadata` and a list of `cells`",
    )


def _json_type(value: Any) -> str:
    return {list: "list", str: "string", bool: "boolean", type(None): "null"}.get(
        type(value), "number"
    )


def _cell(data: Any, at: int) -> Cell:
    if not isinstance(data, dict):
        _refuse(f"cell {at} is not an object")
    kind = data.get("cell_type")
    if kind not in ("code", "markdown", "raw"):
        _refuse(f"cell {at} has the cell_type {kind!r}")
    metadata = data.get("metadata", {})
    if not isinstance(metadata, dict):
        _refuse(f"`metadata` of cell {at} is not an object")
    cell = cell_from(kind, _joined(data.get("source", ""), f"`source` of cell {at}"), metadata)
    if kind == "code":
        count = data.get("execution_count")
        if count is not None and type(count) is not int:
            _refuse(f"`execution_count` of cell {at} is not a number")
        return replace(cell, outputs=_outputs(data.get("outputs", []), at), execution_count=count)
    attachments = data.get("attachments", {})
    if not isinstance(attachments, dict):
        _refuse(f"`attachments` of cell {at} is not an object")
    if not attachments:
        return cell
    whole = {
        name: _whole(bundle) if isinstance(bundle, dict) else bundle
        for name, bundle in attachments.items()
    }
    return replace(cell, attachments=whole)


def _joined(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "".join(value)
    _refuse(f"{what} is neither text nor a list of lines")


def _outputs(value: Any, at: int) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(output, dict) for output in value):
        _refuse(f"`outputs` of cell {at} is not a list of objects")
    return tuple(_output(output, at) for output in value)


def _output(output: dict[str, Any], at: int) -> dict[str, Any]:
    """Text in one piece: a notebook may store it as a list of lines."""
    if not isinstance(output.get("output_type"), str):
        _refuse(f"an output of cell {at} has no output_type")
    if output["output_type"] == "stream":
        return output | {"text": _joined(output.get("text", ""), f"a stream of cell {at}")}
    data = output.get("data")
    if data is None:
        return output
    if not isinstance(data, dict):
        _refuse(f"`data` in an output of cell {at} is not an object")
    return output | {"data": _whole(data)}


def _whole(bundle: Mapping[str, Any]) -> dict[str, Any]:
    return {
        mime: "".join(value) if _is_text_list(mime, value) else value
        for mime, value in bundle.items()
    }


def _split(bundle: Mapping[str, Any]) -> dict[str, Any]:
    """Text as a list of lines, where Jupyter writes it so: it makes for readable diffs."""
    return {
        mime: value.splitlines(keepends=True)
        if isinstance(value, str) and (mime.startswith("text/") or mime in _SPLIT)
        else value
        for mime, value in bundle.items()
    }


def _is_text_list(mime: str, value: Any) -> bool:
    json_type = mime.startswith("application/") and mime.endswith(("/json", "+json"))
    return (
        not json_type and isinstance(value, list) and all(isinstance(part, str) for part in value)
    )


def _cell_json(cell: Cell, id_: str) -> dict[str, Any]:
    out: dict[str, Any] = {
        "cell_type": cell.kind,
        "id": id_,
        "metadata": metadata_of(cell),
        "source": cell.source.splitlines(keepends=True),
    }
    if cell.kind == "code":
        out["execution_count"] = cell.execution_count
        out["outputs"] = [_output_json(output) for output in cell.outputs]
    elif cell.attachments:
        out["attachments"] = {
            name: _split(bundle) if isinstance(bundle, Mapping) else bundle
            for name, bundle in cell.attachments.items()
        }
    return out


def _output_json(output: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(output)
    if isinstance(out.get("text"), str):
        out["text"] = out["text"].splitlines(keepends=True)
    if isinstance(out.get("data"), Mapping):
        out["data"] = _split(out["data"])
    return out


def _ids(doc: Document) -> list[str]:
    """The cells' ids, made valid and unique where they are not."""
    out: list[str] = []
    seen: set[str] = set()
    for at, cell in enumerate(doc.cells):
        stem = cell.id if _VALID_ID.match(cell.id) else _NOT_IN_ID.sub("-", cell.id)[:50]
        id_ = stem or f"cell-{at}"
        n = 1
        while id_ in seen:
            n += 1
            id_ = f"{stem[:50] or 'cell'}-{n}"
        seen.add(id_)
        out.append(id_)
    return out


def _notebook_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A kernelspec needs a display name, which a person may leave out in a `.py` header."""
    out = dict(metadata)
    spec = out.get("kernelspec")
    if isinstance(spec, Mapping) and isinstance(spec.get("name"), str):
        out["kernelspec"] = {"display_name": spec["name"]} | dict(spec)
    return out
