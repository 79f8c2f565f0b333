"""Which cells of a task are stale: what they showed may differ if they ran now.

A clean run from top to bottom leaves nothing stale. A cell takes each name from the nearest cell
above it that defines or changes it; it is stale when that one ran again later, changed, never ran,
or is stale itself. Functions are looked through: who calls one uses what its body reads.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .dataflow import Names, names
from .document import Cell

CHANGED = "its text changed since it ran"
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class Ran:
    """One execution in a kernel. Code that is no cell of a task has an empty `cell_id`.

    `index` and `title` are those of the cell when it ran: they tell a changed cell from a new one.
    """

    cell_id: str
    source: str
    order: int
    index: int = -1
    title: str = ""


@dataclass(frozen=True, slots=True)
class _Giver:
    """A cell that defines or changes a name, as those below it see it."""

    label: str
    order: int
    first: int
    # Why what it gives is not to be relied on; empty when it is.
    fault: str
    verbs: tuple[str, str] = ("defines", "defined")


def stale(cells: Sequence[Cell], ran: Sequence[Ran]) -> dict[str, str]:
    """The id of each stale cell, with the reason. Cells that never ran are not among them."""
    return {cell.id: why for cell, why in _walk(cells, ran) if why}


def never_ran(cells: Sequence[Cell], ran: Sequence[Ran]) -> tuple[str, ...]:
    """The ids of the code cells that no execution belongs to."""
    return tuple(cell.id for cell, why in _walk(cells, ran) if why is None)


def _walk(cells: Sequence[Cell], ran: Sequence[Ran]) -> Iterator[tuple[Cell, str | None]]:
    """Each code cell with why it is stale: empty when it is not, None when it never ran."""
    history = _History(cells, ran)
    flow = _Flow(history)
    for at, cell in enumerate(cells):
        if cell.kind != "code":
            continue
        found = names(cell.source)
        why = history.own_reason(at, cell)
        if why == "":
            why = flow.reason(found, history.last[cell.id].order)
        yield cell, why
        flow.add(at, cell, found, why)


class _History:
    """The executions, sorted by what became of their cells."""

    def __init__(self, cells: Sequence[Cell], ran: Sequence[Ran]) -> None:
        here = {cell.id for cell in cells}
        self.last: dict[str, Ran] = {}
        self.first: dict[str, int] = {}
        # When code outside of the task, and cells that are gone or changed, last gave a name.
        self.loose: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.imported: dict[str, str] = {}  # by code outside of the task
        imported: dict[str, str] = {}  # by anything
        for item in sorted(ran, key=lambda item: item.order):
            self.last[item.cell_id] = item
            self.first.setdefault(item.cell_id, item.order)
            found = names(item.source)
            same = found.imports.items() & imported.items()
            imported = _imported(imported, found)
            if item.cell_id not in here:
                gives = self.lost if item.cell_id else self.loose
                # Who imports once more what a name stands for gives it nothing new.
                given = found.defines - dict(same).keys()
                given = given | found.sets | _changed(found, imported)
                gives.update(dict.fromkeys(given, item.order))
            if not item.cell_id:
                self.imported = _imported(self.imported, found)
        gone = [r for r in self.last.values() if r.cell_id and r.cell_id not in here]
        gone.sort(key=lambda item: item.order)
        # A title that is still there says more than a place.
        titles = {cell.title for cell in cells}
        placed = [r for r in gone if r.index >= 0 and not (r.title and r.title in titles)]
        self._by_index = {item.index: item for item in placed}
        self._by_title = {item.title: item for item in gone if item.title}
        self._by_line = {_opening(item.source): item for item in gone if item.index < 0}
        # How far cells have moved since they ran, going by the one above.
        self._shift = 0

    def own_reason(self, at: int, cell: Cell) -> str | None:
        """Whether the cell itself changed; empty if it did not, None if it never ran."""
        mine = self.last.get(cell.id)
        if mine is None:
            before = self._by_title.get(cell.title) or self._by_index.get(at + self._shift)
            before = before or self._by_line.get(_opening(cell.source))
            return None if before is None else CHANGED
        if mine.index >= 0:
            self._shift = mine.index - at
        newer = self._by_title.get(cell.title) or self._by_index.get(mine.index)
        if newer is not None and newer.order > mine.order:
            return "it ran with another text since"
        return ""


def _imported(before: Mapping[str, str], found: Names) -> dict[str, str]:
    """What names stand for that were imported, after this."""
    still = {name: origin for name, origin in before.items() if name not in found.defines}
    return {**still, **found.imports}


def _changed(found: Names, imported: Mapping[str, str]) -> frozenset[str]:
    """A call of a module's function does not change the module."""
    return found.changes - imported.keys()


def _opening(source: str) -> str:
    return source.lstrip().partition("\n")[0].partition("=")[0].strip()


@dataclass(frozen=True, slots=True)
class _Reach:
    """What the bodies of functions bring in: the latest of the givers, and one with a fault."""

    latest: tuple[int, str] = (-1, "")
    faulty: str = ""


class _Flow:
    """Who gives each name at this point of the task."""

    def __init__(self, history: _History) -> None:
        self.history = history
        self.givers: dict[str, _Giver] = {}
        self.star: _Giver | None = None
        self.imported = history.imported
        self.bodies: dict[str, frozenset[str]] = {}
        # Names that some body reads: a new giver of one makes what was reached invalid.
        self.read_later: set[str] = set()
        self.reached: dict[str, _Reach] = {}

    def add(self, at: int, cell: Cell, found: Names, why: str | None) -> None:
        last = self.history.last.get(cell.id)
        faults = {None: "has not run", "": "", CHANGED: "changed since it ran"}
        giver = _Giver(
            label=f"cell {at} ({cell.title})" if cell.title else f"cell {at}",
            order=last.order if last else -1,
            first=self.history.first.get(cell.id, -1),
            fault=faults.get(why, "is stale itself"),
        )
        self.imported = _imported(self.imported, found)
        changed = _changed(found, self.imported)
        gives = found.defines | changed
        if changed:
            self.givers.update(dict.fromkeys(changed, replace(giver, verbs=("changes", "changed"))))
        self.givers.update(dict.fromkeys(found.defines, giver))
        if found.star:
            self.star = giver
        for name in found.defines:
            if name not in found.later:
                self.bodies.pop(name, None)
        self.bodies.update(found.later)
        if not gives.isdisjoint(self.read_later):
            self.reached.clear()
        for name, body in found.later.items():
            self.read_later |= body
            self.reached.pop(name, None)
        for name in found.later:
            self._reach(name)

    def reason(self, found: Names, order: int) -> str:
        """Why a cell that ran then is stale; empty when it is not."""
        for name in sorted(found.uses):
            why = self._fault(name, order, f"uses {name}")
            if why:
                return why
            if name in self.bodies:
                reach = self._reach(name)
                for other in (reach.faulty, reach.latest[1]):
                    why = self._fault(other, order, f"uses {other} through {name}") if other else ""
                    if why:
                        return why
            if name not in found.defines and self._is_orphan(name, order):
                return f"uses {name}, which no cell above it defines any more"
        return ""

    def _is_orphan(self, name: str, order: int) -> bool:
        """Whether the name was there only because of a cell that is gone or changed."""
        given = name in self.history.loose or name in _BUILTINS or self._giver(name) is not None
        return not given and self.history.lost.get(name, order) < order

    def _giver(self, name: str) -> _Giver | None:
        giver = self.givers.get(name)
        return self.star if giver is None and name not in _BUILTINS else giver

    def _fault(self, name: str, order: int, uses: str) -> str:
        giver = self._giver(name)
        if giver is not None and giver.fault:
            return f"{uses}, which {giver.label} {giver.verbs[0]}, and that {giver.fault}"
        if giver is not None and giver.order > order:
            again = " again" if giver.first < order else ""
            return f"{uses}, which {giver.label} {giver.verbs[1]}{again} later"
        if self.history.loose.get(name, -1) > order:
            return f"{uses}, which code outside the task defined later"
        return ""

    def _reach(self, root: str) -> _Reach:
        """What calling this may read, through all the functions it calls in turn."""
        known = self.reached.get(root)
        if known is not None:
            return known
        latest, faulty = (-1, ""), ""
        seen, todo = {root}, [root]
        while todo:
            for name in self.bodies.get(todo.pop(), ()):
                if name in seen:
                    continue
                seen.add(name)
                giver = self._giver(name)
                when = max(giver.order if giver else -1, self.history.loose.get(name, -1))
                latest = max(latest, (when, name))
                if giver is not None and giver.fault:
                    faulty = faulty or name
                inner = self.reached.get(name)
                if inner is None:
                    todo.append(name)
                else:
                    latest, faulty = max(latest, inner.latest), faulty or inner.faulty
        self.reached[root] = _Reach(latest, faulty)
        return self.reached[root]
