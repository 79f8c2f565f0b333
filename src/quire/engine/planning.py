"""What a run is to be, found out before a kernel starts and before anything is written.

Everything that can be wrong with a request (file, parameters, kernel name) raises here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..kernel import kernelspecs
from ..kernel.protocol import KernelSpec
from ..masking.secrets import Secret
from ..record.events import Asked
from ..record.plan import Change, Limits, Plan, run_id
from ..record.record import Record
from ..render.next_steps import Step, as_command, as_tool, sayable
from ..task import params
from ..task.document import Document
from ..task.params import INJECTED_TAG
from ..task.read_task import Source, read
from ..workspace import Workspace
from . import step_changes
from .approval import Do
from .ask_params import Settled, settle
from .choose_kernel import other_kernels, prepared, unprepared
from .output_file import checked
from .resume_point import Kept, Resume, can_resume, plan_resume
from .run_uuid import named


@dataclass(frozen=True, slots=True)
class Handed:
    """What goes with a run that a cell asks for, whatever environment the cell gives it."""

    commands: Mapping[str, str]  # the environment of the commands that cells run
    secrets: tuple[Secret, ...]  # to be masked there too


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and within which limits a task is to run, as far as whoever asks says so."""

    cwd: str | Path | None = None
    env: Mapping[str, str] | None = None
    python: str | None = None
    kernel: str | None = None
    cell_timeout: float | None = None
    timeout: float | None = None
    parent: str | None = None  # the run that asks for this one
    chain: tuple[Path, ...] = ()  # the tasks that are running it
    handed: Handed | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """An earlier run, to be run as it was whatever its file says now."""

    run_id: str
    source: Source
    document: Document  # with its parameters in place
    parameters: Mapping[str, Any]
    changes: Mapping[str, Change] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Errand:
    """Why a run is made, and what is special about it: all that is not in the task."""

    request: str = ""  # in the words of whoever asks
    sources: Mapping[str, str] = field(default_factory=dict)  # where parameters were taken from
    changes: Sequence[step_changes.Asked] = ()  # of steps, for this run only
    step: bool = False  # ask a person before each
    decided: Mapping[str, Do] = field(default_factory=dict)  # by the id of the cell
    waits: str = ""  # the cell that somebody has stopped at
    uuid: str = ""  # of the run; empty: a new one
    takes_up: Record | None = None  # a run that waits for a person, and is taken up once
    once_more: bool = False  # also where somebody has taken it up


@dataclass(frozen=True, slots=True)
class Planned:
    plan: Plan
    spec: KernelSpec
    asked: Sequence[Asked]  # what somebody was asked, and answered
    told: tuple[str, ...]  # variables whose values a person told: for the kernel and nobody else
    output: Path | None  # where the executed notebook goes too
    kept: Kept | None  # what is left of the run that is resumed
    resume: Resume | None


def planned(
    ws: Workspace,
    path: str | Path,
    parameters: Mapping[str, Any],
    setting: Setting,
    errand: Errand,
    *,
    again: Again | None,
    resume: str | None,
    from_cell: str | None,
    output: str | Path | None,
    now: Callable[[], datetime],
    cancelled: Callable[[], bool],
) -> Planned:
    if resume is None and from_cell is not None:
        raise UsageError("--from needs --resume", hint="name the run too: --resume last")
    source = read(ws, path) if again is None else again.source
    document = source.document
    kept = None if resume is None else _kept_run(ws, source.path, resume, parameters)
    if kept is not None:
        _leaves_the_kernel(setting)
    _may_run(ws, source.path, setting.chain)
    executed = None if output is None else checked(ws.cwd / output, source.path)
    python = setting.python if kept is None else _as_kept(kept)
    spec = unprepared(
        ws, document, kernel=setting.kernel, python=python, cwd=setting.cwd, env=setting.env
    )
    if setting.handed is not None:
        spec = replace(spec, commands=setting.handed.commands)
    for name in set(other_kernels(document).values()):
        kernelspecs.find(name, spec.env)  # says which there are, before anything runs
    uuid, page = named(ws, source.path, errand.uuid, now)
    # A resumed run has the parameters it had, unless it is given others.
    given = as_given({**(kept.parameters if kept else {}), **parameters})
    settled = settle(ws, document, None if again else given, spec.env, now, cancelled)
    spec = replace(spec, env={**spec.env, **settled.variables})
    if again is None:
        by = ws.env.get("QUIRE_ACTOR", "")
        filled = step_changes.fill(document, settled.values, errand.changes, by)
    else:
        settled.values = dict(again.parameters)
        filled = step_changes.Filled(again.document, again.changes)
    _sources_fit(errand, document, settled)
    # Last of all: the first time it takes a while.
    spec = prepared(ws, spec, document, python, task=source.path, cancelled=cancelled)
    config = ws.config
    plan = Plan(
        run_id=run_id(str(path), now(), secrets.token_hex(2)),
        uuid=uuid,
        task=ws.named(source.path),
        path=source.path,
        document=filled.document,
        source=source.text,
        parameters=settled.values,
        defaults={p.name: p.default for p in params.declared(document) if p.has_default},
        request=errand.request,
        sources=errand.sources,
        changes=filled.changes,
        logbook=ws.named(page) if page is not None else "",
        limits=Limits(
            setting.cell_timeout if setting.cell_timeout is not None else config.cell_timeout,
            setting.timeout if setting.timeout is not None else config.timeout,
            depth=config.depth,
        ),
        parent=setting.parent,
        chain=(*setting.chain, source.path),
        cwd=ws.named(spec.cwd),
        replays=again.run_id if again is not None and kept is None else "",
        environment=spec.environment,
    )
    resumption = None if kept is None else _resumption(kept, plan, document, from_cell)
    told = tuple(settled.variables)
    return Planned(plan, spec, settled.asked, told, executed, kept, resumption)


def _leaves_the_kernel(setting: Setting) -> None:
    if setting.kernel or setting.python or setting.cwd is not None:
        raise UsageError(
            "a resumed run goes on in the kernel it had; --kernel, --python and --cwd are set",
            hint="leave them out, or run the task in full",
        )


def _may_run(ws: Workspace, path: Path, chain: tuple[Path, ...]) -> None:
    if path in chain:
        raise UsageError(
            f"{ws.named(path)} is already running: it would run itself for ever",
            hint="split what both need into a third task",
        )
    if len(chain) >= ws.config.depth:
        raise UsageError(
            f"tasks run tasks {ws.config.depth} deep here",
            hint="flatten them, or raise `depth` in the configuration",
        )


def _sources_fit(errand: Errand, document: Document, settled: Settled) -> None:
    known = params.effective(document, settled.values) if errand.sources else {}
    unknown = [name for name in errand.sources if name not in known]
    if unknown:
        raise UsageError(
            f"a source is given for {', '.join(unknown)}, which has no value",
            hint="give the parameter too: -p NAME VALUE",
        )


def as_given(values: Mapping[str, Any]) -> dict[str, params.Given]:
    return {
        name: value if isinstance(value, params.Given) else params.Given(value)
        for name, value in values.items()
    }


def _as_kept(kept: Kept) -> str | None:
    """Where the run did without what it declares it goes on without."""
    had = kept.record.plan.get("environment") or {}
    without = had and had.get("lock") is None and kept.server is not None
    return str(kept.server.python) if without else None


def resumable(ws: Workspace, run: str) -> bool:
    """Whether that run, which has ended, can go on where it stopped."""
    ws.engine.tidy()
    kept = ws.engine.kept.get(run)
    # One that has told its end but has not gone yet leaves its states in a moment.
    return can_resume(kept) if kept is not None else run in ws.engine.underway


def _kept_run(ws: Workspace, path: Path, name: str, given: Mapping[str, Any]) -> Kept:
    """What is left of the run that is to be resumed. `given`: parameters for going on with it."""
    folder = ws.runs.find(name)
    run = folder.run_id
    ws.engine.tidy()
    kept = ws.engine.kept.get(run)
    if kept is None:
        had = ws.runs.read(folder)
        if had.outcome == "running":
            raise UsageError(
                f"{run} is still running", hint=f"quire wait {run}, or quire cancel {run}"
            )
        raise _in_full(
            f"the states of {run} are gone: it ended well, it was too long ago, or its host ended",
            ws.named(path),
            _again(had.parameters if had.task == ws.named(path) else {}, given),
        )
    if kept.path != path:
        what = f"{run} was a run of {ws.named(kept.path)}, not of {ws.named(path)}"
        raise _in_full(what, ws.named(path), _again({}, given))
    return kept


def _again(had: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """The values that a run is to have once more. Only a record's are said: they are masked."""
    same = all(str(one.value) == str(had.get(name)) for name, one in as_given(given).items())
    return sayable(had) if same else ...


def _in_full(why: str, task: str, parameters: Any) -> UsageError:
    """It cannot go on: the call that runs it from its first cell, with the values it is to have."""
    again = {"path": task, **({"parameters": parameters} if parameters else {})}
    step = Step("run", again)
    command = as_command(step)
    return UsageError(why, hint=f"run the task in full: {command}", calls={command: as_tool(step)})


def _place_of(cell: str, document: Document, runs: Document) -> int:
    """Where a cell of the task stands in what runs: there the values may have a cell more, and a
    logbook's ids are those of its text with the values in it."""
    own = [at for at, one in enumerate(runs.cells) if INJECTED_TAG not in one.tags]
    known = {runs.cells[at].id: at for at in own}
    if cell in known:
        return known[cell]
    place = document.find(cell)
    if len(document.cells) == len(runs.cells):
        return place
    before = sum(INJECTED_TAG not in one.tags for one in document.cells[:place])
    return own[min(before, len(own) - 1)]


def _resumption(kept: Kept, plan: Plan, document: Document, from_cell: str | None) -> Resume:
    had = kept.record.plan.get("environment") or {}
    if had.get("lock") != plan.environment.get("lock"):
        raise _in_full(
            f"{kept.run_id} ran with other packages than the task declares now",
            plan.task,
            _again(kept.record.parameters, {}),
        )
    wanted = None
    if from_cell is not None:
        wanted = _place_of(from_cell, document, plan.document)
    return plan_resume(kept, plan.document.cells, wanted)
