"""The uuid of a run, and the page in `logbooks/runs/` that a logbook's run gets by it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from ..errors import UsageError
from ..record.plan import Plan
from ..task.formats import LOGBOOK
from ..task.templates import folder
from ..workspace import Workspace


def named(
    ws: Workspace, task: Path, wanted: str, now: Callable[[], datetime]
) -> tuple[str, Path | None]:
    """The uuid, and the page of a logbook's run. Refuses the uuid of another run."""
    name = _checked_uuid(wanted) if wanted else str(uuid.uuid4())
    if wanted and (other := ws.runs.of_uuid(name)):
        raise _taken(name, other)
    if task.suffix.lower() != LOGBOOK:
        return name, None
    top = folder(ws) / "runs"
    if not top.resolve().is_relative_to(ws.root.resolve()):
        raise UsageError(
            f"{ws.named(top)} is a link that leads out of {ws.root}",
            hint="make it a folder of the workspace",
        )
    if task.is_relative_to(top.resolve()):
        raise UsageError(
            f"{ws.named(task)} is the record of a run, not a template",
            hint="run its template; `quire replay RUN` repeats a run",
        )
    there = next(top.glob(f"*/{name}.md"), None) if wanted else None
    if there is not None:
        raise _taken(name, ws.named(there))
    return name, top / f"{now().astimezone():%Y-%m-%d}" / f"{name}.md"


def claim_uuid(ws: Workspace, plan: Plan, run_id: str) -> None:
    """Before the first cell of a run whose uuid somebody chose."""
    if not ws.runs.claim_uuid(plan.uuid, run_id):
        raise _taken(plan.uuid, ws.runs.of_uuid(plan.uuid))


def _taken(name: str, by: str) -> UsageError:
    return UsageError(
        f"there is a run with the uuid {name}: {by}",
        hint="leave out --uuid: each run gets one of its own",
    )


def _checked_uuid(wanted: str) -> str:
    try:
        return str(uuid.UUID(wanted))
    except ValueError:
        raise UsageError(f"{wanted!r} is no uuid", hint="leave out --uuid to get one") from None
