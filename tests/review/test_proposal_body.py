"""What a proposal says of a run: all of it, and nothing of it as anything but text."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt

from made_records import made
from quire.record.events import CellError, ResultGlued
from quire.review.proposal_body import (
    LIMIT,
    MARK,
    OWN_LIMIT,
    Place,
    Told,
    address_of,
    own_words,
    pointer,
    render,
)
from quire.review.safe_markdown import prose

PLACE = Place("add-x", "origin")
NASTY = [
    "@ada and @org/team",
    "fixes #1, owner/repo#2, GH-3, !4",
    "https://evil.example/x and www.evil.example",
    "<script>alert(1)</script><img src=x onerror=y>",
    "[click](javascript:x) ![pic](http://evil.example)",
    "a | b || c \\| d \\\\| e",
    "`tick` ``two`` ```\nfence\n```",
    "line\n\n# heading\n\n- item\n\n1. one\n\n---\n\n===",
    "\x1b[31mred\x1b[0m \x07 \r over",
    "&#64;ada &commat;ada &lt;b&gt;",
    "$\\int$ *em* __strong__ ~~gone~~ :smile:",
    "<!-- quire: open comment",
    "| --- | --- |",
    "    indented",
    "\ud800 lone",
    "\u0661. digits",
]


def shown(text: str) -> list[Any]:
    """The inline tokens of a rendered body, as a forge would read it."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return [child for token in tokens for child in token.children or ()] + tokens


def checked(body: str, links: int = 0) -> None:
    tokens = shown(body)
    kinds = [token.type for token in tokens]
    assert kinds.count("link_open") == links
    assert not {"image", "html_inline"} & set(kinds)
    assert [t.content.strip() for t in tokens if t.type == "html_block"] == [MARK]
    text = "\n".join(token.content for token in tokens if token.type == "text")
    assert not re.search(r"@\w|#\d|GH-\d|!\d|://|www\.", text, re.IGNORECASE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", body)


@pytest.mark.parametrize("nasty", NASTY)
def test_what_a_notebook_says_stays_text(nasty: str) -> None:
    record = made(
        title=nasty,
        source=nasty,
        results=(
            ResultGlued("c0", nasty, "json", nasty),
            ResultGlued("c0", "deep", "json", {nasty: [nasty]}),
        ),
        error=CellError("Error", nasty, (nasty,)),
        plan={"parameters": {nasty: nasty, "n": 1}, "defaults": {"n": 1}},
    )
    record = replace(record, task=nasty, outcome=record.outcome)
    told = Told(nasty, nasty, nasty, record, nasty, kept=nasty)
    body = render("", [told, Told("plain.py"), Told(nasty, gone=True)], PLACE)
    checked(body)
    rows = [line for line in body.split("\n") if line.startswith("| Outcome")]
    assert rows == ["| Outcome | **failed** |"]
    # Every row of every table has the cells its head has.
    tables = MarkdownIt("commonmark").enable("table").parse(body)
    widths = {"th_open": 0, "td_open": 0}
    for token in tables:
        if token.type == "tr_open":
            count = 0
        elif token.type in widths:
            count += 1
        elif token.type == "tr_close":
            assert count in (2, 4)


@pytest.mark.parametrize("nasty", NASTY)
def test_prose_is_one_line_of_text(nasty: str) -> None:
    tokens = shown(prose(nasty))
    assert {t.type for t in tokens} <= {"text", "paragraph_open", "inline", "paragraph_close"}


def test_it_says_what_the_task_does_and_what_became_of_it() -> None:
    record = made(
        source="total = 1",
        results=(
            ResultGlued("c0", "total", "json", 15),
            ResultGlued(
                "c0",
                "rows",
                "table",
                {"columns": ["a"], "rows": [[1], [2]], "total": 2, "kept": 2},
            ),
        ),
        plan={"parameters": {"n": 5, "day": "2026-01-01"}, "defaults": {"n": 4, "z": True}},
    )
    intro = "# Add up\n\nAdds the numbers below `n`.\n\nSecond."
    told = Told("notebooks/sum.py", "Add up", intro, record, "verified: ada", "https://f.example/x")
    body = render("My words.", [told], PLACE)
    checked(body, links=1)
    assert body.startswith(f"My words.\n\n{MARK}\n\n## Add up\n\n`notebooks/sum.py`\n\nAdds the ")
    for line in (
        "Second.",
        "| Outcome | **ok** |",
        "| Run | `run-1` |",
        "| Verify | verified: ada |",
        "| Executed notebook | [`notebook.ipynb`](<https://f.example/x>) |",
        "| Parameter `n` | `5` |",
        "| Parameter `z` | `true` (default) |",
        "| `total` | `15` |",
        "| `rows` | table of 2 rows |",
        "| 0 | `total = 1` | ok | 0.12 s |",
        "$ git fetch origin add-x",
        "$ git switch add-x",
        """$ quire run notebooks/sum.py -y '{"n": 5, "day": "2026-01-01"}'""",
        "$ quire verify run-1",
        "$ quire replay run-1",
    ):
        assert line in body.split("\n")
    assert address_of(body, "run-1") == "https://f.example/x"
    assert address_of(body, "run-2") == ""


def test_without_a_run_it_says_how_to_make_one() -> None:
    body = render("", [Told("lib/-odd name.py", "T")], Place("b", folder="lib"))
    assert "**No archived run of this version exists.**" in body
    assert "$ cd lib\n$ quire run './-odd name.py'\n$ quire propose --branch b" in body
    assert render("", [], PLACE).endswith("This change touches no task.\n")
    assert "This task is removed." in render("", [Told("x.py", gone=True)], PLACE)


def test_commands_are_words_of_a_shell() -> None:
    record = made(plan={"parameters": {"s": "it's `x` $(y)\n\x00é"}})
    body = render("", [Told("a'b$(c).py", record=record)], Place("b"))
    (line,) = [row for row in body.split("\n") if row.startswith("$ quire run")]
    assert shlex.split(line[2:]) == [
        *("quire", "run", "a'b$(c).py", "-y"),
        '{"s": "it\'s `x` $(y)\\n\\u0000\\u00e9"}',
    ]


def test_own_words_stay_and_the_rest_is_made_again() -> None:
    first = render("Mine @ada #1\n\n- a list", [Told("a.py")], PLACE)
    assert own_words(first) == "Mine @ada #1\n\n- a list"
    assert own_words(render(own_words(first), [], PLACE)) == own_words(first)
    assert own_words(render("", [], PLACE)) == ""
    assert render(f"x{MARK}y", [], PLACE).count(MARK) == 1
    assert own_words("somebody wrote all of this by hand") == "somebody wrote all of this by hand"


def test_it_fits_a_forge_whatever_there_is() -> None:
    huge, large = "x" * 100_000, "x" * 5_000
    results = tuple(ResultGlued("c0", f"r{n}", "json", large) for n in range(500))
    cells = tuple(("code", large) for _ in range(500))
    record = made(
        results=results,
        before=cells,
        title=huge,
        plan={"parameters": {f"p{n}": huge if n == 0 else large for n in range(300)}},
    )
    told = [Told(f"{huge[:200]}{n}.py", huge, huge, record, "ok") for n in range(60)]
    body = render("y" * OWN_LIMIT, told, PLACE)
    assert len(body) <= LIMIT + 10
    assert own_words(body) == "y" * OWN_LIMIT
    one = render("", told[:1], PLACE)
    assert "450 more are in the record." in one
    assert "more characters" in one
    assert "# the parameters are in the record" in one


# The line that names what a body was made from.


def test_a_body_names_its_commit_and_runs() -> None:
    record = replace(made(), run_id="2026-11-16-160000-sum-0001")
    place = replace(PLACE, head="a" * 40)
    body = render("Mine.", [Told("sum.py", record=record), Told("b.py")], place)
    found = pointer(body)
    assert found is not None
    assert (found.head, found.runs) == ("a" * 40, ("2026-11-16-160000-sum-0001",))
    assert pointer(render("Mine.", [], PLACE)) is None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "<!-- quire: -->",
        "<!-- quire: {} -->",
        "<!-- quire: [] -->",
        '<!-- quire: {"head": "main", "runs": []} -->',
        '<!-- quire: {"head": "%s", "runs": "all"} -->' % ("a" * 40),
        '<!-- quire: {"head": "%s", "runs": ["../x"]} -->' % ("a" * 40),
        '<!-- quire: {"head": "%s", "runs": [1]} -->' % ("a" * 40),
        '<!-- quire: {"head": "x", "head": "%s", "runs": []} -->' % ("b" * 40),
        '<!-- quire: {"head": "%s", "runs": [], "more": 1} -->' % ("a" * 40),
        "<!-- quire: " + "[" * 9999 + " -->",
    ],
    ids=lambda line: line[:60],
)
def test_a_line_that_somebody_edited_names_nothing(line: str) -> None:
    assert pointer(f"Mine.\n\n{MARK}\n\n{line}\n\nrest") is None


def test_what_stands_above_the_mark_names_nothing() -> None:
    line = '<!-- quire: {"head": "%s", "runs": []} -->' % ("a" * 40)
    assert pointer(f"{line}\n\n{MARK}\n\nrest") is None
