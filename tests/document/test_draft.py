"""A draft runs as it is, whatever it was begun from, and says which cells wait."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_inputs import DESCRIPTIONS, WORDS

import quire.runtime
from quire.document import formats
from quire.document.draft import SECTIONS, draft, titled
from quire.document.lint import lint
from quire.document.params import declared, resolve
from quire.document.vetting import vet


@pytest.fixture
def glued(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    monkeypatch.setattr(quire.runtime, "glue", found.__setitem__)
    return found


def executed(text: str, **parameters: Any) -> dict[str, Any]:
    """The cells, one after the other, as a kernel would run them."""
    names: dict[str, Any] = {}
    for cell in formats.loads(text, ".py").cells:
        if cell.kind == "code":
            exec(cell.source, names)
        if "parameters" in cell.tags:
            names |= parameters
    return names


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_drafts_run_and_are_clean(
    description: str, glued: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    made = draft([description])
    assert made.text == formats.dumps(formats.loads(made.text, ".py"), ".py")
    assert lint(made.document) == []
    assert vet(made.text)[1] == []
    executed(made.text)
    assert glued["source"] == "example"
    assert glued["status"] in ("ok", "attention")
    assert glued["items"] > 0
    assert "checked" in capsys.readouterr().out


def test_the_sections_and_what_waits() -> None:
    made = draft(["Show the top 10 customers"])
    cells = made.document.cells
    assert [cell.title for cell in cells if cell.kind == "code"] == ["parameters", *SECTIONS]
    assert made.title == made.document.title == "Show the top 10 customers"
    assert [(item.index, item.title) for item in made.waiting] == [
        (0, ""),
        (3, "gather"),
        (5, "decide"),
        (8, "check"),
    ]
    for item in made.waiting:
        assert cells[item.index].id == item.cell_id
        assert item.what


def test_a_description_without_inputs_has_its_parameters_wait() -> None:
    made = draft(["Report the health of this machine"])
    assert "parameters" in [item.title for item in made.waiting]
    assert [p.name for p in declared(made.document)] == ["limit"]


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


def test_what_is_between_two_limits_counts(glued: dict[str, Any]) -> None:
    made = draft(["List servers with load > 0.7 and < 0.9"])
    assert "What is between `minimum` and `maximum` needs attention" in made.text
    values = {item["value"] for item in executed(made.text)["items"]}
    executed(made.text, minimum=min(values), maximum=max(values))
    assert glued["found"] == len(values) - 2
    for text in ("load of at least 0.7 and at most 0.9", "load between 0.7 and 0.9"):
        inclusive = draft([f"List servers with a {text}"]).text
        executed(inclusive, minimum=min(values), maximum=max(values))
        assert glued["found"] == len(values)
    executed(made.text, minimum=max(values) + 1, maximum=max(values) + 2)
    assert glued["found"] == 0


def test_a_reason_that_is_said_is_why() -> None:
    made = draft(["List late orders so that sales can call the customers."])
    assert "**Why.** So that sales can call the customers." in made.document.cells[0].source
    assert 0 not in [item.index for item in made.waiting]


def test_parameters_are_declared_with_their_types() -> None:
    made = draft(["Orders over $50 since 2026-01-02 for Ada, dry run"])
    found = {p.name: (p.type, p.help != "", p.required) for p in declared(made.document)}
    assert found == {
        "threshold": ("float", True, False),
        "since": ("date", True, False),
        "name": ("str", True, False),
        "dry_run": ("bool", True, False),
    }
    assert resolve(made.document, {}) == {}
    assert executed_since(made.text) == date(2026, 1, 2)


def executed_since(text: str) -> Any:
    source = next(c.source for c in formats.loads(text, ".py").cells if c.title == "parameters")
    names: dict[str, Any] = {}
    exec(source, names)
    return names["since"]


@pytest.mark.parametrize(
    ("name", "text", "want"),
    [
        ("orders.csv", "who,total\nAda,30\nBob,5\nEve,12\n", [("Ada", 30.0), ("Eve", 12.0)]),
        ("orders.tsv", "who\ttotal\nAda\t30\nBob\t5\n", [("Ada", 30.0), ("Bob", 5.0)]),
        ("orders.json", '[{"who": "Ada", "total": 3}, {"who": "Bob", "total": 9}]',
         [("Bob", 9.0), ("Ada", 3.0)]),
        ("orders.jsonl", '{"who": "Ada", "n": 1}\n\n{"who": "Bob", "n": 2}\n',
         [("Bob", 2.0), ("Ada", 1.0)]),
        ("notes.txt", "one\ntwo\nthree\n", [("three", 3.0), ("two", 2.0)]),
    ],
)  # fmt: skip
def test_a_file_that_is_there_is_read(
    name: str,
    text: str,
    want: list[tuple[str, float]],
    tmp_path: Path,
    glued: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    executed(draft([f"Show the top 2 of {name}"]).text)
    assert glued["source"] == name
    assert [(item["name"], item["value"]) for item in glued["shown"]] == want


def test_lines_with_the_pattern_are_kept(
    tmp_path: Path, glued: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text("fine\nERROR one\nfine\nERROR two\n")
    executed(draft(['Find lines containing "ERROR" in a.log']).text)
    assert [item["name"] for item in glued["shown"]] == ["ERROR one", "ERROR two"]


@pytest.mark.parametrize(
    ("description", "values", "found"),
    [
        ("Alert above 5", [4, 5, 6], [6]),
        ("Alert below 5", [4, 5, 6], [4]),
        ("Make sure that it is under 5", [4, 6], [6]),
        ("Alert below 2 °C or above 5 °C", [1, 3, 6], [1, 6]),
        ("Find orders with at least 5 items", [4, 5, 6], [5, 6]),
        ("Find orders with 5 or more items", [4, 5, 6], [5, 6]),
        ("Find orders with at most 5 items", [4, 5, 6], [4, 5]),
        ("The score must be at least 5", [4, 5, 6], [4]),
        ("The score must be above 5", [4, 5, 6], [4, 5]),
        ("Make sure that it is between 4 and 5", [3, 4, 5, 6], [3, 6]),
        ("List files over 5 MB older than 3 days", [4, 5, 6], [6]),
        ("Report invoices between $4 and $5 older than 3 days", [3, 4, 5, 6], [4, 5]),
    ],
)
def test_the_rule_is_the_one_that_was_said(
    description: str, values: list[int], found: list[int], glued: dict[str, Any]
) -> None:
    text = draft([description]).text
    names = executed(text)
    names["items"] = [{"name": str(value), "value": value} for value in values]
    for cell in formats.loads(text, ".py").cells:
        if cell.title in ("decide", "report", "check"):
            exec(cell.source, names)
    assert [item["value"] for item in glued["shown"]] == found
    assert glued["status"] == "attention"


@pytest.mark.parametrize(
    ("description", "help_"),
    [
        ("Alert above 5", "highest value that is fine"),
        ("Alert at 5 or more", "lowest value that counts"),
        ("Alert below 5", "lowest value that is fine"),
        ("Find orders with at most 5 items", "highest value that counts"),
    ],
)
def test_the_help_of_a_limit_is_true_of_the_limit_itself(description: str, help_: str) -> None:
    (parameter,) = declared(draft([description]).document)
    assert parameter.help.startswith(f"{help_}, from ")


def test_what_limits_something_else_is_used_where_items_are_gathered() -> None:
    text = draft(["List files over 10 MB older than 30 days"]).text
    assert "Use `older_than_days` here: the rule only looks at the value of an item." in text
    assert 'asked = {"older_than_days": older_than_days}' in text
    assert 'if item["value"] > threshold]' in text


def test_the_rule_says_whether_the_limit_itself_counts() -> None:
    text = draft(["Alert when cpu is at least 80 or memory above 90"]).text
    assert "What is at or above `cpu_threshold` or above `memory_threshold` needs" in text


@pytest.mark.parametrize("words", ["above 80 or memory above", "at least 80 or memory above"])
def test_limits_on_two_subjects_are_compared_with_their_own(
    words: str, glued: dict[str, Any]
) -> None:
    text = draft([f"Alert when cpu is {words} 90"]).text
    names = executed(text)
    names["items"] = [{"name": "cpu", "value": 85}, {"name": "memory", "value": 85}]
    for cell in formats.loads(text, ".py").cells:
        if cell.title in ("decide", "report", "check"):
            exec(cell.source, names)
    assert [item["name"] for item in glued["shown"]] == ["cpu"]


def test_a_limit_limits_and_its_check_can_fail(glued: dict[str, Any]) -> None:
    text = draft(["Show the top 3 of them"]).text
    executed(text, limit=2)
    assert [item["value"] for item in glued["shown"]] == [10, 9]
    executed(text, limit=0)
    assert glued["shown"] == []
    with pytest.raises(AssertionError, match="more is shown"):
        executed(text, limit=-5)


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
