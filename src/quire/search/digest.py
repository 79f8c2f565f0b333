"""What many runs came to, on one page, for whoever comes new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..archive.layout import DIGEST, is_run_id, run_folder
from ..errors import UsageError
from ..workspace import Workspace
from . import index_queries
from .digest_page import Told
from .digest_page import digest as render
from .fill import Progress, silent
from .find import asked_of, narrowing, warnings_of

MOST = 20_000  # runs
USUAL = "7d"
KEPT = "30d"  # how far back the page in the archive goes


@dataclass(frozen=True, slots=True)
class Digest:
    text: str  # Markdown
    runs: int
    place: str = ""  # where it was written, if it was
    warnings: tuple[str, ...] = ()


def digest(
    ws: Workspace,
    *,
    since: str = "",
    until: str = "",
    task: str = "",
    write: bool = False,
    now: datetime | None = None,
    progress: Progress = silent,
) -> Digest:
    """`write`: the page of the last 30 days, into the archive, where everybody finds it."""
    if write and (task or since or until):
        raise UsageError(
            f"{DIGEST} is about all tasks, the last {KEPT}, up to now", hint="quire digest --write"
        )
    now = now or datetime.now(UTC)
    since = KEPT if write else since or USUAL
    narrow = narrowing(ws, task, since, until, (), "", (), (), now)

    def ask(con: Any) -> list[Told]:
        # What is kept here only stays here: the page in the archive goes where the archive goes.
        return index_queries.told(con, replace(narrow(con), archived=write), MOST + 1)

    caught, runs = asked_of(ws, ask, progress)
    cut, runs = len(runs) > MOST, runs[-MOST:]
    text = render(runs, _link, of=f"the newest {MOST:,} runs of that time" if cut else "")
    place = ws.archive.write_digest(text.encode("utf-8", "replace")) if write else ""
    return Digest(text, len(runs), place, warnings_of(caught))


def _link(run_id: str) -> str:
    """From the top of the archive."""
    return f"{run_folder(run_id)}/notebook.ipynb" if is_run_id(run_id) else ""
