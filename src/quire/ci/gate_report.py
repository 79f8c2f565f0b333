"""What a gate came to: the values, and the Markdown that a person reads on the forge.

Everything that comes from a task (names, values, errors) is a stranger's here. It is shown as code
and can be nothing else: no link, no mention, no markup, no row of a table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..record.record import Record, RunState
from ..record.summary import brief_json, is_table, one_line, row_count, took, worded
from ..text import plain

# "error": it could not be run at all. "uncovered": a notebook with outputs that nothing proves.
# "differs": a notebook that does not say what its `.py` says.
State = RunState | Literal["error", "uncovered", "differs"]

NAME_LIMIT = 200
RESULTS_SHOWN = 8
FAILURES_SHOWN = 25
TRACEBACK_LIMIT = 6_000
ROWS_SHOWN = 500
# At the beginning of every report: a file without it is not the gate's to replace.
MARK = "<!-- Written by quire ci, which replaces it the next time. -->"


@dataclass(frozen=True, slots=True)
class CellLine:
    id: str
    kind: str
    status: str
    duration: float | None
    title: str = ""


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One task of the gate, or one notebook that it looked at."""

    task: str
    outcome: State
    because: str = ""  # why it was run
    run_id: str = ""
    title: str = ""
    started: str = ""
    duration: float | None = None
    cells: tuple[CellLine, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)  # as short text
    values: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""  # what went wrong, in one line
    error_type: str = ""
    where: str = ""  # the cell, for people
    traceback: str = ""
    hint: str = ""
    notebook: str = ""  # where the executed notebook is
    archived: Mapping[str, Any] | None = None  # where
    environment: Mapping[str, Any] | None = None  # what the task declared, resolved
    logbook: str = ""  # the record for people, of a logbook
    warnings: tuple[str, ...] = ()
    cell: str = ""  # the id of the one that failed
    value: str | None = None  # what the exception said, where it is not all of `error`

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"


@dataclass(frozen=True, slots=True)
class TaskStarted:
    task: str


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """`left` are still to come."""

    run: TaskRun
    left: int


GateEvent = TaskStarted | TaskFinished


@dataclass(frozen=True, slots=True)
class LeftOut:
    task: str
    why: str


@dataclass(frozen=True, slots=True)
class GateResult:
    tasks: tuple[TaskRun, ...] = ()
    unaffected: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    base: str = ""  # the commit that was compared with
    everything: str = ""  # why all tasks were run, '' when only the affected ones were
    started: str = ""
    duration: float = 0.0
    cancelled: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.cancelled and all(run.ok for run in self.tasks)

    @property
    def failures(self) -> tuple[TaskRun, ...]:
        return tuple(run for run in self.tasks if not run.ok)


def task_run(record: Record, task: str, because: str, notebook: str, traceback: str) -> TaskRun:
    """What the gate keeps of a record."""
    error = record.error
    cell = next((c for c in record.cells if error is not None and c.id == error.cell), None)
    said = "" if error is None else f"{error.name}: {error.value}" if error.value else error.name
    return TaskRun(
        task=task,
        outcome=record.outcome,
        because=because,
        run_id=record.run_id,
        title=record.title,
        started=record.started,
        duration=record.duration,
        cells=tuple(CellLine(c.id, c.kind, c.status, c.duration, c.title) for c in record.cells),
        results={name: _brief(result) for name, result in record.results.items()},
        values=record.values,
        error=one_line(said)[:500],
        error_type="" if error is None else error.name,
        where="" if cell is None else _cell_name(cell.id, cell.title),
        traceback=traceback,
        notebook=notebook,
        warnings=record.warnings,
        cell="" if error is None else error.cell,
        value=None if error is None else error.value,
    )


def _cell_name(id_: str, title: str) -> str:
    """As `quire run` names it."""
    return f"cell {id_} ({one_line(title)})" if title.strip() else f"cell {id_}"


def _brief(result: Any) -> str:
    if is_table(result):
        return f"table, {row_count(result.value, len(result.value['rows']))}"
    if result.kind == "display":
        return "display"
    return brief_json(result.value)


def headline(result: GateResult) -> str:
    """Such as `3 ok, 1 failed in 4.2 s`. Words and numbers of our own only."""
    counts = Counter[str](run.outcome for run in result.tasks)
    order = (
        "ok", "failed", "timed_out", "died", "error", "differs", "uncovered", "cancelled", "paused",
    )  # fmt: skip
    parts = [f"{counts[name]} {_STATE.get(name, worded(name))}" for name in order if counts[name]]
    if not parts:
        return "no task is affected" if result.unaffected else "there are no tasks"
    return f"{', '.join(parts)} in {took(result.duration)}"


_OF_NOTEBOOKS = ("differs", "uncovered")
_STATE = {
    "error": "could not run",
    "uncovered": "not covered by a run",
    "differs": "not what its .py says",
}


def compared(result: GateResult, shown: Callable[[str], str] = one_line) -> str:
    """What was run, and why just that. `shown` makes the reason fit to stand where it does."""
    if result.everything:
        return f"All tasks were run: {shown(result.everything)}."
    rest = len(result.unaffected)
    others = f" {rest} other{'s are' if rest != 1 else ' is'} not affected." if rest else ""
    return f"Compared with {result.base[:12]}.{others}"


def cell_table(run: TaskRun) -> str:
    """The code cells of a run, a line each, counted as `quire run` does. Plain text."""
    code = [cell for cell in run.cells if cell.kind == "code"]
    rows = [
        f"[{n}/{len(code)}] {worded(cell.status):<9} {took(cell.duration):>8}  "
        f"{one_line(cell.title or cell.id)}"
        for n, cell in enumerate(code, 1)
    ]
    rows += [f"{one_line(name)} = {text}" for name, text in run.results.items()]
    return "\n".join(row.rstrip() for row in rows)


def markdown(result: GateResult) -> str:
    parts = [f"## Tasks: {headline(result)}", compared(result, code)]
    if result.cancelled:
        parts.append("The gate was cancelled before it was over.")
    parts += [f"> {code(warning)}" for warning in result.warnings]
    runs = [run for run in result.tasks if run.outcome not in _OF_NOTEBOOKS]
    if runs:
        parts.append(_table(runs[:ROWS_SHOWN]))
        if len(runs) > ROWS_SHOWN:
            parts.append(f"… and {len(runs) - ROWS_SHOWN:,} more.")
    parts += _failures(result.failures)
    if result.left_out:
        parts.append("### Left out")
        parts += [f"- {code(item.task)}: {code(item.why)}" for item in result.left_out]
    return "\n\n".join(parts) + "\n"


def _table(runs: Iterable[TaskRun]) -> str:
    rows = [("Task", "Outcome", "Duration", "Results", "Notebook", "Verify")]
    rows.append(("---",) * 6)
    for run in runs:
        rows.append(
            (
                code(run.task),
                _outcome(run),
                took(run.duration),
                _results(run.results),
                code(run.notebook) if run.notebook else "",
                code(f"quire verify {run.run_id}") if run.archived else "",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _outcome(run: TaskRun) -> str:
    word = _STATE.get(run.outcome, worded(run.outcome))
    return word if run.ok else f"**{word}**"


def _results(results: Mapping[str, str]) -> str:
    shown = [
        f"{code(name)} {code(text[:NAME_LIMIT])}"
        for name, text in list(results.items())[:RESULTS_SHOWN]
    ]
    rest = len(results) - len(shown)
    return "<br>".join([*shown, *([f"… {rest} more"] if rest else [])])


def _failures(failures: tuple[TaskRun, ...]) -> Iterator[str]:
    for run in failures[:FAILURES_SHOWN]:
        yield f"### {code(run.task)}: {_STATE.get(run.outcome, worded(run.outcome))}"
        where = f" in {code(run.where)}" if run.where else ""
        if run.error:
            yield f"{code(run.error)}{where}"
        if run.traceback:
            yield fenced(run.traceback)
        if run.hint:
            yield f"What to do: {code(run.hint)}"
    if len(failures) > FAILURES_SHOWN:
        yield f"… and {len(failures) - FAILURES_SHOWN:,} more that are not ok."


# What turns the reading direction around can make text look like something else.
_TURNS = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PLAIN_CODE = re.compile(r"[^`|\\]+")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def code(text: str) -> str:
    """Text as inline code, wherever it stands, in a table too."""
    text = _TURNS.sub("", one_line(text))
    text = text if len(text) <= NAME_LIMIT * 2 else f"{text[: NAME_LIMIT * 2]} …"
    if not text:
        return ""
    if _PLAIN_CODE.fullmatch(text):
        return f"`{text}`"
    # Renderers do not agree on pipes and backslashes in a code span. Entities they all read alike.
    return f"<code>{_entities(text)}</code>"


def _entities(text: str) -> str:
    return _PUNCTUATION.sub(lambda found: f"&#{ord(found[0])};", text)


def fenced(text: str) -> str:
    text = _TURNS.sub("", plain(text))
    if len(text) > TRACEBACK_LIMIT:
        half = TRACEBACK_LIMIT // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half:,} characters …\n{text[-half:]}"
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
