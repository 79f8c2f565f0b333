"""A run's cells by the names they have in the task."""

from __future__ import annotations

from dataclasses import replace

from made_records import made
from quire.record.cell_positions import Standing, needs_the_task, standing
from quire.record.record import CellRecord, Record
from quire.task.document import Cell, Document, identified
from quire.task.parameter_cell import INJECTED_TAG

VALUES = CellRecord("v", "code", "n = 2", tags=(INJECTED_TAG,))


def record(*cells: CellRecord, task: str = "t.py", **parameters: object) -> Record:
    return replace(made(), cells=cells, task=task, plan={"parameters": parameters})


def code(id_: str) -> CellRecord:
    return CellRecord(id_, "code", id_)


def places(found: Record, written: Document | None = None) -> dict[str, int]:
    return {id_: one.index for id_, one in standing(found, written).items()}


def test_what_the_run_was_given_stands_nowhere() -> None:
    assert places(record(code("a"), VALUES, code("b"), n=2)) == {"a": 0, "b": 1}
    assert places(record(code("a"), code("b"))) == {"a": 0, "b": 1}


def test_a_cell_of_the_task_that_is_tagged_so_counts() -> None:
    assert places(record(code("a"), VALUES, code("b"))) == {"a": 0, "v": 1, "b": 2}


def test_values_that_took_the_place_of_those_of_papermill() -> None:
    cells = (Cell("code", "a"), Cell("code", "n = 1", tags=(INJECTED_TAG,)), Cell("code", "b"))
    found = record(code("a"), VALUES, code("b"), task="t.ipynb", n=2)
    assert needs_the_task(found)
    assert places(found, Document(identified(cells))) == {"a": 0, "v": 1, "b": 2}


def test_steps_with_values_in_them_are_called_as_in_the_template() -> None:
    template = Document(identified([Cell("markdown", "Hello"), Cell("code", "print('{name}')")]))
    found = record(code("a"), code("filled"), task="t.md", name="x")
    assert standing(found, template)["filled"] == Standing(1, template.cells[1].id)


def test_defaults_that_a_logbook_was_filled_with_stand_nowhere() -> None:
    template = Document(identified([Cell("markdown", "Hello"), Cell("code", "print('{name}')")]))
    found = record(code("a"), VALUES, code("filled"), task="t.md")
    assert places(found, template) == {"a": 0, "filled": 1}


def test_a_notebook_of_papermill_that_is_given_nothing() -> None:
    cells = (Cell("code", "a"), Cell("code", "n = 1", tags=(INJECTED_TAG,)), Cell("code", "b"))
    found = record(code("a"), VALUES, code("b"), task="t.ipynb")
    assert places(found, Document(identified(cells))) == {"a": 0, "v": 1, "b": 2}


def test_a_task_that_is_another_one_is_not_believed() -> None:
    assert places(record(code("a"), task="t.md"), Document(())) == {"a": 0}
