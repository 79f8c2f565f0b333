"""Which cells wait to be written: the mark is a statement, not a word."""

from __future__ import annotations

import pytest

from quire.task.document import Cell, Document
from quire.task.waiting_cells import missing, waiting


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('raise NotImplementedError("the rule")', "the rule"),
        ("raise NotImplementedError", "it is not written yet"),
        ("raise NotImplementedError()", "it is not written yet"),
        ('raise NotImplementedError("a") from None', "a"),
        ('raise NotImplementedError(f"{x}")', "it is not written yet"),
        ('!ls\nx = 1\nraise NotImplementedError("late")', "late"),
        ('%time y = 1\nraise NotImplementedError("magic")', "magic"),
        ('x = 1; raise NotImplementedError("behind")', "behind"),
    ],
)
def test_a_cell_that_waits(source: str, what: str) -> None:
    assert missing(Cell("code", source)) == what


@pytest.mark.parametrize(
    "source",
    [
        "",
        "...",
        "# TODO",
        "# raise NotImplementedError",
        'print("raise NotImplementedError")',
        '"""\nraise NotImplementedError\n"""',
        "def price(self):\n    raise NotImplementedError",
        "try:\n    f()\nexcept NotImplementedError:\n    pass",
        "%%bash\nraise NotImplementedError",
        'raise ValueError("NotImplementedError")',
        "raise NotImplementedError(",
        "raise",
    ],
)
def test_a_cell_that_does_not(source: str) -> None:
    assert missing(Cell("code", source)) is None


def test_only_code_of_python_waits() -> None:
    source = "raise NotImplementedError"
    cells = (Cell("markdown", source), Cell("code", source, id="a"))
    assert [(one.index, one.name) for one in waiting(Document(cells))] == [(1, "a")]
    assert waiting(Document(cells, language="r")) == ()
