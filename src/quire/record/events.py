"""What happened, in order. One tagged union, JSON lines: the only wire between a run and the rest.

Kernels yield the events of one cell, the executor adds those of the run around them, the journal
keeps them, `fold` turns them into a Record. All times are ISO 8601 in UTC with an offset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

# "paused": a step waits for a person, and the run can be taken up when there is one.
Outcome = Literal["ok", "failed", "timed_out", "cancelled", "died", "paused"]
ResultKind = Literal["json", "table", "display"]
# "text" is a cell that is not code: there was nothing to run. "carried" ran in the run that this
# one goes on with.
CellStatus = Literal[
    "ok",
    "failed",
    "skipped",
    "carried",
    "timed_out",
    "cancelled",
    "died",
    "running",
    "not run",
    "text",
]
# Why there is a new kernel: the old one went by itself, somebody wanted an empty one, or somebody
# wanted back what was lost.
Replaced = Literal["lost", "restarted", "restored"]


@dataclass(frozen=True, slots=True)
class CellError:
    """What a cell raised. `traceback` is the kernel's own lines, ANSI colours included; `frames`
    the same as data, where the kernel sends it (see `render.agent_failure`)."""

    name: str
    value: str
    traceback: tuple[str, ...] = ()
    frames: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RunStarted:
    run_id: str
    uuid: str
    at: str
    task: str
    title: str
    # Cells as they will run, injected parameters included: id, kind, source, title, tags, metadata.
    cells: tuple[Mapping[str, Any], ...]
    # Everything else of the plan: parameters, defaults, limits, kernel, environment, metadata, …
    plan: Mapping[str, Any]
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class OriginNoted:
    """Where the run comes from, as far as its machine knows."""

    environment: Mapping[str, Any]  # interpreter, platform, packages with versions
    engine: Mapping[str, Any]
    git: Mapping[str, Any] | None  # commit, branch, dirty; None outside a repository
    asked: Mapping[str, Any]  # by whom, on whose behalf


@dataclass(frozen=True, slots=True)
class CellStarted:
    cell: str
    at: str


@dataclass(frozen=True, slots=True)
class OutputAdded:
    """An nbformat output. Consecutive stream outputs of one name are joined by `fold`.

    A display with an id carries it in `display_id`, so that a later update finds it. `area` names
    the output widget it was meant for, if any: such an area can be cleared by itself.
    """

    cell: str
    output: Mapping[str, Any]
    display_id: str | None = None
    area: str = ""


@dataclass(frozen=True, slots=True)
class OutputUpdated:
    """Every output shown under this display id, in any cell, now looks like this."""

    cell: str
    display_id: str
    data: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OutputsCleared:
    """`wait`: only when the next output comes. `area`: only what was meant for that widget."""

    cell: str
    wait: bool = False
    area: str = ""


@dataclass(frozen=True, slots=True)
class OutputCut:
    """More came than a record keeps. `tail` is the end of it, `path` where all of it lies."""

    cell: str
    what: str  # "stdout", "stderr" or "display"
    omitted: int  # characters of a stream, or number of displays
    path: str
    tail: str = ""


@dataclass(frozen=True, slots=True)
class ResultGlued:
    cell: str
    name: str
    kind: ResultKind
    value: Any


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A cell asked the engine for something. `arguments` are masked and cut, `result` says what
    came of it: the digest and size of a value, the run that another task was."""

    cell: str
    tool: str
    arguments: Mapping[str, Any]
    ok: bool
    duration: float
    result: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""  # why it is not ok, or not all of it
    refused: bool = False  # by the policy, or because it was no call of this kernel
    times: int = 1  # how many calls this stands for


@dataclass(frozen=True, slots=True)
class NoteAdded:
    """A cell left a word for whoever comes later: `note(text)`."""

    cell: str
    text: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody was asked, or nobody was there and a policy decided: then `by` says which."""

    cell: str
    question: str
    answer: str | None
    by: str
    kind: str = "question"
    choices: tuple[str, ...] = ()
    at: str = ""


@dataclass(frozen=True, slots=True)
class CellChanged:
    """For this run only, a cell has another source than the task says."""

    cell: str
    original: str
    source: str
    reason: str
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a reader of the record should know, such as why snapshots are off."""

    cell: str
    message: str


@dataclass(frozen=True, slots=True)
class CellFinished:
    cell: str
    status: CellStatus
    at: str = ""
    duration: float = 0.0
    execution_count: int | None = None
    error: CellError | None = None
    # The cell ended the task on purpose: sys.exit(0), exit().
    stop: bool = False
    # Of a cell that failed: what it worked with. name, type, size, value, scope.
    variables: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class KernelDied:
    """The process went away by itself: a signal or an exit status, and what is known of memory."""

    cell: str
    reason: str
    signal: int | None = None
    status: int | None = None
    memory: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFinished:
    outcome: Outcome
    at: str
    duration: float
    reason: str = ""
    recovered: bool = False  # written by another process than the one that ran it


@dataclass(frozen=True, slots=True)
class SessionOpened:
    session: str
    at: str
    task: str
    # Parameters, kernel, cwd: what a fresh kernel for this session needs.
    plan: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CellSubmitted:
    """A session is about to run this. `order` counts what ran in the session."""

    cell: str
    order: int
    index: int | None  # place in the document; None for loose code
    title: str
    source: str
    at: str
    kernel: str = ""  # the other kernel it runs in; empty: the session's own


@dataclass(frozen=True, slots=True)
class Rewound:
    """The kernel is as it was before `order` ran; what ran from there on is undone."""

    order: int
    at: str


@dataclass(frozen=True, slots=True)
class KernelReplaced:
    """A new kernel, or none yet: the state of the one before is gone."""

    epoch: int
    reason: str
    at: str
    how: Replaced = "lost"


@dataclass(frozen=True, slots=True)
class SessionClosed:
    at: str


Event = (
    RunStarted
    | OriginNoted
    | CellStarted
    | OutputAdded
    | OutputUpdated
    | OutputsCleared
    | OutputCut
    | ResultGlued
    | ToolCalled
    | NoteAdded
    | Asked
    | CellChanged
    | Warned
    | CellFinished
    | KernelDied
    | RunFinished
    | SessionOpened
    | CellSubmitted
    | Rewound
    | KernelReplaced
    | SessionClosed
)

_TYPES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        RunStarted,
        OriginNoted,
        CellStarted,
        OutputAdded,
        OutputUpdated,
        OutputsCleared,
        OutputCut,
        ResultGlued,
        ToolCalled,
        NoteAdded,
        Asked,
        CellChanged,
        Warned,
        CellFinished,
        KernelDied,
        RunFinished,
        SessionOpened,
        CellSubmitted,
        Rewound,
        KernelReplaced,
        SessionClosed,
    )
}
_FIELDS = {cls: tuple(f.name for f in fields(cls)) for cls in (*_TYPES.values(), CellError)}


def as_dict(event: Event) -> dict[str, Any]:
    cls = type(event)
    out: dict[str, Any] = {"event": cls.__name__}
    for name in _FIELDS[cls]:
        value = getattr(event, name)
        if isinstance(value, CellError):
            value = {f: getattr(value, f) for f in _FIELDS[CellError]}
        out[name] = value
    return out


def dumps(event: Event) -> str:
    """One line of JSON, without the newline. Lone surrogates survive as escapes."""
    return json.dumps(as_dict(event), separators=(",", ":"), ensure_ascii=True)


def loads(line: str | bytes) -> Event:
    """The event of one journal line. Unknown fields are dropped, so a newer journal still reads."""
    data = json.loads(line)
    cls = _TYPES[data["event"]]
    kwargs = {name: data[name] for name in _FIELDS[cls] if name in data}
    if kwargs.get("error"):
        error = kwargs["error"]
        kwargs["error"] = CellError(
            error["name"],
            error["value"],
            tuple(error["traceback"]),
            tuple(error.get("frames", ())),
        )
    if cls is RunStarted:
        kwargs["cells"] = tuple(kwargs["cells"])
    if "variables" in kwargs:
        kwargs["variables"] = tuple(kwargs["variables"])
    if cls is Asked:
        kwargs["choices"] = tuple(kwargs.get("choices", ()))
    event: Event = cls(**kwargs)
    return event
