"""Outputs as blocks: which form of an output each reader gets is decided here and nowhere else.

A writer (html, markdown, agent, terminal, a logbook's page) words a block; it never looks into a
MIME bundle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..record.output_digests import pointer
from ..record.record import CellRecord
from ..record.results import PAPERMILL_PREFIX, QUIRE_MIME, SCRAPBOOK_PREFIX
from ..text import pretty, text_of
from . import sanitised_html
from .images import picture, raster

Kind = Literal[
    "stdout", "stderr", "error", "html", "image", "markdown", "json", "latex", "text", "table",
    "result", "elsewhere", "other",
]  # fmt: skip
Reader = Literal["page", "markdown", "logbook", "agent", "terminal", "index"]


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """`text`: the content; of an image its description, of a result its name, of `other` the MIME
    types. `payload`: an image's base64. `rows`: a table's, its head first."""

    kind: Kind
    text: str = ""
    mime: str = ""
    payload: str = ""
    rows: tuple[tuple[Any, ...], ...] = ()
    size: tuple[tuple[str, int], ...] = ()  # of an image: width and height, where they are given
    is_value: bool = False  # of the cell's last expression
    has_result: bool = False  # which is shown elsewhere, with the results
    size_of_table: str = ""  # how much of a data frame is there, for agents


# What Python or IPython says of an object that only has a rich form.
_SAYS_NOTHING = re.compile(
    r"<(?:IPython\.core\.display\.\w+ object|Figure size .*|[^<>\n]+ at 0x[0-9A-Fa-f]+)>$"
)
PANDAS = re.compile(r"^\[(\d+) rows x (\d+) columns\]$", re.MULTILINE)
_POLARS = re.compile(r"shape: \(([\d_]+), ([\d_]+)\)")
_BODY = re.compile(r"<tbody>(.*?)</tbody>", re.DOTALL)
_ROW = re.compile(r"<tr\b")
_COLUMNS_LEFT_OUT = "<th>...</th>"
# SVG that runs scripts when it is opened by itself, as a file beside a page.
_ACTIVE = re.compile(rb"<script|<foreignObject|\son\w+\s*=|javascript:|<!ENTITY|<iframe", re.I)

Form = Callable[[Mapping[str, Any]], OutputBlock | None]


def _html(data: Mapping[str, Any]) -> OutputBlock | None:
    shown = sanitised_html.output_html(text_of(data.get("text/html", "")))
    return OutputBlock("html", shown) if shown else None


def _image(data: Mapping[str, Any]) -> OutputBlock | None:
    found = picture(data)
    return OutputBlock("image", text_of(data.get("text/plain", "")), *found) if found else None


def _pixels(data: Mapping[str, Any]) -> OutputBlock | None:
    found = raster(data)
    return OutputBlock("image", "", *found) if found else None


def _passive_image(data: Mapping[str, Any]) -> OutputBlock | None:
    found = _image(data)
    if found is None or found.mime != "image/svg+xml":
        return found
    import base64

    return None if _ACTIVE.search(base64.b64decode(found.payload)) else found


def _glued_table(data: Mapping[str, Any]) -> OutputBlock | None:
    glued = data.get(QUIRE_MIME)
    if not isinstance(glued, Mapping) or glued.get("kind") != "table":
        return None
    value = glued.get("value")
    if not isinstance(value, Mapping) or not isinstance(value.get("columns"), list):
        return OutputBlock("result")
    rows = (row for row in value.get("rows", ()) if isinstance(row, list))
    return OutputBlock("table", rows=(tuple(map(str, value["columns"])), *map(tuple, rows)))


def _html_table(data: Mapping[str, Any]) -> OutputBlock | None:
    rows = sanitised_html.table_rows(text_of(data.get("text/html", "")))
    return OutputBlock("table", rows=rows) if rows else None


def _markdown(data: Mapping[str, Any]) -> OutputBlock | None:
    return _as("markdown", data, "text/markdown")


def _latex(data: Mapping[str, Any]) -> OutputBlock | None:
    return _as("latex", data, "text/latex")


def _json(data: Mapping[str, Any]) -> OutputBlock | None:
    if "application/json" not in data:
        return None
    return OutputBlock("json", pretty(data["application/json"]))


def _plain(data: Mapping[str, Any]) -> OutputBlock | None:
    return _as("text", data, "text/plain")


def _as(kind: Kind, data: Mapping[str, Any], mime: str) -> OutputBlock | None:
    return OutputBlock(kind, text_of(data[mime])) if mime in data else None


def _telling(data: Mapping[str, Any]) -> OutputBlock | None:
    """Plain text, unless it only says that there is an object."""
    found = _plain(data)
    text = found.text.strip() if found is not None else ""
    return None if not text or _SAYS_NOTHING.match(text) else found


def _words(data: Mapping[str, Any]) -> OutputBlock | None:
    """The words of HTML; a chart's or a widget's are only its scaffold."""
    if "text/html" not in data or any(mime.endswith("+json") for mime in data):
        return None
    text = sanitised_html.text(text_of(data["text/html"]))
    return OutputBlock("text", text) if text else None


def _frame(data: Mapping[str, Any]) -> OutputBlock | None:
    """A data frame of pandas or polars: how many of its rows are shown is only in its HTML."""
    text = text_of(data.get("text/plain", ""))
    found = PANDAS.search(text) or _POLARS.search(text)
    if found is None:
        return None
    html = text_of(data.get("text/html", ""))
    total = int(found[1].replace("_", ""))
    shown = _rows_shown(html, total)
    size = f"table: {'some' if shown is None else f'{shown:,}'} of {total:,} rows"
    if found.re is PANDAS and _COLUMNS_LEFT_OUT in html.partition("<tbody>")[0]:
        size += f", some of {int(found[2]):,} columns"
    return OutputBlock("text", text, size_of_table=size)


def _rows_shown(html: str, total: int) -> int | None:
    body = _BODY.search(html)
    if body is None:
        return None
    rows = len(_ROW.findall(body[1]))
    return rows if rows <= total and rows == total else max(0, rows - 1)  # one says "..."


# In this order: the first form that an output has is the one that its reader gets.
FORMS: Mapping[Reader, tuple[Form, ...]] = {
    "page": (_html, _image, _markdown, _json, _latex, _plain),
    "markdown": (_image, _markdown, _json, _latex, _telling, _words, _plain),
    "logbook": (
        _passive_image, _glued_table, _markdown, _html_table, _json, _latex, _telling, _words,
        _plain,
    ),
    "agent": (_pixels, _frame, _telling, _markdown, _latex, _json, _words),
    "terminal": (_plain,),
    "index": (_plain, _markdown),
}  # fmt: skip


def display_block(data: Mapping[str, Any], reader: Reader) -> OutputBlock:
    """What a reader gets of one MIME bundle."""
    return replace(_first_form(data, reader), has_result=_carries_result(data))


def _first_form(data: Mapping[str, Any], reader: Reader) -> OutputBlock:
    """Without any form for the reader: the result that it carries, or its types."""
    for form in FORMS[reader]:
        found = form(data)
        if found is not None:
            return found
    if names := list(_result_names(data)):
        return OutputBlock("result", ", ".join(names))
    kinds = [str(mime) for mime in data if mime != "text/plain"]
    return OutputBlock("other", ", ".join(kinds)) if kinds else _plain(data) or OutputBlock("text")


def _carries_result(data: Mapping[str, Any]) -> bool:
    return any(mime.startswith((QUIRE_MIME, SCRAPBOOK_PREFIX, PAPERMILL_PREFIX)) for mime in data)


def _result_names(data: Mapping[str, Any]) -> Iterator[str]:
    for mime, payload in data.items():
        if mime.startswith((QUIRE_MIME, SCRAPBOOK_PREFIX)) and isinstance(payload, Mapping):
            yield str(payload.get("name", ""))


def output_block(output: Mapping[str, Any], reader: Reader) -> OutputBlock | None:
    """One output of a cell; None where there is nothing to show."""
    kind = output.get("output_type")
    if kind == "stream":
        name: Kind = "stderr" if output.get("name") == "stderr" else "stdout"
        return OutputBlock(name, text_of(output.get("text", "")))
    if kind == "error":
        return error_block(output.get("ename", ""), output.get("evalue", ""), output)
    data = output.get("data")
    if not isinstance(data, Mapping):
        return None
    value = kind == "execute_result"
    if (where := pointer(output)) is not None and reader == "agent":
        return OutputBlock(
            "elsewhere", f"{where['size']:,} bytes, kept outside the record", is_value=value
        )
    found = display_block(data, reader)
    return replace(found, is_value=value, size=_size(output.get("metadata"), found.mime))


def _size(metadata: object, mime: str) -> tuple[tuple[str, int], ...]:
    said = metadata.get(mime) if mime and isinstance(metadata, Mapping) else None
    if not isinstance(said, Mapping):
        return ()
    sizes = ((name, said.get(name)) for name in ("width", "height"))
    return tuple((name, size) for name, size in sizes if type(size) is int and 0 < size < 10_000)


def error_block(name: object, value: object, output: Mapping[str, Any]) -> OutputBlock:
    lines = output.get("traceback")
    text = "\n".join(map(str, lines)) if isinstance(lines, list | tuple) else ""
    return OutputBlock("error", text or f"{name}: {value}")


def cell_blocks(cell: CellRecord, reader: Reader) -> Iterator[OutputBlock]:
    """All outputs of a cell, and the error that it ended with where none of them shows one."""
    shown = False
    for output in cell.outputs:
        shown |= output.get("output_type") == "error"
        found = output_block(output, reader)
        if found is not None:
            yield found
    if cell.error is not None and not shown:
        error = cell.error
        yield error_block(error.name, error.value, {"traceback": error.traceback})
