"""A run, or what a session answered, as an agent reads it: text first, and never too much of it.

What comes from the notebook is quoted line by line (see `quoting`); everything else is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..next_steps import NextStep, as_command, as_tool
from ..record import summary
from ..record.cell_positions import Standing, standing
from ..record.events import KernelReplaced, ToolCalled
from ..record.record import CHANGED, RECOVERED, CellRecord, Record
from ..record.session_answer import Answer, Answered
from ..text import EXPLAINED, inline
from .agent_failure import MESSAGE, Ran, tell_failure
from .agent_outputs import Limits, Picture, Places, Shrink, Teller
from .agent_page import Page
from .agent_results import as_shown, tell_result, tell_results
from .images import shrink

__all__ = ["Limits", "Picture", "StaleCell", "Told", "replacement", "tell_cells", "tell_run"]

STOPPED = ("failed", "timed_out", "cancelled", "died")
MOST_STALE = 20
MOST_NOTES = 10
CHANGE = 500  # characters of a change that is quoted in a call


@dataclass(frozen=True, slots=True)
class Told:
    text: str
    pictures: tuple[Picture, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class StaleCell:
    index: int
    id: str
    reason: str


def tell_run(
    record: Record,
    *,
    limits: Limits | None = None,
    places: Places | None = None,
    cell: str = "",
    notebook: str = "",
    result: str = "",
    taken_up: str = "",
    resumable: bool = True,
    stands: Mapping[str, Standing] | None = None,
) -> Told:
    """`cell` (an id) or `result` (a name): only that one, with all the room there is.

    `places` knows what lies outside the record. `notebook` is where the executed one is kept.
    `taken_up` is the run that goes on with one that waited. `resumable`: its states are there.
    `stands` says where its cells are in the task, where the record alone does not.
    """
    limits = limits or Limits()
    if cell or result:
        limits = limits.for_one_cell()
    page = Page()
    asking = {"run": record.run_id, **({"result": result} if result else {})}
    teller = Teller(page, limits, asking, places)
    _head(page, record, notebook)
    page.say(EXPLAINED)
    if result:
        one = record.results[result]
        if (shown := as_shown(one)) is not None:
            page.say(f"result {inline(result)}:")
            teller.outputs(shown)
        else:
            tell_result(page, one, teller.asking, limits)
        return Told(page.text(limits.whole), teller.pictures)
    if not cell:
        tell_results(page, record.results, teller.asking, limits)
    stands = standing(record) if stands is None else stands
    bad = _stopped(record)
    if not cell:
        for line in _about(record):
            page.say(line)
    if bad is not None and cell in ("", bad.id):
        page.say(_line_of(bad, stands))
        _failure(page, teller, bad, _ran(record.cells, stands))
        if record.outcome != "failed" and record.reason:
            page.say("why it ended:")
            page.quote(record.reason, 2_000)
        _next(page, _after_run(record, bad, stands, resumable))
        teller.outputs(bad)
    elif record.outcome == "paused" and not cell:
        _waiting(page, record, stands, taken_up)
    elif record.error is not None and not cell:
        page.say("why it ended:")
        page.quote(f"{record.error.name}: {record.error.value}", 2_000)
        _next(page, _after_run(record, None, stands, resumable))
    others = [
        one for one in record.cells if one is not bad and _speaks(one) and cell in ("", one.id)
    ]
    for other in teller.some(others):
        page.say(_line_of(other, stands))
        teller.outputs(other)
    if cell and not others and (bad is None or bad.id != cell):
        _silent(page, next(one for one in record.cells if one.id == cell), stands)
    return Told(page.text(limits.whole), teller.pictures, record.outcome in STOPPED)


def _head(page: Page, record: Record, notebook: str) -> None:
    took = f" in {summary.took(record.duration)}" if record.duration is not None else ""
    what = f"run {_name(record.run_id)} of {inline(record.task)}"
    page.say(f"{summary.worded(record.outcome)}{took}: {what}")
    mode = "clean run"
    if record.resumed_from:
        carried = sum(one.status == "carried" for one in record.cells)
        mode = f"resumed: goes on with {_name(record.resumed_from)}, {carried} cells carried over"
    page.say(f"{mode}; cells: {summary.counted(record)}")
    if record.recovered:
        page.say(RECOVERED)
    if record.outcome == "running":
        page.say(f"it goes on; wait for it: {as_tool(NextStep('wait', {'run': record.run_id}))}")
    if record.plan.get("logbook"):
        page.say(f"record for people: {inline(str(record.plan['logbook']), 500)}")
    if notebook:
        page.say(f"notebook: {inline(notebook, 500)}")


def _name(run_id: str) -> str:
    """A run's id is ours; what a damaged journal holds in its place may be anything."""
    return run_id if run_id.replace("-", "").isalnum() and run_id.isascii() else inline(run_id)


def _about(record: Record) -> Iterator[str]:
    for text in record.warnings[:MOST_NOTES]:
        yield f"warning: {inline(text, 400)}"
    changes = [
        (cell.id, cell.metadata[CHANGED])
        for cell in record.cells
        if isinstance(cell.metadata.get(CHANGED), Mapping)
    ]
    for id_, change in changes[:MOST_NOTES]:
        why = inline(str(change.get("reason") or "no reason was given"), 400)
        yield f"cell {inline(id_, 40)} ran other code in this run: {why}"
    for note in record.notes[:MOST_NOTES]:
        yield f"note of cell {inline(note.cell, 40)}: {inline(note.text, 400)}"
    for asked in record.asked[:MOST_NOTES]:
        answer = "no answer" if asked.answer is None else inline(asked.answer)
        yield f"asked {inline(asked.question, 300)}: {answer}, by {inline(asked.by, 60)}"
    if record.tool_calls:
        refused = [call for call in record.tool_calls if not call.ok]
        yield f"tool calls of cells: {len(record.tool_calls):,}, not ok: {len(refused):,}"
        yield from map(_refusal, refused[:3])


def _refusal(call: ToolCalled) -> str:
    what = f"{inline(call.tool, 60)} in cell {inline(call.cell, 40)}"
    times = f", {call.times:,} times" if call.times > 1 else ""
    return f"  {what}{times}: {inline(call.reason, 300)}"


def _stopped(record: Record) -> CellRecord | None:
    at = record.error.cell if record.error is not None else ""
    return next((one for one in record.cells if at and one.id == at), None)


def _failure(page: Page, teller: Teller, cell: CellRecord, ran: Mapping[int, Ran]) -> None:
    most = teller.limits.stream if teller.limits.alone else MESSAGE
    tell_failure(page, cell, ran, message=most, more=teller.rest_of_error(cell))


def _speaks(cell: CellRecord) -> bool:
    return cell.kind == "code" and bool(cell.outputs)


def _silent(page: Page, cell: CellRecord, stands: Mapping[str, Standing]) -> None:
    """A cell that was asked for and has no output."""
    page.say(_line_of(cell, stands))
    if cell.kind != "code":
        page.say("it is text")
    else:
        page.say("it did not run" if cell.status == "not run" else "it gave out nothing")


def _line_of(cell: CellRecord, stands: Mapping[str, Standing]) -> str:
    place = stands.get(cell.id)
    return _cell_line(cell, None if place is None else place.index, "given values")


def _cell_line(cell: CellRecord, index: int | None, otherwise: str = "code") -> str:
    place = otherwise if index is None else f"cell {index}"
    named = cell.title.strip() and cell.title != place  # loose code is called that
    title = f" {inline(cell.title, 100)}" if named else ""
    took = f", {summary.took(cell.duration)}" if cell.duration is not None else ""
    return f"{place} ({cell.id}){title}: {summary.worded(cell.status)}{took}"


def _ran(cells: Iterable[CellRecord], stands: Mapping[str, Standing]) -> dict[int, Ran]:
    return {
        one.execution_count: Ran(
            f"{stands[one.id].index} ({one.id})" if one.id in stands else one.id, one.source
        )
        for one in cells
        if one.execution_count is not None
    }


def _next(page: Page, steps: Iterable[tuple[str, NextStep]]) -> None:
    found = list(steps)
    if found:
        page.say("next:")
    for number, (what, step) in enumerate(found, 1):
        page.say(f"  {number}. {what}: {as_tool(step)}")


def _after_run(
    record: Record, bad: CellRecord | None, stands: Mapping[str, Standing], resumable: bool
) -> Iterator[tuple[str, NextStep]]:
    """The calls that mend it and go on."""
    again: dict[str, Any] = {"path": record.task}
    if record.parameters:
        again["parameters"] = summary.sayable(record.parameters)
    if changes := _changes(record, bad):
        again["changes"] = changes
    if bad is None:
        yield "run it again", NextStep("run", again)
        return
    # The states of a cancelled run are not kept.
    resumable = (
        resumable
        and record.outcome != "cancelled"
        and not any("cannot be resumed" in text for text in record.warnings)
    )
    mends_itself = CHANGED in bad.metadata  # by what it is given, not by the task
    if record.outcome == "failed" and not mends_itself and bad.id in stands:
        arguments = {"path": record.task, "cell": stands[bad.id].id, "new_source": ...}
        yield "mend the cell", NextStep("edit", arguments)
    if resumable:
        again["resume"] = record.run_id
    if record.outcome == "timed_out":
        limit = "cell_timeout" if record.reason.startswith("the cell took") else "timeout"
        again[limit] = ...
    what = "go on from there" if resumable else "run it again from the top"
    if mends_itself:
        what = f"give other code for this step, and {what}"
    yield what, NextStep("run", again)


def _changes(record: Record, bad: CellRecord | None) -> list[dict[str, Any]]:
    """What ran in the place of steps: it is not in the task, and has to be given again."""
    out: list[dict[str, Any]] = []
    for cell in record.cells:
        if not isinstance(change := cell.metadata.get(CHANGED), Mapping):
            continue
        known = cell is not bad and "[masked:" not in cell.source and len(cell.source) <= CHANGE
        one = {"step": cell.id, "source": cell.source if known else ...}
        reason = str(change.get("reason") or "")
        out.append({**one, "reason": reason} if reason and len(reason) <= CHANGE else one)
    return out


def _waiting(page: Page, record: Record, stands: Mapping[str, Standing], taken_up: str) -> None:
    """Which cell it stands before, and that only a person's word takes it up."""
    if taken_up:
        goes_on = as_tool(NextStep("show", {"run": taken_up}))
        page.say(f"it waited for a person's approval, and {_name(taken_up)} took it up: {goes_on}")
        return
    page.say("it is not finished: a step waits for a person's approval")
    if record.reason:
        page.say(f"why it stopped: {inline(record.reason, 300)}")
    waits = next(
        (one for one in record.cells if one.kind == "code" and one.status == "not run"), None
    )
    if waits is not None:
        page.say(_line_of(waits, stands))
        page.quote(waits.source, 2_000)
    again = NextStep("resume", {"path": record.task, "resume": record.run_id})
    _next(page, [("have the person at this client asked again, if it can ask", again)])
    page.say(f"or a person says so in a shell: {as_command(again)}")


def tell_cells(
    answer: Answer,
    *,
    session: str,
    task: str,
    epoch: int,
    stale: Sequence[StaleCell] = (),
    limits: Limits | None = None,
    places: Places | None = None,
    running: bool = False,
    no_way_back: str = "",
    shrink: Shrink = shrink,
) -> Told:
    """What a session answered. `running`: its last cell goes on while we tell. `no_way_back` is why
    the state before the cell that failed is not there."""
    limits = limits or Limits()
    page = Page()
    if not stale and not no_way_back and (only := _only_stopped(answer)) is not None:
        page.say(only)
        return Told(page.text(limits.whole), failed=True)
    by_id = {id(one.cell): one for one in answer.cells}

    def named(cell: CellRecord) -> str:
        # Not by its id: it may run again, and give out something else.
        return f"#{by_id[id(cell)].order}"

    teller = Teller(page, limits, {"session": session}, places, named, shrink)
    if answer.replaced is not None:
        page.say(replacement(answer.replaced))
    bad = answer.failed
    status = "running" if running else bad.cell.status if bad else "ok"
    ran = len(answer.cells)
    begun = "began; the last goes on" if running else "ran"
    many = "" if ran == 1 and not running else f"; {ran} {'cell' if ran == 1 else 'cells'} {begun}"
    if running and not ran:
        many = "; started, and no cell has begun yet"
    page.say(f"{summary.worded(status)}: session {inline(session)}, epoch {epoch}{many}")
    page.say(EXPLAINED)
    tell_results(page, {one.name: one for one in answer.results}, None, limits)
    for text in answer.warnings[:MOST_NOTES]:
        page.say(f"warning: {inline(text, 400)}")
    ran_at = {
        one.cell.execution_count: Ran(f"{one.index} ({one.cell.id})", one.cell.source)
        for one in answer.cells
        if one.cell.execution_count is not None and one.index is not None
    }
    if bad is not None:
        page.say(_cell_line(bad.cell, bad.index))
        _failure(page, teller, bad.cell, ran_at)
        if answer.died is not None:
            page.say(f"the kernel died: {inline(answer.died.reason, 500)}; its state is gone")
        if no_way_back:
            page.say(f"what it did cannot be undone: {inline(no_way_back, 300)}")
        died = answer.died is not None
        _next(page, _after_cell(session, task, bad, died=died, undo=not no_way_back))
        teller.outputs(bad.cell)
    others = [one.cell for one in answer.cells if one is not bad]
    for cell in teller.some([one for one in others if one.outputs]):
        page.say(_cell_line(cell, by_id[id(cell)].index))
        teller.outputs(cell)
    ended = others[:-1] if running else others
    quiet = [one for one in ended if not one.outputs]
    if quiet:
        page.say(f"without output: {len(quiet)} {'cell' if len(quiet) == 1 else 'cells'}, ok")
    _stale(page, stale)
    return Told(page.text(limits.whole), teller.pictures, bad is not None)


def replacement(event: KernelReplaced) -> str:
    """The first line of an answer after the kernel was replaced."""
    if event.how == "restored":
        return f"a fresh kernel (epoch {event.epoch}), in which ran again what had run before"
    return (
        f"THE KERNEL WAS REPLACED (epoch {event.epoch}): what ran before is gone. "
        f"Why: {inline(event.reason, 300)}"
    )


def _only_stopped(answer: Answer) -> str | None:
    """One line of the call's own code, stopped, that left nothing: the caller has it in view."""
    if answer.replaced or answer.died or answer.warnings or answer.results:
        return None
    if len(answer.cells) != 1:
        return None
    one = answer.cells[0]
    cell = one.cell
    if one.index is not None or cell.status not in ("timed_out", "cancelled"):
        return None
    said = any(output.get("output_type") != "error" for output in cell.outputs)
    if said or cell.variables or "\n" in cell.source.strip():
        return None
    took = f", {summary.took(cell.duration)}" if cell.duration is not None else ""
    number = f"#{one.order}"
    return f"{summary.worded(cell.status)}{took}: code {number}; undo: rewind cell {number}"


def tell_execution(
    one: Answered, *, session: str, limits: Limits | None = None, places: Places | None = None
) -> Told:
    """What one execution in a session gave out, with all the room there is."""
    limits = (limits or Limits()).for_one_cell()
    page = Page()
    number = f"#{one.order}"
    teller = Teller(page, limits, {"session": session}, places, lambda _: number)
    page.say(f"{_cell_line(one.cell, one.index)}; {number} in session {inline(session)}")
    page.say(EXPLAINED)
    if one.cell.status in STOPPED:
        count, place = one.cell.execution_count, "code" if one.index is None else one.index
        itself = Ran(f"{place} ({one.cell.id})", one.cell.source)
        _failure(page, teller, one.cell, {} if count is None else {count: itself})
    teller.outputs(one.cell)
    if not one.cell.outputs and one.cell.error is None:
        page.say("it gave out nothing")
    return Told(page.text(limits.whole), teller.pictures)


def _after_cell(
    session: str, task: str, bad: Answered, *, died: bool, undo: bool
) -> Iterator[tuple[str, NextStep]]:
    cell = f"#{bad.order}" if bad.index is None else bad.cell.id
    if undo:
        back = "go back to before it" if died else "undo what it did"
        yield back, NextStep("rewind", {"session": session, "cell": cell})
    elif died:
        again = NextStep("restore", {"session": session})
        yield "run again what had run before", again
        yield "or begin with an empty kernel", NextStep("restart", {"session": session})
        return
    if bad.index is None:
        return
    yield "mend the cell", NextStep("edit", {"path": task, "cell": bad.cell.id, "new_source": ...})
    yield "go on from there", NextStep("exec", {"session": session, "cells": f"{bad.index}-"})


def _stale(page: Page, stale: Sequence[StaleCell]) -> None:
    if not stale:
        return
    page.say(f"stale now ({len(stale)}):")
    for one in stale[:MOST_STALE]:
        page.say(f"  cell {one.index} ({one.id}): {inline(one.reason, 200)}")
    if len(stale) > MOST_STALE:
        page.say(f"  … {len(stale) - MOST_STALE} more")
