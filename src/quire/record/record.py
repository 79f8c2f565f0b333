"""`fold(events)`: what remains of a run. Any prefix of a journal gives a valid record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .events import (
    Asked,
    CellChanged,
    CellError,
    CellFinished,
    CellStarted,
    CellStatus,
    CellSubmitted,
    Event,
    KernelDied,
    KernelReplaced,
    NoteAdded,
    OriginNoted,
    Outcome,
    OutputAdded,
    OutputCut,
    OutputsCleared,
    OutputUpdated,
    ResultGlued,
    ResultKind,
    Rewound,
    RunFinished,
    RunStarted,
    SessionClosed,
    SessionOpened,
    ToolCalled,
    Warned,
)

SESSION_EVENTS = (SessionOpened, CellSubmitted, Rewound, KernelReplaced, SessionClosed)

# Where a cell's metadata holds what it was before it was changed for this run.
CHANGED = "changed"

RunState = Outcome | Literal["running"]

RECOVERED = "recovered from the journal of a writer that died; what it says was not witnessed"
UNWITNESSED = "the process that ran it ended before its record was signed"
# What nobody who was there vouches for: that all went well, or that a person was waited for.
_NEEDS_A_WITNESS = ("ok", "paused")


@dataclass(frozen=True, slots=True)
class CellRecord:
    id: str
    kind: str
    source: str
    title: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    attachments: Mapping[str, Any] = field(default_factory=dict)
    status: CellStatus = "not run"
    started: str = ""
    finished: str = ""
    duration: float | None = None
    execution_count: int | None = None
    outputs: tuple[Mapping[str, Any], ...] = ()
    error: CellError | None = None
    variables: tuple[Mapping[str, Any], ...] = ()  # that it used, where it failed


@dataclass(frozen=True, slots=True)
class RunError:
    """Why the run is not ok: the cell, and what it raised or met."""

    cell: str
    name: str
    value: str
    traceback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    kind: ResultKind
    value: Any
    cell: str


@dataclass(frozen=True, slots=True)
class Record:
    run_id: str
    uuid: str
    task: str
    title: str
    outcome: RunState
    started: str
    finished: str
    duration: float | None
    reason: str
    parent: str | None
    plan: Mapping[str, Any]
    cells: tuple[CellRecord, ...]
    results: Mapping[str, Result]
    warnings: tuple[str, ...] = ()
    tool_calls: tuple[ToolCalled, ...] = ()
    notes: tuple[NoteAdded, ...] = ()
    asked: tuple[Asked, ...] = ()  # of people, while it ran
    error: RunError | None = None
    # environment, engine, git, asked; empty where the run ended before they were known.
    origin: Mapping[str, Any] = field(default_factory=dict)
    recovered: bool = False  # by another process, from the journal alone

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def parameters(self) -> Mapping[str, Any]:
        parameters: Mapping[str, Any] = self.plan.get("parameters", {})
        return parameters

    @property
    def resumed_from(self) -> str:
        """The run this one goes on with, or '' for a clean one."""
        return str((self.plan.get("resumed") or {}).get("run", ""))

    @property
    def replays(self) -> str:
        """The run that this one repeats, or ''."""
        return str(self.plan.get("replays", ""))

    @property
    def request(self) -> str:
        """What was asked for, in the words of whoever did."""
        return str(self.plan.get("request", ""))

    @property
    def values(self) -> dict[str, Any]:
        """The results as plain data: name to value."""
        return {name: result.value for name, result in self.results.items()}


class CellFold:
    """One cell while its events come in."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self.status: CellStatus = "not run" if spec["kind"] == "code" else "text"
        self.started = self.finished = ""
        self.duration: float | None = None
        self.count: int | None = None
        self.error: CellError | None = None
        self.variables: tuple[Mapping[str, Any], ...] = ()
        self.outputs: list[dict[str, Any]] = []
        self.areas: list[str] = []  # of each output
        self.clear_next: str | None = None

    def add(self, output: Mapping[str, Any], area: str = "") -> None:
        if self.clear_next is not None:
            self.clear(self.clear_next)
        if output["output_type"] == "stream":
            last = self.outputs[-1] if self.outputs and self.areas[-1] == area else None
            if last and last["output_type"] == "stream" and last["name"] == output["name"]:
                last["text"].append(output["text"])
                return
            output = {**output, "text": [output["text"]]}
        self.outputs.append(dict(output))
        self.areas.append(area)

    def clear(self, area: str) -> None:
        """Everything, or what was meant for one output widget."""
        self.clear_next = None
        kept = [at for at, one in enumerate(self.areas) if area and one != area]
        self.outputs = [self.outputs[at] for at in kept]
        self.areas = [self.areas[at] for at in kept]

    def cut(self, event: OutputCut) -> None:
        if event.what == "display":
            text = f"[quire: {event.omitted:,} more outputs were cut here; all are in {event.path}]"
            self.add({"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}})
            return
        marker = ""
        if event.omitted:  # head and tail may meet: then nothing is missing
            marker = (
                f"\n[quire: {event.omitted:,} characters of {event.what} were cut here; "
                f"all of it is in {event.path}]\n"
            )
        self.add({"output_type": "stream", "name": event.what, "text": marker + event.tail})

    def finish(self, event: CellFinished) -> None:
        self.status, self.finished, self.error = event.status, event.at, event.error
        self.duration, self.count = event.duration, event.execution_count
        self.variables = event.variables

    def change(self, event: CellChanged) -> None:
        metadata = self.spec.get("metadata", {})
        first = (metadata.get(CHANGED) or {}).get("original", event.original)
        told = {"original": first, "reason": event.reason, "by": event.by}
        self.spec = {
            **self.spec,
            "source": event.source,
            "metadata": {**metadata, CHANGED: told},
        }

    def freeze(self, *, unfinished: CellStatus) -> CellRecord:
        spec = self.spec
        outputs = tuple(
            {**o, "text": "".join(o["text"])} if o["output_type"] == "stream" else o
            for o in self.outputs
        )
        return CellRecord(
            id=spec["id"],
            kind=spec["kind"],
            source=spec["source"],
            title=spec.get("title", ""),
            tags=tuple(spec.get("tags", ())),
            metadata=spec.get("metadata", {}),
            attachments=spec.get("attachments", {}),
            status=unfinished if self.status == "running" else self.status,
            started=self.started,
            finished=self.finished,
            duration=self.duration,
            execution_count=self.count,
            outputs=outputs,
            error=self.error,
            variables=self.variables,
        )


class Fold:
    """Takes events one by one; `record()` at any time says what there is so far."""

    def __init__(self) -> None:
        self._start: RunStarted | None = None
        self._end: RunFinished | None = None
        self._cells: dict[str, CellFold] = {}
        self._results: dict[str, Result] = {}
        self._warnings: list[str] = []
        self._calls: list[ToolCalled] = []
        self._notes: list[NoteAdded] = []
        self._asked: list[Asked] = []
        self._death: KernelDied | None = None
        self._origin: Mapping[str, Any] = {}
        self._shown: dict[str, list[dict[str, Any]]] = {}

    def add(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._start = event
            self._cells = {spec["id"]: CellFold(spec) for spec in event.cells}
            return
        if isinstance(event, RunFinished):
            self._end = event
            return
        if isinstance(event, ResultGlued):
            self._results[event.name] = Result(event.name, event.kind, event.value, event.cell)
            return
        if isinstance(event, OutputUpdated):
            for output in self._shown.get(event.display_id, ()):
                if "data" in output:  # a stream or an error has none to change
                    output["data"], output["metadata"] = event.data, event.metadata
            return
        if isinstance(event, Warned):
            self._warnings.append(event.message)
            return
        if isinstance(event, OriginNoted):
            self._origin = {
                "environment": event.environment,
                "engine": event.engine,
                "git": event.git,
                "asked": event.asked,
            }
            return
        if isinstance(event, ToolCalled):
            self._calls.append(event)
            return
        if isinstance(event, NoteAdded):
            self._notes.append(event)
            return
        if isinstance(event, Asked):
            self._asked.append(event)
            return
        if isinstance(event, SESSION_EVENTS):
            return  # a session has a journal of its own, and another way to read it
        cell = self._cells.get(event.cell)
        if cell is None:
            return
        if isinstance(event, OutputAdded):
            cell.add(event.output, event.area)
            if event.display_id:
                self._shown.setdefault(event.display_id, []).append(cell.outputs[-1])
        elif isinstance(event, OutputsCleared):
            if event.wait:
                cell.clear_next = event.area
            else:
                cell.clear(event.area)
        elif isinstance(event, OutputCut):
            cell.cut(event)
        elif isinstance(event, CellStarted):
            cell.status, cell.started = "running", event.at
        elif isinstance(event, KernelDied):
            self._death = event
        elif isinstance(event, CellChanged):
            cell.change(event)
        else:
            cell.finish(event)

    def cell(self, name: str) -> CellRecord:
        """One cell as it is now, without the cost of all the others."""
        return self._cells[name].freeze(unfinished="running")

    def record(self, *, alive: bool = False) -> Record:
        """`alive`: the run's process is still there, so what is unfinished is running."""
        start, end = self._start, self._end
        outcome: RunState = end.outcome if end else ("running" if alive else "died")
        unfinished: CellStatus = "running" if outcome == "running" else "died"
        cells = tuple(cell.freeze(unfinished=unfinished) for cell in self._cells.values())
        reason = end.reason if end else ""
        recovered = end.recovered if end else outcome == "died" and start is not None
        if recovered and outcome in _NEEDS_A_WITNESS:
            outcome, reason = "died", UNWITNESSED
        if outcome == "died" and end is None:
            reason = "the process that ran it ended before the run did"
        return Record(
            run_id=start.run_id if start else "",
            uuid=start.uuid if start else "",
            task=start.task if start else "",
            title=start.title if start else "",
            outcome=outcome,
            started=start.at if start else "",
            finished=end.at if end else "",
            duration=end.duration if end else None,
            reason=reason,
            parent=start.parent if start else None,
            plan=start.plan if start else {},
            cells=cells,
            results=dict(self._results),
            warnings=tuple(self._warnings),
            tool_calls=tuple(self._calls),
            notes=tuple(self._notes),
            asked=tuple(self._asked),
            error=_error(outcome, cells, reason, self._death),
            origin=self._origin,
            recovered=recovered,
        )


def fold(events: Iterable[Event], *, alive: bool = False) -> Record:
    folding = Fold()
    for event in events:
        folding.add(event)
    return folding.record(alive=alive)


_NAMES = {"timed_out": "TimedOut", "cancelled": "Cancelled", "died": "KernelDied"}


def _error(
    outcome: RunState, cells: tuple[CellRecord, ...], reason: str, death: KernelDied | None
) -> RunError | None:
    if outcome in ("ok", "running", "paused"):
        return None
    cell = next(
        (c for c in cells if c.status in ("failed", "timed_out", "cancelled", "died")), None
    )
    where = cell.id if cell else ""
    if cell is not None and cell.error is not None and outcome == "failed":
        return RunError(where, cell.error.name, cell.error.value, cell.error.traceback)
    text = death.reason if death and outcome == "died" else reason
    return RunError(where, _NAMES.get(outcome, "Failed"), text)
