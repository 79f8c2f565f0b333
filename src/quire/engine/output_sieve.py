"""Between the kernel and everybody else: secrets are masked, floods are cut, results are noticed.

Everything past this point is safe to write down and bounded in size. What is cut is not lost: the
whole of it goes, masked, to a spill file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..masking.invisible_text import SeenStream
from ..masking.masker import Masker
from ..record.cell_calls import CALLS_MIME
from ..record.events import (
    CellError,
    CellFinished,
    Event,
    KernelDied,
    OutputAdded,
    OutputCut,
    OutputsCleared,
    OutputUpdated,
    Warned,
)
from ..record.results import glued

RESULTS = 10_000  # named results of one run
VARIABLES = 50  # of a cell that failed
VALUE = 160  # characters of one
FRAME = 2_000  # characters of a text in a traceback's frames


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of one cell a record keeps."""

    stream: int = 4_000_000  # characters of stdout, and of stderr
    tail: int = 100_000  # of which at the end
    displays: int = 2_000
    display_bytes: int = 32_000_000  # of all displays of a cell together
    error: int = 100_000  # characters of an error's text, and of its traceback


class Spill(Protocol):
    """Where the rest goes."""

    def write(self, cell: str, what: str, text: str, path: str = "") -> str:
        """Append to `path`, or to a new file: a cell may run again. Returns the path to name in
        the record."""
        ...


class _Stream:
    """One stream of one cell: the head passes, the rest is counted, the last bit kept."""

    def __init__(self, cell: str, name: str, masker: SeenStream, bounds: Bounds) -> None:
        self.cell = cell
        self.name = name
        self.masker = masker
        self.keep = max(1, min(bounds.tail, bounds.stream // 2))
        self.room = max(0, bounds.stream - self.keep)
        self.passed: list[str] = []
        self.tail: deque[str] = deque()
        self.tail_size = 0
        self.cut = 0
        self.path = ""

    def take(self, text: str, spill: Spill) -> str:
        """The part that goes into the record now."""
        if len(text) <= self.room:
            self.room -= len(text)
            self.passed.append(text)
            return text
        head, rest = text[: self.room], text[self.room :]
        if not self.path:
            for part in (*self.passed, head):
                self.path = spill.write(self.cell, self.name, part, self.path)
            self.passed.clear()
        self.room = 0
        self.path = spill.write(self.cell, self.name, rest, self.path)
        self._keep_tail(rest)
        return head

    def _keep_tail(self, text: str) -> None:
        self.cut += len(text)
        self.tail.append(text[-self.keep :])
        self.tail_size += len(self.tail[-1])
        while self.tail_size - len(self.tail[0]) >= self.keep:
            self.tail_size -= len(self.tail.popleft())

    def end(self) -> OutputCut | None:
        if not self.cut:
            return None
        tail = "".join(self.tail)[-self.keep :]
        omitted = self.cut - len(tail)
        return OutputCut(self.cell, self.name, omitted, self.path, tail)


class Sieve:
    def __init__(self, masker: Masker, spill: Spill, bounds: Bounds | None = None) -> None:
        self.masker = masker
        self.spill = spill
        self.bounds = bounds or Bounds()
        self._streams: dict[str, _Stream] = {}
        self._displays = 0
        self._display_bytes = 0
        self._cut_displays = 0
        self._results = 0
        self._spilled = ""
        self._kept_ids: set[str] = set()
        self._late: dict[str, OutputUpdated] = {}

    def take(self, event: Event) -> Iterator[Event]:
        if isinstance(event, OutputAdded):
            if event.output["output_type"] == "stream":
                yield from self._stream(event)
                return
            yield from self._release()
            yield from self._display(event)
        elif isinstance(event, CellFinished):
            yield from self.end_cell(event.cell)
            yield self._finished(event)
        elif isinstance(event, OutputUpdated):
            yield from self._update(event)
        elif isinstance(event, OutputsCleared):
            # What is held back was printed before, and is cleared with the rest.
            yield from self._release()
            yield event
        elif isinstance(event, Warned):
            yield replace(event, message=self.safe(event.message))
        elif isinstance(event, KernelDied):
            yield replace(event, reason=self.safe(event.reason))
        else:
            yield event

    def end_cell(self, cell: str) -> Iterator[Event]:
        """What was held back or counted, once nothing more can come. Safe to call twice."""
        yield from self._release()
        yield from self._late.values()
        for stream in self._streams.values():
            if (cut := stream.end()) is not None:
                yield cut
        if self._cut_displays:
            yield OutputCut(cell, "display", self._cut_displays, self._spilled)
        self._streams, self._late, self._spilled = {}, {}, ""
        self._displays = self._display_bytes = self._cut_displays = 0

    def _finished(self, event: CellFinished) -> CellFinished:
        error = self._error(event.error) if event.error else None
        if not event.variables:
            return replace(event, error=error) if error else event
        return replace(event, error=error, variables=self._variables(event.variables))

    def _variables(self, found: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
        """Masked as they came, and cut only then: half a secret is not known for one."""
        return tuple(
            {str(key): _one_line(self.safe(str(text))) for key, text in one.items()}
            for one in found[:VARIABLES]
        )

    def _error(self, error: CellError) -> CellError:
        mask, limit = self.safe, self.bounds.error
        lines = _bounded_lines([mask(line) for line in error.traceback], limit)
        frames = (
            {k: _bounded(mask(v), FRAME) if isinstance(v, str) else v for k, v in one.items()}
            for one in error.frames
        )
        return CellError(
            mask(error.name), _bounded(mask(error.value), limit), tuple(lines), tuple(frames)
        )

    def _stream(self, event: OutputAdded) -> Iterator[Event]:
        name = event.output["name"]
        stream = self._streams.get(name)
        if stream is None:
            masker = SeenStream(self.masker)
            stream = self._streams[name] = _Stream(event.cell, name, masker, self.bounds)
        text = stream.take(stream.masker.feed(event.output["text"]), self.spill)
        if text:
            yield _stream_event(event.cell, name, text, event.area)

    def safe(self, text: str) -> str:
        """Text that comes as a whole, fit to be written down."""
        return self.masker.safe(text)

    def _release(self) -> Iterator[Event]:
        for name, stream in self._streams.items():
            if text := stream.take(stream.masker.flush(), self.spill):
                yield _stream_event(stream.cell, name, text)

    def _display(self, event: OutputAdded) -> Iterator[Event]:
        output: Mapping[str, Any] = self.masker.mask_json(event.output)
        if output["output_type"] == "error":
            # However much a cell showed, why it failed is kept.
            yield replace(event, output=_bounded_error(output, self.bounds.error))
            return
        if CALLS_MIME in output.get("data", ()):
            # Only the engine says what a cell asked of it.
            data = {mime: v for mime, v in output["data"].items() if mime != CALLS_MIME}
            output = {**output, "data": data}
        masked = replace(event, output=output, display_id=self._masked_id(event.display_id))
        fits = self._fits(output)
        for result in glued(masked):
            # A result is worth more than a display: it may still come where those are cut.
            self._results += 1
            if self._results <= RESULTS and self._display_bytes <= 2 * self.bounds.display_bytes:
                yield result
        if not fits:
            self._cut(event.cell, output)
            return
        if masked.display_id is not None:
            self._kept_ids.add(masked.display_id)
        yield masked

    def _update(self, event: OutputUpdated) -> Iterator[Event]:
        """Past the bounds only the last look of a display is kept, until the cell ends."""
        data, metadata = self.masker.mask_json([event.data, event.metadata])
        data.pop(CALLS_MIME, None)
        name = self._masked_id(event.display_id) or ""
        masked = replace(event, display_id=name, data=data, metadata=metadata)
        if self._fits(data):
            yield masked
        elif name in self._kept_ids:
            others = (late.data for other, late in self._late.items() if other != name)
            waiting = sum(map(_size, others))
            if waiting + _size(data) <= self.bounds.display_bytes:
                self._late[name] = masked
            else:
                self._cut(event.cell, {"data": data, "metadata": metadata})

    def _masked_id(self, display_id: str | None) -> str | None:
        return display_id and self.safe(display_id)

    def _cut(self, cell: str, output: Mapping[str, Any]) -> None:
        import json

        self._cut_displays += 1
        text = json.dumps(output, default=str) + "\n"
        self._spilled = self.spill.write(cell, "display", text, self._spilled)

    def _fits(self, output: Any) -> bool:
        self._displays += 1
        self._display_bytes += _size(output)
        return (
            self._displays <= self.bounds.displays
            and self._display_bytes <= self.bounds.display_bytes
        )


def _stream_event(cell: str, name: str, text: str, area: str = "") -> OutputAdded:
    return OutputAdded(cell, {"output_type": "stream", "name": name, "text": text}, area=area)


def _bounded_error(output: Mapping[str, Any], limit: int) -> dict[str, Any]:
    lines = [str(line) for line in output.get("traceback") or ()]
    return {
        **output,
        "evalue": _bounded(str(output.get("evalue", "")), limit),
        "traceback": _bounded_lines(lines, limit),
    }


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= VALUE else f"{text[: VALUE - 1]}…"


def _bounded(text: str, limit: int) -> str:
    """Head and tail, and between them how much was there."""
    if len(text) <= limit:
        return text
    half = limit // 2
    cut = len(text) - 2 * half
    return f"{text[:half]}\n[quire: {cut:,} characters were cut here]\n{text[-half:]}"


def _bounded_lines(lines: list[str], limit: int) -> list[str]:
    """The same for a traceback, which is a list of pieces of text."""
    lines = [_bounded(line, limit // 4) for line in lines]
    if sum(map(len, lines)) <= limit:
        return lines
    head, tail, room = 0, len(lines), limit
    while head < tail and (room := room - len(lines[head])) > limit // 2:
        head += 1
    while tail > head and (room := room - len(lines[tail - 1])) > 0:
        tail -= 1
    note = f"[quire: {tail - head:,} parts of the traceback were cut here]"
    return [*lines[:head], note, *lines[tail:]]


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(str(key)) + _size(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(_size(item) for item in value)
    return 8
