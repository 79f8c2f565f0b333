from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest

from made_records import AT, made, shown, stream
from quire.proof import strict_json as one_meaning
from quire.record.events import CellError, CellFinished, CellStarted, RunFinished, RunStarted
from quire.record.executed_notebook import dumps, notebook
from quire.record.record import Record, fold


def strict(data: bytes) -> Any:
    """As every JSON reader but Python's reads it."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.loads(data, parse_constant=refuse)


def written(record: Record, **more: str) -> Any:
    data = dumps(notebook(record, **more))
    nbformat.validate(nbformat.reads(data.decode(), as_version=4))
    return strict(data)


def test_papermills_metadata() -> None:
    plan = {"parameters": {"x": 2}, "defaults": {"x": 1, "y": 0}}
    nb = written(made(plan=plan), output_path="/out.ipynb", version="9.9")
    assert nb["metadata"]["papermill"] == {
        "default_parameters": {"x": 1, "y": 0},
        "parameters": {"x": 2},
        "environment_variables": {},
        "version": "9.9",
        "input_path": "tasks/health.py",
        "output_path": "/out.ipynb",
        "start_time": AT,
        "end_time": AT,
        "duration": 1.5,
        "exception": None,
    }
    ran, after = (cell["metadata"]["papermill"] for cell in nb["cells"])
    assert ran == {
        "exception": False,
        "start_time": AT,
        "end_time": AT,
        "duration": 0.12,
        "status": "completed",
    }
    assert after == {
        "exception": None,
        "start_time": None,
        "end_time": None,
        "duration": None,
        "status": "pending",
    }


STATUS = {
    "ok": ("completed", False),
    "failed": ("failed", True),
    "timed_out": ("failed", True),
    "cancelled": ("failed", True),
    "died": ("failed", True),
    "skipped": ("pending", None),
}


@pytest.mark.parametrize("status", STATUS)
def test_the_status_of_a_cell_in_papermills_words(status: Any) -> None:
    spec = {"id": "a", "kind": "code", "source": "x"}
    events = [RunStarted("r", "u", AT, "t", "", (spec,), {}), CellFinished("a", status, AT)]
    (cell,) = written(fold(events))["cells"]
    mark = cell["metadata"]["papermill"]
    assert (mark["status"], mark["exception"]) == STATUS[status]
    assert cell["metadata"]["quire"] == {"status": status}


def test_a_cell_that_was_running_at_the_end_is_not_completed() -> None:
    spec = {"id": "a", "kind": "code", "source": "x"}
    events = [RunStarted("r", "u", AT, "t", "", (spec,), {}), CellStarted("a", AT)]
    (cell,) = written(fold(events))["cells"]
    assert cell["metadata"]["papermill"]["status"] == "failed"
    assert written(fold(events))["metadata"]["papermill"]["exception"] is True


def test_where_it_came_from() -> None:
    nb = written(made())
    assert nb["metadata"]["quire"] == {
        "run_id": "run-1",
        "uuid": "u",
        "outcome": "ok",
        "parent": None,
    }
    assert nb["metadata"]["kernelspec"]["name"] == "python3"
    assert nb["metadata"]["language_info"]["name"] == "python"


def test_metadata_of_the_source_stays() -> None:
    spec = {"name": "ir", "display_name": "R", "language": "R"}
    nb = written(made(plan={"metadata": {"kernelspec": spec, "mine": 1}, "language": "r"}))
    assert nb["metadata"]["kernelspec"] == spec
    assert nb["metadata"]["mine"] == 1


def test_outputs_as_nbformat_wants_them() -> None:
    result = {**shown(text__plain="3"), "output_type": "execute_result", "execution_count": 4}
    error = CellError("E", "v", ("t",))
    raised = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["t"]}
    nb = written(made(stream("a\nb"), result, raised, error=error))
    outputs = nb["cells"][0]["outputs"]
    assert outputs[0] == {"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]}
    assert outputs[1]["execution_count"] == 4
    assert outputs[2] == raised


@pytest.mark.parametrize(
    ("value", "told"),
    [(float("nan"), "nan"), ([float("inf")], ["inf"]), ({"a": -float("inf")}, {"a": "-inf"})],
    ids=repr,
)
def test_numbers_that_json_lacks_become_text(value: Any, told: Any) -> None:
    """A front end reads the file with a parser that knows no NaN."""
    nb = written(made({**shown(), "data": {"application/json": value}}))
    assert nb["cells"][0]["outputs"][0]["data"]["application/json"] == told


def test_text_that_utf8_cannot_hold() -> None:
    """JSON has an escape for it, so it comes back as it was."""
    nb = written(made(stream("\ud800x\n"), source="'\udcff'"))
    assert nb["cells"][0]["outputs"][0]["text"] == ["\ud800x\n"]
    assert nb["cells"][0]["source"] == ["'\udcff'"]


def test_keys_that_differ_only_in_what_utf8_cannot_hold() -> None:
    """Two surrogates are one character for whoever reads JSON: the later of two keys counts."""
    high, low = "\ud800", "\udcff"
    keys = {high: 1, low: 2, "?": 3, "\ud83d\ude00": 4, "\U0001f600": 5}
    data = dumps(notebook(made({**shown(), "data": {"application/json": keys}})))
    told = one_meaning.loads(data)["cells"][0]["outputs"][0]["data"]["application/json"]
    assert told == {high: 1, low: 2, "?": 3, "\U0001f600": 5}
    read = nbformat.reads(data.decode(), as_version=4)
    nbformat.validate(read)
    assert read.cells[0].outputs[0].data["application/json"] == told


def test_one_cell_is_one_line() -> None:
    lines = dumps(notebook(made(stream("a\nb\n")))).decode().splitlines()
    assert lines[0] == '{"cells": ['
    assert all(json.loads(line.rstrip(","))["cell_type"] == "code" for line in lines[1:3])


def test_markdown_keeps_its_attachments_and_tags_are_unique() -> None:
    cells = (
        {
            "id": "m",
            "kind": "markdown",
            "source": "![](attachment:x.png)",
            "attachments": {"x.png": {"image/png": "aGk="}},
            "tags": ["a", "a"],
            "title": "T",
        },
    )
    events = [RunStarted("r", "u", AT, "t", "", cells, {}), RunFinished("ok", AT, 0.0)]
    (cell,) = written(fold(events))["cells"]
    assert cell["attachments"] == {"x.png": {"image/png": "aGk="}}
    assert cell["metadata"].pop("papermill")["status"] is None
    assert cell["metadata"] == {"title": "T", "tags": ["a"]}
