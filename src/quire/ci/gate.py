"""The gate: run the tasks a change affects, side by side, and say what came of it.

`Gate` yields an event whenever a task begins and ends; `gate` drains it. Every source is read
before the first task runs, so that no task changes what the gate runs.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue

from ..archive.put import send
from ..engine.run import NotebookExecutor, drained
from ..engine.run_plan import Cancel, utc_now
from ..errors import GitError, QuireError, UsageError
from ..files import disk, write_atomic
from ..proof.executed_notebooks_in_git import disagreeing_pairs, uncovered_notebooks
from ..record.report import short_traceback
from ..task.read_task import read
from ..workspace import STATE, Workspace
from . import affected, tasks
from .base_rules import Rules
from .gate_folder import GateFolder, check_place, check_report, is_free
from .gate_report import (
    MARK,
    GateEvent,
    GateResult,
    LeftOut,
    TaskFinished,
    TaskRun,
    TaskStarted,
    markdown,
    task_run,
)
from .junit import junit

OUTPUT = f"{STATE}/ci"
JUNIT, SUMMARY = "junit.xml", "summary.md"
STEP_SUMMARY_LIMIT = 1_000_000  # bytes; forges refuse more than 1 MiB
SERVER_GONE = "kernel server"  # what is said of a kernel whose fork server was ended


@dataclass(frozen=True, slots=True)
class Planned:
    """A task whose source has been read and whose parameters fit."""

    path: Path
    because: str
    target: Path


class Gate:
    """Iterate over it once; then `result` is what came of it.

    What is wrong with the request raises here, before anything is written. What is wrong with one
    task is part of the result.
    """

    def __init__(
        self,
        ws: Workspace,
        *,
        everything: bool = False,
        base: str | None = None,
        jobs: int | None = None,
        output: str | Path | None = None,
        junit: str | Path | None = None,
        summary: str | Path | None = None,
        timeout: float | None = None,
        cell_timeout: float | None = None,
        cancel: Cancel | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        if everything and base is not None:
            raise UsageError(
                "--all and --base were both given", hint="--all runs every task: leave out one"
            )
        self.workspace = ws
        self.root = ws.root.resolve()
        self.folder = GateFolder(self.root / OUTPUT if output is None else ws.cwd / output)
        _check_place(ws, self.folder.path)
        self.junit = _report(ws, junit, ".xml") or self.folder.path / JUNIT
        self.summary = _report(ws, summary, ".md") or self.folder.path / SUMMARY
        self.jobs = jobs or len(os.sched_getaffinity(0))
        self._limits = (timeout, cell_timeout)
        self._cancel = cancel
        self._now = now
        why = "--all was given" if everything else ""
        self.change = affected.change(ws, base, everything=why)
        self._rules = Rules(ws, self.change.onto, self.change.base)
        self._found = self._rules.find(tasks.find(ws))
        self.affected = affected.affected(ws, self._found.tasks, self.change)
        self._done: dict[Path, TaskRun] = {}
        # Of tasks that are not over: a record may be large, and a gate may have many of them.
        self._executions: dict[Path, NotebookExecutor] = {}
        self._notebooks: tuple[TaskRun, ...] = ()
        self._names = {path: self._target(path) for path in self.affected}
        for name in self._names.values():
            if (self.folder.path / name).with_suffix(".py").exists():
                raise UsageError(
                    f"in {self.folder.path} {name} would be taken for the twin of a task",
                    hint="give --output a folder of its own",
                )
        self.folder.check(self._written())
        left = [LeftOut(ws.named(link), why) for link, why in self._found.links.items()]
        left += [LeftOut(ws.named(path), "the change removes it") for path in self._rules.removed()]
        self.result = GateResult(
            unaffected=tuple(self._named(p) for p in self._found.tasks if p not in self.affected),
            left_out=tuple(left),
            base=self.change.base,
            everything=self.change.everything,
            started=now().isoformat(),
        )

    def __iter__(self) -> Iterator[GateEvent]:
        began = time.monotonic()
        if self.folder.path == self.root / OUTPUT:
            _ignored(self.root / STATE)
        with self.folder.claimed(self._written()):
            # Before anything runs: a task may write notebooks of its own.
            self._notebooks = (
                *disagreeing_pairs(self.workspace),
                *uncovered_notebooks(self.workspace, self.change.onto),
            )
            planned = [one for path in self.affected if (one := self._planned(path)) is not None]
            refused = list(self._done.values())
            try:
                for n, run in enumerate(refused, 1):
                    yield TaskFinished(run, len(planned) + len(refused) - n)
                yield from self._run(planned)
                self._push()
            finally:
                self._conclude(time.monotonic() - began)

    def _written(self) -> list[str]:
        """The files that go into the folder."""
        names = list(self._names.values())
        for path, name in ((self.junit, JUNIT), (self.summary, SUMMARY)):
            if path == self.folder.path / name:
                names.append(name)
        return names

    def _target(self, task: Path) -> str:
        """Where its executed notebook goes: under the name it has in the notebooks folder."""
        top = tasks.folder(self.workspace)
        base = top if task.is_relative_to(top) else self.root
        return task.relative_to(base).with_suffix(".ipynb").as_posix()

    def _named(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def _planned(self, path: Path) -> Planned | None:
        """The task, ready to run; None if it is not to be, which the result then says."""
        because = self.affected[path]
        # Each has a workspace of its own: they share the engine and nothing else.
        ws = self.workspace
        own = Workspace(
            self.root,
            cwd=self.root,
            env=ws.env,
            engine=ws.engine,
            world=ws.world,
            caller=ws.caller,
        )
        target = self.folder.path / self._names[path]
        try:
            said = tasks.said_by(read(own, path))
            wanted = self._rules.settings(path, said)
            if wanted.wanted and not said.wanted:
                because += "; `ci: false` does not count before it is on the base"
            if not wanted.wanted:
                left = LeftOut(self._named(path), "its header says so (`ci: false`)")
                self.result = replace(self.result, left_out=(*self.result.left_out, left))
                return None
            timeout, cell_timeout = self._limits
            self._executions[path] = NotebookExecutor(
                path,
                wanted.parameters,
                workspace=own,
                timeout=_lower(wanted.timeout, timeout),
                cell_timeout=_lower(wanted.cell_timeout, cell_timeout),
                output=target,
                cancel=self._cancel,
                now=self._now,
                pushes=False,
            )
        except QuireError as error:
            self._done[path] = self._refused(path, because, error)
            return None
        return Planned(path, because, target)

    def _lost(self, path: Path, why: str) -> TaskRun:
        hint = "make it a file again, or remove it"
        return TaskRun(self._named(path), "error", why, error=why, error_type="Link", hint=hint)

    def _refused(self, path: Path, because: str, error: QuireError) -> TaskRun:
        message, _, more = error.message.partition("\n")
        hint = error.hint
        if error.code == "parameter" and "required" in error.message:
            hint = "give it values for CI in its header: quire: {ci: {parameters: {NAME: VALUE}}}"
        return TaskRun(
            self._named(path),
            "error",
            because,
            error=message,
            error_type=type(error).__name__,
            traceback=error.message if more else "",
            hint=hint,
        )

    def _run(self, planned: Sequence[Planned]) -> Iterator[GateEvent]:
        yield from self._side_by_side(planned, self.jobs)
        # Who ends the server that all kernels were forked from ends those of others too.
        harmed = [one.path for one in planned if _is_harmed(self._done.get(one.path))]
        for path in harmed if min(self.jobs, len(planned)) > 1 else ():
            again = self._planned(path)
            yield from self._side_by_side([again] if again else [], 1)

    def _side_by_side(self, planned: Sequence[Planned], jobs: int) -> Iterator[GateEvent]:
        """Some at a time, in threads: the work itself is in the kernels' processes."""
        news: SimpleQueue[TaskStarted | TaskRun] = SimpleQueue()
        if not planned:
            return
        pool = ThreadPoolExecutor(min(jobs, len(planned)), "quire-ci")
        left = len(planned)
        try:
            for one in planned:
                pool.submit(self._one, one, news)
            while left:
                event = news.get()
                if isinstance(event, TaskStarted):
                    yield event
                else:
                    left -= 1
                    self._done[self.root / event.task] = event
                    yield TaskFinished(event, left)
        finally:
            if left:
                for execution in list(self._executions.values()):
                    execution.cancel()
            pool.shutdown(wait=True, cancel_futures=True)

    def _one(self, planned: Planned, news: SimpleQueue[TaskStarted | TaskRun]) -> None:
        name, because = self._named(planned.path), planned.because
        try:
            if self._cancel is not None and self._cancel.is_set():
                run = TaskRun(name, "cancelled", because, error="it was cancelled before it began")
            else:
                news.put(TaskStarted(name))
                run = self._finished(planned)
        except QuireError as error:
            run = self._refused(planned.path, because, error)
        except Exception as error:  # noqa: BLE001 - one task's trouble is not the others'
            run = TaskRun(name, "error", because, error=str(error), error_type=type(error).__name__)
        finally:
            self._executions.pop(planned.path, None)
        news.put(run)

    def _finished(self, planned: Planned) -> TaskRun:
        execution = self._executions[planned.path]
        record = drained(execution)
        traceback = short_traceback(record.error.traceback) if record.error else ""
        target = _relative(planned.target, self.root)
        run = task_run(record, self._named(planned.path), planned.because, target, traceback)
        notices = tuple(map(str, execution.notices))
        return replace(
            run,
            archived=execution.archived,
            environment=record.plan.get("environment"),
            logbook=str(record.plan.get("logbook") or ""),
            warnings=run.warnings + notices,
        )

    def _push(self) -> None:
        """The archive, once for all runs. A gate that was called off leaves that to a later one."""
        called_off = self._cancel is not None and self._cancel.is_set()
        if called_off or not any(run.archived for run in self._done.values()):
            return
        try:
            send(self.workspace)
        except QuireError as error:
            self._warn(f"the archive could not be pushed: {error.message}")

    def _warn(self, told: str) -> None:
        self.result = replace(self.result, warnings=(*self.result.warnings, told))

    def _conclude(self, duration: float) -> None:
        runs = [self._done[path] for path in self.affected if path in self._done]
        runs += [self._lost(path, why) for path, why in self._found.lost.items()]
        self.result = replace(
            self.result,
            tasks=(*runs, *self._notebooks),
            duration=round(duration, 6),
            cancelled=self._cancel is not None and self._cancel.is_set(),
        )
        free = [path for path in (self.junit, self.summary) if is_free(path)]
        for path in {self.junit, self.summary}.difference(free):
            self._warn(f"{path} was written by somebody else meanwhile, and is left as it is")
        text = markdown(self.result).encode("utf-8", "replace")
        contents = {self.junit: junit(self.result), self.summary: f"{MARK}\n".encode() + text}
        for path in free:
            with disk(str(path)):
                path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, contents[path], durable=False)
        place = self.workspace.env.get("GITHUB_STEP_SUMMARY")
        if place:
            self._append(Path(place), text)

    def _append(self, place: Path, text: bytes) -> None:
        """What a forge shows on the page of the workflow. Failing here fails nothing."""
        if len(text) > STEP_SUMMARY_LIMIT:
            text = f"## Tasks\n\nThe summary is too long; see {SUMMARY} of the gate.\n".encode()
        try:
            with open(place, "ab") as file:
                file.write(text)
        except OSError as error:
            self._warn(f"$GITHUB_STEP_SUMMARY cannot be written: {error.strerror}")


def gate(
    ws: Workspace,
    *,
    everything: bool = False,
    base: str | None = None,
    jobs: int | None = None,
    output: str | Path | None = None,
    timeout: float | None = None,
    cancel: Cancel | None = None,
) -> GateResult:
    """Run the gate and return what came of it; a task that fails is part of that."""
    going = Gate(
        ws,
        everything=everything,
        base=base,
        jobs=jobs,
        output=output,
        timeout=timeout,
        cancel=cancel,
    )
    for _ in going:
        pass
    return going.result


def _is_harmed(run: TaskRun | None) -> bool:
    return run is not None and run.outcome in ("died", "error") and SERVER_GONE in run.error


def _lower(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _report(ws: Workspace, name: str | Path | None, suffix: str) -> Path | None:
    if name is None:
        return None
    path = ws.cwd / name
    if path.suffix != suffix:
        raise UsageError(
            f"{name} is no name for this report", hint=f"give it a name that ends in {suffix}"
        )
    _check_place(ws, path.parent)
    top = _top(ws)
    real = path.parent.resolve() / path.name
    if top is not None and real.is_relative_to(top):
        assert ws.repository is not None
        if ws.repository.raw("ls-files", "-z", "--", f":(literal){real.relative_to(top)}"):
            raise UsageError(
                f"{name} is in git, and a gate replaces no file of yours",
                hint=f"name one that git does not know, such as .quire/ci/report{suffix}",
            )
    check_report(path)
    return path


def _top(ws: Workspace) -> Path | None:
    """Of the working tree, where git can be asked."""
    try:
        return ws.repository.top.resolve() if ws.repository and ws.repository.top else None
    except GitError:
        return None


def _check_place(ws: Workspace, folder: Path) -> None:
    root, repository = ws.root.resolve(), None
    with contextlib.suppress(GitError):
        repository = ws.repository
    git = (repository.git_dir, repository.common) if repository is not None else ()
    check_place(folder, root, root / OUTPUT, git)


def _relative(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _ignored(state: Path) -> None:
    """Quire's own folder, which git does not see."""
    with disk(str(state)), contextlib.suppress(FileExistsError):
        state.mkdir(parents=True, exist_ok=True)
        with open(state / ".gitignore", "x") as file:
            file.write("*\n")
