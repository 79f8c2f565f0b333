"""The host's end of an agent's call: what came over the line becomes the call of a tool."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..host.host_calls import Call
from ..kernel import descent
from ..record.questions import Answers, Declined, Question

if TYPE_CHECKING:
    from ..workspace import Engine


TRIES = 3


class FarAsker:
    """Asks whoever is at the other end of the line."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        """Not every client keeps to the choices of a form: then it is shown again."""
        left = TRIES
        while (answers := self._asked(questions, called_off)) is not None:
            wrong = _no_choice(questions, answers)
            if wrong is None:
                return answers
            left -= 1
            if not left:
                raise Declined(
                    f"{answers.by} answered {wrong.text!r} with none of the choices",
                    hint=f"the choices: {', '.join(wrong.choices)}",
                )
        return None

    def _asked(
        self, questions: Sequence[Question], called_off: Callable[[], bool]
    ) -> Answers | None:
        if descent.objection(self._call.pid or os.getpid()):
            return None  # a cell does not answer itself
        told = self._call.ask([_as_data(question) for question in questions], called_off)
        if told is None:
            return None
        by = str(told.get("by") or "the client")
        missing = told.get("missing")
        if missing and isinstance(missing, list):
            raise Declined(
                f"{by} sent the form without {', '.join(map(str, missing))}",
                hint="give what is missing as an argument, or ask the person for it",
            )
        if told.get("declined"):
            raise Declined(
                f"{by} was asked for {', '.join(q.name or q.text for q in questions)} and declined",
                hint="give what is asked for as an argument, or ask the person what they want",
            )
        values = told.get("values")
        if not isinstance(values, list) or len(values) != len(questions):
            return None
        return Answers(tuple(map(str, values)), by)


def _no_choice(questions: Sequence[Question], answers: Answers) -> Question | None:
    """A parameter's value is judged by who knows its type: `2` may be one of the choices 2.0."""
    for question, value in zip(questions, answers.values, strict=True):
        judged_here = question.choices and question.kind != "parameter"
        if judged_here and value not in question.choices:
            return question
    return None


def _as_data(question: Question) -> dict[str, Any]:
    return {
        "text": question.text,
        "name": question.name,
        "kind": question.kind,
        "choices": list(question.choices),
        "default": question.default,
        "help": question.help,
        "secret": question.secret,
    }


def answer(engine: Engine, call: Call) -> dict[str, Any]:
    from ..workspace import Workspace
    from .call_tool import call as use
    from .caller import Caller

    engine.known.meet(call.env)
    ws = Workspace(
        call.cwd,
        cwd=call.cwd,
        env=call.env,
        engine=engine,
        world=call.world,
        asker=FarAsker(call),
        caller=call.pid,
    )
    caller = Caller(
        str(call.arguments.get("caller", "")),
        progress=lambda done, total, what: call.say({"done": done, "of": total, "what": what}),
        announce=lambda run: call.say({"run": run}),
        promotes=lambda again: call.say({"promotes": dict(again)}),
        left=lambda: call.left.is_set() or call.cancelled.is_set(),
        cancelled=call.cancelled.is_set,
    )
    told = use(ws, call.name, call.arguments.get("arguments") or {}, caller)
    return {
        "text": told.text,
        "images": [{"mime": one.mime, "data": one.data} for one in told.pictures],
        "failed": told.failed,
    }
