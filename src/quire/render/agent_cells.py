"""The outputs of cells on a page: nothing twice, pictures aside, how to read what is left out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..next_steps import NextStep, as_tool
from ..record.record import CellRecord
from ..text import CUT, cleaned
from .agent_outputs import (
    DISPLAYS,
    Image,
    Piece,
    Text,
    error_text,
    pieces,
    place_among_displays,
)
from .agent_page import Page
from .excerpt import Excerpt, Whole
from .images import Shrunk, shrink

SHORT = 200  # characters that may be said again


@dataclass(frozen=True, slots=True)
class Limits:
    """In characters; `side` in pixels."""

    whole: int = 23_500  # whoever hands it over may add a line or two
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
        """The call that reads what is left out of an error's text."""

        def call(cut: Excerpt) -> str:
            assert cell.error is not None
            return self._rest(cell, error_text(cell.error), cut)

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
