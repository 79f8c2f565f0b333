"""Put an edit into the JSON of a notebook, leaving the rest of the text alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..errors import DocumentError
from . import ipynb
from .document import Cell, Document, digest_id, metadata_of
from .edit import Slot, wanted

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
    style = _style(text)
    gaps = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    between = gaps[0] if gaps else f",{style.break_(2)}"
    opening, closing = style.break_(2), style.break_(1)
    if spans:
        opening, closing = text[layout.start : spans[0][0]], text[spans[-1][1] : layout.end]
    parts = []
    for origin, cell in slots:
        if cell is None:
            assert origin is not None
            parts.append(layout.raw(origin))
        elif origin is None:
            parts.append(style.dumps(_new(cell, _ids(text))))
        else:
            data = json.loads(layout.raw(origin))
            parts.append(style.dumps(_changed(data, doc.cells[origin], cell)))
        known = origin is not None and origin < len(gaps)
        parts.append(gaps[origin] if known and origin is not None else between)
    inside = [opening, *parts[:-1], closing] if parts else []
    return "".join([text[: layout.start], *inside, text[layout.end :]])


@dataclass(frozen=True, slots=True)
class _Style:
    """How the file is laid out; no `step` means on one line."""

    step: str | None
    newline: str
    tight: bool
    escaped: bool

    def break_(self, depth: int) -> str:
        return "" if self.step is None else self.newline + self.step * depth

    def dumps(self, value: dict[str, Any]) -> str:
        separators = (",", ":") if self.tight else None
        options: dict[str, Any] = {"indent": self.step, "separators": separators}
        made = json.dumps(value, ensure_ascii=self.escaped, **options)
        try:
            made.encode()
        except UnicodeEncodeError:  # a lone surrogate: JSON can say it, UTF-8 cannot
            made = json.dumps(value, **options)
        # JSON has no newline inside a string: each one here starts a line of its own.
        return made.replace("\n", self.break_(2))


def _style(text: str) -> _Style:
    indented = _INDENT.match(text.removeprefix("\ufeff"))
    return _Style(
        step=indented[1] if indented else None,
        newline="\r\n" if "\r\n" in text else "\n",
        tight='": ' not in text[:2000],
        escaped=text.isascii() and "\\u" in text,
    )


def _ids(text: str) -> set[str] | None:
    """The ids in the file; None where its version of the format has none."""
    notebook = json.loads(text.removeprefix("\ufeff"))
    if notebook.get("nbformat_minor", 0) < 5:
        return None
    return {str(cell.get("id")) for cell in notebook["cells"]}


def _new(cell: Cell, taken: set[str] | None) -> dict[str, Any]:
    data: dict[str, Any] = {"cell_type": cell.kind}
    if cell.kind == "code":
        data["execution_count"] = None
    if taken is not None:
        stem = digest_id(cell.kind, cell.source)
        names = [stem, *(f"{stem}-{n}" for n in range(2, len(taken) + 3))]
        data["id"] = next(name for name in names if name not in taken)
    data["metadata"] = metadata_of(cell)
    if cell.kind == "code":
        data["outputs"] = []
    data["source"] = cell.source.splitlines(keepends=True)
    return data


def _changed(data: dict[str, Any], old: Cell, cell: Cell) -> dict[str, Any]:
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
