from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_events import journals
from quire.record import journal
from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    KernelDied,
    OutputAdded,
    OutputCut,
    OutputsCleared,
    OutputUpdated,
    ResultGlued,
    RunFinished,
    RunStarted,
    ToolCalled,
    Warned,
    dumps,
)
from quire.record.executed_notebook import dumps as notebook_bytes
from quire.record.executed_notebook import notebook
from quire.record.record import Fold, Record, fold

AT = "2026-11-16T15:55:01+00:00"


def check(events: list[Event], record: Record) -> None:
    """What must hold for the record of any part of a run."""
    started = {e.cell for e in events if isinstance(e, CellStarted)}
    ended = {e.cell: e.status for e in events if isinstance(e, CellFinished)}
    for cell in record.cells:
        if cell.kind != "code":
            assert cell.status == "text"
        elif cell.id in ended:
            assert cell.status == ended[cell.id]
        elif cell.id in started:
            assert cell.status == "died"
        else:
            assert cell.status == "not run"
            assert (cell.started, cell.outputs, cell.duration) == ("", (), None)
    assert (record.outcome == "ok") == any(
        isinstance(e, RunFinished) and e.outcome == "ok" for e in events
    )
    assert (record.error is None) == (record.outcome == "ok")


def check_notebook(record: Record) -> None:
    nb = nbformat.reads(notebook_bytes(notebook(record, version="1")).decode(), as_version=4)
    nbformat.validate(nb)
    assert (nb.nbformat, nb.nbformat_minor) == (4, 5)
    for cell, shown in zip(record.cells, nb.cells, strict=True):
        if cell.kind != "code":
            continue
        mark = shown.metadata.papermill
        assert (mark.status == "completed") == (cell.status == "ok")
        if cell.status == "not run":
            assert (mark.status, mark.exception, mark.start_time) == ("pending", None, None)


@given(journals(), st.data())
@settings(max_examples=150, deadline=None)
def test_any_prefix_of_a_journal_gives_a_record(events: list[Event], data: st.DataObject) -> None:
    prefix = events[: data.draw(st.integers(0, len(events)))]
    record = fold(prefix)
    check(prefix, record)
    check_notebook(record)


@given(journals(), st.data())
@settings(max_examples=100, deadline=None)
def test_any_bytes_of_a_journal_give_a_record(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], data: st.DataObject
) -> None:
    """A kill in mid-write leaves a torn line; every whole line before it counts."""
    path: Path = tmp_path_factory.getbasetemp() / "torn.jsonl"
    lines = [dumps(event).encode() + b"\n" for event in events]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    kept = list(journal.read(path))
    assert len(kept) == whole[:cut].count(b"\n")
    check(kept, fold(kept))
    check_notebook(fold(kept))


@given(journals())
@settings(max_examples=50, deadline=None)
def test_folding_one_by_one_is_folding_all(events: list[Event]) -> None:
    folding = Fold()
    for n, event in enumerate(events, 1):
        folding.add(event)
        assert repr(folding.record()) == repr(fold(events[:n]))


def spec(cell: str, kind: str = "code") -> dict[str, Any]:
    return {"id": cell, "kind": kind, "source": "x", "title": "", "tags": [], "metadata": {}}


def begun(*cells: str) -> list[Event]:
    return [RunStarted("run", "u", AT, "t.py", "T", tuple(map(spec, cells)), {}, "parent")]


def text(value: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": value}


def shown(value: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/plain": value}, "metadata": {}}


def outputs(*events: Event) -> list[Any]:
    cell = fold([*begun("a"), CellStarted("a", AT), *events]).cells[0]
    return [o["text"] if o["output_type"] == "stream" else o["data"] for o in cell.outputs]


def test_nothing_at_all() -> None:
    record = fold([])
    assert (record.outcome, record.cells, record.results) == ("died", (), {})
    check_notebook(record)


def test_a_live_run_is_running() -> None:
    events = [*begun("a", "b"), CellStarted("a", AT)]
    record = fold(events, alive=True)
    assert (record.outcome, record.error) == ("running", None)
    assert [cell.status for cell in record.cells] == ["running", "not run"]
    dead = fold(events)
    assert (dead.outcome, dead.cells[0].status) == ("died", "died")
    assert dead.error is not None
    assert dead.error.cell == "a"
    assert "process" in dead.error.value


def test_a_finished_run_is_not_running_though_its_process_lives() -> None:
    assert fold([*begun("a"), RunFinished("ok", AT, 1.0)], alive=True).outcome == "ok"


def test_text_of_one_stream_is_joined() -> None:
    assert outputs(
        OutputAdded("a", text("1\n")),
        OutputAdded("a", text("2\n")),
        OutputAdded("a", text("no\n", "stderr")),
        OutputAdded("a", text("3\n")),
    ) == ["1\n2\n", "no\n", "3\n"]


def test_clearing_at_once_and_with_the_next_output() -> None:
    first = OutputAdded("a", text("old"))
    assert outputs(first, OutputsCleared("a")) == []
    assert outputs(first, OutputsCleared("a", wait=True)) == ["old"]
    assert outputs(first, OutputsCleared("a", wait=True), OutputAdded("a", text("new"))) == ["new"]
    waited_then_now = (first, OutputsCleared("a", wait=True), OutputsCleared("a"))
    assert outputs(*waited_then_now, OutputAdded("a", text("x")), OutputAdded("a", text("y"))) == [
        "xy"
    ]


def test_an_update_finds_every_display_of_its_id_in_any_cell() -> None:
    events = [
        *begun("a", "b"),
        OutputAdded("a", shown("0%"), "bar"),
        OutputAdded("a", shown("other"), "else"),
        OutputAdded("b", shown("0%"), "bar"),
        OutputUpdated("b", "bar", {"text/plain": "100%"}, {"k": 1}),
        OutputUpdated("b", "nobody", {"text/plain": "?"}, {}),
    ]
    first, second = fold(events).cells
    assert [o["data"]["text/plain"] for o in first.outputs] == ["100%", "other"]
    assert [o["data"]["text/plain"] for o in second.outputs] == ["100%"]
    assert second.outputs[0]["metadata"] == {"k": 1}


def test_an_update_after_its_display_was_cleared_changes_nothing() -> None:
    assert (
        outputs(
            OutputAdded("a", shown("0%"), "bar"),
            OutputsCleared("a"),
            OutputUpdated("a", "bar", {"text/plain": "100%"}, {}),
        )
        == []
    )


def test_a_cut_stream_says_how_much_and_where() -> None:
    (told,) = outputs(
        OutputAdded("a", text("head")), OutputCut("a", "stdout", 1_234, "/spill/x", "tail")
    )
    marker = "[quire: 1,234 characters of stdout were cut here; all of it is in /spill/x]"
    assert told == f"head\n{marker}\ntail"
    assert outputs(
        OutputAdded("a", text("head")), OutputCut("a", "stdout", 0, "/spill/x", "tail")
    ) == ["headtail"]
    (_, told) = outputs(OutputAdded("a", shown("x")), OutputCut("a", "display", 7, "/spill/d"))
    assert told["text/plain"] == "[quire: 7 more outputs were cut here; all are in /spill/d]"


def test_the_last_result_of_a_name_counts() -> None:
    record = fold(
        [
            *begun("a"),
            ResultGlued("a", "x", "json", 1),
            ResultGlued("a", "y", "json", None),
            ResultGlued("a", "x", "json", [2]),
        ]
    )
    assert record.values == {"x": [2], "y": None}
    assert record.results["x"].cell == "a"


@pytest.mark.parametrize(
    ("outcome", "name"),
    [("timed_out", "TimedOut"), ("cancelled", "Cancelled"), ("failed", "ValueError")],
)
def test_the_error_names_the_cell_that_ended_it(outcome: Any, name: str) -> None:
    error = CellError("ValueError", "no", ("line",)) if outcome == "failed" else None
    record = fold(
        [
            *begun("a", "b", "c"),
            CellStarted("a", AT),
            CellFinished("a", "ok"),
            CellStarted("b", AT),
            CellFinished("b", outcome, error=error),
            RunFinished(outcome, AT, 2.0, "why"),
        ]
    )
    assert record.error is not None
    assert (record.error.cell, record.error.name) == ("b", name)
    assert record.error.value == ("no" if outcome == "failed" else "why")


def test_a_death_is_told_with_its_reason() -> None:
    record = fold(
        [
            *begun("a"),
            CellStarted("a", AT),
            KernelDied("a", "killed by SIGSEGV", 11),
            CellFinished("a", "died"),
            RunFinished("died", AT, 1.0, "killed by SIGSEGV"),
        ]
    )
    assert record.error is not None
    assert (record.error.name, record.error.value) == ("KernelDied", "killed by SIGSEGV")


def test_a_cancellation_between_cells_has_no_cell() -> None:
    record = fold([*begun("a"), RunFinished("cancelled", AT, 1.0, "it was cancelled")])
    assert record.error is not None
    assert (record.error.cell, record.error.value) == ("", "it was cancelled")


def test_warnings_calls_and_the_parent_are_kept() -> None:
    call = ToolCalled("a", "run", {"path": "x.py"}, ok=True, duration=0.1)
    record = fold([*begun("a"), Warned("a", "careful"), call])
    assert (record.warnings, record.tool_calls) == (("careful",), (call,))
    assert (record.parent, record.task, record.title) == ("parent", "t.py", "T")


def test_events_of_an_unknown_cell_are_ignored() -> None:
    events = [
        *begun("a"),
        CellStarted("z", AT),
        OutputAdded("z", text("x")),
        CellFinished("z", "ok"),
    ]
    assert [cell.status for cell in fold(events).cells] == ["not run"]
