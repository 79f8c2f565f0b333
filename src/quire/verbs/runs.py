"""Look at runs: list them, read one back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..runs.record import Record
from ..store.runs import RunFolder
from ..workspace import Workspace


@dataclass(frozen=True, slots=True)
class Found:
    record: Record
    folder: RunFolder


def runs(workspace: Workspace, limit: int | None = 20) -> Iterator[dict[str, Any]]:
    """Summaries, newest first. Runs whose process was killed are brought to order on the way."""
    return workspace.runs.summaries(limit)


def find(workspace: Workspace, name: str) -> Found:
    """A run by id, unique beginning of one, or `last`."""
    store = workspace.runs
    folder = store.find(name)
    store.recover(folder)
    return Found(store.read(folder), folder)
