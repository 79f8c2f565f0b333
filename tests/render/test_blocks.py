"""Which form of an output each reader gets."""

from __future__ import annotations

from typing import Any

import pytest

from quire.record.events import CellError
from quire.record.record import CellRecord
from quire.record.results import QUIRE_MIME
from quire.render.blocks import FORMS, Reader, cell_blocks, display_block

PNG = "iVBORw0KGgoAAAANSUhEUg=="
FIGURE = {"text/plain": "<Figure size 1x1>", "text/html": "<b>x</b>", "image/png": PNG}
TABLE = "<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"
FRAME = {"text/plain": "   a\n0  1", "text/html": TABLE}
RICH = {"text/plain": "<a.B object at 0x7f>", "text/html": "<p>words</p>"}
MATHS = {"text/plain": "x**2", "text/latex": "$x^2$", "text/markdown": "*x*"}
GLUED = {QUIRE_MIME: {"name": "n", "kind": "table", "value": {"columns": ["a"], "rows": [[1]]}}}
SVG = {"text/plain": "a drawing", "image/svg+xml": "<svg/>"}
READERS: tuple[Reader, ...] = ("page", "markdown", "logbook", "agent", "terminal", "index")


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (FIGURE, ("html", "image", "image", "image", "text", "text")),
        (FRAME, ("html", "text", "table", "text", "text", "text")),
        (RICH, ("html", "text", "text", "text", "text", "text")),
        (MATHS, ("markdown", "markdown", "markdown", "text", "text", "text")),
        (GLUED, ("result", "result", "table", "result", "result", "result")),
        (SVG, ("image", "image", "image", "text", "text", "text")),
        ({"application/x": "1"}, ("other",) * 6),
        ({"application/json": {"a": 1}}, ("json", "json", "json", "json", "other", "other")),
        ({}, ("text",) * 6),
    ],
)
def test_each_reader_gets_its_form(data: dict[str, Any], kinds: tuple[str, ...]) -> None:
    assert set(READERS) == set(FORMS)
    assert tuple(display_block(data, reader).kind for reader in READERS) == kinds


def test_an_address_gives_way_to_words() -> None:
    assert display_block(RICH, "markdown").text == display_block(RICH, "agent").text == "words"
    assert display_block(RICH, "terminal").text == "<a.B object at 0x7f>"


def test_a_drawing_that_runs_scripts_becomes_no_file() -> None:
    data = {**SVG, "image/svg+xml": "<svg onload='x()'/>"}
    assert display_block(data, "logbook").text == "a drawing"
    assert display_block(data, "page").kind == "image"


def test_an_error_is_shown_once() -> None:
    error = CellError("E", "no", ("trace",))
    output = {"output_type": "error", "ename": "E", "evalue": "no", "traceback": []}
    for outputs, text in (((), "trace"), ((output,), "E: no")):
        cell = CellRecord("c", "code", "", outputs=outputs, error=error)
        assert [(one.kind, one.text) for one in cell_blocks(cell, "page")] == [("error", text)]
