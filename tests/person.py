"""A person who is asked, with the answers he will give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quire.record.questions import Answers, Question


class Says:
    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        given, self.answers = self.answers[: len(questions)], self.answers[len(questions) :]
        return Answers(tuple(given), "ada") if given else None
