"""Whatever one does with a session, its kernel is as if only what still counts had ever run.

Two machines: one drives a session cell by cell, the other lets runs fail and resumes them. Both
keep a plain Python beside them that runs the same cells from the beginning.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from small_programs import FIRST, FOLDERS, PlainPython, Told, cells, comparable

from quire.authoring.edit_file import edit
from quire.engine.run import NotebookExecutor
from quire.errors import UsageError
from quire.record.events import CellFinished, CellSubmitted, Event, KernelReplaced, OutputAdded
from quire.sessions import session
from quire.sessions.restore import restore
from quire.workspace import Engine, Workspace

SEQUENCES = 460
RESUMED = 40
SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)

sources = st.lists(cells, min_size=2, max_size=5)
number = st.integers(0, 30)
_numbers, _ended = itertools.count(), itertools.count()


def told_by(events: list[Event]) -> list[tuple[CellSubmitted, Told]]:
    """Each cell that ran, and what it showed."""
    out: list[tuple[CellSubmitted, Told]] = []
    text = ""
    for event in events:
        if isinstance(event, CellSubmitted):
            submitted, text = event, ""
        elif isinstance(event, OutputAdded) and event.output["output_type"] == "stream":
            text += event.output["text"]
        elif isinstance(event, CellFinished):
            out.append((submitted, Told(event.status, text, event.error and event.error.name)))
    return out


def write(path: Path, sources: list[str]) -> None:
    path.write_text("".join(f"# %%\n{source}\n" for source in sources))


class Machine(RuleBasedStateMachine):
    engine: Engine
    home: Path

    def _workspace(self, text: list[str]) -> None:
        self.text = [FIRST, *text]
        self.root = self.home / f"w{next(_numbers)}"
        for folder in FOLDERS:
            (self.root / folder).mkdir(parents=True)
        (self.root / "quire.toml").write_text("")
        self.path = self.root / "t.py"
        write(self.path, self.text)
        self.workspace = Workspace(self.root, cwd=self.root, engine=self.engine)
        self.no = threading.Event()

    def replay(self, sources: list[str]) -> PlainPython:
        plain = PlainPython(self.root)
        for source in sources:
            plain.run(source)
        return plain

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    def change(self, at: int, source: str) -> None:
        edit(self.workspace, "t.py", at, new_source=source)
        self.text[at] = source


class SessionMachine(Machine):
    """`ran` is what counts: sources in order. `plain` has run just that."""

    @initialize(text=sources)
    def opened(self, text: list[str]) -> None:
        self._workspace(text)
        self.name = session.open_session(self.workspace, "t.py").name
        self.epoch = 1
        self.ran: list[tuple[int, str, int | None]] = []
        self.failed: set[int] = set()  # orders of those in `ran` that did
        self.how = ""  # the present kernel came to be
        self.before: list[str] = []  # what restore has to bring back besides
        self.dead = False
        self.plain = PlainPython(self.root)
        self.execute("0")

    def execute(self, what: str | None, code: str | None = None) -> None:
        events = list(session.execute(self.workspace, self.name, what, self.no, code=code))
        assert any(isinstance(event, KernelReplaced) for event in events[:1]) == self.dead
        if self.dead:
            self.begin_again("lost")
        for submitted, told in told_by(events):
            source = self.text[submitted.index] if submitted.index is not None else code
            assert submitted.source == source
            assert told == self.plain.run(source), source
            self.note(submitted.order, source, submitted.index, told)

    def note(self, order: int, source: str, index: int | None, told: Told) -> None:
        self.ran.append((order, source, index))
        self.failed.discard(order)
        if told.status == "failed":
            self.failed.add(order)

    def well(self) -> list[str]:
        ran = self.ran[:-1] if self.dead else self.ran
        return [source for order, source, _ in ran if order not in self.failed]

    def worth(self) -> list[str]:
        """What restore runs: in a kernel that followed a lost one also what that one had run."""
        ended = [source for _, source, _ in (self.ran[:-1] if self.dead else self.ran)]
        if self.how == "lost":
            return self.before + (self.well() if self.before else ended)
        if self.how == "restarted":
            return ended if self.well() else self.before
        return ended

    def begin_again(self, how: str) -> None:
        given_up = self.how == how == "lost" and self.well()
        self.before = self.well() if given_up else self.worth()
        self.how, self.dead, self.ran, self.failed = how, False, [], set()
        self.plain = PlainPython(self.root)

    def compare(self) -> None:
        found = session.variables(self.workspace, self.name)
        assert comparable(found) == self.plain.variables()

    @invariant()
    def says_its_epoch(self) -> None:
        if hasattr(self, "name"):
            (info,) = session.sessions(self.workspace)
            assert info.epoch == self.epoch
            assert info.ran == len(self.ran)

    @precondition(lambda self: not self.dead)
    @rule(at=number)
    def runs_a_cell(self, at: int) -> None:
        self.execute(str(at % len(self.text)))

    @precondition(lambda self: not self.dead)
    @rule(at=number)
    def runs_the_rest(self, at: int) -> None:
        self.execute(f"{at % len(self.text)}-")

    @precondition(lambda self: not self.dead)
    @rule()
    def runs_what_is_stale(self) -> None:
        self.execute("stale")

    @precondition(lambda self: not self.dead)
    @rule(code=cells)
    def runs_code(self, code: str) -> None:
        self.execute(None, code)

    @rule(at=number, source=cells)
    def edits(self, at: int, source: str) -> None:
        self.change(1 + at % (len(self.text) - 1), source)

    @precondition(lambda self: len(self.ran) > 1)
    @rule(at=number, by_place=st.booleans())
    def rewinds(self, at: int, by_place: bool) -> None:
        order, _, index = self.ran[1 + at % (len(self.ran) - 1)]
        target = f"#{order}"
        if by_place and index is not None:
            # The last time this cell ran, as it is now; or whatever last ran in its place.
            ids = [cell.id for _, cell in self.now()]
            mine = [e for e in self.executions() if e.cell.id == ids[index]]
            mine = mine or [e for e in self.executions() if e.index == index]
            order, target = mine[-1].order, str(index)
        event, _ = session.rewind(self.workspace, self.name, target)
        assert event.order == order
        self.ran = [one for one in self.ran if one[0] < order]
        self.dead = False
        self.plain = self.replay([source for _, source, _ in self.ran])
        if self.ran:
            self.compare()
        else:
            self.execute("0")

    def now(self) -> list[tuple[int, Any]]:
        return [(s.index, s.cell) for s in session.cells(self.workspace, self.name)]

    def executions(self) -> list[Any]:
        return self.engine.sessions[self.name].session.executions

    @precondition(lambda self: not self.dead)
    @rule()
    def restarts(self) -> None:
        assert session.restart(self.workspace, self.name).epoch == self.epoch + 1
        self.epoch += 1
        self.begin_again("restarted")
        self.execute("0")

    @precondition(lambda self: not self.dead)
    @rule()
    def dies(self) -> None:
        events = list(session.execute(self.workspace, self.name, None, self.no, code="os._exit(3)"))
        assert [told.status for _, told in told_by(events)] == ["died"]
        self.dead = True
        self.epoch += 1
        self.ran.append((events[0].order, "os._exit(3)", None))

    @precondition(lambda self: self.dead or len(self.ran) < 5)
    @rule()
    def restores(self) -> None:
        """The same again, in a fresh kernel; what ended the old one is left out."""
        counts = self.worth()
        events = list(restore(self.workspace, self.name, self.no))
        assert isinstance(events[0], KernelReplaced)
        self.epoch = self.epoch + 1
        assert events[0].epoch == self.epoch
        self.begin_again("restored")
        again = told_by(events)
        assert [submitted.source for submitted, _ in again] == counts
        for (submitted, told), source in zip(again, counts, strict=True):
            assert told == self.plain.run(source)
            self.note(submitted.order, source, submitted.index, told)
        self.compare()

    @precondition(lambda self: self.dead)
    @rule()
    def goes_on_without(self) -> None:
        self.execute("0")

    def teardown(self) -> None:
        if hasattr(self, "name"):
            if not self.dead:
                # Also what no listing shows: folder, environment, modules, randomness.
                self.execute(None, "told()")
                self.compare()
                if next(_ended) % 10 == 0:
                    self.compare_with_a_fresh_kernel()
            session.close(self.workspace, self.name)
        super().teardown()

    def compare_with_a_fresh_kernel(self) -> None:
        """The plain Python is a stand-in; now and then, the real thing."""
        other = session.open_session(self.workspace, "t.py").name
        for _, source, _ in self.ran:
            list(session.execute(self.workspace, other, None, self.no, code=source))
        found, fresh = (session.variables(self.workspace, name) for name in (self.name, other))
        assert comparable(found) == comparable(fresh)
        session.close(self.workspace, other)


class ResumeMachine(Machine):
    """Runs that fail, are edited and resumed, against plain Python from the beginning."""

    @initialize(text=sources)
    def runs(self, text: list[str]) -> None:
        self._workspace([*text, "told()\nprint(xs)\n1 / 0"])
        self.run_id = self.follow(NotebookExecutor("t.py", workspace=self.workspace), None)

    def follow(self, execution: NotebookExecutor, resumed: str | None) -> str:
        for _ in execution:
            pass
        record = execution.record
        plain = PlainPython(self.root)
        stopped = False
        for cell, source in zip(record.cells, self.text, strict=True):
            if stopped:
                assert cell.status == "not run"
                continue
            told = plain.run(source)
            shown = "".join(o["text"] for o in cell.outputs if o["output_type"] == "stream")
            assert shown == told.text
            assert cell.error is None or cell.error.name == told.error
            assert cell.status in (("failed",) if told.error else ("ok", "carried"))
            stopped = told.status == "failed"
        assert record.outcome == ("failed" if stopped else "ok")
        assert execution.resumable == stopped
        assert record.plan["mode"] == ("resumed" if resumed else "clean")
        return record.run_id

    @precondition(lambda self: self.run_id in self.engine.kept)
    @rule(at=number, source=cells)
    def resumes_after_an_edit(self, at: int, source: str) -> None:
        self.change(1 + at % (len(self.text) - 1), source)
        self.resume()

    @precondition(lambda self: self.run_id in self.engine.kept)
    @rule(at=number)
    def resumes_after_mending(self, at: int) -> None:
        record = self.engine.kept[self.run_id].record
        failed = next(i for i, cell in enumerate(record.cells) if cell.status == "failed")
        self.change(failed, f"print('mended', {at})")
        self.resume()

    @precondition(lambda self: self.run_id in self.engine.kept)
    @rule(at=number)
    def resumes_from_an_earlier_cell(self, at: int) -> None:
        self.resume(str(at % len(self.text)))

    @rule()
    def runs_in_full(self) -> None:
        self.run_id = self.follow(NotebookExecutor("t.py", workspace=self.workspace), None)

    def resume(self, start: str | None = None) -> None:
        before = self.run_id
        try:
            execution = NotebookExecutor(
                "t.py", workspace=self.workspace, resume=before, from_cell=start
            )
        except UsageError as refused:
            if "cannot be where the run goes on" not in refused.message:
                raise
            return  # it failed before that cell
        self.run_id = self.follow(execution, before)


def drive(machine: type[Machine], engine: Engine, examples: int, steps: int) -> None:
    home = Path(tempfile.mkdtemp())
    made = type(machine.__name__, (machine,), {"engine": engine, "home": home})
    try:
        run_state_machine_as_test(
            made, settings=settings(SETTINGS, max_examples=examples, stateful_step_count=steps)
        )
    finally:
        shutil.rmtree(home)


def test_a_session_is_what_still_counts(lasting: Engine) -> None:
    drive(SessionMachine, lasting, SEQUENCES, 6)


def test_a_resumed_run_is_a_run_from_the_beginning(lasting: Engine) -> None:
    drive(ResumeMachine, lasting, RESUMED, 4)
