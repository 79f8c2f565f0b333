"""Parameters that a caller declares for a new task."""

from __future__ import annotations

from typing import Any

import pytest

from quire.authoring.declared_inputs import declared_inputs
from quire.authoring.draft import draft
from quire.errors import ParameterError
from quire.task import formats
from quire.task.params import declared

LINES = {
    "days: int = 7  # how far back": "days: int = 7  # how far back",
    "region": "region: str (required)",
    "day : date": "day: date (required)",
    "region=north": 'region: str = "north"',
    'n = "5"': 'n: str = "5"',
    'said: str = "a # b" # c': 'said: str = "a # b"  # c',
    "colour = #fff": 'colour: str = "#fff"',
    "empty: str =": 'empty: str = ""',
    "share=0.5": "share: float = 0.5",
    "sizes=[1, 2]": "sizes: list = [1, 2]",
    "day: date = 2026-01-02": "day: date = date(2026, 1, 2)",
    "names: list[str] = a, b": 'names: list[str] = ["a", "b"]',
    "mode: Literal['a', 'b'] = b": "mode: Literal['a', 'b'] = \"b\"",
    "file: Path = a/b": 'file: Path = Path("a/b")',
    "cost: Decimal = 1.50": 'cost: Decimal = Decimal("1.50")',
    "limit: int | None = none # all": "limit: int | None = None  # all",
    "dry: bool = yes": "dry: bool = True",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_a_declaration(line: str) -> None:
    (found,) = declared_inputs([line])
    assert str(found) == LINES[line]
    # The cell that is made of it runs, and declares the same.
    cell = draft(["x"], [found]).document.cells[1]
    exec(cell.source, {})
    (again,) = declared(draft(["x"], [found]).document)
    assert str(again) == LINES[line]


def test_fields_are_one_too() -> None:
    found = declared_inputs(
        [
            {"name": "share", "type": "float", "default": 1, "help": "of  all\nof it"},
            {"name": "names", "type": "list[str]", "default": ["a"]},
            {"name": "since", "type": "date", "default": "2026-01-02"},
            {"name": "many", "default": 3},
            {"name": "who"},
            "more: int = 1",
        ]
    )
    assert [str(one) for one in found] == [
        "share: float = 1.0  # of all of it",
        'names: list[str] = ["a"]',
        "since: date = date(2026, 1, 2)",
        "many: int = 3",
        "who: str (required)",
        "more: int = 1",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a b"], "declares no parameter"),
        (["a: int = 1\nb: int = 2"], "declares no parameter"),
        (["1a"], "cannot be the name"),
        (["class: str"], "cannot be the name"),
        (["x: int = y"], "x expects int, not the default 'y'"),
        (["x: DataFrame"], "no type for the parameter x"),
        (["x: print(1)"], "no type for the parameter x"),
        (["x: int", "x: str"], "x is declared twice"),
        (["date: date"], "date cannot be a parameter beside"),
        ([{"name": "x", "typ": "int"}], "there is no 'typ'"),
        ([{"name": 1}], "name, type and help are text"),
        ([{"type": "int"}], "cannot be the name"),
        ([{"name": "x", "type": "int", "default": "5"}], "x expects int"),
        ([{"name": "x", "default": None}], "x needs a type"),
    ],
)
def test_what_cannot_be_is_refused(given: list[Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said.replace("(", r"\(")) as caught:
        declared_inputs(given)
    assert caught.value.hint


def test_declared_ones_take_the_place_of_described_ones() -> None:
    made = draft(["Alert above 5 in the last 7 days"], declared_inputs(["limit: int = 5"]))
    assert [p.name for p in declared(made.document)] == ["limit"]
    assert made.text == formats.dumps(formats.loads(made.text, ".py"), ".py")
