"""A document with resolved parameters, limits and an environment: everything a run needs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from ..task.document import Document


@dataclass(frozen=True, slots=True)
class Limits:
    cell_timeout: float | None = None
    timeout: float | None = None
    grace: float = 2.0  # between the interrupt and the kill
    depth: int = 8  # tasks that run tasks that run tasks


@dataclass(frozen=True, slots=True)
class Change:
    """Another source for one cell, for this run only."""

    original: str
    source: str
    reason: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    run_id: str
    uuid: str
    task: str  # as a person names it: relative to the workspace where possible
    path: Path
    document: Document  # parameters injected
    source: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    parent: str | None = None
    chain: tuple[Path, ...] = ()  # the tasks that led here, this one last
    cwd: str = ""  # the folder it runs in, named as the task is
    replays: str = ""  # the run whose source and parameters these are
    environment: Mapping[str, Any] = field(default_factory=dict)  # that was asked for, and its lock
    request: str = ""  # in the words of whoever asked
    sources: Mapping[str, str] = field(default_factory=dict)  # where parameters were taken from
    changes: Mapping[str, Change] = field(default_factory=dict)  # by the id of the cell
    logbook: str = ""  # the file with the record for people

    def as_json(self, kernel: Mapping[str, Any]) -> dict[str, Any]:
        """What the record keeps of it."""
        return {
            "parameters": jsonable(self.parameters),
            "defaults": jsonable(self.defaults),
            "limits": {"cell_timeout": self.limits.cell_timeout, "timeout": self.limits.timeout},
            "language": self.document.language,
            "metadata": dict(self.document.metadata),
            "source_sha256": hashlib.sha256(
                self.source.encode("utf-8", "surrogatepass")
            ).hexdigest(),
            "kernel": dict(kernel),
            **({"cwd": self.cwd} if self.cwd else {}),
            **({"replays": self.replays} if self.replays else {}),
            **({"environment": dict(self.environment)} if self.environment else {}),
            **({"request": self.request} if self.request else {}),
            **({"sources": dict(self.sources)} if self.sources else {}),
            **({"logbook": self.logbook} if self.logbook else {}),
        }

    def cells_as_json(self) -> tuple[dict[str, Any], ...]:
        """The cells as the task has them; what is changed for this run comes as events."""
        changes = self.changes
        return tuple(
            {
                "id": cell.id,
                "kind": cell.kind,
                "source": changes[cell.id].original if cell.id in changes else cell.source,
                "title": cell.title,
                "tags": list(cell.tags),
                "metadata": dict(cell.metadata),
                **({"attachments": dict(cell.attachments)} if cell.attachments else {}),
            }
            for cell in self.document.cells
        )


def run_id(task: str, now: datetime, suffix: str) -> str:
    """`YYYY-MM-DD-HHMMSS-<slug>-<4 hex>`, in UTC."""
    return f"{now.astimezone(UTC):%Y-%m-%d-%H%M%S}-{slug_of(task)}-{suffix}"


def slug_of(task: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", Path(task).stem.lower()).strip("-")
    return slug[:40].strip("-") or "task"


def jsonable(value: Any) -> Any:
    """The nearest JSON has: dates as ISO text, sets and tuples as lists, nan and inf as text."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        # Python neither writes nor reads decimals beyond some 4,300 digits; hexadecimal it does.
        return value if value.bit_length() < 14_000 else hex(value)
    if isinstance(value, float):
        finite = value == value and value not in (float("inf"), float("-inf"))
        return value if finite else str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)
