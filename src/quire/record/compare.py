"""Two records compared cell by cell: what a reviewer wants to know, without what always differs.

Streams are compared by their whole text, pictures by their bytes, JSON by value, numbers exactly,
errors by name and value. Ids, execution counts, timings and display ids are noise. What a cell with
the tag `volatile` gave out may differ. What a record has only by its digest is compared by that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, Literal

from ..task.parameter_cell import INJECTED_TAG
from ..text import scrubbed
from .cell_alignment import Pair, aligned, opcodes
from .comparable_outputs import GivenOut, given_out
from .compare_large_outputs import sides
from .plan import jsonable
from .record import CellRecord, Record, Result
from .record_files import POINTER

VOLATILE = "volatile"
Verdict = Literal["equal", "volatile", "not_compared", "different"]


class _Missing:
    def __repr__(self) -> str:
        return "missing"


MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True)
class Change:
    """A named value that differs; one side may not have it at all."""

    name: str
    old: Any = MISSING
    new: Any = MISSING
    kind: str = ""
    volatile: bool = False
    compared: bool = True  # False: it may differ or not, and nobody here can tell

    def as_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"name": self.name}
        if self.kind:
            out["kind"] = self.kind
        sides = {"old": self.old, "new": self.new}
        out |= {side: value for side, value in sides.items() if value is not MISSING}
        out |= {"volatile": True} if self.volatile else {}
        return out | ({} if self.compared else {"compared": False})


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell that differs. `old_at` and `new_at` are its places; None where it is not there."""

    old_at: int | None
    new_at: int | None
    old: CellRecord | None
    new: CellRecord | None
    about: tuple[Change, ...] = ()  # source, status, title, tags, attachments
    outputs: tuple[Change, ...] = ()
    volatile: bool = False

    @property
    def what(self) -> str:
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    @property
    def counts(self) -> bool:
        """Whether the runs differ by it: more than what may differ."""
        if self.what != "changed" or self.about:
            return True
        return not self.volatile and any(change.compared for change in self.outputs)

    @property
    def is_open(self) -> bool:
        """Whether they may differ by it, and that could not be found out."""
        return not self.volatile and not all(change.compared for change in self.outputs)

    @property
    def cell(self) -> CellRecord:
        cell = self.new or self.old
        assert cell is not None
        return cell

    def as_dict(self) -> dict[str, Any]:
        places = (("old", self.old_at, self.old), ("new", self.new_at, self.new))
        named = {
            side: None if cell is None else {"index": at, "id": cell.id, "title": cell.title}
            for side, at, cell in places
        }
        return {
            "change": self.what,
            "volatile": self.volatile,
            **named,
            "about": [change.as_dict() for change in self.about],
            "outputs": [change.as_dict() for change in self.outputs],
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    old: Record
    new: Record
    run: tuple[Change, ...] = ()  # task, outcome, error
    parameters: tuple[Change, ...] = ()
    results: tuple[Change, ...] = ()
    cells: tuple[CellChange, ...] = ()
    environment: tuple[Change, ...] = ()  # told, but no difference between what the runs did
    noise: tuple[Change, ...] = ()

    @property
    def verdict(self) -> Verdict:
        counted = (
            *self.run,
            *self.parameters,
            *(change for change in self.results if not change.volatile),
            *(change for change in self.cells if change.counts),
        )
        if counted:
            return "different"
        if any(change.is_open for change in self.cells):
            return "not_compared"
        return "volatile" if self.results or self.cells else "equal"

    def as_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "old": self.old.run_id,
            "new": self.new.run_id,
            "run": [change.as_dict() for change in self.run],
            "parameters": [change.as_dict() for change in self.parameters],
            "results": [change.as_dict() for change in self.results],
            "cells": [change.as_dict() for change in self.cells],
            "environment": [change.as_dict() for change in self.environment],
            "noise": [change.as_dict() for change in self.noise],
        }


def compare(old: Record, new: Record, *, noise: bool = False) -> Comparison:
    """`noise`: also list ids, counts, timings and metadata. They never decide the verdict."""
    pairs = aligned(old.cells, new.cells)
    return Comparison(
        old,
        new,
        run=tuple(_between(_facts(old), _facts(new))),
        parameters=tuple(_between(effective(old), effective(new))),
        results=tuple(_results(old, new)),
        cells=tuple(_cells(old.cells, new.cells, pairs)),
        environment=tuple(environment_changes(old, new)),
        noise=tuple(_noise(old, new, pairs)) if noise else (),
    )


def same(old: Any, new: Any) -> bool:
    """By value as JSON has it: 1 is not 1.0, and nan is nan."""
    return canonical(old) == canonical(new)


def canonical(value: Any) -> str:
    """The same text for the same value, also where one of the two has been through an archive."""
    if value is MISSING:
        return ""
    return scrubbed(json.dumps(jsonable(value), sort_keys=True, ensure_ascii=False))


def effective(record: Record) -> dict[str, Any]:
    """The parameters the task had, with the defaults of those that were not given."""
    defaults = record.plan.get("defaults")
    return {**(defaults if isinstance(defaults, Mapping) else {}), **record.parameters}


def _between(old: Mapping[str, Any], new: Mapping[str, Any], kind: str = "") -> Iterator[Change]:
    for name in {**old, **new}:
        before, after = old.get(name, MISSING), new.get(name, MISSING)
        if not same(before, after):
            yield Change(name, before, after, kind)


def _facts(record: Record) -> dict[str, Any]:
    facts: dict[str, Any] = {"task": record.task, "outcome": record.outcome}
    if record.error is not None:
        facts["error"] = f"{record.error.name}: {record.error.value}"
    return facts


def _results(old: Record, new: Record) -> Iterator[Change]:
    for name in {**old.results, **new.results}:
        before, after = old.results.get(name), new.results.get(name)
        if _comparable(before) == _comparable(after):
            continue
        found = after or before
        assert found is not None
        yield Change(
            name,
            MISSING if before is None else before.value,
            MISSING if after is None else after.value,
            kind=found.kind,
            volatile=_is_volatile(old, before) or _is_volatile(new, after),
        )


def _comparable(result: Result | None) -> str:
    return "" if result is None else f"{result.kind} {canonical(result.value)}"


def _is_volatile(record: Record, result: Result | None) -> bool:
    return result is not None and any(
        cell.id == result.cell and VOLATILE in cell.tags for cell in record.cells
    )


def _cells(
    old: Sequence[CellRecord], new: Sequence[CellRecord], pairs: Iterable[Pair]
) -> Iterator[CellChange]:
    for before_at, after_at in pairs:
        before = None if before_at is None else old[before_at]
        after = None if after_at is None else new[after_at]
        if _is_injected(before, after):
            continue  # the parameters are told as what they are
        if before is None or after is None:
            yield CellChange(before_at, after_at, before, after)
            continue
        about = tuple(_between(_traits(before), _traits(after)))
        outputs = tuple(_outputs(before, after))
        if about or outputs:
            volatile = VOLATILE in before.tags or VOLATILE in after.tags
            yield CellChange(before_at, after_at, before, after, about, outputs, volatile)


def _is_injected(before: CellRecord | None, after: CellRecord | None) -> bool:
    """A cell that only sets parameters and gave nothing out. One that failed is worth a look."""
    cells = [cell for cell in (before, after) if cell is not None]
    quiet = len(cells) == 1 or not (
        list(_outputs(cells[0], cells[1])) or _status(cells[0]) != _status(cells[1])
    )
    return quiet and all(INJECTED_TAG in cell.tags for cell in cells)


def _traits(cell: CellRecord) -> dict[str, Any]:
    traits: dict[str, Any] = {"status": _status(cell), "source": cell.source}
    if INJECTED_TAG in cell.tags:
        del traits["source"]
    optional = {"title": cell.title, "tags": list(cell.tags), "attachments": cell.attachments}
    return traits | {name: value for name, value in optional.items() if value}


def _status(cell: CellRecord) -> str:
    """A carried cell was run well, only earlier."""
    return "ok" if cell.status == "carried" else cell.status


def _outputs(before: CellRecord, after: CellRecord) -> Iterator[Change]:
    known = sides(before, after)
    old, new = list(given_out(known.old)), list(given_out(known.new))
    for tag, a, b, c, d in opcodes([str(o) for o in old], [str(o) for o in new]):
        if tag != "equal":
            for left, right in zip_longest(old[a:b], new[c:d]):
                yield from _output(left, right)
    for doubt in known.doubts:
        yield Change(doubt.name, doubt.old, doubt.new, kind=POINTER, compared=False)


def _output(old: GivenOut | None, new: GivenOut | None) -> Iterator[Change]:
    if old is not None and new is not None and old.name != new.name:
        yield from _output(old, None)
        yield from _output(None, new)
        return
    found = new or old
    assert found is not None
    before, after = old.forms if old else {}, new.forms if new else {}
    for mime in {**before, **after}:
        if before.get(mime) != after.get(mime):
            sides = before.get(mime, MISSING), after.get(mime, MISSING)
            yield Change(found.name, *sides, kind=mime)


def environment_changes(old: Record, new: Record) -> Iterator[Change]:
    """Interpreter, platform and packages, as far as both records tell."""
    before, after = old.origin.get("environment"), new.origin.get("environment")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        before, after = _kernel(old), _kernel(new)
    for part in ("interpreter", "packages"):
        sides = before.get(part), after.get(part)
        if isinstance(sides[0], Mapping) and isinstance(sides[1], Mapping):
            yield from _between(sides[0], sides[1], part)
    if "platform" in before and "platform" in after:
        yield from _between(
            {"platform": before["platform"]}, {"platform": after["platform"]}, "platform"
        )


def _kernel(record: Record) -> dict[str, Any]:
    kernel = record.plan.get("kernel")
    known = kernel if isinstance(kernel, Mapping) else {}
    keys = ("language", "version", "executable")
    return {"interpreter": {key: known[key] for key in keys if known.get(key)}}


def _noise(old: Record, new: Record, pairs: Iterable[Pair]) -> Iterator[Change]:
    yield from _between(_details(old), _details(new), "run")
    for before_at, after_at in pairs:
        if before_at is None or after_at is None:
            continue
        before, after = old.cells[before_at], new.cells[after_at]
        yield from _between(_cell_details(before), _cell_details(after), f"cell {after_at}")


def _details(record: Record) -> dict[str, Any]:
    return {
        "run_id": record.run_id,
        "uuid": record.uuid,
        "started": record.started,
        "finished": record.finished,
        "duration": record.duration,
        "mode": record.plan.get("mode", "clean"),
        "limits": record.plan.get("limits", {}),
        "metadata": record.plan.get("metadata", {}),
        "git": record.origin.get("git"),
        "engine": record.origin.get("engine"),
        "asked": record.origin.get("asked"),
    }


def _cell_details(cell: CellRecord) -> dict[str, Any]:
    return {
        "id": cell.id,
        "execution_count": cell.execution_count,
        "duration": cell.duration,
        "metadata": dict(cell.metadata),
    }
