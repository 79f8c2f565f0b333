"""Outputs of cells as an agent reads them: cleaned, once, tables with their size."""

from __future__ import annotations

import re
from typing import Any

import pytest

from made_records import AT, shown, stream
from quire.record.events import (
    CellFinished,
    CellStarted,
    Event,
    OutputAdded,
    RunFinished,
    RunStarted,
)
from quire.record.record import Record, fold
from quire.render.agent_run import tell_run
from quire.text import MARK

OUR_LINES = re.compile(r"^(?!\| )", re.MULTILINE)
RUN = "2026-11-16-155501-report-8121"


def ran(*cells: list[dict[str, Any]], outcome: str = "ok", **start: Any) -> Record:
    """A record of code cells with these outputs."""
    specs = tuple(
        {"id": f"c{n}", "kind": "code", "source": f"work({n})", "title": "", "tags": []}
        for n in range(len(cells))
    )
    events: list[Event] = [RunStarted(RUN, "u", AT, "tasks/t.py", "T", specs, start)]
    for n, outputs in enumerate(cells):
        events.append(CellStarted(f"c{n}", AT))
        events += [OutputAdded(f"c{n}", output) for output in outputs]
        events.append(CellFinished(f"c{n}", "ok", AT, 0.1, n + 1))
    events.append(RunFinished("ok", AT, 1.5))
    return fold(events)


def own(text: str) -> list[str]:
    """The lines that are not quoted."""
    return [line for line in text.split("\n") if not line.startswith(MARK)]


def test_colours_bars_and_controls() -> None:
    text = tell_run(
        ran([stream("\r 0%\r50%\r100%\n\x1b[31mred\x1b[0m\a\u202eabc\u2028x\nab\b\bcd\n")])
    ).text
    assert "| 100%\n| red^G<U+202E>abc<U+2028>x\n| cd" in text
    assert "50%" not in text


def test_one_text_of_one_display() -> None:
    text = tell_run(
        ran([shown(text__plain="a table of words", text__html="<b>a table of words</b>")])
    ).text
    assert text.count("a table of words") == 1
    only_html = tell_run(ran([shown(text__html="<p>a</p><p>b</p>")])).text
    assert "| a b" in only_html


def test_the_same_block_is_told_once() -> None:
    block = "".join(f"row {n} of the block\n" for n in range(5))
    text = tell_run(ran([stream(block)], [stream(block)])).text
    assert text.count("row 3 of the block") == 1
    assert "stdout: the same as what cell c0 gave out above" in text


def test_an_object_with_no_words_of_its_own_is_told_by_its_table() -> None:
    rows = "".join(f"<tr>\n  <th>{n}</th>\n  <td>v{n}</td>\n</tr>" for n in range(3))
    data = shown(
        text__plain="<pandas.Styler at 0x7f91e2578750>", text__html=f"<table>{rows}</table>"
    )
    told = tell_run(ran([data])).text
    assert "at 0x" not in told
    assert "| 0 v0\n| 1 v1\n| 2 v2" in told
    alone = shown(text__plain="<matplotlib.lines.Line2D at 0x7f91e2578750>")
    assert "Line2D at 0x" in tell_run(ran([alone])).text


def test_a_wide_table_says_that_columns_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([range(100)] * 3)
    data = shown(text__plain=repr(frame), text__html=frame._repr_html_())
    assert "\ntable: 3 of 3 rows, some of 100 columns:" in tell_run(ran([data])).text


def test_tables_say_how_much_of_them_is_there() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": range(29_658)})
    with pandas.option_context("display.max_rows", 10):
        data = shown(text__plain=repr(frame), text__html=frame.to_html(max_rows=10))
    assert "\ntable: 10 of 29,658 rows:" in tell_run(ran([data])).text


def test_tables_do_not_spend_characters_on_their_alignment() -> None:
    pandas = pytest.importorskip("pandas")

    def told(values: list[object]) -> str:
        frame = pandas.DataFrame({"a": values, "long": 1})
        data = shown(text__plain=repr(frame), text__html=frame.to_html(max_rows=4))
        return tell_run(ran([data])).text

    with pandas.option_context("display.max_rows", 4):
        plain, spaced = told([*range(100)]), told(["x y"] * 100)
    assert "|  a long\n| 0 0 1\n| 1 1 1\n| …\n| 98 98 1\n| 99 99 1" in plain
    # Where a value has a space, one space would not tell columns apart.
    assert "| 0  x y  1\n| 1  x y  1\n| …\n| 98  x y  1" in spaced
