"""Questions for the person behind a run, and whoever can put them there.

A terminal, an agent's client and a test each answer in their own way, behind one small Protocol.
Where nobody can be asked the caller decides what that means: an error, or a declared policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ..errors import Declined

__all__ = ["Answers", "Asker", "Declined", "Kind", "Nobody", "Question"]

Kind = Literal["question", "parameter", "approval", "variable"]


@dataclass(frozen=True, slots=True)
class Question:
    """`name` is what the answer is for: a parameter, a variable, a cell.

    `secret`: not echoed. `lines`: the answer is a text of several lines.
    """

    text: str
    name: str = ""
    kind: Kind = "question"
    choices: tuple[str, ...] = ()
    default: str | None = None
    help: str = ""
    secret: bool = False
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """One answer for each question, in order, and who gave them."""

    values: tuple[str, ...]
    by: str


class Asker(Protocol):
    """Asks all at once. None where nobody can be asked; raises Declined where a person refuses.

    `called_off` says that the answer is not wanted any more, such as when the run was cancelled.
    """

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = ...
    ) -> Answers | None: ...


class Nobody:
    """Unattended."""

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        return None
