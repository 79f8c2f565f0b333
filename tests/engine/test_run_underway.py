from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from quire.engine.run_underway import Attended, Progress, Underway
from quire.record.events import CellFinished, CellStarted, RunStarted
from quire.record.questions import Answers, Nobody, Question

CELLS = tuple({"id": i, "kind": "code", "source": "", "title": t} for i, t in ("ax", "b "))


class Thinking:
    """Answers once it is let."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        self.asked.set()
        assert self.go.wait(30)
        return Answers(tuple("yes" for _ in questions), "me")


def test_who_waits_hears_how_far_it_is() -> None:
    run = Underway("r", lambda: None)
    run.note(RunStarted("r", "u", "", "t", "t", CELLS, {}))
    assert run.progress == Progress(0, 2)
    run.note(CellStarted("a", ""))
    assert str(run.progress) == "cell 1 of 2 (x)"
    run.note(CellFinished("a", "ok"))
    assert (run.progress.done, str(run.progress)) == (1, "cell 2 of 2")
    assert not run.wait(0, run.progress)
    run.end()
    assert run.wait(30, run.progress)


def test_the_latest_who_attends_is_asked_and_others_where_they_left() -> None:
    attended, first = Attended(), Thinking()
    first.go.set()
    assert attended.ask([Question("?")]) is None
    with attended.by(first):
        with attended.by(Nobody()):
            assert attended.ask([Question("?")]) == Answers(("yes",), "me")
        assert attended.ask([Question("?"), Question("!")]) == Answers(("yes", "yes"), "me")
    assert attended.ask([Question("?")]) is None


def test_who_attends_twice_is_asked_once() -> None:
    class Counting(Nobody):
        times = 0

        def ask(
            self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
        ) -> Answers | None:
            self.times += 1
            return None

    attended, person = Attended(), Counting()
    with attended.by(person), attended.by(person):
        attended.ask([Question("?")])
    assert person.times == 1


def test_that_somebody_thinks_is_known() -> None:
    attended, person = Attended(), Thinking()
    with attended.by(person):
        thread = threading.Thread(target=attended.ask, args=([Question("?")],))
        thread.start()
        assert person.asked.wait(30)
        assert attended.asking
        person.go.set()
        thread.join(30)
    assert not attended.asking
