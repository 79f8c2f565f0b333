"""A draft invents nothing, whatever it was begun from, and says which cells wait."""

from __future__ import annotations

import ast
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_described_inputs import DESCRIPTIONS, WORDS

from quire.authoring.draft import SECTIONS, draft, titled
from quire.authoring.draft_check import vet
from quire.task import formats
from quire.task.lint import lint
from quire.task.params import declared, resolve


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_drafts_are_clean_and_invent_nothing(description: str) -> None:
    made = draft([description])
    assert made.text == formats.dumps(formats.loads(made.text, ".py"), ".py")
    assert lint(made.document) == []
    assert [item.title for item in made.waiting] == list(SECTIONS)
    for cell in made.document.cells:
        if cell.title in SECTIONS:
            (statement,) = ast.parse(cell.source).body
            assert isinstance(statement, ast.Raise)
        elif cell.kind == "code":
            exec(cell.source, {})
    assert all(vet(made.text)[1] == [] for _ in [0] if declared(made.document))


def test_the_sections_and_what_waits() -> None:
    made = draft(["Show the customers above 10"])
    cells = made.document.cells
    assert [cell.title for cell in cells if cell.kind == "code"] == ["parameters", *SECTIONS]
    assert made.title == made.document.title == "Show the customers above 10"
    for item in made.waiting:
        assert cells[item.index].id == item.cell_id
        assert item.what


def test_a_description_without_inputs_has_no_parameters() -> None:
    made = draft(["Report the health of this machine"])
    assert declared(made.document) == ()
    assert "parameters" in [cell.title for cell in made.document.cells]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Disk usage", "Disk usage"),
        ("- ## > Disk usage", "Disk usage"),
        ("Load > 0.7 # here", "Load > 0.7 # here"),
        ("#", "#"),
    ],
)
def test_a_title_has_no_marks_of_markdown(line: str, title: str) -> None:
    assert draft([line]).title == title


def test_parameters_are_declared_with_their_types() -> None:
    made = draft(["Orders above $50 since 2026-01-02"])
    found = {p.name: (p.type, p.help != "", p.required) for p in declared(made.document)}
    assert found == {
        "threshold": ("float", True, False),
        "since": ("date", True, False),
    }
    assert resolve(made.document, {}) == {}
    assert executed_since(made.text) == date(2026, 1, 2)


def executed_since(text: str) -> Any:
    source = next(c.source for c in formats.loads(text, ".py").cells if c.title == "parameters")
    names: dict[str, Any] = {}
    exec(source, names)
    return names["since"]


def test_titles() -> None:
    assert titled(["Check the disks. Alert if one is full."]) == (
        "Check the disks",
        "Check the disks. Alert if one is full.",
    )
    assert titled(["Short", "more"]) == ("Short", "more")
    title, more = titled(["word " * 60])
    assert title.endswith(" …")
    assert len(title) < 125
    assert more == ("word " * 60).strip()
    assert len(titled(["x" * 500])[0]) < 125


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS | st.text(max_size=20), min_size=1, max_size=20).map(" ".join))
def test_any_description_gives_a_clean_task(text: str) -> None:
    lines = " ".join(text.split()).splitlines()
    lines = ["".join(c for c in line if c.isprintable()) for line in lines]
    if not lines or not lines[0]:
        return
    made = draft(lines)
    assert lint(made.document) == []
    for cell in made.document.cells:
        if cell.kind == "code":
            ast.parse(cell.source)
