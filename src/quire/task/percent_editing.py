"""Put an edit into the text of a percent notebook.

The text is taken apart into cells and the blank lines between them; kept cells are put back as
they were. A changed cell keeps its marker line where that still says what it must, and its body is
written by percent_writing. The first text that reads back as the cells asked for is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from ..errors import DocumentError
from . import magics, percent, percent_header, percent_marker
from . import percent_writing as writing
from .document import Cell, Document, metadata_of
from .edit import Slot, wanted


@dataclass(frozen=True, slots=True)
class _Layout:
    head: str
    # Each cell's own lines, and the blank ones between it and the next.
    cores: tuple[tuple[str, ...], ...]
    gaps: tuple[str, ...]
    marked: tuple[bool, ...]
    # Whether the first cell is the YAML of the header.
    front: bool
    style: percent.Style
    newline: str

    @property
    def tail(self) -> str:
        return self.gaps[-1] if self.gaps else ""


def written(text: str, doc: Document, slots: Sequence[Slot], touched: int | None) -> str:
    """The text with these cells. `touched` is the one that may be written anew."""
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix("\ufeff")
    layout = _layout(text)
    if layout.front and slots[:1] != [(0, None)]:
        raise DocumentError(
            "cell 0 is the YAML header of the file",
            hint="edit the lines between the two `# ---` lines in the file itself",
        )
    want = [writing._essence(writing._clean(cell)) for cell in wanted(doc, slots)]
    open_ended = bool(text) and not text.endswith(("\n", "\r"))
    for made in _texts(layout, doc, slots, touched):
        if open_ended:
            made = made.removesuffix(layout.newline)
        if _reads_as(made, want):
            return bom + made
    raise DocumentError(
        "the cell cannot be written there: the text around it would be read in another way",
        hint="look for a string or a code fence that a cell near it leaves open, and close it",
    )


def _layout(text: str) -> _Layout:
    spans = percent.spans(text)
    lines = percent.split_lines(text)
    full = percent.split_lines(text, keepends=True)
    newline = _newline(text)
    if full and not full[-1].endswith(("\n", "\r")):
        full[-1] += newline
    head = percent_header.read(lines)
    stops = [_stop(lines, start, end) for start, end in spans]
    front = head.front is not None
    if front:
        stops[0] = spans[0][1]
    return _Layout(
        head="".join(full[: spans[0][0] if spans else len(full)]),
        cores=tuple(tuple(full[start:stop]) for (start, _), stop in zip(spans, stops, strict=True)),
        gaps=tuple("".join(full[stop:end]) for (_, end), stop in zip(spans, stops, strict=True)),
        marked=tuple(percent_marker.MARKER.match(lines[start]) is not None for start, _ in spans),
        front=front,
        style=percent.style_of(head),
        newline=newline,
    )


def _newline(text: str) -> str:
    unix, both = text.count("\n"), text.count("\r\n")
    if both * 2 > unix:
        return "\r\n"
    return "\r" if not unix and "\r" in text else "\n"


def _stop(lines: list[str], start: int, end: int) -> int:
    """The line after the cell's content, as the reader of the format counts it."""
    last = [bool(line.strip()) for line in lines[max(start, end - 3) : end]]
    if last == [True, False, False]:
        return end - 2
    return end - 1 if lines[end - 1] == "" else end


def _texts(
    layout: _Layout, doc: Document, slots: Sequence[Slot], touched: int | None
) -> Iterator[str]:
    """What the file may look like, the closest to the old one first."""
    cores = [_core(layout, at, slot) for at, slot in enumerate(slots)]
    if touched is None:
        yield from _joined(layout, slots, cores, len(slots) - 1)
        return
    for core in _ways(layout, doc, slots[touched], cores[touched]):
        cores[touched] = core
        yield from _joined(layout, slots, cores, touched)


def _core(layout: _Layout, at: int, slot: Slot) -> tuple[str, ...]:
    """The lines of a kept cell; one without a marker needs it where another stands above it."""
    origin, cell = slot
    if origin is None or cell is not None:
        return ()
    core = layout.cores[origin]
    bare = not layout.marked[origin] and not (layout.front and origin == 0)
    return (f"# %%{layout.newline}", *core) if bare and at > int(layout.front) else core


def _joined(
    layout: _Layout, slots: Sequence[Slot], cores: Sequence[tuple[str, ...]], touched: int
) -> Iterator[str]:
    gaps = [_gap(layout, slots, cores, at) for at in range(len(slots))]
    yield _text(layout, cores, gaps)
    choices = ["", layout.newline, layout.newline * 2]
    places = [at for at in (touched - 1, touched) if 0 <= at < len(gaps)]
    for chosen in product(choices, repeat=len(places)):
        for at, gap in zip(places, chosen, strict=True):
            gaps[at] = gap
        yield _text(layout, cores, gaps)


def _text(layout: _Layout, cores: Sequence[tuple[str, ...]], gaps: Sequence[str]) -> str:
    parts = [layout.head]
    for core, gap in zip(cores, gaps, strict=True):
        parts += [*core, gap]
    return "".join(parts)


def _gap(layout: _Layout, slots: Sequence[Slot], cores: Sequence[tuple[str, ...]], at: int) -> str:
    if at == len(slots) - 1:
        return layout.tail
    origin = slots[at][0]
    if origin is not None and origin < len(layout.gaps) - 1:
        return layout.gaps[origin]
    above = [line.rstrip("\r\n") for line in cores[at]]
    below = [line.rstrip("\r\n") for line in cores[at + 1]]
    code = bool(above) and not above[-1].startswith("#")
    roomy = code and (writing._ends_indented(above) or writing._starts_block(below))
    return layout.newline * (2 if roomy else 1)


def _ways(
    layout: _Layout, doc: Document, slot: Slot, core: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """The lines a touched cell may have, the most like its old ones first."""
    origin, cell = slot
    old = None if origin is None else doc.cells[origin]
    if cell is None:
        assert old is not None
        yield core
    cell = writing._clean(old if cell is None and old is not None else _given(cell))
    for lines in _natural(layout, cell, origin, old):
        yield tuple(f"{line}{layout.newline}" for line in lines)
    if cell.kind == "code" and (old is None or old.source != cell.source):
        _refuse_unreadable(cell, old)
    yield tuple(f"{line}{layout.newline}" for line in writing._sealed(cell))


def _given(cell: Cell | None) -> Cell:
    assert cell is not None
    return cell


def _natural(
    layout: _Layout, cell: Cell, origin: int | None, old: Cell | None
) -> Iterator[list[str]]:
    style = layout.style
    want = writing._essence(cell)
    candidates: list[list[str]] = []
    if origin is not None and old is not None:
        own = [line.rstrip("\r\n") for line in layout.cores[origin]]
        top, below = own[: layout.marked[origin]], own[layout.marked[origin] :]
        bodies = [body for body, _, _ in writing._bodies(cell, style)]
        if (old.kind, metadata_of(old)) == (cell.kind, metadata_of(cell)):
            candidates += [[*top, *body] for body in bodies]
        if (old.kind, old.source) == (cell.kind, cell.source):
            candidates += [
                [writing._marker(cell.kind, title, metadata, beside, guard=guard), *below]
                for title, metadata, beside, guard in writing._marks(cell)
            ]
    candidates.append(writing._cell_lines(cell, style))
    for lines in candidates:
        if _holds(lines, want, style) and not _is_sealed(lines, style):
            yield lines


def _holds(lines: list[str], want: tuple[str, ...], style: percent.Style) -> bool:
    """Whether the lines are this cell wherever they stand: nothing is left open at their end."""
    if not lines:
        return want[1] == ""
    return writing._reads_back(lines, want, style)


def _is_sealed(lines: list[str], style: percent.Style) -> bool:
    """Whether the source is kept as JSON in the marker line, where nobody can review it."""
    options = (
        percent_marker.parse(lines[0]) if lines and percent_marker.MARKER.match(lines[0]) else {}
    )
    kept = options.get(percent.CHANNEL)
    return isinstance(kept, dict) and "source" in kept


def _refuse_unreadable(cell: Cell, old: Cell | None) -> None:
    """Code that would end a cell or swallow the next ones, unless the cell had it before."""
    lines = cell.source.split("\n")
    mark = _marker_line(cell.source)
    if mark and not (old and _marker_line(old.source)):
        raise DocumentError(
            f"line {mark} of the new source, {lines[mark - 1].strip()!r}, starts another cell",
            hint="one cell at a time: insert what follows that line as a cell of its own",
        )
    triple = ""
    for line in lines:
        triple = magics.quote_after(line, triple)
    if triple:
        raise DocumentError(
            f"the new source leaves a string open ({triple * 3}): it would swallow the cells below",
            hint="close the string",
        )


def _marker_line(source: str) -> int:
    """The first line, from 1, that a reader takes for the start of a cell; 0 if there is none."""
    lines = source.split("\n")
    pairs = enumerate(zip(lines, magics.unquoted(lines), strict=True), 1)
    return next((at for at, (line, free) in pairs if free and percent_marker.MARKER.match(line)), 0)


def _reads_as(text: str, want: list[tuple[str, ...]]) -> bool:
    try:
        found = percent.loads(text).cells
    except DocumentError:
        return False
    if len(found) != len(want):
        return False
    return all(writing._essence(cell) == essence for cell, essence in zip(found, want, strict=True))
