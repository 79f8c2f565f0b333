"""What is read out of a description: the obvious, in English."""

from __future__ import annotations

import ast
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.authoring.described_inputs import MOST, described

# Each description, and the parameters it states: `name: type = default`.
DESCRIPTIONS = {
    "Alert when CPU is above 80%": ["threshold: float = 80.0"],
    "Alert above 80% and below  -5.5": ["threshold: float = 80.0", "threshold_2: float = -5.5"],
    "Alert above 80%, again above 80%": ["threshold: float = 80.0"],
    "Orders of at least 20 items, at most $1,500": [
        "threshold: int = 20",
        "threshold_2: float = 1500.0",
    ],
    "More than 3k users, fewer than 5GB, above 1.000,50, below 1.2.3": [],
    "Sales of the last 7 days and the past 24 hours": ["days: int = 7", "hours: int = 24"],
    "Orders since 2026-01-01": ["since: date = date(2026, 1, 1)"],
    "From 2026-01-01 to 2026-03-31": [
        "since: date = date(2026, 1, 1)",
        "until: date = date(2026, 3, 31)",
    ],
    "Report on 2026-02-28, not 2026-02-30": ["day: date = date(2026, 2, 28)"],
    "Read https://api.example.com/v1/health?x=1.": [
        'url: str = "https://api.example.com/v1/health?x=1"'
    ],
    "Sum up data/orders.csv, then ~/notes": [
        'path: str = "data/orders.csv"',
        'path_2: str = "~/notes"',
    ],
    "Count the lines of src/**/*.py": ['pattern: str = "src/**/*.py"'],
    'Find "ERROR: disk" in `log/a.log`': ['text: str = "ERROR: disk"', 'path: str = "log/a.log"'],
    "It's the users' \"it's\"": ['text: str = "it\'s"'],
    "Show 10 customers of Berlin and/or region eu-west-1 on 5/6/2026": [],
    "Umsatz der letzten 30 Tage über 1.000 €": [],
}
_WORDS = (
    "\"a|b'|`|above|below|at least|5|90%|$1,000|last 7 days|2026-01-02|https://x.y/z|a/b.csv|.|,|\\|"
    "since|“q”|\n"
)
WORDS = st.sampled_from(_WORDS.split("|"))


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_what_is_read(description: str) -> None:
    found = [f"{p.name}: {p.type} = {p.default_source}" for p in described(description)]
    assert found == DESCRIPTIONS[description]


def test_the_help_says_which_words_it_comes_from() -> None:
    (found,) = described("Alert  above\n80%")
    assert found.help == 'limit, from "above 80%"'


@given(st.lists(WORDS | st.text(max_size=10), max_size=60).map(" ".join))
def test_any_text_gives_declarations_in_python(text: str) -> None:
    found = described(text, frozenset({"day"}))
    assert len(found) <= MOST
    names = [p.name for p in found]
    assert len(set(names)) == len(names)
    assert "day" not in names
    for one in found:
        assert one.name.isidentifier()
        assert not keyword.iskeyword(one.name)
        (statement,) = ast.parse(str(one)).body
        assert isinstance(statement, ast.AnnAssign)


@pytest.mark.parametrize("text", ["a/" * 2_000, '"' * 4_000, "above 1," * 600, "*.a" * 1_500])
def test_long_texts_are_read_quickly(text: str) -> None:
    assert len(described(text * 10)) <= MOST
