"""Sessions: kernels that are still there at the next call.

Every call names its session; there is no current one. A session lives in the host's engine and is
written down as it goes, so that it can be told from its journal what was lost with a kernel, and
`restore` can bring it back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..cell_tools.dispatch import Answering
from ..engine.ask_params import settle
from ..engine.choose_kernel import (
    environment,
    hidden,
    kernel_spec,
    other_kernels,
    prepared,
    unprepared,
)
from ..engine.nested import run_called
from ..engine.output_sieve import Bounds, Sieve
from ..engine.run_cell import Cancel, utc_now
from ..environments.resolve import activated
from ..errors import DocumentError, Hint, HostError, NextStep, QuireError, UsageError
from ..kernel.engine_calls import Line
from ..kernel.protocol import Kernel, KernelSpec
from ..masking.secrets import Secret
from ..record.events import Event, KernelReplaced, Rewound, SessionClosed, SessionOpened
from ..record.plan import jsonable
from ..record.questions import Asker
from ..task import params
from ..task.document import Cell, Document, identified
from ..task.formats import LOGBOOK
from ..task.read_task import read
from ..workspace import LiveSession, Workspace
from .last_runs import last_seen
from .live_session import Session
from .session_cells import CellState, chosen_cells, masked, order_of, standing, with_parameters
from .session_journal import SessionState
from .session_task import Asking, as_it_runs, asking, check_kernels

WARN_AT = 0.8  # of the idle time, after which a session is about to be culled


@dataclass(frozen=True, slots=True)
class SessionInfo:
    name: str
    task: str
    state: str  # "idle", "busy", "gone" (its kernel or its host ended)
    epoch: int
    ran: int
    idle: float | None = None
    warning: str = ""
    lost: str = ""
    kernel: Mapping[str, Any] = field(default_factory=dict)


def open_session(
    workspace: Workspace,
    path: str | Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    kernel: str | None = None,
    python: str | None = None,
    cwd: str | Path | None = None,
) -> SessionInfo:
    """Start a kernel for a task. Nothing runs yet."""
    _need_host(workspace)
    source = read(workspace, path)
    check_kernels(workspace, source.document)
    given = {
        key: value if isinstance(value, params.Given) else params.Given(value)
        for key, value in (parameters or {}).items()
    }
    spec = unprepared(workspace, source.document, kernel=kernel, python=python, cwd=cwd)
    settled = settle(workspace, source.document, given, spec.env, utc_now)
    values = settled.values
    told = tuple(settled.variables)
    spec = replace(spec, env={**spec.env, **settled.variables})
    spec = prepared(workspace, spec, source.document, python, task=source.path)
    store = workspace.sessions
    name = store.reserve(name or source.path.stem, exactly=name is not None)
    try:
        live = _started(workspace, name, source.path, values, spec, epoch=1, told=told)
    except BaseException:
        store.remove(name)
        raise
    live.journal.append(
        SessionOpened(
            name,
            utc_now().isoformat(),
            str(source.path),
            live.session.sieve.masker.mask_json(
                {
                    "parameters": jsonable(values),
                    "kernel": spec.name,
                    "python": spec.python,
                    "environment": dict(spec.environment),
                    "cwd": str(spec.cwd),
                }
            ),
        )
    )
    return _info(workspace, name, live)


def _started(
    workspace: Workspace,
    name: str,
    path: Path,
    values: Mapping[str, Any],
    spec: KernelSpec,
    *,
    epoch: int,
    reopen: bool = False,
    told: tuple[str, ...] = (),  # variables that a person gave: masked, whatever their names
) -> LiveSession:
    engine, config = workspace.engine, workspace.config
    live: LiveSession | None = None

    def pid() -> int:
        kernel = live.session.kernel if live is not None else None
        return getattr(kernel, "pid", 0)

    def run_task(arguments: Mapping[str, Any], cancel: Cancel) -> dict[str, Any]:
        asker = calls.asker
        return run_called(workspace, spec, arguments, cancel, asker=asker, secrets=secrets)

    calls = Answering(workspace, spec, run_task, told=told)
    line = engine.calls.register(
        calls, pid=None if spec.name else pid, turned_away=calls.turned_away
    )
    others: dict[str, str] = {}
    start = partial(_kernel, workspace, spec, line, others if path.suffix == LOGBOOK else None)
    names = (*hidden(workspace), *told)
    secrets = (*engine.known.meet(spec.env, names), Secret("QUIRE_TOKEN", line.token))
    masker = engine.known.masker(secrets)
    folder = workspace.sessions.folder(name)
    bounds = Bounds(stream=config.stream_limit, displays=config.display_limit)
    sieve = Sieve(masker, folder, bounds)
    calls.masker = masker
    session = Session(name, start, sieve, budget=workspace.snapshot_budget, calls=calls)
    session.epoch = epoch
    store = workspace.sessions
    try:
        journal = store.reopen(name) if reopen else store.create(name)
    except BaseException:
        session.close()
        raise
    live = LiveSession(session, journal, path, values, line, spec, calls, others)
    with engine.sessions_lock:
        engine.sessions[name] = live
    return live


def _kernel(
    workspace: Workspace, spec: KernelSpec, line: Line, others: Mapping[str, str] | None
) -> Kernel:
    """`others`: cells that run in another kernel, by the time they do; None where none can."""
    calls, kernels = workspace.engine.calls, workspace.engine.kernels
    calls.expect(line)
    main = kernels.start(spec, line.as_context())
    if others is None:
        return main
    from ..kernel.multi_kernel import SessionKernels

    def start(name: str) -> Kernel:
        return kernels.start(replace(spec, name=name), calls.another(line).as_context())

    return SessionKernels(main, others, start)


def find(workspace: Workspace, name: str) -> LiveSession:
    """The session of that name, or the only one on that notebook. Revived if its host was lost."""
    _need_host(workspace)
    engine = workspace.engine
    name = named(workspace, name)
    with engine.reviving:
        live = engine.sessions.get(name)
        return live if live is not None else _revived(workspace, workspace.sessions.read(name))


def named(workspace: Workspace, name: str) -> str:
    """The session's own name, where it may have been given by its notebook."""
    engine, store = workspace.engine, workspace.sessions
    known = store.names()
    if name in engine.sessions or name in known:
        return name
    on_path: set[str] = set()
    if "/" in name or "." in name:
        path = (workspace.cwd / name).resolve()
        on_path = {n for n, live in list(engine.sessions.items()) if live.path == path}
        on_path.update(store.on(path))
    if len(on_path) == 1:
        return on_path.pop()
    if on_path:
        raise UsageError(
            f"{name} has {len(on_path)} sessions: {', '.join(sorted(on_path))}",
            hint="name one of them",
        )
    raise UsageError(
        f"there is no session {name!r}",
        hint=Hint(
            "open one with `{}`; open: {}",
            NextStep("open", {"path": ...}),
            ", ".join(known) or "none",
        ),
    )


def _revived(workspace: Workspace, state: SessionState) -> LiveSession:
    """The host that held it is gone, and the kernel with it. A fresh kernel, and it says so."""
    plan = state.plan
    cwd = Path(str(plan.get("cwd", workspace.cwd)))
    cwd = cwd if cwd.is_dir() else workspace.cwd
    path = Path(state.task)
    spec = _spec_again(workspace, path, cwd, plan)
    given = {name: params.Given(value) for name, value in plan.get("parameters", {}).items()}
    values = {name: one.value for name, one in given.items()}
    with suppress(QuireError):  # the task may be gone, or declare other parameters by now
        values = params.resolve(read(workspace, path).document, given)
    live = _started(workspace, state.name, path, values, spec, epoch=state.epoch + 1, reopen=True)
    live.session.lost = "the host that held its kernel ended"
    at = utc_now().isoformat()
    live.journal.append(KernelReplaced(live.session.epoch, live.session.lost, at))
    return live


def _spec_again(workspace: Workspace, path: Path, cwd: Path, plan: Mapping[str, Any]) -> KernelSpec:
    """The kernel that a session had. An environment may have been removed since, and is made."""
    kernel, python = str(plan.get("kernel", "")), str(plan.get("python", ""))
    made = workspace.environments.of_python(python) if python else None
    if plan.get("environment") and made is None and not Path(python).is_file():
        document = read(workspace, path).document
        return kernel_spec(workspace, document, kernel=kernel, cwd=cwd, task=path)
    env = activated(workspace, environment(workspace), made)
    return KernelSpec(cwd, env, kernel, python, workspace.config.preload)


def _need_host(workspace: Workspace) -> None:
    if not workspace.engine.outlives:
        raise HostError(
            "a session needs a host that outlives this call",
            hint="unset QUIRE_NO_HOST, and check that the workspace can be written to",
        )


def sessions(workspace: Workspace) -> list[SessionInfo]:
    _need_host(workspace)
    live = dict(workspace.engine.sessions)
    found = [_info(workspace, name, one) for name, one in sorted(live.items())]
    others = [name for name in workspace.sessions.names() if name not in live]
    for state in workspace.sessions.states(others):
        if state.name and not state.closed:
            lost = "the host that held its kernel ended"
            found.append(
                SessionInfo(
                    state.name,
                    workspace.named(Path(state.task)),
                    "gone",
                    state.epoch,
                    len(state.ran),
                    lost=lost,
                )
            )
    return found


def _info(workspace: Workspace, name: str, live: LiveSession) -> SessionInfo:
    session = live.session
    idle = 0.0 if session.busy else time.monotonic() - session.used
    limit = workspace.config.session_idle
    warning = ""
    if session.alive and not session.busy and idle > WARN_AT * limit:
        warning = f"its kernel ends in {max(0, limit - idle):.0f} s unless it is used"
    state = "busy" if session.busy else "idle" if session.alive else "gone"
    kernel = dict(session.kernel.describe()) if session.kernel is not None else {}
    connection = getattr(session.kernel, "connection_file", "")
    if connection:
        kernel["connection_file"] = str(connection)
    return SessionInfo(
        name,
        workspace.named(live.path),
        state,
        session.epoch,
        len(session.executions),
        idle,
        warning,
        session.why_lost,
        kernel,
    )


def cells(workspace: Workspace, name: str) -> list[CellState]:
    """Every cell of the task as it is now: which ran, in which order, which are stale and why."""
    return states(workspace, find(workspace, name))


def states(workspace: Workspace, live: LiveSession) -> list[CellState]:
    return masked(standing(as_it_runs(workspace, live), live.session.executions), live)


def execute(
    workspace: Workspace,
    name: str,
    what: str | None,
    cancel: Cancel,
    *,
    code: str | None = None,
    cell_timeout: float | None = None,
    ahead: Callable[[Event], object] = bool,
) -> Iterator[Event]:
    """Run cells of the task, or loose code, in the session's kernel. `ahead` may begin to work on
    an event while it is being journaled; nobody is told of it before."""
    live = find(workspace, name)
    approval: Asking | None = None
    if (what is None) == (code is None):
        raise UsageError(
            "say which cells to run, or give code",
            hint=Hint("{}", NextStep("exec", {"session": ..., "cells": "3-7"})),
        )
    if code is not None:
        (loose,) = identified([Cell("code", code, title="code")])
        chosen: list[tuple[Cell, int | None]] = [(loose, None)]
    else:
        assert what is not None
        document = as_it_runs(workspace, live)
        picked = chosen_cells(document, live, what)
        check_kernels(workspace, document)
        live.others.update(other_kernels(document))
        chosen = with_parameters(document, picked, live.parameters)
        approval = asking(workspace, live, document)
    # What one session may set aside depends on how many there are.
    live.session.marks.budget = workspace.snapshot_budget
    return _journaled(live, chosen, cancel, cell_timeout, workspace.asker, approval, ahead)


def _journaled(
    live: LiveSession,
    chosen: list[tuple[Cell, int | None]],
    cancel: Cancel,
    cell_timeout: float | None,
    asker: Asker,
    approval: Asking | None,
    ahead: Callable[[Event], object],
) -> Iterator[Event]:
    session = live.session
    begun = False
    if session.lost and session.alive:
        # Said before anything else, once: what was in the kernel is not there any more.
        yield KernelReplaced(session.epoch, session.lost, session.at())
        session.lost = ""
    for event in session.execute(chosen, cancel, cell_timeout=cell_timeout, approval=approval):
        if not begun:  # now the session is ours, and nobody else's call goes on in it
            begun = True
            live.calls.renew(asker, cancel)
        ahead(event)
        live.journal.append(event)
        yield event
        if isinstance(event, KernelReplaced):
            session.lost = ""


def rewind(workspace: Workspace, name: str, target: str) -> tuple[Rewound, list[CellState]]:
    """Be as before a cell ran: an index, id or title, or `#N` for the Nth thing that ran."""
    live = find(workspace, name)
    session = live.session
    ran = [*session.left, *session.executions]
    if session.why_lost and not ran:
        raise session.gone()
    try:
        document = as_it_runs(workspace, live)
    except DocumentError:  # the file may be gone by now: a number names an execution all the same
        if not target.startswith("#"):
            raise
        document = Document(())
    lost = last_seen(workspace, live)
    event = session.rewind(order_of(document, ran, target, lost=lost, session=session.name))
    live.journal.append(event)
    return event, masked(standing(document, session.executions), live)


def variables(workspace: Workspace, name: str) -> list[Mapping[str, Any]]:
    return find(workspace, name).session.variables()


def interrupt(workspace: Workspace, name: str) -> bool:
    """False when nothing was running."""
    session = find(workspace, name).session
    running = session.busy
    session.interrupt()
    return running


def restart(workspace: Workspace, name: str) -> KernelReplaced:
    live = find(workspace, name)
    event = live.session.restart()
    live.journal.append(event)
    return event


def close(workspace: Workspace, name: str) -> None:
    """End the kernel and forget the session."""
    engine = workspace.engine
    name = named(workspace, name)
    with engine.sessions_lock:
        live = engine.sessions.pop(name, None)
    if live is not None:
        live.session.close()
        for event in live.calls.leftover():
            live.journal.append(event)
        live.journal.append(SessionClosed(utc_now().isoformat()))
        live.journal.close()
        engine.calls.forget(live.line)
    workspace.sessions.remove(name)


def cull(workspace: Workspace) -> list[str]:
    """End kernels of sessions that nobody used for long enough. The host calls this."""
    limit = workspace.config.session_idle
    culled = []
    for name, live in list(workspace.engine.sessions.items()):
        session = live.session
        if session.alive and not session.busy and time.monotonic() - session.used > limit:
            session.cull(f"its kernel was ended after {limit:g} s without use")
            live.journal.append(KernelReplaced(session.epoch, session.lost, session.at()))
            culled.append(name)
    return culled
