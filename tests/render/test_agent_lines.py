"""Some lines of a stream, by number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.errors import UsageError
from quire.render.agent_page import Lines, asked_lines, tell_lines
from quire.text import MARK

ROWS = [f"row {n}" for n in range(1, 1_001)]


def told(wanted: str, limit: int = 24_000, rows: list[str] = ROWS) -> str:
    return tell_lines(rows, len(rows), asked_lines(wanted), what="stdout", limit=limit)


def quoted(text: str) -> list[str]:
    return [row.removeprefix(MARK) for row in text.split("\n") if row.startswith(MARK)]


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        ("7", Lines(7, 7)),
        ("3-7", Lines(3, 7)),
        ("300-", Lines(300, None)),
        ("-20", Lines(1, 20)),
        ("1 - 2", Lines(1, 2)),
    ],
)
def test_ranges(wanted: str, lines: Lines) -> None:
    assert asked_lines(wanted) == lines


@pytest.mark.parametrize("wanted", ["", "-", "0", "7-3", "a-b", "1,5", "1-2-3", "9" * 13, "-1-2"])
def test_what_is_no_range(wanted: str) -> None:
    with pytest.raises(UsageError, match="no range of lines"):
        asked_lines(wanted)


def test_lines_of_a_range() -> None:
    text = told("101-103")
    assert text.startswith("stdout, lines 101 to 103 of 1,000\n")
    assert quoted(text) == ["row 101", "row 102", "row 103"]
    assert quoted(told("999-2000")) == ["row 999", "row 1000"]
    assert told("1001") == "stdout has only 1,000 lines"


def test_a_range_that_does_not_fit_says_where_to_read_on() -> None:
    text = told("1-", limit=1_000)
    shown = quoted(text)
    assert len(text) <= 1_000
    assert f"lines 1 to {len(shown)} of 1,000" in text
    next_one = len(shown) + 1
    assert text.endswith(f"… lines {next_one} to 1,000 did not fit; read on: {next_one}-1000")


def test_one_very_long_line_gets_all_the_room() -> None:
    text = told("1", 10_000, ["x" * 100_000])
    assert 8_000 < len(text) <= 10_000


@given(
    st.lists(st.text(max_size=60), min_size=1, max_size=60), st.integers(1, 70), st.integers(0, 999)
)
def test_bounded_and_quoted(rows: list[str], first: int, limit: int) -> None:
    rows = [row.replace("\n", " ") for row in rows]
    text = tell_lines(rows, len(rows), Lines(first, None), what="stdout", limit=limit)
    assert len(text) <= limit
    own = [line for line in text.split("\n") if not line.startswith(MARK)]
    assert len(own) <= 3
