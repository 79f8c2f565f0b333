"""A run that waits for a person is taken up once: what is approved must not run twice."""

from __future__ import annotations

from ..archive.read import TakenUpBy, taken_up
from ..errors import Hint, NextStep, UsageError
from ..record.record import Record
from ..workspace import Workspace


def check(ws: Workspace, paused: Record) -> None:
    """Raises where another run goes on with it."""
    taken = taken_up(ws, paused)
    if taken is None:
        return
    told, template, steps = _standing(taken, paused.task)
    raise UsageError(
        f"{paused.run_id} was taken up by {taken.run_id}, which {told}",
        hint=Hint(f"{template}; to run it twice: quire resume {paused.run_id} --again", *steps),
    )


def _standing(taken: TakenUpBy, task: str) -> tuple[str, str, tuple[NextStep, ...]]:
    by = taken.run_id
    if taken.outcome == "paused":
        return "waits for a person in its turn", f"quire resume {by}", ()
    if taken.outcome == "running":
        return "is still running", "{}", (NextStep("wait", {"run": by}),)
    if not taken.outcome:
        return "has no record here any more", "what it ran is not known", ()
    if taken.outcome == "ok":
        return "ended ok", "{}", (NextStep("show", {"run": by}),)
    said = taken.outcome.replace("_", " ")
    steps = NextStep("show", {"run": by}), NextStep("run", {"path": task, "resume": by})
    return f"ended {said}", "{}, or once mended: {}", steps


def claim(ws: Workspace, taker: str, paused: Record | None, *, once_more: bool) -> None:
    """Before the first cell of the one that takes it up. Of two at the same moment one is
    refused."""
    if paused is None:
        return
    ws.taken_up.claim(
        paused.run_id, taker, (lambda: None) if once_more else lambda: check(ws, paused)
    )
