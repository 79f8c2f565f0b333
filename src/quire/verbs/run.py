"""Run a task: from a file to a record.

`NotebookExecutor` yields the events of one run while it happens; `run` drains it. The journal is
written before anybody sees an event.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import __version__
from ..document import params
from ..document.model import Cell, Document
from ..document.params import INJECTED_TAG
from ..errors import QuireError, StorageError, UsageError
from ..executors.approval import Approval, Do
from ..executors.local import Cancel, LocalExecutor, utc_now
from ..executors.resume import Kept, Resume, Trail, can_resume, catch_up, plan_resume
from ..executors.session import Marks
from ..executors.underway import Attended, Underway
from ..kernel import kernelspecs
from ..kernel.calls import Line
from ..kernel.native import wake
from ..kernel.protocol import Kernel, KernelSpec
from ..runs.asking import Asker
from ..runs.events import CellChanged, Event, RunFinished
from ..runs.masking import Masker
from ..runs.notebook import dumps, notebook
from ..runs.plan import Change, Limits, Plan, run_id
from ..runs.record import CHANGED, Fold, Record
from ..runs.secrets import Secret, secrets_of
from ..runs.sieve import Bounds, Sieve
from ..store.files import write_atomic
from ..store.journal import Journal
from ..store.runs import RunFolder
from ..workspace import Workspace
from . import changes, logbooks
from .answering import Answering
from .archive import archive, send, tidy
from .asking import Settled, settle
from .kernels import hidden, interpreter, prepared, unprepared
from .logbooks import RunLogbook
from .origin import asked, finding_out, remember
from .read import Source, read
from .report import report


class _Either:
    """Called off by whoever waits, or by whoever asked."""

    def __init__(self, *sources: Cancel) -> None:
        self.sources = sources

    def is_set(self) -> bool:
        return any(source.is_set() for source in self.sources)


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
    changes: Sequence[changes.Asked] = ()  # of steps, for this run only
    step: bool = False  # ask a person before each
    decided: Mapping[str, Do] = field(default_factory=dict)  # by the id of the cell
    uuid: str = ""  # of the run; empty: a new one


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
        resume: str | None = None,
        from_cell: str | None = None,
        archives: bool | None = None,
        pushes: bool = True,
        again: Again | None = None,
        attended: Attended | None = None,
        errand: Errand | None = None,
    ) -> None:
        self.workspace = ws = workspace or Workspace(env=env)
        config = ws.config
        source = read(ws, path) if again is None else again.source
        document = source.document
        self._kept = None if resume is None else _kept_run(ws, source.path, resume)
        if self._kept is not None and (kernel or python or cwd is not None):
            raise UsageError(
                "a resumed run goes on in the kernel it had; --kernel, --python and --cwd are set",
                hint="leave them out, or run the task in full",
            )
        # A resumed run has the parameters it had, unless it is given others.
        given = {**(self._kept.parameters if self._kept else {}), **(parameters or {})}
        self._errand = errand = errand or Errand()
        self._now = now
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
        self._output = None if output is None else _output(ws.cwd / output, source.path)
        python = _as_kept(self._kept) if self._kept is not None else python
        self._spec = unprepared(ws, document, kernel=kernel, python=python, cwd=cwd, env=env)
        for name in set(_other_kernels(document).values()):
            kernelspecs.find(name, self._spec.env)  # says which there are, before anything runs
        book = self._logbook = logbooks.place(ws, source.path, errand.uuid, now)
        settled = Settled()
        if again is None:
            settled = settle(
                ws, document, _as_given(given), self._spec.env, now, self._cancel.is_set
            )
            self._know(settled.variables)
            by = ws.env.get("QUIRE_ACTOR", "")
            filled = changes.fill(document, settled.values, errand.changes, by)
        else:
            settled = settle(ws, document, None, self._spec.env, now, self._cancel.is_set)
            self._know(settled.variables)
            settled.values = dict(again.parameters)
            filled = changes.Filled(again.document, again.changes)
        self._asked = settled.asked
        values = settled.values
        unknown = [
            name for name in errand.sources if name not in params.effective(document, values)
        ]
        if unknown:
            raise UsageError(
                f"a source is given for {', '.join(unknown)}, which has no value",
                hint="give the parameter too: -p NAME VALUE",
            )
        # Last of all: the first time it takes a while.
        self._spec = prepared(
            ws, self._spec, document, python, task=source.path, cancelled=self._cancel.is_set
        )
        self.plan = Plan(
            run_id=run_id(str(path), now(), secrets.token_hex(2)),
            uuid=book.uuid,
            task=ws.named(source.path),
            path=source.path,
            document=filled.document,
            source=source.text,
            parameters=values,
            defaults={p.name: p.default for p in params.declared(document) if p.has_default},
            request=errand.request,
            sources=errand.sources,
            changes=filled.changes,
            logbook=ws.named(book.path) if book.path is not None else "",
            limits=Limits(
                cell_timeout if cell_timeout is not None else config.cell_timeout,
                timeout if timeout is not None else config.timeout,
                depth=config.depth,
            ),
            parent=parent,
            chain=(*chain, source.path),
            cwd=ws.named(self._spec.cwd),
            replays=again.run_id if again is not None and self._kept is None else "",
            environment=self._spec.environment,
        )
        if self._kept is None and from_cell is not None:
            raise UsageError("--from needs --resume", hint="--resume last --from 6")
        self._resume: Resume | None = None
        if self._kept is not None:
            self._resume = _resumption(self._kept, self.plan, document, from_cell)
        self._trail = self._new_trail()
        self._fold = Fold()
        self._folder: RunFolder | None = None
        self._answering: Answering | None = None
        self._secrets: tuple[Secret, ...] = ()
        self._begun = self._alive = False
        self._archives = config.archive.enabled if archives is None else archives
        self._pushes = pushes  # not where somebody pushes for many runs at once
        self.archived: dict[str, Any] | None = None
        self.not_archived: QuireError | None = None
        self.not_pushed: QuireError | None = None
        self._attended = attended  # by whoever waits for it, where it outlives the call
        self.underway: Underway | None = None  # once it has a folder
        self.archive_warning = ""  # what the archive has lost since it was last added to

    @property
    def logbook(self) -> RunLogbook:
        """Where the record for people is, and why it is not there if it could not be written."""
        return self._logbook

    def _know(self, variables: Mapping[str, str]) -> None:
        """What a person told is for the kernel, and for nobody else."""
        if variables:
            self._spec = replace(self._spec, env={**self._spec.env, **variables})
        self._told = tuple(variables)

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
        self._answering = answering = Answering(
            self.workspace, self._spec, self._run_child, self._cancel
        )
        line = engine.calls.register(
            answering,
            # A Jupyter kernel says which process it is before any cell runs.
            pid=None if self._spec.name else lambda: getattr(kernel, "pid", 0),
            turned_away=answering.turned_away,
        )
        try:
            kernel = self._with_others(self._kernel(line), line)
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

    def _with_others(self, kernel: Kernel, line: Line) -> Kernel:
        """Beside it, kernels for the steps that name another one."""
        others = _other_kernels(self.plan.document)
        if not others:
            return kernel
        from ..kernel.several import SeveralKernels

        def start(name: str) -> Kernel:
            spec = replace(self._spec, name=name)
            return self.workspace.engine.kernels.start(spec, line.as_context())

        return SeveralKernels(kernel, others, start)

    def _new_trail(self) -> Trail | None:
        """States are set aside where somebody can come back for them: in a host."""
        ws = self.workspace
        wanted = ws.engine.outlives and ws.config.snapshots and not self.plan.parent
        if not wanted or self._spec.name or _other_kernels(self.plan.document):
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
        plan = self.plan
        kept = Kept(
            self.run_id,
            plan.path,
            _as_run(plan.document.cells, self.record),
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
        kept = self.workspace.engine.kept.get(self.run_id)
        return kept is not None and can_resume(kept)

    def _journaled(self, kernel: Kernel, line: Line) -> Iterator[Event]:
        ws = self.workspace
        names = (*hidden(ws), *self._told)
        self._secrets = secrets_of({**self._spec.env, "QUIRE_TOKEN": line.token}, names)
        if self._kept is not None:
            # Its kernel goes on with the environment that it had then.
            self._secrets += tuple(self._kept.secrets)
        masker = Masker(self._secrets)
        answering = self._answering
        assert answering is not None
        answering.masker = masker
        self._folder = folder = ws.runs.create(self.plan.run_id)
        self.plan = replace(self.plan, run_id=folder.run_id)
        self.underway = Underway(folder.run_id, self.cancel, self._attended)
        ws.engine.underway[folder.run_id] = self.underway
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
        try:
            folder.save_source(masker.mask(self.plan.source), self.plan.path.suffix)
            if self._archives:
                ws.runs.owe(folder)
            journal = Journal(folder.events)
        except StorageError:
            folder.discard()  # nothing has run: there is nothing to keep
            raise
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
        policy = ws.config.approval
        return Approval(ws.asker, policy, masker, errand.step, given, by, self._now)

    def _write(self, event: Event, journal: Journal) -> None:
        """Into the journal first; with the last event come the notebook and the summary."""
        journal.append(event)
        self._fold.add(event)
        self._logbook.add(event, self._fold, alive=self._alive)
        if isinstance(event, RunFinished):
            self._alive = False
            journal.close()
            self.folder.save(self.record, __version__)
            remember(self.workspace, self.record)
            if self._archives:
                self._archive()
            if self._output is not None:
                nb = notebook(self.record, output_path=str(self._output), version=__version__)
                write_atomic(self._output, dumps(nb))
        if self.underway is not None:
            self.underway.note(event)

    def _archive(self) -> None:
        """Before anybody hears that the run is over. Where it cannot be, the run is still good:
        its record is here, and is archived as soon as that is possible."""
        try:
            self.archived = archive(self.workspace, self.folder, self.record)
        except QuireError as error:
            self.not_archived = error
            return
        self.archive_warning = self.workspace.archive.warning
        if self.plan.parent:
            return  # the run that asked for this one does the rest for both
        try:
            if self._pushes:
                send(self.workspace)
        except QuireError as error:
            self.not_pushed = error
        with suppress(QuireError):  # it is still owed, and `quire doctor` says so
            tidy(self.workspace)
        if self.workspace.engine.outlives:
            from .index import later  # a process that ends with its run has no need of it

            later(self.workspace)

    def _run_child(self, arguments: Mapping[str, Any], cancel: Cancel) -> dict[str, Any]:
        """A cell of ours runs another task. Runs on the call server's thread."""
        assert self._answering is not None
        return run_called(
            self.workspace,
            self._spec,
            arguments,
            cancel,
            asker=self._answering.asker,
            parent=self.run_id,
            chain=self.plan.chain,
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


def _other_kernels(document: Document) -> dict[str, str]:
    """The steps of a logbook that run in another kernel than the rest."""
    if document.format != "logbook":
        return {}
    kernels = ((cell.id, cell.metadata.get("kernel")) for cell in document.cells)
    return {id_: kernel for id_, kernel in kernels if isinstance(kernel, str)}


def run_called(
    ws: Workspace,
    spec: KernelSpec,
    arguments: Mapping[str, Any],
    cancel: Cancel,
    *,
    asker: Asker,
    parent: str | None = None,
    chain: tuple[Path, ...] = (),
    archives: bool | None = None,
) -> dict[str, Any]:
    """Run the task that a cell asks for, under the policy that the cell itself is under."""
    parameters, cwd = arguments.get("parameters"), arguments.get("cwd")
    path = arguments.get("path")
    if not isinstance(parameters, Mapping) or not isinstance(path, str) or "\0" in path:
        raise UsageError("run() takes a path and parameters", hint="see the runtime's docs")
    if not isinstance(cwd, str) or "\0" in cwd or not Path(cwd).is_dir():
        raise UsageError("the cell's folder is gone", hint="go to one that is there: os.chdir")
    here = Workspace(
        ws.root, cwd=cwd, env=ws.env, engine=ws.engine, asker=asker, settings=ws.config, say=ws.say
    )
    child = NotebookExecutor(
        path,
        parameters,
        workspace=here,
        env=_environment(arguments.get("env"), spec.env),
        python=_asked_for(ws, spec),
        parent=parent,
        chain=chain,
        cancel=cancel,
        archives=archives,
    )
    return report(drained(child), str(child.folder.notebook), child.archived)


def _as_given(values: Mapping[str, Any]) -> dict[str, params.Given]:
    return {
        name: value if isinstance(value, params.Given) else params.Given(value)
        for name, value in values.items()
    }


def _asked_for(ws: Workspace, spec: KernelSpec) -> str | None:
    """The interpreter somebody named for the task, which then counts for the tasks it runs too.
    What a task declares to need is its own, and so is what the configuration says."""
    own = spec.environment.get("lock") or spec.python == interpreter(ws, ws.config.python, ws.root)
    return None if own else spec.python


def _environment(given: Any, otherwise: Mapping[str, str]) -> Mapping[str, str]:
    """A child has its parent's environment as it is at the call."""
    fits = isinstance(given, dict) and all(
        isinstance(value, str) and "\0" not in f"{name}{value}" and "=" not in name[1:] and name
        for name, value in given.items()
    )
    return given if fits else otherwise


def _output(path: Path, source: Path) -> Path:
    """Where the executed notebook goes too. Never over the task itself, by whatever name."""
    if path.suffix != ".ipynb":
        raise UsageError(
            f"{path.name} is no name for a notebook", hint="give -o a file that ends in .ipynb"
        )
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", hint="make it, or choose another")
    if path.exists() and path.samefile(source):
        raise UsageError(
            f"{path.name} is the task itself; the source is never changed",
            hint="give -o another name",
        )
    if path.exists() and _is_twin(path, source):
        raise UsageError(
            f"{path.name} is a notebook that quire sync keeps in step with its .py",
            hint=f"give -o another name, such as {path.stem}-executed.ipynb",
        )
    return path


def _is_twin(path: Path, source: Path) -> bool:
    """The other half of a task. What an earlier run wrote there is none until it is synced."""
    from . import twin  # only where there is something to look at

    beside = path.resolve().with_suffix("") == source.resolve().with_suffix("")
    try:
        there = twin.loads(path.read_text("utf-8"), ".ipynb")
    except (OSError, ValueError, QuireError):
        return beside
    return there.stamp is not None or (beside and twin.run_id(there) is None)


def _as_kept(kept: Kept) -> str | None:
    """Where the run did without what it declares it goes on without."""
    had = kept.record.plan.get("environment") or {}
    without = had and had.get("lock") is None and kept.server is not None
    return str(kept.server.python) if without else None


def _kept_run(ws: Workspace, path: Path, name: str) -> Kept:
    """What is left of the run that is to be resumed."""
    run = ws.runs.find(name).run_id
    full = f"run the task in full: quire run {ws.named(path)}"
    ws.engine.tidy()
    kept = ws.engine.kept.get(run)
    if kept is None:
        raise UsageError(
            f"the states of {run} are gone: it ended well, it was too long ago, or its host ended",
            hint=full,
        )
    if kept.path != path:
        raise UsageError(
            f"{run} was a run of {ws.named(kept.path)}, not of {ws.named(path)}", hint=full
        )
    return kept


def _as_run(cells: Sequence[Cell], record: Record) -> tuple[Cell, ...]:
    """With what a person changed while it ran."""
    changed = {cell.id: cell.source for cell in record.cells if CHANGED in cell.metadata}
    return tuple(replace(c, source=changed[c.id]) if c.id in changed else c for c in cells)


def _resumption(kept: Kept, plan: Plan, document: Document, from_cell: str | None) -> Resume:
    had = kept.record.plan.get("environment") or {}
    if had.get("lock") != plan.environment.get("lock"):
        raise UsageError(
            f"{kept.run_id} ran with other packages than the task declares now",
            hint=f"run the task in full: quire run {plan.task}",
        )
    wanted = None
    if from_cell is not None:
        cells = plan.document.cells
        own = [at for at, cell in enumerate(cells) if INJECTED_TAG not in cell.tags]
        # A logbook's ids are those of its text before parameters are put in their places.
        known = {cells[at].id: at for at in own}
        wanted = known.get(from_cell)
        wanted = own[document.find(from_cell)] if wanted is None else wanted
    return plan_resume(kept, plan.document.cells, wanted)


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
