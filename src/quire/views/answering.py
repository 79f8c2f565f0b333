"""The host's end of an agent's call: what came over the line becomes the call of a tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..kernel.hostcall import Call
from ..runs.asking import Answers, Declined, Question

if TYPE_CHECKING:
    from ..workspace import Engine


class FarAsker:
    """Asks whoever is at the other end of the line."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        told = self._call.ask([_as_data(question) for question in questions], called_off)
        if told is None:
            return None
        by = str(told.get("by") or "the client")
        if told.get("declined"):
            raise Declined(
                f"{by} was asked for {', '.join(q.name or q.text for q in questions)} and declined",
                hint="give what is asked for as an argument, or ask the person what they want",
            )
        values = told.get("values")
        if not isinstance(values, list) or len(values) != len(questions):
            return None
        return Answers(tuple(map(str, values)), by)


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
    from ..verbs.agent.call import call as use
    from ..verbs.agent.caller import Caller
    from ..workspace import Workspace

    ws = Workspace(
        call.cwd,
        cwd=call.cwd,
        env=call.env,
        engine=engine,
        world=call.world,
        asker=FarAsker(call),
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
