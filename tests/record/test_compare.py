"""Two records side by side: what counts as a difference, and how it is told."""

from __future__ import annotations

import base64
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_events import journals
from made_records import PNG, made, shown, stream
from quire.record.cell_alignment import aligned
from quire.record.compare import MISSING, Comparison, compare
from quire.record.events import CellError, ResultGlued
from quire.record.record import CellRecord, Record, fold
from quire.record.record_files import archive_files, read_record
from quire.render.comparison import lines


def cells_of(*sources: str, kind: str = "code") -> tuple[CellRecord, ...]:
    return tuple(CellRecord(f"c{at}", kind, text) for at, text in enumerate(sources))


def with_cells(*cells: CellRecord) -> Record:
    return replace(made(), cells=cells)


def tagged(record: Record, at: int, *tags: str) -> Record:
    cells = list(record.cells)
    cells[at] = replace(cells[at], tags=tags)
    return replace(record, cells=tuple(cells))


def text_of(comparison: Comparison, *, everything: bool = False) -> str:
    return "\n".join(line.text for line in lines(comparison, everything=everything))


def error(value: str, trace: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": "E", "evalue": value, "traceback": [trace]}


def value(text: str, count: int) -> dict[str, Any]:
    return {
        "output_type": "execute_result",
        "data": {"text/plain": text},
        "metadata": {},
        "execution_count": count,
    }


def glued(given: Any, kind: Any = "json", cell: str = "c0") -> tuple[ResultGlued, ...]:
    return (ResultGlued(cell, "score", kind, given),)


SAME = {
    "nothing": ((), ()),
    "a stream in pieces": (
        (stream("a"), stream("warn", "stderr"), stream("b")),
        (stream("ab"), stream("warn", "stderr")),
    ),
    "execution counts": ((value("1", 4),), (value("1", 7),)),
    "tracebacks with other paths and colours": (
        (error("x", '\x1b[31mFile "/a/x.py"'),),
        (error("x", 'File "/b/x.py"'),),
    ),
    "the same picture in lines": (
        (shown(image__png=PNG),),
        (shown(image__png=PNG[:5] + "\n" + PNG[5:]),),
    ),
    "JSON in another order": (
        (shown(application__json={"a": 1, "b": [2]}),),
        (shown(application__json={"b": [2], "a": 1}),),
    ),
    "text in lines": ((shown(text__plain=["a\n", "b"]),), (shown(text__plain="a\nb"),)),
    "the id of a widget": (
        (shown(**{"application__vnd.jupyter.widget-view+json": {"model_id": "a"}}),),
        (shown(**{"application__vnd.jupyter.widget-view+json": {"model_id": "b"}}),),
    ),
    "metadata of a display": (
        ({**shown(text__plain="a"), "metadata": {"x": 1}},),
        (shown(text__plain="a"),),
    ),
}
OTHER = {
    "a stream": ((stream("a\n"),), (stream("b\n"),)),
    "only the last newline": ((stream("a\n"),), (stream("a"),)),
    "the name of a stream": ((stream("a"),), (stream("a", "stderr"),)),
    "a float where an integer was": (
        (shown(application__json=1),),
        (shown(application__json=1.0),),
    ),
    "true where one was": ((shown(application__json=1),), (shown(application__json=True),)),
    "one byte of a picture": (
        (shown(image__png=PNG),),
        (shown(image__png=base64.b64encode(b"\x89PNG\r\n\x1a\nresT").decode()),),
    ),
    "what an error says": ((error("x", "t"),), (error("y", "t"),)),
    "an address": ((value("<o at 0x7f01>", 1),), (value("<o at 0x7f02>", 1),)),
    "one more display": ((value("a", 1),), (value("a", 1), shown(text__plain="b"))),
    "the order of displays": (
        (shown(text__plain="a"), shown(text__plain="b")),
        (shown(text__plain="b"), shown(text__plain="a")),
    ),
    "only a colour": ((stream("a"),), (stream("\x1b[31ma"),)),
}


@pytest.mark.parametrize("case", SAME)
def test_outputs_that_are_the_same(case: str) -> None:
    old, new = SAME[case]
    found = compare(made(*old), made(*new))
    assert found.verdict == "equal"
    assert not list(lines(found))


@pytest.mark.parametrize("case", OTHER)
def test_outputs_that_differ(case: str) -> None:
    old, new = OTHER[case]
    found = compare(made(*old), made(*new))
    assert found.verdict == "different"
    assert [change.new_at for change in found.cells] == [0]
    assert "cell 0" in text_of(found)
    assert compare(made(*new), made(*old)).verdict == "different"


def test_floats_are_compared_exactly() -> None:
    old, new = made(results=glued(0.1 + 0.2)), made(results=glued(0.3))
    assert compare(old, new).verdict == "different"
    assert "score: 0.30000000000000004 -> 0.3" in text_of(compare(old, new))
    nan = made(results=glued(float("nan")))
    assert compare(nan, made(results=glued(float("nan")))).verdict == "equal"


def test_a_volatile_cell_may_differ_in_what_it_gives_out() -> None:
    old = tagged(made(stream("12:01"), results=glued(1)), 0, "volatile")
    new = tagged(made(stream("12:02"), results=glued(2)), 0, "volatile")
    found = compare(old, new)
    assert found.verdict == "volatile"
    assert "(volatile" in text_of(found)
    assert "-12:01" in text_of(found)
    assert found.as_dict()["results"][0]["volatile"] is True


def test_a_volatile_cell_may_not_differ_in_anything_else() -> None:
    fine = tagged(made(stream("a")), 0, "volatile")
    failed = tagged(made(stream("a"), error=CellError("E", "x", ())), 0, "volatile")
    rewritten = tagged(made(stream("a"), source="other()"), 0, "volatile")
    assert compare(fine, failed).verdict == "different"
    assert compare(fine, rewritten).verdict == "different"


def test_a_result_of_another_cell_is_not_volatile() -> None:
    old = tagged(made(results=glued(1, cell="c1")), 0, "volatile")
    new = tagged(made(results=glued(2, cell="c1")), 0, "volatile")
    assert compare(old, new).verdict == "different"


def test_parameters_are_compared_with_their_defaults() -> None:
    old = made(plan={"defaults": {"n": 4, "m": 1}, "parameters": {}})
    new = made(plan={"defaults": {"n": 4, "m": 1}, "parameters": {"n": 5}})
    found = compare(old, new)
    assert [(c.name, c.old, c.new) for c in found.parameters] == [("n", 4, 5)]
    assert "n: 4 -> 5" in text_of(found)
    given = made(plan={"defaults": {"n": 4, "m": 1}, "parameters": {"n": 4}})
    assert compare(old, given).verdict == "equal"


def test_the_cell_that_sets_parameters_is_not_told_twice() -> None:
    plain_cells = cells_of("n = 4", "print(n)")
    injected = CellRecord("p", "code", "# Parameters\nn = 5", tags=("injected-parameters",))
    other = replace(injected, source="# Parameters\nn = 6")
    with_one = with_cells(plain_cells[0], injected, plain_cells[1])
    assert not compare(with_cells(*plain_cells), with_one).cells
    assert not compare(with_one, with_cells(plain_cells[0], other, plain_cells[1])).cells


def test_tables_are_compared_by_row() -> None:
    def table(*rows: list[Any]) -> dict[str, Any]:
        return {"columns": ["k", "v"], "rows": list(rows), "kept": len(rows), "total": len(rows)}

    many = [[f"k{n}", n] for n in range(100)]
    old = made(results=glued(table(*many), "table"))
    new = made(results=glued(table(*many[:50], ["k50", -1], *many[51:]), "table"))
    text = text_of(compare(old, new))
    assert '-["k50", 50]' in text
    assert '+["k50", -1]' in text
    assert "k20" not in text


def test_outcome_and_error_are_told() -> None:
    fine, failed = made(), made(error=CellError("ValueError", "no such region", ()))
    text = text_of(compare(fine, failed))
    assert 'outcome: "ok" -> "failed"' in text
    assert "ValueError: no such region" in text
    assert "status" in text


def test_a_carried_cell_was_run_as_well_as_one_that_is_ok() -> None:
    fine = made(stream("a"))
    carried = replace(fine, cells=(replace(fine.cells[0], status="carried"), *fine.cells[1:]))
    assert compare(carried, fine).verdict == "equal"


def test_noise_is_told_only_when_asked_for() -> None:
    old = made(stream("a"))
    new = replace(old, run_id="run-2", duration=9.0, cells=(
        replace(old.cells[0], id="zz", duration=5.0, execution_count=8), *old.cells[1:]
    ))  # fmt: skip
    assert compare(old, new).verdict == "equal"
    assert not compare(old, new).noise
    found = compare(old, new, noise=True)
    assert found.verdict == "equal"
    names = {(change.kind, change.name) for change in found.noise}
    assert {("run", "run_id"), ("cell 0", "id"), ("cell 0", "execution_count")} <= names
    assert "execution_count: 1 -> 8" in text_of(found, everything=True)


def test_environments_are_told_and_do_not_count() -> None:
    def origin(python: str, **packages: str) -> dict[str, Any]:
        interpreter = {"version": python, "executable": "/bin/python"}
        return {"environment": {"interpreter": interpreter, "packages": packages, "platform": "L"}}

    old = replace(made(), origin=origin("3.11.2", pandas="2.2", gone="1"))
    new = replace(made(), origin=origin("3.12.0", pandas="2.3", fresh="1"))
    found = compare(old, new)
    assert found.verdict == "equal"
    changes = {change.name: (change.old, change.new) for change in found.environment}
    assert changes == {
        "version": ("3.11.2", "3.12.0"),
        "pandas": ("2.2", "2.3"),
        "gone": ("1", MISSING),
        "fresh": (MISSING, "1"),
    }
    assert "the environments differ: interpreter version, pandas" in text_of(found)


def test_cells_are_matched_by_what_they_hold() -> None:
    old = cells_of("import os", "x = load(1)\ny = 2", "print(x)", "done()")
    new = cells_of("import os", "new_cell()", "x = load(2)\ny = 2", "print(x)")
    assert aligned(old, new) == [(0, 0), (None, 1), (1, 2), (2, 3), (3, None)]


def test_cells_with_one_title_are_the_same_cell() -> None:
    old = (CellRecord("a", "code", "first()", title="load"), *cells_of("b()"))
    new = (
        *cells_of("c(1)"),
        CellRecord("z", "code", "all_new = 1", title="load"),
        *cells_of("b()"),
    )
    assert (0, 1) in aligned(old, new)


@given(
    st.lists(st.sampled_from("abcdefg"), max_size=9),
    st.lists(st.sampled_from("abcdefg"), max_size=9),
)
def test_every_cell_is_placed_once_and_in_order(old: list[str], new: list[str]) -> None:
    before = tuple(CellRecord(f"c{n}", "code", f"{word} = 1") for n, word in enumerate(old))
    after = tuple(CellRecord(f"c{n}", "code", f"{word} = 1") for n, word in enumerate(new))
    pairs = aligned(before, after)
    assert [a for a, _ in pairs if a is not None] == list(range(len(old)))
    assert [b for _, b in pairs if b is not None] == list(range(len(new)))


@given(journals())
def test_a_run_equals_itself_and_what_the_archive_has_of_it(events: list[Any]) -> None:
    record = fold(events)
    assert compare(record, record).verdict == "equal"
    again = read_record(archive_files(record, b"", ".py", version="1"))
    found = compare(record, again)
    assert found.verdict == "equal", found.as_dict()


@given(journals(), journals())
def test_any_two_runs_can_be_told_apart_or_not(one: list[Any], other: list[Any]) -> None:
    old, new = fold(one), fold(other)
    there, back = compare(old, new, noise=True), compare(new, old, noise=True)
    assert there.verdict == back.verdict
    told = list(lines(there, everything=True))
    assert bool(list(lines(compare(old, new)))) == (there.verdict != "equal")
    for line in told:
        assert not any(
            ord(char) < 32 or 127 <= ord(char) < 160 for char in line.text.replace("\t", "")
        )


def test_what_a_terminal_would_obey_is_shown_as_text() -> None:
    found = compare(made(stream("plain\n")), made(stream("\x1b]0;owned\x07\x1b[2Jplain\n")))
    text = text_of(found)
    assert found.verdict == "different"
    assert "\x1b" not in text
    assert "^[]0;owned^G" in text


def test_long_differences_are_cut_with_a_word_about_it() -> None:
    old = made(stream("".join(f"old {n}\n" for n in range(500))))
    new = made(stream("".join(f"new {n}\n" for n in range(500))))
    assert "more lines (--all shows them)" in text_of(compare(old, new))
    assert text_of(compare(old, new), everything=True).count("+new") == 500


def test_very_long_outputs_take_no_time() -> None:
    old = made(stream("".join(f"{n % 7}\n" for n in range(400_000))))
    new = made(stream("".join(f"{n % 5}\n" for n in range(400_000))))
    began = time.monotonic()
    text = text_of(compare(old, new))
    assert time.monotonic() - began < 5
    assert "the first that differs is line 6" in text
