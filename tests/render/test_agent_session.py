"""What a session answered, as an agent reads it."""

from __future__ import annotations

from typing import Any

import pytest

from made_records import AT, shown, stream
from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    CellSubmitted,
    Event,
    KernelDied,
    KernelReplaced,
    OutputAdded,
    OutputUpdated,
    ResultGlued,
    Warned,
)
from quire.record.session_answer import answer_of
from quire.render.agent_run import StaleCell, tell_cells


def at(line: int, count: int | None = 1, **more: Any) -> dict[str, Any]:
    """A frame, as a kernel sends it."""
    return {"where": "", "line": line, "count": count, "file": "", "code": "", **more}


def submitted(order: int, index: int | None = 3) -> list[Event]:
    cell = CellSubmitted(f"c{order}", order, index, "Look", f"work({order})", AT)
    return [cell, CellStarted(f"c{order}", AT)]


def test_a_replaced_kernel_is_announced_before_all_else() -> None:
    events: list[Event] = [
        KernelReplaced(3, "the host ended", AT),
        *submitted(1),
        OutputAdded("c1", stream("hi\n")),
        CellFinished("c1", "ok", AT, 0.1, 1),
    ]
    told = tell_cells(answer_of(events), session="a", task="t.py", epoch=3)
    first, second = told.text.split("\n")[:2]
    assert first.startswith("THE KERNEL WAS REPLACED (epoch 3): what ran before is gone.")
    assert second == 'ok: session "a", epoch 3'
    assert 'cell 3 (c1) "Look": ok, 0.10 s\nstdout:\n| hi' in told.text


def test_a_failed_cell_of_a_session_says_how_to_go_back() -> None:
    error = CellError("KeyError", "'x'", (), (at(1, 2),))
    events: list[Event] = [
        *submitted(1, 2),
        CellFinished("c1", "ok", AT, 0.1, 1),
        *submitted(2),
        CellFinished("c2", "failed", AT, 0.1, 2, error),
    ]
    stale = [StaleCell(5, "c5", "uses x, which cell 3 defined again later")]
    told = tell_cells(answer_of(events), session="a", task="t.py", epoch=1, stale=stale)
    assert told.failed
    assert told.text.startswith('failed: session "a", epoch 1; 2 cells ran')
    assert "| > 1  work(2)" in told.text
    assert 'notebook_session(action="rewind", session="a", cell="c2")' in told.text
    assert 'notebook_session(action="exec", session="a", cells="3-")' in told.text
    assert "without output: 1 cell, ok" in told.text
    assert "stale now (1):\n  cell 5 (c5): " in told.text


def test_a_dead_kernel_says_so() -> None:
    events: list[Event] = [
        *submitted(1),
        KernelDied("c1", "it was killed (signal 9)", 9),
        CellFinished("c1", "died", AT, 0.1),
    ]
    told = tell_cells(answer_of(events), session="a", task="t.py", epoch=2)
    assert told.failed
    assert "it was killed (signal 9)" in told.text
    assert 'go back to before it: notebook_session(action="rewind", session="a"' in told.text
    told = tell_cells(
        answer_of(events), session="a", task="t.py", epoch=2, no_way_back="a socket is open"
    )
    assert 'cannot be undone: "a socket is open"' in told.text
    assert 'action="rewind"' not in told.text
    assert 'notebook_session(action="restart", session="a")' in told.text


def loose(order: int, source: str) -> list[Event]:
    return [CellSubmitted(f"x{order}", order, None, "", source, AT), CellStarted(f"x{order}", AT)]


STOP = CellError("KeyboardInterrupt", "", (), (at(1, 7),))


@pytest.mark.parametrize(
    ("status", "said"),
    [("timed_out", "timed out, 2.00 s"), ("cancelled", "cancelled, 2.00 s")],
)
def test_a_stopped_line_of_the_calls_own_code_is_told_in_a_line(status: str, said: str) -> None:
    end = CellFinished("x7", status, AT, 2.0, 7, STOP)
    told = tell_cells(answer_of([*loose(7, "work()"), end]), session="a", task="t.py", epoch=1)
    assert told.failed
    assert told.text == f"{said}: code #7; undo: rewind cell #7"


@pytest.mark.parametrize(
    ("source", "between"),
    [
        ("a = 1\nwork()", []),
        ("work()", [OutputAdded("x7", stream("as far as here\n"))]),
        ("work()", [Warned("x7", "no way back")]),
        ("work()", [ResultGlued("x7", "rows", "json", 3)]),
    ],
)
def test_what_a_stopped_code_left_is_told_in_full(source: str, between: list[Event]) -> None:
    end = CellFinished("x7", "timed_out", AT, 2.0, 7, STOP)
    answer = answer_of([*loose(7, source), *between, end])
    text = tell_cells(answer, session="a", task="t.py", epoch=1).text
    assert text.startswith('timed out: session "a", epoch 1')
    assert "| > 1  " in text
    assert 'rewind", session="a", cell="#7")' in text


def test_a_display_that_was_updated_is_told_as_it_is_now() -> None:
    events: list[Event] = [
        *submitted(1),
        OutputAdded("c1", shown(text__plain="1 of 9"), "d"),
        OutputUpdated("c1", "d", {"text/plain": "9 of 9"}, {}),
        CellFinished("c1", "ok", AT, 0.1, 1),
    ]
    text = tell_cells(answer_of(events), session="a", task="t.py", epoch=1).text
    assert "9 of 9" in text
    assert "1 of 9" not in text


def test_a_cell_that_goes_on() -> None:
    events = [*submitted(1), OutputAdded("c1", stream("so far\n"))]
    told = tell_cells(answer_of(events), session="a", task="t.py", epoch=1, running=True)
    assert told.text.startswith('running: session "a"')
    assert "| so far" in told.text
    assert not told.failed
    quiet = tell_cells(
        answer_of(submitted(1)), session="a", task="t.py", epoch=1, running=True
    ).text
    assert "1 cell began; the last goes on" in quiet
    none = tell_cells(answer_of([]), session="a", task="t.py", epoch=1, running=True).text
    assert none.startswith('running: session "a", epoch 1; started, and no cell has begun yet')
    assert ", ok" not in quiet
