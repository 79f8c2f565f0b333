"""Run a task: from a file to a record.

`NotebookExecutor` yields the events of one run while it happens; `run` drains it. The journal is
written before anybody sees an event.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from ..cell_tools.dispatch import Answering
from ..errors import QuireError, StorageError, UsageError
from ..kernel.engine_calls import Line
from ..kernel.native import wake
from ..kernel.protocol import Kernel
from ..masking.masker import Masker
from ..masking.secrets import Secret
from ..record.events import CellChanged, Event, RunFinished
from ..record.journal import Journal
from ..record.listener import Listener, Notice, Scene, listeners
from ..record.record import Fold, Record
from ..record.run_folders import RunFolder
from ..task import params
from ..task.document import Cell
from ..workspace import Workspace
from .approval import Approval
from .choose_kernel import beside, hidden, other_kernels
from .origin import asked, finding_out
from .output_sieve import Bounds, Sieve
from .planning import Again, Errand, Handed, Setting, planned, resumable
from .resume_point import Kept, Trail, as_run, catch_up
from .run_plan import Cancel, LocalExecutor, utc_now
from .run_underway import Attended, Underway
from .run_uuid import claim_uuid
from .saved_states import Marks
from .take_up import claim


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
        handed: Handed | None = None,
        cancel: Cancel | None = None,
        now: Callable[[], datetime] = utc_now,
        resume: str | None = None,
        from_cell: str | None = None,
        archives: bool | None = None,
        pushes: bool = True,
        again: Again | None = None,
        attended: Attended | None = None,
        errand: Errand | None = None,
    ) -> None:
        self.workspace = ws = workspace or Workspace(env=env)
        _ = ws.repository  # the one that is there before the first cell, whatever cells do to it
        self._cancelled = threading.Event()
        self._cancel = _Either(self._cancelled, *([cancel] if cancel is not None else []))
        self._now = now
        self._errand = errand or Errand()
        made = planned(
            ws,
            path,
            parameters or {},
            Setting(cwd, env, python, kernel, cell_timeout, timeout, parent, chain, handed),
            self._errand,
            again=again,
            resume=resume,
            from_cell=from_cell,
            output=output,
            now=now,
            cancelled=self._cancel.is_set,
        )
        self.plan, self._spec = made.plan, made.spec
        self._output, self._asked, self._told = made.output, made.asked, made.told
        self._kept, self._resume = made.kept, made.resume
        self._trail = self._new_trail()
        self._fold = Fold()
        self._folder: RunFolder | None = None
        self._answering: Answering | None = None
        self._secrets = handed.secrets if handed is not None else ()
        self._begun = self._alive = False
        self._archives = ws.config.archive.enabled if archives is None else archives
        self._pushes = pushes  # not where somebody pushes for many runs at once
        self._scene: Scene | None = None
        self._listeners: list[Listener] = []
        self._attended = attended  # by whoever waits for it, where it outlives the call
        self.underway: Underway | None = None  # once it has a folder

    @property
    def archived(self) -> Mapping[str, Any] | None:
        """Its place in the archive, once it has one."""
        return self._scene.archived if self._scene is not None else None

    @property
    def notices(self) -> Sequence[Notice]:
        """What did not work out besides the run itself."""
        return self._scene.notices if self._scene is not None else ()

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
        kernel: Kernel | None = None
        main: Kernel | None = None
        self._answering = answering = Answering(
            self.workspace, self._spec, self._run_child, self._cancel, told=self._told
        )
        line = engine.calls.register(
            answering,
            # A Jupyter kernel says which process it is before any cell runs.
            pid=None if self._spec.name else lambda: getattr(main, "pid", 0),
            turned_away=answering.turned_away,
        )
        try:
            kernel = main = self._kernel(line)
            kernel = beside(main, self.workspace, self._spec, self.plan.document, line)
            yield from self._journaled(kernel, line)
        finally:
            engine.calls.forget(line)
            try:
                if kernel is not None:
                    self._keep(kernel)
            finally:
                engine.ended(self.underway)
                if kernel is not None:
                    kernel.close()

    def _kernel(self, line: Line) -> Kernel:
        """A clean kernel, or the state that a resumed run goes on from."""
        resume, engine = self._resume, self.workspace.engine
        if resume is None or self._kept is None:
            return engine.kernels.start(self._spec, line.as_context())
        if resume.snapshot is None:
            kernel = engine.kernels.start(self._spec, line.as_context())
        else:
            kernel = wake(self._kept.server, resume.snapshot, line.as_context())
        try:
            catch_up(resume, self.plan.document.cells, kernel)
        except BaseException:
            kernel.close()
            raise
        return kernel

    def _new_trail(self) -> Trail | None:
        """States are set aside where somebody can come back for them: in a host."""
        ws = self.workspace
        wanted = ws.engine.outlives and ws.config.snapshots and not self.plan.parent
        if not wanted or self._spec.name or other_kernels(self.plan.document):
            return None
        marks = Marks(ws.snapshot_budget)
        if self._kept is not None and self._resume is not None:
            # So that it can be taken up before this place too, should it fail again.
            marks.inherit(self._kept.marks, self._resume.places)
        return Trail(marks)

    def _keep(self, kernel: Kernel) -> None:
        """A run that failed can be taken up for a while at the cell where it did."""
        trail, engine = self._trail, self.workspace.engine
        if trail is None:
            return
        if not self.record.run_id:  # it never began
            trail.marks.clear()
            return
        plan = self.plan
        kept = Kept(
            self.run_id,
            plan.path,
            as_run(plan.document.cells, self.record),
            plan.parameters,
            self.record,
            trail.marks,
            getattr(kernel, "zygote", None),
            self._secrets,
            time.monotonic() + self.workspace.config.resume_for,
        )
        if kept.record.outcome in ("failed", "timed_out", "died", "paused"):
            engine.keep(kept)
        else:
            trail.marks.clear()

    @property
    def resumable(self) -> bool:
        """Whether it can go on where it failed."""
        return resumable(self.workspace, self.run_id)

    def _journaled(self, kernel: Kernel, line: Line) -> Iterator[Event]:
        ws = self.workspace
        names = (*hidden(ws), *self._told)
        ws.engine.known.meet(ws.env, names)
        self._secrets += ws.engine.known.meet(self._spec.env, names)
        self._secrets += (Secret("QUIRE_TOKEN", line.token),)
        if self._kept is not None:
            # Its kernel goes on with the environment that it had then.
            self._secrets += tuple(self._kept.secrets)
        masker = ws.engine.known.masker(self._secrets)
        answering = self._answering
        assert answering is not None
        answering.masker = masker
        self._folder = folder = ws.runs.create(self.plan.run_id)
        self.plan = replace(self.plan, run_id=folder.run_id)
        self.underway = Underway(folder.run_id, self.cancel, self._attended)
        ws.engine.underway[folder.run_id] = self.underway
        self._scene = Scene(ws, self.plan, folder, self._archives, self._pushes, self._output)
        self._listeners = listeners(self._scene)
        bounds = Bounds(stream=ws.config.stream_limit, displays=ws.config.display_limit)
        sieve = Sieve(masker, folder, bounds)
        executor = LocalExecutor(
            self.plan,
            kernel,
            sieve,
            self._cancel,
            self._now,
            self._trail,
            self._resume,
            finding_out(ws, kernel, self.plan, masker),
            tuple(self._opening(masker)),
            self._approval(masker),
            answering,
        )
        journal = self._opened(folder, masker)
        self._alive = True
        try:
            # Closed at once when something goes wrong, so that the kernel is free to be ended.
            with closing(executor.events()) as events:
                for event in events:
                    self._write(event, journal)
                    yield event
        except BaseException as error:
            if self._alive:
                kernel.kill()
            if self._alive and isinstance(error, GeneratorExit):
                with suppress(StorageError):
                    for event in executor.abandoned():
                        self._write(event, journal)
            raise
        finally:
            self._alive = False
            journal.close()

    def _opened(self, folder: RunFolder, masker: Masker) -> Journal:
        """Its journal. From now on the run is there, and where it goes on with one that waited
        nobody else does."""
        ws = self.workspace
        try:
            folder.save_source(masker.mask(self.plan.source), self.plan.path.suffix)
            if self._archives:
                ws.runs.owe(folder, ws.repository.id if ws.repository else "")
            journal = Journal(folder.events)
            try:
                if self._errand.uuid:
                    claim_uuid(ws, self.plan, folder.run_id)
                claim(ws, folder.run_id, self._takes_up(), once_more=self._errand.once_more)
            except BaseException:
                journal.close()
                raise
        except QuireError:
            with suppress(StorageError):
                ws.runs.withdraw(folder)  # nothing has run: there is nothing to keep
            raise
        return journal

    def _takes_up(self) -> Record | None:
        """The run that waits for a person, where this one goes on with it."""
        kept = self._kept.record if self._kept is not None else None
        return self._errand.takes_up or (kept if kept and kept.outcome == "paused" else None)

    def _opening(self, masker: Masker) -> Iterator[Event]:
        """What there is to tell before the first cell: what is changed, and who was asked."""
        at = self._now().isoformat()
        for cell, change in self.plan.changes.items():
            original, source, reason, by = masker.mask_json(
                [change.original, change.source, change.reason, change.by]
            )
            yield CellChanged(cell, original, source, reason, by, at)
        for one in self._asked:
            question, answer = masker.mask_json([one.question, one.answer])
            yield replace(one, question=question, answer=answer)

    def _approval(self, masker: Masker) -> Approval:
        ws, errand = self.workspace, self._errand
        given, by = dict(errand.decided), asked(ws.env)["by"] if errand.decided else ""
        return Approval(
            ws.asker,
            ws.config.approval,
            masker,
            errand.step,
            given,
            by,
            errand.waits,
            self._filled,
            self._now,
        )

    def _filled(self, cell: Cell) -> Cell:
        return params.typed(cell, self.plan.document, self.plan.parameters)

    def _write(self, event: Event, journal: Journal) -> None:
        """Into the journal first, then to all that follow the run."""
        journal.append(event)
        self._fold.add(event)
        if isinstance(event, RunFinished):
            self._alive = False
            journal.sync()
        for listener in self._listeners:
            listener.on(event, self._fold)
        if isinstance(event, RunFinished):
            journal.close()  # only now: until it is in the archive it is not for others to finish
            for listener in self._listeners:
                listener.released(self.record)
        if self.underway is not None:
            self.underway.note(event)

    def _run_child(self, arguments: Mapping[str, Any], cancel: Cancel) -> dict[str, Any]:
        """A cell of ours runs another task. Runs on the call server's thread."""
        from .nested import run_called  # which itself makes a run

        assert self._answering is not None
        return run_called(
            self.workspace,
            self._spec,
            arguments,
            cancel,
            asker=self._answering.asker,
            parent=self.run_id,
            chain=self.plan.chain,
            secrets=self._secrets,
            archives=self._archives,
        )

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
