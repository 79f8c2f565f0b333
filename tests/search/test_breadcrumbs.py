"""What a run that builds code says of it."""

from __future__ import annotations

from typing import Any

import pytest

from made_records import made
from quire.errors import UsageError
from quire.record.events import ResultGlued
from quire.search.breadcrumbs import build_facts, build_summary, summary
from quire.search.pieces import facts, own
from quire.search.query import parse
from quire.search.snippets import Matcher

BUILT: dict[str, Any] = {
    "architecture": {"goal": "g", "modules": 12, "decisions": ["SQLite, not files"]},
    "dependencies": ["flask", "attrs", "rich", "zmq"],
    "validations": [
        {"command": "ruff check", "ok": False},
        {"command": "mypy", "ok": True},
    ],
    "test_results": {"command": "pytest", "status": 1, "passed": 40, "failed": 2, "skipped": 0},
}


def record(**results: Any) -> Any:
    glued = (ResultGlued("c0", name, "json", value) for name, value in results.items())
    return made(results=tuple(glued))


def test_it_is_told_in_a_few_words() -> None:
    assert build_summary(BUILT) == {
        "validations": "1 passed, 1 failed (ruff check)",
        "test_results": "40 passed, 2 failed",
        "dependencies": "flask, attrs, rich and 1 more",
        "architecture": "12 modules; decided: SQLite, not files",
    }
    assert build_summary({"test_results": {"status": 5}}) == {"test_results": "none found"}
    assert build_summary({"test_results": {"status": 0}}) == {"test_results": "passed"}
    assert build_summary({"test_results": {"status": 2}})["test_results"].endswith("status 2")
    assert build_summary({"dependencies": []}) == {"dependencies": "none"}


@pytest.mark.parametrize("odd", [None, 3, "x", [1], [{"ok": 1}], {"passed": -1}, [[]], True])
def test_results_that_only_have_the_name_are_results_like_any_other(odd: Any) -> None:
    names = ("validations", "test_results", "architecture")
    assert build_summary(dict.fromkeys(names, odd)) == {}
    assert list(build_facts({"validations": odd})) == []
    assert "validations = " in summary(record(validations=odd))


def test_the_summary_and_the_index_have_it() -> None:
    text = summary(record(**BUILT, score=1))
    assert "Validations: 1 passed, 1 failed (ruff check)." in text
    assert "Test results: 40 passed, 2 failed." in text
    assert "Results: score = 1." in text
    values = {fact.name: fact.value for fact in facts(record(**BUILT))}
    assert (values["validations.failed"], values["dependencies.count"]) == (1, 4)
    assert (values["test_results.failed"], values["architecture.modules"]) == (2, 12)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("dependencies:flask", True),
        ("dependencies:fla*", True),
        ("architecture:sqlite", True),
        ("architecture:flask", False),
        ("validations:failed", True),
        ('validations:"ruff check"', True),
        ("tests:failed", True),
        ("tests:ruff", False),
        ("result:ruff", True),
    ],
)
def test_each_can_be_searched_by_itself(query: str, found: bool) -> None:
    pieces = list(own(record(**BUILT), ""))
    matcher = Matcher(parse(query))
    assert (matcher.literal(pieces) and not matcher.missing(pieces)) is found


def test_what_cannot_be_left_out_is_said() -> None:
    with pytest.raises(UsageError, match="left out"):
        parse("-dependencies:flask report")
