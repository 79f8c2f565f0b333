"""Put an edit into the JSON of a notebook, leaving the rest of the text alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import DocumentError
from . import ipynb
from .edit import Slot, wanted
from .model import Cell, Document, metadata_of

_BLANK = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"\{\r?\n([ \t]+)\"")


@dataclass(frozen=True, slots=True)
class _Layout:
    text: str
    # Where the list of cells begins and ends, brackets excluded, and each cell in it.
    start: int
    end: int
    spans: tuple[tuple[int, int], ...]

    def raw(self, at: int) -> str:
        start, end = self.spans[at]
        return self.text[start:end]


def written(text: str, doc: Document, slots: Sequence[Slot], touched: int | None) -> str:
    """The text with these cells. An old or unusual notebook is written as a whole."""
    want = wanted(doc, slots)
    layout = _layout(text)
    if layout is not None and len(layout.spans) == len(doc.cells):
        made = _patched(layout, doc, slots)
        if _reads_as(made, want):
            return made
    made = ipynb.dumps(Document(want, doc.metadata, doc.language, doc.format))
    if not _reads_as(made, want):
        raise DocumentError(
            "the notebook cannot hold this cell", hint="look for characters that are not text"
        )
    return made


def _reads_as(text: str, want: tuple[Cell, ...]) -> bool:
    try:
        found = ipynb.loads(text).cells
    except DocumentError:
        return False
    # By their text, where nan equals itself.
    return found == want or repr(found) == repr(want)


def _layout(text: str) -> _Layout | None:
    """Where the cells stand; None for a notebook that is read only after an upgrade."""
    decoder = json.JSONDecoder()
    at = _skip(text, 1 if text.startswith("\ufeff") else 0) + 1
    found: _Layout | None = None
    at = _skip(text, at)
    while text[at] == '"':
        key, at = decoder.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        if key == "cells" and text[at] == "[":
            found, at = _cells(text, at, decoder)
        else:
            _, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _cells(text: str, at: int, decoder: json.JSONDecoder) -> tuple[_Layout, int]:
    start = at + 1
    spans = []
    at = _skip(text, start)
    while text[at] != "]":
        _, end = decoder.raw_decode(text, at)
        spans.append((at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return _Layout(text, start, at, tuple(spans)), at + 1


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _patched(layout: _Layout, doc: Document, slots: Sequence[Slot]) -> str:
    text, spans = layout.text, layout.spans
    indented = _INDENT.match(text.removeprefix("\ufeff"))
    step = indented[1] if indented else None
    newline = "\r\n" if "\r\n" in text else "\n"
    between = "," if step is None else f",{newline}{step * 2}"
    if len(spans) > 1:
        between = text[spans[0][1] : spans[1][0]]
    opening = "" if step is None else f"{newline}{step * 2}"
    closing = "" if step is None else f"{newline}{step}"
    if spans:
        opening, closing = text[layout.start : spans[0][0]], text[spans[-1][1] : layout.end]
    parts = []
    for at, (origin, cell) in enumerate(slots):
        old = None if origin is None else layout.raw(origin)
        if cell is not None:
            taken = _ids(layout)
            was = None if origin is None else doc.cells[origin]
            value = _new(cell, taken) if old is None else _changed(json.loads(old), was, cell)
            old = _dumped(value, step, newline, text)
        assert old is not None
        parts.append(old)
        if at < len(slots) - 1:
            follows = origin is not None and origin + 1 < len(spans)
            parts.append(text[spans[origin][1] : spans[origin + 1][0]] if follows else between)
    if not parts:
        return text[: layout.start] + text[layout.end :]
    return text[: layout.start] + opening + "".join(parts) + closing + text[layout.end :]


def _ids(layout: _Layout) -> set[str] | None:
    """The ids in the file; None where its version of the format has none."""
    version = json.loads(layout.text.removeprefix("\ufeff"))
    if version.get("nbformat_minor", 0) < 5:
        return None
    return {str(cell.get("id")) for cell in version["cells"]}


def _new(cell: Cell, taken: set[str] | None) -> dict[str, Any]:
    data: dict[str, Any] = {"cell_type": cell.kind}
    if cell.kind == "code":
        data["execution_count"] = None
    if taken is not None:
        from .model import digest_id

        stem = digest_id(cell.kind, cell.source)
        names = [stem, *(f"{stem}-{n}" for n in range(2, len(taken) + 3))]
        data["id"] = next(name for name in names if name not in taken)
    data["metadata"] = metadata_of(cell)
    if cell.kind == "code":
        data["outputs"] = []
    data["source"] = cell.source.splitlines(keepends=True)
    return data


def _changed(data: dict[str, Any], old: Cell | None, cell: Cell) -> dict[str, Any]:
    assert old is not None
    if cell.source != old.source:
        lines = cell.source.splitlines(keepends=True)
        data["source"] = cell.source if isinstance(data.get("source"), str) else lines
    if metadata_of(cell) != metadata_of(old):
        data["metadata"] = metadata_of(cell)
    if (cell.kind, cell.source) == (old.kind, old.source):
        return data
    data["cell_type"] = cell.kind
    if cell.kind == "code":
        data.pop("attachments", None)
        data |= {"execution_count": None, "outputs": []}
    else:
        data.pop("execution_count", None)
        data.pop("outputs", None)
    return data


def _dumped(value: dict[str, Any], step: str | None, newline: str, text: str) -> str:
    escaped = text.isascii() and "\\u" in text
    if step is None:
        tight = '": ' not in text[:2000]
        made = json.dumps(
            value, ensure_ascii=escaped, separators=(",", ":") if tight else (", ", ": ")
        )
    else:
        made = json.dumps(value, ensure_ascii=escaped, indent=step)
    try:
        made.encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON can say it, UTF-8 cannot
        made = json.dumps(value, indent=step)
    # JSON has no newline inside a string: each one here starts a line of its own.
    return made.replace("\n", f"{newline}{(step or '') * 2}")
