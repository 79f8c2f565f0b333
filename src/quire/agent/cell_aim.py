"""Which cell a caller means: the one it has read, though an edit by itself would find another.

A place may have another cell by now, a title another text; and of equal cells the ids count
(`ab12-2`), so that they move up when one of them changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..errors import DocumentError
from ..task.document import Document
from ..task.edit import UNREAD, Address, Edited, Where


@dataclass(frozen=True, slots=True)
class Known:
    """A cell as the caller last saw it."""

    id: str
    title: str = ""

    @property
    def text(self) -> str:
        """What equal cells have in common."""
        return self.id.partition("-")[0]


Notebook = tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class Aim:
    """The cell for `edit`, the id that it must have there, and where the caller knows it to be."""

    cell: Address
    expect: str | None = None
    known_at: int | None = None


def all_of(document: Document) -> Notebook:
    return tuple(Known(cell.id, cell.title) for cell in document.cells)


def learned(known: Notebook, document: Document, shown: Collection[int]) -> Notebook:
    """What the caller knows once it was shown these cells of it."""
    now = all_of(document)
    out = [Known(UNREAD)] * len(now)
    for at, place in _still_there(known, now):
        out[place] = known[at]
    for place in shown:
        out[place] = now[place]
    return tuple(out)


def changed(known: Notebook, at: int, done: Edited, insert: Where | None) -> Notebook:
    """What the caller knows after an edit of its own, aimed at the cell that it knows at a place.
    Of the others it was told nothing: they are where it has seen them, whoever moved them since."""
    if not done.cell_id:
        return (*known[:at], *known[at + 1 :])
    new = Known(done.cell_id, done.document.cells[done.index].title)
    to = at + (insert == "after")
    return (*known[:to], new, *known[to + (insert is None) :])


def _still_there(known: Notebook, now: Notebook) -> Iterator[tuple[int, int]]:
    """Where cells of the one are in the other. In between of what is the same above and below,
    only those that no other is equal to."""
    least = min(len(known), len(now))
    above = 0
    while above < least and known[above].text == now[above].text:
        above += 1
    below = 0
    while below < least - above and known[-1 - below].text == now[-1 - below].text:
        below += 1
    yield from zip(range(above), range(above), strict=True)
    for back in range(1, below + 1):
        yield len(known) - back, len(now) - back
    read = [one.text for one in known[above : len(known) - below]]
    there = [one.text for one in now[above : len(now) - below]]
    single = {text for text, times in Counter(read).items() if times == 1}
    single &= {text for text, times in Counter(there).items() if times == 1}
    for text in single:
        yield above + read.index(text), above + there.index(text)


def aimed(known: Notebook, document: Document, cell: Address) -> Aim:
    now = all_of(document)
    place = place_of(cell)
    if place is not None:
        if not -len(known) <= place < len(known):
            return Aim(cell)
        return Aim(cell, _there(known[place], now, place), place % len(known))
    ids = [one.id for one in known]
    if cell in ids:
        return _by_id(known, now, ids.index(str(cell)))
    titled = [at for at, one in enumerate(known) if cell == one.title]
    if len(titled) == 1:
        places = [at for at, one in enumerate(now) if one.title == cell]
        if len(places) == 1:
            was = known[titled[0]]
            return Aim(places[0], _there(was, now, places[0]), titled[0])
    return Aim(cell)


def place_of(cell: Address) -> int | None:
    if isinstance(cell, int):
        return cell
    return int(cell) if cell.lstrip("-").isdigit() and len(cell) < 6 else None


def _there(was: Known, now: Notebook, place: int) -> str:
    """The id to expect: today's, if the text is the one that was read."""
    same = -len(now) <= place < len(now) and now[place].text == was.text
    return now[place].id if same else was.id


def _by_id(known: Notebook, now: Notebook, at: int) -> Aim:
    was = known[at]
    read, there = _equal(known, was), _equal(now, was)
    if len(read) == len(there):
        place = there[read.index(at)]
        return Aim(place, now[place].id, at)
    if there:
        raise DocumentError(
            f"{len(read)} cells were equal to {was.id} when they were read, and {len(there)} are "
            f"now (at {', '.join(map(str, there))}): which one is meant cannot be told",
            hint="read the notebook again",
        )
    # It is gone; what stands in its place is shown with the refusal.
    return Aim(at if at < len(now) else was.id, was.id, at)


def _equal(cells: Sequence[Known], to: Known) -> list[int]:
    return [at for at, one in enumerate(cells) if one.text == to.text]
