"""The summary a person reads on the forge, whatever tasks put into it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from made_gates import FAILED, GATE, HOSTILE, OK, hostile
from made_records import made
from quire.ci.gate_report import (
    FAILURES_SHOWN,
    ROWS_SHOWN,
    GateResult,
    cell_table,
    code,
    compared,
    fenced,
    headline,
    markdown,
    task_run,
)
from quire.record.events import CellError, ResultGlued


def tokens(text: str) -> list[Token]:
    """As a forge reads it: with tables, HTML and bare links."""
    found: list[Token] = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        found += [token, *(token.children or [])]
    return found


def test_the_summary_says_what_counts() -> None:
    text = markdown(GATE)
    assert text.startswith("## Tasks: 1 ok, 1 failed, 1 could not run in 0.75 s\n")
    assert "Compared with aaaaaaaaaaaa. 1 other is not affected." in text
    row = next(line for line in text.splitlines() if "sum.py" in line)
    assert row == (
        "| `notebooks/sub/sum.py` | ok | 0.50 s | `total` `6` | `.quire/ci/sub/sum.ipynb` "
        "| `quire verify 2026-11-16-155501-sum-ab12` |"
    )
    assert "### `notebooks/bad.py`: failed" in text
    assert "`ZeroDivisionError: division by zero` in `cell c1 (divide)`" in text
    assert "```text\nCell In[1], line 1\n----> 1 1 / 0\n```" in text
    assert "What to do: `give it values`" in text


def test_nothing_ran() -> None:
    assert markdown(GateResult(everything="--all was given")).startswith("## Tasks: there are no")
    none = GateResult(unaffected=("a.py", "b.py"), base="b" * 40)
    assert headline(none) == "no task is affected"
    assert compared(none) == "Compared with bbbbbbbbbbbb. 2 others are not affected."
    assert none.ok


def test_a_cancelled_gate_is_not_ok() -> None:
    gate = GateResult((OK,), cancelled=True)
    assert not gate.ok
    assert "cancelled" in markdown(gate)


def test_a_strangers_text_is_code_and_nothing_else() -> None:
    result = hostile()
    found = tokens(markdown(result))
    kinds = {token.type for token in found}
    assert not kinds & {"link_open", "image", "html_block", "em_open", "s_open", "hr"}
    html = {token.content for token in found if token.type == "html_inline"}
    assert html <= {"<code>", "</code>", "<br>"}
    headings = [token for token in found if token.type == "heading_open"]
    assert [h.tag for h in headings] == ["h2"] + ["h3"] * (len(HOSTILE) + 1)
    assert sum(token.type == "table_open" for token in found) == 1
    rows = sum(token.type == "tr_open" for token in found)
    assert rows == len(HOSTILE) + 1
    assert sum(token.type == "td_open" for token in found) == 6 * len(HOSTILE)
    fences = [token for token in found if token.type == "fence"]
    assert len(fences) == len(HOSTILE)
    assert all(f.content.startswith("Traceback\n") and f.content.endswith("end\n") for f in fences)


def test_no_mention_no_bare_link_outside_of_code() -> None:
    outside: list[str] = []
    inside = False
    for token in tokens(markdown(hostile())):
        if token.type == "html_inline":
            inside = token.content == "<code>"
        elif token.type == "text" and not inside:
            outside.append(token.content)
    assert "failed" in " ".join(outside)
    assert not [text for text in outside if re.search(r"@|://|#\d|example|octocat", text)]


@pytest.mark.parametrize("text", HOSTILE)
def test_code_holds_on_one_line(text: str) -> None:
    shown = code(text)
    assert "\n" not in shown
    assert "|" not in shown
    if shown.startswith("`"):
        assert shown.count("`") == 2
    else:
        inner = shown.removeprefix("<code>").removesuffix("</code>")
        assert not re.search(r"[<>`|\\\[\]*_]", inner)


def test_direction_cannot_be_turned() -> None:
    for way in (code, fenced):
        assert "\u202e" not in way("a\u202eb")


def test_many_failures_are_counted_not_shown() -> None:
    text = markdown(GateResult((FAILED,) * (FAILURES_SHOWN + 3)))
    assert text.count("### `notebooks/bad.py`") == FAILURES_SHOWN
    assert "… and 3 more that are not ok." in text


def test_the_summary_stays_below_what_forges_take() -> None:
    big = replace(
        FAILED,
        task="t" * 10_000,
        traceback="x" * 10**5,
        error="e" * 10**5,
        results={str(n): "v" * 10_000 for n in range(1000)},
    )
    assert len(markdown(GateResult((big,) * (ROWS_SHOWN + 1))).encode()) < 2_500_000
    assert len(markdown(GateResult((big,) * 100)).encode()) < 1_000_000


def test_what_is_kept_of_a_record() -> None:
    glued = (ResultGlued("c1", "total", "json", 6),)
    error = CellError("ValueError", "no\nsuch", ("Traceback", "ValueError: no"))
    record = made(before=(("markdown", "# T"),), error=error, results=glued)
    run = task_run(record, "notebooks/x.py", "it changed", "out.ipynb", "short")
    failed = record.error
    assert failed is not None
    assert (run.outcome, run.error) == ("failed", "ValueError: no such")
    assert (run.cell, run.where, run.value) == (failed.cell, f"cell {failed.cell}", "no\nsuch")
    assert run.results == {"total": "6"}
    assert [cell.id for cell in run.cells] == [cell.id for cell in record.cells]
    assert [cell.status for cell in run.cells] == ["text", "failed", "not run"]
    table = cell_table(run).splitlines()
    assert table[0].startswith("[1/2] failed ")
    assert table[1].startswith("[2/2] not run ")
    assert table[2] == "total = 6"
