"""Outputs of cells on a page for an agent: text by stream, one text a display, images aside."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..next_steps import NextStep, as_tool
from ..record.record import CellRecord
from ..text import CUT, cleaned, text_of
from .agent_failure import error_text
from .agent_page import Excerpt, Page, Whole, lines_of
from .blocks import PANDAS, OutputBlock, output_block
from .images import Shrunk, shrink

_SPACES = re.compile(r"(?<=\S) {2,}|\A {2,}")
_INNER = re.compile(r"(?<=\S) (?=\S)")
_LEFT_OUT = re.compile(r"^\.{2,3}(?: +\.{2,3})+$", re.MULTILINE)
_GROUP = re.compile(
    r"^  \+ Exception Group Traceback \(most recent call last\):\n(?: +[|+].*(?:\n|\Z))+",
    re.MULTILINE,
)
STREAMS = ("stdout", "stderr")
DISPLAYS = "displays"  # by that name all the rest of a cell's text can be read, as if it were one


@dataclass(frozen=True, slots=True)
class Text:
    label: str
    text: str
    stream: str = ""  # of which stream, where it is one


@dataclass(frozen=True, slots=True)
class Image:
    mime: str
    payload: str  # base64
    label: str


Piece = Text | Image


def pieces(cell: CellRecord) -> Iterator[Piece]:
    """Each stream as a whole, since how the two interleave is luck; then the rest in order.

    What the cell raised is not among it: that is told once, with what can be done about it.
    """
    for name in STREAMS:
        text = stream_of(cell, name)
        if name == "stderr" and cell.error is not None:
            text = _without_traceback(text, cell.error.name)
        if text.strip():
            yield Text(name, text, name)
    for output in cell.outputs:
        kind = output.get("output_type")
        if kind in ("display_data", "execute_result"):
            block = output_block(output, "agent")
            if block is not None:
                yield from _display(block)
        elif kind == "error" and cell.error is None:
            # The cell may raise: then it is an output as any other.
            yield Text("raised", f"{output.get('ename', '')}: {output.get('evalue', '')}")


def displays_of(cell: CellRecord) -> list[str]:
    """Lines of what a cell gave out besides the streams, each part below its label."""
    return [line for one in _besides(cell) for line in (f"{one.label}:", *lines_of(one.text))]


def place_among_displays(cell: CellRecord, piece: Text) -> int:
    """How many of those lines stand above its text."""
    above = 1
    for one in _besides(cell):
        if one == piece:
            break
        above += 1 + len(lines_of(one.text))
    return above


def _besides(cell: CellRecord) -> Iterator[Text]:
    for one in pieces(cell):
        if isinstance(one, Image):
            yield Text(one.label, "(a picture)")
        elif not one.stream:
            yield one
    if cell.error is not None and (error := error_text(cell.error)).strip():
        yield Text("error", error)


def stream_of(cell: CellRecord, name: str) -> str:
    return "".join(
        text_of(output.get("text", ""))
        for output in cell.outputs
        if output.get("output_type") == "stream" and output.get("name") == name
    )


def _without_traceback(text: str, name: str) -> str:
    """A log often has the traceback of what is told as the error anyway."""
    text = _GROUP.sub("(the traceback of the error)\n", text)
    start = text.rfind("Traceback (most recent call last):")
    if start < 0:
        return text
    end = re.compile(rf"^(?:[\w.]+\.)?{re.escape(name)}(?:: .*)?$", re.MULTILINE)
    found = end.search(text, start)
    if found is None:
        return text
    return f"{text[:start]}(the traceback of the error){text[found.end() :]}"


def _display(block: OutputBlock) -> Iterator[Piece]:
    label = "value" if block.is_value else "display"
    if block.kind == "image":
        # One that was glued is told here, where images are.
        yield Image(block.mime, block.payload, label)
    elif block.has_result:
        return  # told with the results
    elif block.kind == "other":
        yield Text(label, f"(an output of type {block.text})")
    elif block.text:
        text = _compact(block.text) if block.size_of_table else block.text
        yield Text(block.size_of_table or label, text)


def _compact(text: str) -> str:
    """A table without what only aligns it."""
    text = _LEFT_OUT.sub("…", PANDAS.sub("", text).rstrip())
    # One space tells columns apart where no value has any.
    return _SPACES.sub("  " if _INNER.search(text) else " ", text)


SHORT = 200  # characters that may be said again


@dataclass(frozen=True, slots=True)
class Limits:
    """In characters; `side` in pixels."""

    whole: int = 23_500  # a tool may add a line or two
    stream: int = 8_000  # of stdout, of stderr, of a display
    pictures: int = 4
    side: int = 1_200
    cells: int = 40  # that gave something out
    displays: int = 20  # of one cell
    rows: int = 10  # of a table
    alone: bool = False  # it is about one cell only

    def for_one_cell(self) -> Limits:
        """It gets the whole room."""
        most = self.pictures * 4
        return replace(self, stream=self.whole, pictures=most, displays=10 * most, alone=True)


@dataclass(frozen=True, slots=True)
class Picture:
    data: str  # base64
    mime: str
    caption: str


class Places(Protocol):
    """What lies beside a record because it was too much for it."""

    def whole(self, cell: CellRecord, stream: str) -> Whole | None: ...


Shrink = Callable[[str, str, int], Shrunk]


class Teller:
    """`asking` are the arguments by which its outputs can be asked for: a run or a session.
    `named` is what a cell is called there."""

    def __init__(
        self,
        page: Page,
        limits: Limits,
        asking: Mapping[str, Any],
        places: Places | None,
        named: Callable[[CellRecord], str] = lambda cell: cell.id,
        shrink: Shrink = shrink,
    ) -> None:
        self.page = page
        self.limits = limits
        self._asking = asking
        self._places = places
        self._named = named
        self._shrink = shrink
        self._pictures: list[Picture] = []
        self._hidden = 0  # pictures of the cell that is being told
        self._seen: dict[str, str] = {}

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return tuple(self._pictures)

    def asking(self, **more: Any) -> str:
        """The call that shows more of it."""
        do = "output" if "session" in self._asking else "show"
        return as_tool(NextStep(do, {**self._asking, **more}))

    def some(self, cells: Sequence[CellRecord]) -> Iterator[CellRecord]:
        """All, or those at both ends."""
        most = self.limits.cells
        if len(cells) <= most:
            yield from cells
            return
        half = most // 2
        yield from cells[:half]
        missing = cells[half : len(cells) - half]
        self.page.say(
            f"… {len(missing):,} more cells gave something out; such as: "
            f"{self.asking(cell=self._named(missing[0]))}"
        )
        yield from cells[len(cells) - half :]

    def outputs(self, cell: CellRecord) -> None:
        self._hidden = 0
        self._pieces(cell)
        if self._hidden:
            many = "1 picture" if self._hidden == 1 else f"{self._hidden:,} pictures"
            most = f"only {self.limits.pictures} pictures are shown at once"
            self.page.say(f"… {many} of this cell omitted: {most}{self.more(cell)}")

    def more(self, cell: CellRecord) -> str:
        """How to have more of what a cell gave out, if there is a way."""
        return "" if self.limits.alone else f"; more: {self.asking(cell=self._named(cell))}"

    def rest_of_error(self, cell: CellRecord) -> Callable[[Excerpt], str]:
        """The call that reads the omitted part of an error's text."""

        def call(cut: Excerpt) -> str:
            assert cell.error is not None
            return self._rest(cell, Text("error", error_text(cell.error)), cut)

        return call

    def _rest(self, cell: CellRecord, piece: Text, cut: Excerpt) -> str:
        lines = cut.following(place_among_displays(cell, piece))
        return self.asking(cell=self._named(cell), stream=DISPLAYS, lines=lines)

    def _pieces(self, cell: CellRecord) -> None:
        found = list(pieces(cell))
        most = self.limits.displays
        if len(found) <= most:
            for piece in found:
                self._piece(cell, piece)
            return
        half = most // 2
        for piece in found[:half]:
            self._piece(cell, piece)
        missing = f"… {len(found) - 2 * half:,} more outputs of this cell are omitted"
        self.page.say(f"{missing}{self.more(cell)}")
        for piece in found[len(found) - half :]:
            self._piece(cell, piece)

    def _piece(self, cell: CellRecord, piece: Piece) -> None:
        if isinstance(piece, Image):
            self._picture(cell, piece)
        else:
            self._text(cell, piece)

    def _text(self, cell: CellRecord, piece: Text) -> None:
        before = self._said_before(cell, piece.text)
        if before:
            self.page.say(f"{piece.label}: the same as {before}")
            return
        before_cut, after, whole = self._split(cell, piece)
        self.page.say(f"{piece.label}:")

        def notice(cut: Excerpt) -> str:
            if "result" in self._asking:
                call = self.asking(lines=cut.following())
            elif piece.stream:
                call = self.asking(
                    cell=self._named(cell), stream=piece.stream, lines=cut.following()
                )
            else:
                call = self._rest(cell, piece, cut)
            return f"… {cut.omitted} omitted; read them: {call}"

        self.page.quote(before_cut, self.limits.stream, notice, after=after, whole=whole)

    def _said_before(self, cell: CellRecord, text: str) -> str:
        """Where the same was told already, if it is long enough to matter."""
        bare = cleaned(text).strip()
        if len(bare) <= SHORT and bare.count("\n") < 2:
            return ""
        digest = hashlib.sha256(bare.encode()).hexdigest()
        if digest in self._seen:
            return self._seen[digest]
        self._seen[digest] = f"what cell {cell.id} gave out above"
        return ""

    def _split(self, cell: CellRecord, piece: Text) -> tuple[str, str | None, Whole | None]:
        """Where a record has only both ends of a stream, and the whole is at hand elsewhere."""
        if not piece.stream or self._places is None or "[quire: " not in piece.text:
            return piece.text, None, None
        # Before what a record keeps of the end: the text may have such a line of its own.
        found = list(CUT.finditer(piece.text))
        whole = self._places.whole(cell, piece.stream) if found else None
        if whole is None:
            return piece.text, None, None
        last = found[-1]
        return piece.text[: last.start()], piece.text[last.end() :], whole

    def _picture(self, cell: CellRecord, image: Image) -> None:
        if len(self._pictures) >= self.limits.pictures:
            self._hidden += 1
            return
        made = self._shrink(image.mime, image.payload, self.limits.side)
        was = f"{made.was[0]:,} x {made.was[1]:,} px {image.mime.removeprefix('image/')}"
        if not made.payload:
            self.page.say(f"{image.label}: a picture, {was}, that is not shown: {made.why}")
            return
        number = len(self._pictures) + 1
        size = ""
        if (made.width, made.height) != made.was:
            size = f", shown at {made.width:,} x {made.height:,}"
        caption = f"picture {number}: {image.label} of cell {cell.id}, {was}{size}"
        self._pictures.append(Picture(made.payload, made.mime, caption))
        self.page.say(caption)
