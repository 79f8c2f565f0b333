"""What the metadata of an executed notebook claim, against those of the run."""

from __future__ import annotations

from typing import Any

import pytest

from quire.proof.notebook_metadata_check import untrue

RAN = {
    "papermill": {"parameters": {"n": 2}, "exception": None, "output_path": "a", "version": "1"},
    "quire": {"outcome": "ok", "run_id": "r"},
}
STATE = {"application/vnd.jupyter.widget-state+json": {"state": {"a": {"model": "x"}}}}


def told(said: Any, ran: Any = RAN) -> list[tuple[str, str]]:
    return [(found.where, found.what) for found in untrue(said, ran, "r", "notebook")]


@pytest.mark.parametrize(
    "said",
    [
        None,
        {},
        RAN,
        {"kernelspec": {"name": "x"}, "tags": ["a"]},
        {"papermill": {"parameters": {"n": 2.0}}},  # as a browser writes it
        {"papermill": {"output_path": "elsewhere", "version": "2"}},
        {"papermill": None},
        {"widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}}}},
        {"execution": {}},
    ],
    ids=repr,
)
def test_what_claims_nothing_else(said: Any) -> None:
    assert told(said) == []


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"papermill": {"parameters": {"n": 3}}}, "papermill.parameters.n"),
        ({"papermill": {"parameters": {"n": 2, "more": 1}}}, "papermill.parameters.more"),
        ({"papermill": {"parameters": {}}}, "papermill.parameters.n"),
        ({"papermill": {"parameters": {"n": True}}}, "papermill.parameters.n"),
        ({"papermill": {"duration": 1}}, "papermill.duration"),
        ({"papermill": "ok"}, "papermill."),
        ({"quire": {"outcome": "failed"}}, "quire.outcome"),
        ({"execution": {"iopub.execute_input": "2026"}}, "execution"),
        ({"ExecuteTime": "2026"}, "ExecuteTime"),
        ({"widgets": STATE}, "widgets"),
    ],
    ids=repr,
)
def test_what_the_run_does_not_say(said: Any, where: str) -> None:
    ((place, what),) = told(said)
    assert place == f"notebook metadata.{where}"
    assert "r" in what


def test_the_state_of_widgets_that_the_run_has() -> None:
    assert told({"widgets": STATE}, {"widgets": STATE}) == []
