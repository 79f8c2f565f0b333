"""Steps that wait for a person: ask before one runs, and do what they say."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from ..masking.masker import Masker
from ..record.events import Asked, CellChanged, Event
from ..record.questions import Asker, Declined, Question
from ..task.document import Cell
from ..task.logbook import APPROVE, without_magic
from ..task.params import INJECTED_TAG
from .run_cell import utc_now

Do = Literal["run", "skip", "pause", "fail"]
CHOICES = ("run", "edit", "skip", "stop")
_MEANT = {
    "": "run",
    "y": "run",
    "yes": "run",
    "ok": "run",
    "approve": "run",
    "r": "run",
    "e": "edit",
    "s": "skip",
    "n": "stop",
    "no": "stop",
    "pause": "stop",
    "q": "stop",
}
TRIES = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    do: Do
    cell: Cell  # as it shall run
    reason: str = ""


def is_step(cell: Cell) -> bool:
    """Whether a person counts it as one: what only sets parameters is none."""
    return cell.kind == "code" and INJECTED_TAG not in cell.tags


@dataclass(slots=True)
class Approval:
    """`every`: each step is asked about, not only those that are marked."""

    asker: Asker
    policy: str
    masker: Masker
    every: bool = False
    # What was decided before, by the id of the cell: steps of a run that is taken up again.
    given: dict[str, Do] = field(default_factory=dict)
    by: str = ""  # who decided that
    waits: str = ""  # the step that a run was stopped at: it is asked about whatever it is
    fill: Callable[[Cell], Cell] = lambda cell: cell  # puts values into what a person types
    now: Callable[[], datetime] = utc_now

    def wants(self, cell: Cell) -> bool:
        marked = APPROVE in cell.tags or cell.id in self.given or cell.id == self.waits
        return is_step(cell) and (self.every or marked)

    def decide(
        self, cell: Cell, place: tuple[int, int], called_off: Callable[[], bool]
    ) -> Generator[Event, None, Verdict]:
        named = self.masker.mask(f"step {place[0]} of {place[1]}" + _title(cell))
        if cell.id in self.given:
            do = self.given[cell.id]
            yield self._told(cell, named, do, self.by or "an earlier run")
            return Verdict(do, cell, f"{named} was not approved")
        for _ in range(TRIES):
            try:
                answers = self.asker.ask([self._question(cell, named)], called_off)
            except Declined:
                yield self._told(cell, named, None, "a person who declined")
                return Verdict("pause", cell, f"{named} waits for approval")
            if answers is None:
                return (yield from self._unattended(cell, named, called_off))
            said = answers.values[0].strip().lower()
            said = _MEANT.get(said, said)
            if said not in CHOICES:
                continue
            yield self._told(cell, named, said, answers.by)
            if said == "edit":
                changed = yield from self._edited(cell, named, answers.by, called_off)
                if changed is None:
                    continue
                return Verdict("run", changed)
            if said == "stop":
                return Verdict("pause", cell, f"{named} waits for approval")
            return Verdict("run" if said == "run" else "skip", cell)
        return Verdict("pause", cell, f"{named} waits for approval")

    def _question(self, cell: Cell, named: str) -> Question:
        source = self.masker.mask(without_magic(cell.source))
        return Question(
            f"Run {named}?\n\n{source}\n",
            name=cell.id,
            kind="approval",
            choices=CHOICES,
            default="run",
            help="run it, edit it for this run only, skip it, or stop here to go on later",
        )

    def _unattended(
        self, cell: Cell, named: str, called_off: Callable[[], bool]
    ) -> Generator[Event, None, Verdict]:
        if called_off():
            return Verdict("pause", cell)
        do: Do = self.policy if self.policy in ("skip", "fail") else "pause"  # type: ignore[assignment]
        yield self._told(cell, named, do, "policy")
        waits = f"{named} waits for approval, and nobody is there to ask"
        return Verdict(do, cell, waits)

    def _edited(
        self, cell: Cell, named: str, by: str, called_off: Callable[[], bool]
    ) -> Generator[Event, None, Cell | None]:
        """The step with another source; None where there was none in the end."""
        old = without_magic(cell.source)
        questions = [
            Question(
                f"The code of {named}, for this run only", name="source", default=old, lines=True
            ),
            Question("Why?", name="reason", help="it is kept beside the change"),
        ]
        try:
            answers = self.asker.ask(questions, called_off)
        except Declined:
            return None
        if answers is None:
            return None
        new, reason = answers.values
        if new == old:
            return cell
        source = self.fill(replace(cell, source=with_magic_of(cell.source, new))).source
        mask = self.masker.mask
        at = self.now().isoformat()
        yield CellChanged(cell.id, mask(cell.source), mask(source), mask(reason), by, at)
        return replace(cell, source=source)

    def _told(self, cell: Cell, named: str, answer: str | None, by: str) -> Asked:
        at = self.now().isoformat()
        return Asked(cell.id, f"Run {named}?", answer, by, "approval", CHOICES, at)


def with_magic_of(source: str, text: str) -> str:
    """Other text for a step, in the language it has."""
    magic = source[: len(source) - len(without_magic(source))]
    return magic + text.rstrip("\n")


def _title(cell: Cell) -> str:
    return f" ({' '.join(cell.title.split())})" if cell.title else ""
