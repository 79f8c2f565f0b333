"""What a cell gave out, as an agent is told it: text by stream, one text a display, pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..record.events import CellError
from ..record.record import CellRecord
from ..text import text_of
from .blocks import Block, carries_result, output_block
from .excerpt import lines_of
from .traceback_frames import notes

_PANDAS = re.compile(r"^\[(\d+) rows x (\d+) columns\]$", re.MULTILINE)
_POLARS = re.compile(r"shape: \(([\d_]+), ([\d_]+)\)")
_SPACES = re.compile(r"(?<=\S) {2,}|\A {2,}")
_INNER = re.compile(r"(?<=\S) (?=\S)")
_LEFT_OUT = re.compile(r"^\.{2,3}(?: +\.{2,3})+$", re.MULTILINE)
_BODY = re.compile(r"<tbody>(.*?)</tbody>", re.DOTALL)
_ROW = re.compile(r"<tr\b")
_COLUMNS_LEFT_OUT = "<th>...</th>"
_GROUP = re.compile(
    r"^  \+ Exception Group Traceback \(most recent call last\):\n(?: +[|+].*(?:\n|\Z))+",
    re.MULTILINE,
)
STREAMS = ("stdout", "stderr")
DISPLAYS = "displays"  # by that name all the rest of a cell's text can be read, as if it were one


@dataclass(frozen=True, slots=True)
class Text:
    label: str
    text: str
    stream: str = ""  # of which stream, where it is one


@dataclass(frozen=True, slots=True)
class Image:
    mime: str
    payload: str  # base64
    label: str


Piece = Text | Image


def pieces(cell: CellRecord) -> Iterator[Piece]:
    """Each stream as a whole, since how the two interleave is luck; then the rest in order.

    What the cell raised is not among it: that is told once, with what can be done about it.
    """
    for name in STREAMS:
        text = stream_of(cell, name)
        if name == "stderr" and cell.error is not None:
            text = _without_traceback(text, cell.error.name)
        if text.strip():
            yield Text(name, text, name)
    for output in cell.outputs:
        kind = output.get("output_type")
        if kind in ("display_data", "execute_result"):
            block = output_block(output, "agent")
            if block is not None:
                yield from _display(output, block)
        elif kind == "error" and cell.error is None:
            # The cell may raise: then it is an output as any other.
            yield Text("raised", f"{output.get('ename', '')}: {output.get('evalue', '')}")


def displays_of(cell: CellRecord) -> list[str]:
    """Lines of what a cell gave out besides the streams, each part below its label."""
    return [line for one in _besides(cell) for line in (f"{one.label}:", *lines_of(one.text))]


def place_among_displays(cell: CellRecord, piece: Text) -> int:
    """How many of those lines stand above its text."""
    above = 1
    for one in _besides(cell):
        if one == piece:
            break
        above += 1 + len(lines_of(one.text))
    return above


def _besides(cell: CellRecord) -> Iterator[Text]:
    for one in pieces(cell):
        if isinstance(one, Image):
            yield Text(one.label, "(a picture)")
        elif not one.stream:
            yield one
    if cell.error is not None and (error := error_text(cell.error)).text.strip():
        yield error


def error_text(error: CellError) -> Text:
    text = f"{error.value}\n{notes(error)}"
    return Text("error", text.strip("\n"))


def stream_of(cell: CellRecord, name: str) -> str:
    return "".join(
        text_of(output.get("text", ""))
        for output in cell.outputs
        if output.get("output_type") == "stream" and output.get("name") == name
    )


def _without_traceback(text: str, name: str) -> str:
    """A log often has the traceback of what is told as the error anyway."""
    text = _GROUP.sub("(the traceback of the error)\n", text)
    start = text.rfind("Traceback (most recent call last):")
    if start < 0:
        return text
    end = re.compile(rf"^(?:[\w.]+\.)?{re.escape(name)}(?:: .*)?$", re.MULTILINE)
    found = end.search(text, start)
    if found is None:
        return text
    return f"{text[:start]}(the traceback of the error){text[found.end() :]}"


def _display(output: Mapping[str, Any], block: Block) -> Iterator[Piece]:
    label = "value" if block.is_value else "display"
    data = output["data"]
    match block.kind:
        case "image":
            # A picture that was glued is told here, where pictures are.
            yield Image(block.mime, block.payload, label)
        case _ if carries_result(data):
            return  # told with the results
        case "other":
            yield Text(label, f"(an output of type {block.text})")
        case _ if block.text:
            labelled = _labelled(label, data, block.text)
            yield Text(labelled, _compact(block.text) if labelled != label else block.text)


def _labelled(label: str, data: Mapping[str, Any], text: str) -> str:
    """A table says how much of it is there."""
    for pattern in (_PANDAS, _POLARS):
        found = pattern.search(text)
        if found is None:
            continue
        total = int(found[1].replace("_", ""))
        html = text_of(data.get("text/html", ""))
        shown = _rows_shown(html, total)
        rows = f"table: {'some' if shown is None else f'{shown:,}'} of {total:,} rows"
        left_out = pattern is _PANDAS and _COLUMNS_LEFT_OUT in html.partition("<tbody>")[0]
        return f"{rows}, some of {int(found[2]):,} columns" if left_out else rows
    return label


def _compact(text: str) -> str:
    """A table without what only aligns it."""
    text = _LEFT_OUT.sub("…", _PANDAS.sub("", text).rstrip())
    # One space tells columns apart where no value has any.
    return _SPACES.sub("  " if _INNER.search(text) else " ", text)


def _rows_shown(html: str, total: int) -> int | None:
    body = _BODY.search(html)
    if body is None:
        return None
    rows = len(_ROW.findall(body[1]))
    return rows if rows <= total and rows == total else max(0, rows - 1)  # one says "..."
