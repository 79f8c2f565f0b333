"""Where the cells of a run stand in its task, and what they are called there.

A run has a cell more where it was given values, and those of a logbook have the values in them: by
neither would an edit find what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..task.document import Document
from ..task.parameter_cell import INJECTED_TAG
from .record import Record


@dataclass(frozen=True, slots=True)
class Standing:
    index: int
    id: str


def standing(record: Record, written: Document | None = None) -> Mapping[str, Standing]:
    """By the ids in the record; without what stands nowhere in the task. `written` is the task as
    it was, where the record alone does not say it: see `needs_the_task`."""
    values = [one.id for one in record.cells if INJECTED_TAG in one.tags]
    if written is None and not record.parameters:
        values = []  # then such a cell is one of the task
    own = [one.id for one in record.cells if one.id not in values]
    if written is None:
        return {id_: Standing(at, id_) for at, id_ in enumerate(own)}
    # A notebook that papermill made has a cell for the values: the run's took its place.
    earlier = [at for at, one in enumerate(written.cells) if INJECTED_TAG in one.tags]
    places = [at for at in range(len(written.cells)) if at not in earlier]
    if len(places) != len(own):
        return standing(record)
    pairs = [*zip(own, places, strict=True), *zip(values[:1], earlier[:1], strict=False)]
    return {id_: Standing(at, written.cells[at].id) for id_, at in pairs}


def needs_the_task(record: Record) -> bool:
    return record.task.endswith((".ipynb", ".md")) and bool(record.cells)
