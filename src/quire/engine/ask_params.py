"""What a run needs to know before it starts: parameters and variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..errors import ParameterError, UsageError
from ..masking.secrets import is_credential
from ..record.events import Asked
from ..record.questions import Answers, Question
from ..task import frontmatter, params
from ..task.document import Document
from ..task.frontmatter import Variable
from ..task.params import Given, Lack, Resolution
from ..workspace import Workspace

TRIES = 3  # for an answer that does not fit
HIDDEN = "(not kept)"


@dataclass(slots=True)
class Settled:
    """Everything a run needs, and how it came to be known."""

    values: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)


def settle(
    ws: Workspace,
    document: Document,
    given: Mapping[str, Given] | None,
    env: Mapping[str, str],
    now: Callable[[], datetime],
    called_off: Callable[[], bool] = bool,
) -> Settled:
    """Ask for all that lacks at once; where nobody answers, one error names it all.

    `given` is None where the parameters are those of an earlier run.
    """
    out = Settled()

    def examined() -> Resolution:
        return Resolution({}) if given is None else params.examine(document, given)

    found = examined()
    unset = list(_unset(frontmatter.of(document).variables, env, out.variables))
    given = None if given is None else dict(given)
    for _ in range(TRIES):
        if found.problems or not (found.lacks or unset):
            break
        questions = [_of_parameter(lack, given or {}) for lack in found.lacks]
        questions += [_of(variable) for variable in unset]
        answers = ws.asker.ask(questions, called_off)
        if answers is None:
            break
        _take(out, {} if given is None else given, found.lacks, unset, questions, answers, now)
        found = examined()
        unset = [variable for variable in unset if not out.variables.get(variable.name)]
    if found.lacks or found.problems or unset:
        raise _lacking(document, found, unset)
    out.values = dict(found.values)
    return out


def _unset(
    variables: tuple[Variable, ...], env: Mapping[str, str], defaults: dict[str, str]
) -> Iterator[Variable]:
    for variable in variables:
        if env.get(variable.name):
            continue
        if variable.default is not None:
            defaults[variable.name] = variable.default
        else:
            yield variable


def _of_parameter(lack: Lack, given: Mapping[str, Given]) -> Question:
    parameter = lack.parameter
    kind = f" ({parameter.type})" if parameter.type and not parameter.choices else ""
    missing = parameter.required and parameter.name not in given
    return Question(
        f"{parameter.name}{kind}?" if missing else lack.problem,
        name=parameter.name,
        kind="parameter",
        choices=tuple(map(str, parameter.choices)),
        default=str(parameter.default) if parameter.has_default else None,
        help=parameter.help,
        secret=is_credential(parameter.name),
    )


def _of(variable: Variable) -> Question:
    return Question(
        f"The environment variable {variable.name}?",
        name=variable.name,
        kind="variable",
        help=variable.help,
        secret=is_credential(variable.name),
    )


def _take(
    out: Settled,
    given: dict[str, Given],  # answers are added to it
    lacks: tuple[Lack, ...],
    unset: list[Variable],
    questions: list[Question],
    answers: Answers,
    now: Callable[[], datetime],
) -> None:
    at = now().isoformat()
    said = dict(zip((q.name for q in questions), answers.values, strict=True))
    for lack in lacks:
        given[lack.parameter.name] = Given(said[lack.parameter.name], "text")
    for variable in unset:
        out.variables[variable.name] = said[variable.name]
    for question in questions:
        # A variable is there so that it is not written down.
        hidden = question.secret or question.kind == "variable"
        answer = HIDDEN if hidden else said[question.name]
        told = Asked("", question.text, answer, answers.by, question.kind, question.choices, at)
        out.asked.append(told)


def _lacking(document: Document, found: Resolution, unset: list[Variable]) -> UsageError:
    more = [
        f"the environment variable {v.name} is not set" + (f": {v.help}" if v.help else "")
        for v in unset
    ]
    if found.lacks or found.problems:
        error = params.wrong(document, found, more)
        if more:
            hint = f"{error.hint}; set variables in the environment or in .env"
            return ParameterError(error.message, hint=hint)
        return error
    what = more[0] if len(more) == 1 else "variables are not set:\n  - " + "\n  - ".join(more)
    return UsageError(what, hint="set them in the environment, or in .env: NAME=VALUE")
