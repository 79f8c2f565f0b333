from __future__ import annotations

from typing import Any

import pytest

from quire.record.events import OutputAdded, ResultGlued
from quire.record.results import glued


def shown(data: dict[str, Any], metadata: Any = None, kind: str = "display_data") -> OutputAdded:
    output = {"output_type": kind, "data": data, "metadata": metadata or {}}
    return OutputAdded("c", output)


QUIRE = "application/vnd.quire.result+json"
TABLE = {"columns": ["a"], "types": ["int64"], "rows": [[1]], "total": 1, "kept": 1}


def test_ours() -> None:
    table = shown({QUIRE: {"name": "t", "kind": "table", "value": TABLE}, "text/plain": "t"})
    assert glued(table) == [ResultGlued("c", "t", "table", TABLE)]
    value = shown({QUIRE: {"name": "x", "kind": "json", "value": None}})
    assert glued(value) == [ResultGlued("c", "x", "json", None)]


def test_a_picture_is_its_mime_bundle_without_our_mark() -> None:
    data = {"image/png": "aGk=", "text/plain": "<Figure>"}
    event = shown(
        {**data, QUIRE: {"name": "plot", "kind": "display"}},
        {"scrapbook": {"name": "plot", "data": False, "display": True}},
    )
    assert glued(event) == [ResultGlued("c", "plot", "display", data)]


@pytest.mark.parametrize(
    ("encoder", "data"),
    [("json", {"a": [1, None]}), ("json", 3.5), ("text", "just text"), ("pandas", "UEFSMQ==")],
)
def test_scrapbooks(encoder: str, data: Any) -> None:
    """`sb.glue` with any of its encoders, as the installed library writes it."""
    kind = "text" if encoder == "text" else "json"
    suffix = "+json"
    payload = {"name": "x", "data": data, "encoder": encoder, "version": 1}
    event = shown(
        {f"application/scrapbook.scrap.{kind}{suffix}": payload},
        {"scrapbook": {"name": "x", "data": True, "display": False}},
    )
    assert glued(event) == [ResultGlued("c", "x", "json", data)]


def test_scrapbooks_displays() -> None:
    data = {"image/png": "aGk=", "text/plain": "<Figure>"}
    event = shown(data, {"scrapbook": {"name": "fig", "data": False, "display": True}})
    assert glued(event) == [ResultGlued("c", "fig", "display", data)]


def test_papermills_record() -> None:
    event = shown({"application/papermill.record+json": {"a": 1, "b": [2]}})
    assert glued(event) == [
        ResultGlued("c", "a", "json", 1),
        ResultGlued("c", "b", "json", [2]),
    ]


def test_the_value_of_a_last_line_counts_as_well() -> None:
    payload = {"name": "x", "data": 1, "encoder": "json", "version": 1}
    mime = "application/scrapbook.scrap.json+json"
    assert len(glued(shown({mime: payload}, kind="execute_result"))) == 1


@pytest.mark.parametrize(
    "event",
    [
        OutputAdded("c", {"output_type": "stream", "name": "stdout", "text": "x"}),
        OutputAdded("c", {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}),
        shown({"text/plain": "x"}),
        shown({QUIRE: "not an object"}),
        shown({QUIRE: {"kind": "json", "value": 1}}),
        shown({QUIRE: {"name": "x", "kind": "spell", "value": 1}}),
        shown({"application/scrapbook.scrap.json+json": {"data": 1}}),
        shown({"application/papermill.record+json": [1]}),
        shown({"text/plain": "x"}, {"scrapbook": "odd"}),
        shown({"text/plain": "x"}, {"scrapbook": {"display": True}}),
        shown({"text/plain": "x"}, {"scrapbook": {"name": "x", "data": True, "display": True}}),
        OutputAdded("c", {"output_type": "display_data", "data": {}, "metadata": None}),
    ],
    ids=range(12),
)
def test_what_is_no_result(event: OutputAdded) -> None:
    assert glued(event) == []
