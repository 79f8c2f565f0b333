"""Parameters that a task requires and nobody gave: ask whoever is there."""

from __future__ import annotations

from collections.abc import Mapping

from ..document import params
from ..document.model import Document
from ..document.params import Given, Parameter
from ..runs.asking import Question
from ..workspace import Workspace


def completed(ws: Workspace, document: Document, given: Mapping[str, Given]) -> Mapping[str, Given]:
    """With what the person behind the call answers. As it was where nobody can be asked: what is
    still missing is then said with its type, default and help."""
    known = params.declared(document)
    missing = [p for p in known if p.required and p.name not in given]
    # A name that is not declared is refused anyway: nobody should answer for nothing.
    if not missing or set(given) - {p.name for p in known}:
        return given
    answers = ws.asker.ask([_question(parameter) for parameter in missing])
    if answers is None:
        return given
    answered = zip(missing, answers.values, strict=True)
    return {**given, **{p.name: Given(value, "text") for p, value in answered}}


def _question(parameter: Parameter) -> Question:
    kind = f" ({parameter.type})" if parameter.type else ""
    return Question(
        f"{parameter.name}{kind}",
        parameter.name,
        "parameter",
        tuple(str(choice) for choice in parameter.choices),
        help=parameter.help,
    )
