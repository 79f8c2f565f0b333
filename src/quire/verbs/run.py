"""Run a task: from a file to a record.

`NotebookExecutor` yields the events of one run while it happens; `run` drains it. The journal is
written before anybody sees an event.
"""

from __future__ import annotations

import secrets
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import __version__
from ..document import params
from ..errors import KernelNotFound, StorageError, UsageError
from ..executors.local import Cancel, LocalExecutor, utc_now
from ..kernel.calls import HungUp, Line
from ..kernel.protocol import Kernel, KernelSpec
from ..runs.events import Event, RunFinished, ToolCalled
from ..runs.masking import Masker
from ..runs.plan import Limits, Plan, jsonable, run_id
from ..runs.record import Fold, Record
from ..runs.secrets import secrets_of
from ..runs.sieve import Bounds, Sieve
from ..store.files import write_atomic
from ..store.journal import Journal
from ..store.runs import RunFolder
from ..workspace import Workspace
from .read import read


class _Either:
    """Called off by whoever waits, or by whoever asked."""

    def __init__(self, *sources: Cancel) -> None:
        self.sources = sources

    def is_set(self) -> bool:
        return any(source.is_set() for source in self.sources)


class NotebookExecutor:
    """One run of one task. Iterate over it once; `record` is what there is so far.

    Everything that can be wrong with the request (file, parameters, kernel name) raises here,
    before a kernel starts and before anything is written.
    """

    def __init__(
        self,
        path: str | Path,
        parameters: Mapping[str, Any] | None = None,
        *,
        workspace: Workspace | None = None,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        python: str | None = None,
        kernel: str | None = None,
        cell_timeout: float | None = None,
        timeout: float | None = None,
        output: str | Path | None = None,
        parent: str | None = None,
        chain: tuple[Path, ...] = (),
        cancel: Cancel | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.workspace = ws = workspace or Workspace(env=env)
        config = ws.config
        source = read(ws, path)
        document = source.document
        given = {
            name: value if isinstance(value, params.Given) else params.Given(value)
            for name, value in (parameters or {}).items()
        }
        values = params.resolve(document, given)
        if source.path in chain:
            raise UsageError(
                f"{ws.named(source.path)} is already running: it would run itself for ever",
                hint="split what both need into a third task",
            )
        if len(chain) >= config.depth:
            raise UsageError(
                f"tasks run tasks {config.depth} deep here",
                hint="flatten them, or raise `depth` in the configuration",
            )
        self._cancelled = threading.Event()
        self._cancel = _Either(self._cancelled, *([cancel] if cancel is not None else []))
        self._now = now
        self._output = ws.cwd / output if output is not None else None
        if self._output is not None and not self._output.parent.is_dir():
            raise UsageError(
                f"there is no folder {self._output.parent}", hint="make it, or choose another"
            )
        self._spec = KernelSpec(
            cwd=_folder(ws.cwd / cwd if cwd is not None else ws.cwd),
            env=ws.env if env is None else env,
            name=kernel if kernel is not None else _kernel(document.kernel_name, config.kernel),
            python=_interpreter(ws, config.python if python is None else python),
            preload=config.preload,
        )
        self.plan = Plan(
            run_id=run_id(str(path), now(), secrets.token_hex(2)),
            uuid=str(uuid.uuid4()),
            task=ws.named(source.path),
            path=source.path,
            document=params.inject(document, values),
            source=source.text,
            parameters=values,
            defaults={p.name: p.default for p in params.declared(document) if p.has_default},
            limits=Limits(
                cell_timeout if cell_timeout is not None else config.cell_timeout,
                timeout if timeout is not None else config.timeout,
                depth=config.depth,
            ),
            parent=parent,
            chain=(*chain, source.path),
        )
        self._fold = Fold()
        self._folder: RunFolder | None = None
        self._executor: LocalExecutor | None = None
        self._begun = self._alive = False

    @property
    def run_id(self) -> str:
        return self.plan.run_id

    @property
    def folder(self) -> RunFolder:
        """Where the run is kept. Only a run that has started has one."""
        if self._folder is None:
            raise UsageError("the run has not started", hint="iterate over it first")
        return self._folder

    @property
    def record(self) -> Record:
        return self._fold.record(alive=self._alive)

    def cancel(self) -> None:
        """Call the run off. Safe from another thread or a signal handler."""
        self._cancelled.set()

    def __iter__(self) -> Iterator[Event]:
        if self._begun:
            raise UsageError(f"the run {self.run_id} has been started", hint="make another one")
        self._begun = True
        engine = self.workspace.engine
        line = engine.calls.register(self._answer)
        kernel: Kernel | None = None
        try:
            kernel = engine.kernels.start(self._spec, line.as_context())
            yield from self._journaled(kernel, line)
        finally:
            engine.calls.forget(line)
            if kernel is not None:
                kernel.close()

    def _journaled(self, kernel: Kernel, line: Line) -> Iterator[Event]:
        ws = self.workspace
        masker = Masker(secrets_of({**self._spec.env, "QUIRE_TOKEN": line.token}, ws.config.mask))
        self._folder = folder = ws.runs.create(self.plan.run_id)
        self.plan = replace(self.plan, run_id=folder.run_id)
        bounds = Bounds(stream=ws.config.stream_limit, displays=ws.config.display_limit)
        sieve = Sieve(masker, folder, bounds)
        self._executor = executor = LocalExecutor(self.plan, kernel, sieve, self._cancel, self._now)
        journal = Journal(folder.events)
        self._alive = True
        try:
            folder.save_source(masker.mask(self.plan.source), self.plan.path.suffix)
            # Closed at once when something goes wrong, so that the kernel is free to be ended.
            with closing(executor.events()) as events:
                for event in events:
                    self._write(event, journal)
                    yield event
        except GeneratorExit:
            if self._alive:
                kernel.kill()
                with suppress(StorageError):
                    for event in executor.abandoned():
                        self._write(event, journal)
            raise
        finally:
            self._alive = False
            journal.close()

    def _write(self, event: Event, journal: Journal) -> None:
        """Into the journal first; with the last event come the notebook and the summary."""
        journal.append(event)
        self._fold.add(event)
        if isinstance(event, RunFinished):
            self._alive = False
            journal.close()
            self.folder.save(self.record, __version__)
            if self._output is not None:
                write_atomic(self._output, self.folder.notebook.read_bytes())

    def _answer(self, call: str, arguments: Mapping[str, Any], hung_up: HungUp) -> Any:
        """A cell called. Runs on the call server's thread."""
        import time

        if call != "run":
            raise UsageError(f"there is no call {call!r}", hint="this runtime is newer or older")
        began = time.monotonic()
        told: dict[str, Any] = {}
        try:
            told = self._run_child(arguments, hung_up)
        finally:
            executor = self._executor
            if executor is not None:
                masked = executor.sieve.masker.mask_json(
                    {"path": arguments.get("path"), "parameters": arguments.get("parameters")}
                )
                brief: dict[str, Any] = {
                    key: told[key] for key in ("run_id", "outcome") if key in told
                }
                duration = round(time.monotonic() - began, 6)
                ok = told.get("outcome") == "ok"
                executor.inbox.put(
                    ToolCalled(executor.current_cell, "run", masked, ok, duration, brief)
                )
        return told

    def _run_child(self, arguments: Mapping[str, Any], hung_up: HungUp) -> dict[str, Any]:
        ws = self.workspace
        parameters = arguments.get("parameters")
        if not isinstance(parameters, Mapping) or not isinstance(arguments.get("path"), str):
            raise UsageError("run() takes a path and parameters", hint="see the runtime's docs")
        here = Workspace(ws.root, cwd=str(arguments["cwd"]), env=ws.env, engine=ws.engine)
        child = NotebookExecutor(
            arguments["path"],
            parameters,
            workspace=here,
            env=self._spec.env,
            python=self._spec.python,
            parent=self.run_id,
            chain=self.plan.chain,
            cancel=_Either(self._cancel, hung_up),
        )
        return report(drained(child), child.folder)

    def __enter__(self) -> NotebookExecutor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()


def drained(execution: NotebookExecutor) -> Record:
    for _ in execution:
        pass
    return execution.record


def run(
    path: str | Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    workspace: Workspace | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    python: str | None = None,
    kernel: str | None = None,
    cell_timeout: float | None = None,
    timeout: float | None = None,
    output: str | Path | None = None,
) -> Record:
    """Run a task in this process and return its record; a failing task has one too."""
    return drained(
        NotebookExecutor(
            path,
            parameters,
            workspace=workspace,
            cwd=cwd,
            env=env,
            python=python,
            kernel=kernel,
            cell_timeout=cell_timeout,
            timeout=timeout,
            output=output,
        )
    )


def report(record: Record, folder: RunFolder) -> dict[str, Any]:
    """What a program gets told of a run: the one object of `--json`, and a parent task's answer."""
    error = record.error
    return {
        "run_id": record.run_id,
        "outcome": record.outcome,
        "results": jsonable(record.values),
        "notebook": str(folder.notebook),
        "duration": record.duration,
        "cells": [
            {"id": c.id, "kind": c.kind, "status": c.status, "duration": c.duration}
            for c in record.cells
        ],
        "error": error
        and {
            "cell": error.cell,
            "name": error.name,
            "value": error.value,
            "traceback": short_traceback(error.traceback),
        },
    }


def short_traceback(lines: tuple[str, ...], limit: int = 30) -> str:
    """Without colours, and without the middle when it is long."""
    import re

    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", "\n".join(lines))
    rows = text.splitlines()
    if len(rows) > limit:
        cut = len(rows) - limit
        half = limit // 2
        rows = [*rows[:half], f"    … {cut} lines …", *rows[-half:]]
    return "\n".join(row[:500] for row in rows)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}", hint="give --cwd a folder that exists")
    return path


def _kernel(asked: str, configured: str) -> str:
    """Empty for the native kernel. A notebook made for Python asks for `python3`: that is ours."""
    if configured:
        return configured
    native = not asked or asked in ("python", "python3") or sys.platform == "win32"
    return "" if native else asked


def _interpreter(ws: Workspace, python: str) -> str:
    if not python:
        return ""
    if "/" in python:
        found: str | None = str(ws.cwd / Path(python).expanduser())
    else:
        import shutil

        found = shutil.which(python, path=ws.env.get("PATH"))
    if found is None or not Path(found).is_file():
        raise KernelNotFound(
            f"there is no interpreter {python}",
            hint="give --python the path of a Python that has IPython installed",
        )
    return found
