"""Change one cell of a task and leave every other byte as it was.

Text in, text out. Each result is read back before it is returned: it holds the cells that were
asked for, or there is an error and no result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import DocumentError, Hint, NextStep
from . import formats, percent
from .document import Cell, CellKind, Document, identified

Where = Literal["before", "after"]
Address = str | int
# Where a cell of the result comes from, and what it becomes: (3, None) is the old cell 3 as it
# stands, (3, cell) is cell 3 changed, (None, cell) is a new one.
Slot = tuple[int | None, Cell | None]

_ID = re.compile(r"[0-9a-f]{10}(-[0-9]+)?$")
UNREAD = "unread"  # expected of a cell that the caller has not seen
_LISTED = 20
_SHOWN_LINES = 60


@dataclass(frozen=True, slots=True)
class Edited:
    text: str
    document: Document
    # Of the cell that was edited, as it is now; empty and -1 when it was deleted.
    cell_id: str
    index: int
    diff: str
    # How often the text was found, for `substitute`.
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """A task's text with the suffix that says how to read it. `name` is for the diff."""

    text: str
    suffix: str
    name: str = "task"

    @property
    def document(self) -> Document:
        return formats.loads(self.text, self.suffix)


def change(
    task: Task,
    cell: Address,
    *,
    source: str | None = None,
    kind: CellKind | None = None,
    title: str | None = None,
    tags: Sequence[str] | None = None,
    expect: str | None = None,
) -> Edited:
    """Give a cell another source, kind, title or tags. What is None stays."""
    doc = task.document
    at = find(doc, cell, expect)
    return _changed(task, doc, at, source, kind, title, tags)


def insert(
    task: Task,
    cell: Address,
    source: str,
    *,
    where: Where = "after",
    kind: CellKind = "code",
    title: str = "",
    tags: Sequence[str] = (),
    expect: str | None = None,
) -> Edited:
    """Put a new cell beside another one. In a task without cells it is the first."""
    doc = task.document
    to = find(doc, cell, expect) + (where == "after") if doc.cells else 0
    new = Cell(kind, _normal(source), title=title, tags=tuple(dict.fromkeys(tags)))
    slots = _kept(doc)
    slots.insert(to, (None, new))
    return _edited(task, doc, slots, to)


def delete(task: Task, cell: Address, *, expect: str | None = None) -> Edited:
    doc = task.document
    at = find(doc, cell, expect)
    slots = _kept(doc)
    del slots[at]
    return _edited(task, doc, slots, None)


def move(
    task: Task, cell: Address, *, where: Where, other: Address, expect: str | None = None
) -> Edited:
    """Put a cell before or after another one, as it stands."""
    doc = task.document
    at, beside = find(doc, cell, expect), find(doc, other)
    if at == beside:
        raise DocumentError(f"cell {at} cannot be moved {where} itself", hint="name another cell")
    slots = _kept(doc)
    moved = slots.pop(at)
    to = beside - (beside > at) + (where == "after")
    slots.insert(to, moved)
    return _edited(task, doc, slots, to)


def substitute(
    task: Task,
    cell: Address,
    old: str,
    new: str,
    *,
    everywhere: bool = False,
    expect: str | None = None,
) -> Edited:
    """Replace literal text inside one cell; more than one place only if `everywhere`."""
    doc = task.document
    at = find(doc, cell, expect)
    source = doc.cells[at].source
    old, new = _unix(old), _unix(new)
    count = source.count(old) if old else 0
    if not count:
        raise DocumentError(
            f"{old!r} is not in cell {at}" if old else "there is nothing to look for",
            hint=f"cell {at} ({doc.cells[at].id}) is now:\n{_text(doc.cells[at])}",
        )
    if count > 1 and not everywhere:
        starts = [match.start() for match in re.finditer(re.escape(old), source)]
        lines = ", ".join(str(source.count("\n", 0, start) + 1) for start in starts[:10])
        raise DocumentError(
            f"{old!r} is {count} times in cell {at}, on lines {lines}",
            hint="give more of the text around it, or replace all of them",
        )
    edited = _changed(task, doc, at, source.replace(old, new), None, None, None)
    return replace(edited, replaced=count)


def _changed(
    task: Task,
    doc: Document,
    at: int,
    source: str | None,
    kind: CellKind | None,
    title: str | None,
    tags: Sequence[str] | None,
) -> Edited:
    old = doc.cells[at]
    metadata = old.metadata
    if kind is not None and kind != old.kind:
        # How the old kind was written down says nothing about the new one.
        metadata = {k: v for k, v in metadata.items() if k not in ("region_name", "cell_marker")}
    new = replace(
        old,
        kind=kind or old.kind,
        source=old.source if source is None else _normal(source),
        title=old.title if title is None else title,
        tags=old.tags if tags is None else tuple(dict.fromkeys(tags)),
        metadata=metadata,
    )
    if (new.kind, new.source) != (old.kind, old.source):
        # Outputs belong to the text that made them.
        new = replace(new, outputs=(), execution_count=None)
    if new.kind == "code" and new.attachments:
        new = replace(new, attachments={})
    slots = _kept(doc)
    if new != old:
        slots[at] = (at, new)
    return _edited(task, doc, slots, at)


def _kept(doc: Document) -> list[Slot]:
    return [(at, None) for at in range(len(doc.cells))]


def _edited(task: Task, doc: Document, slots: list[Slot], at: int | None) -> Edited:
    if task.suffix.lower() == ".ipynb":
        from .ipynb_editing import written
    elif task.suffix.lower() == formats.LOGBOOK:
        from .logbook_editing import written
    else:
        from .percent_editing import written

    if slots == _kept(doc):
        assert at is not None
        return Edited(task.text, doc, doc.cells[at].id, at, "")
    text = written(task.text, doc, slots, at)
    after = formats.loads(text, task.suffix)
    cell_id, index = ("", -1) if at is None else (after.cells[at].id, at)
    return Edited(text, after, cell_id, index, _diff(task, doc, text, after))


def wanted(doc: Document, slots: Sequence[Slot]) -> tuple[Cell, ...]:
    """The cells the result must read as."""
    cells = []
    for origin, cell in slots:
        if cell is None:
            assert origin is not None
            cell = doc.cells[origin]
        cells.append(cell)
    return identified(cells)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _normal(source: str) -> str:
    """Files end in a newline and cells do not: the newlines at the end are not the cell's."""
    return _unix(source).rstrip("\n")


def _diff(task: Task, before: Document, text: str, after: Document) -> str:
    from .text_diff import unified

    if task.suffix.lower() == ".ipynb":
        # Of the cells, not of the JSON with its outputs and pictures.
        return unified(_outline(before), _outline(after), task.name)
    old = percent.split_lines(task.text, keepends=True)
    return unified(old, percent.split_lines(text, keepends=True), task.name)


def _outline(doc: Document) -> list[str]:
    lines = []
    for cell in doc.cells:
        words = ["# %%", cell.title, "" if cell.kind == "code" else f"[{cell.kind}]"]
        words += [f"tags={list(cell.tags)}"] if cell.tags else []
        lines.append(" ".join(filter(None, words)) + "\n")
        lines += [f"{line}\n" for line in cell.source.split("\n")]
    return lines


def find(doc: Document, address: Address, expect: str | None = None) -> int:
    """`Document.find`, where a cell that changed since it was read is refused with what it is now.

    `expect` is the id the caller has read at this index or under this title.
    """
    try:
        at = doc.find(address)
    except DocumentError as error:
        if not doc.cells:
            first = {"path": ..., "cell": "0", "insert": "before", "new_source": ...}
            hint: str = Hint("put in the first one: {}", NextStep("edit", first))
            raise DocumentError(error.message, hint=hint) from None
        if not _looks_like_id(address):
            raise DocumentError(f"{error.message}\n{_listing(doc)}", hint=error.hint) from None
        stem = str(address).partition("-")[0]
        twins = [at for at, cell in enumerate(doc.cells) if cell.id.partition("-")[0] == stem]
        where = f"; cell {twins[0]} ({doc.cells[twins[0]].id}) has that text now" if twins else ""
        raise DocumentError(
            f"no cell has the id {address}: it changed or is gone since it was read{where}\n"
            f"{_listing(doc)}",
            hint="look at the task as it is now and aim at the id of today",
        ) from None
    if expect and doc.cells[at].id != expect:
        raise _stale(doc, at, expect)
    return at


def _stale(doc: Document, at: int, expect: str) -> DocumentError:
    now = doc.cells[at]
    gone = [i for i, cell in enumerate(doc.cells) if cell.id == expect]
    moved = f"; the cell that was read is now at index {gone[0]}" if gone else ""
    named = f" ({now.title!r})" if now.title else ""  # a title could be a sentence of ours
    said = f"changed since it was read: its id is {now.id}, not {expect}{moved}"
    if expect == UNREAD:
        said = f"is another one than was read there: its id is {now.id}"
    return DocumentError(
        f"cell {at}{named} {said}\n{_listing(doc, at)}\ncell {at} is now:\n{_text(now)}",
        hint=f"edit what is there now: expect {now.id}",
    )


def _looks_like_id(address: Address) -> bool:
    return isinstance(address, str) and _ID.match(address) is not None


def _listing(doc: Document, around: int = 0) -> str:
    """The cells near one, a line each: index, id, title, first line."""
    first = max(0, min(around - _LISTED // 2, len(doc.cells) - _LISTED))
    shown = doc.cells[first : first + _LISTED]
    lines = [_brief(at, cell) for at, cell in enumerate(shown, first)]
    rest = len(doc.cells) - len(shown)
    return "\n".join(lines + ([f"… and {rest} more cells"] if rest else []))


def _brief(at: int, cell: Cell) -> str:
    opening = next((line for line in cell.source.split("\n") if line.strip()), "").strip()
    opening = opening if len(opening) <= 60 else f"{opening[:59]}…"
    kind = "" if cell.kind == "code" else f"[{cell.kind}]"
    return "  ".join(filter(None, [f"{at:>4}", f"{cell.id:<10}", kind, cell.title, opening]))


def _text(cell: Cell) -> str:
    lines = cell.source.split("\n")
    rest = len(lines) - _SHOWN_LINES
    return "\n".join(lines[:_SHOWN_LINES] + ([f"… and {rest} more lines"] if rest > 0 else []))
