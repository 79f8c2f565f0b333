"""What a person sees while a run goes on: a line per cell, or a bar on a terminal."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from ..record.cell_calls import called
from ..record.events import (
    CellChanged,
    CellFinished,
    CellStarted,
    Event,
    KernelDied,
    NoteAdded,
    RunStarted,
    ToolCalled,
    Warned,
)
from ..record.summary import one_line, took
from ..text import plain
from .terminal import Terminal

COLOUR = {
    "ok": "green",
    "failed": "red",
    "died": "red",
    "timed_out": "red",
    "cancelled": "yellow",
    "paused": "yellow",
    "running": "blue",
    "carried": "dim",
    "skipped": "dim",
    "not run": "dim",
    "text": "dim",
}
REDRAW = 0.1
NOTED = 10  # lines of a note
REFUSALS = 5


def noted(text: str, margin: str = "") -> str:
    """No line of a note looks like one of ours; the first few, and the record has all."""
    rows = plain(text).strip().split("\n")
    under = "\n" + margin + " " * len("note: ")
    more = [f"… {len(rows) - NOTED:,} more lines"] if len(rows) > NOTED else []
    return f"{margin}note: {under.join([*rows[:NOTED], *more])}"


class Progress:
    """A context: while it lasts, the bar goes on though nothing happens."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._began = time.monotonic()
        self._order: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._current = ""
        self._drawn = 0.0
        self._bar = False
        self._refusals = 0

    def __enter__(self) -> Progress:
        if self.terminal.live:
            threading.Thread(target=self._go_on, name="quire-progress", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._over.set()
            self._erase()

    def _go_on(self) -> None:
        while not self._over.wait(REDRAW):
            with self._lock:
                if self._order and not self._over.is_set():
                    self._draw()

    def show(self, event: Event) -> None:
        with self._lock:
            self._show(event)

    def _show(self, event: Event) -> None:
        term = self.terminal
        if isinstance(event, RunStarted):
            code = [cell for cell in event.cells if cell["kind"] == "code"]
            if event.plan.get("logbook"):
                # The steps as a person counts them: what sets the parameters is none.
                code = [cell for cell in code if "injected-parameters" not in cell["tags"]]
            self._order = {cell["id"]: n for n, cell in enumerate(code, 1)}
            self._names = {cell["id"]: _name(cell["title"], cell["source"]) for cell in code}
            term.err(f"{event.run_id}  {one_line(event.task)}")
        elif isinstance(event, CellStarted):
            self._current = event.cell
            self._draw()
        elif isinstance(event, CellFinished):
            if not term.live or event.status != "ok":
                self._line(event)
            self._draw()
        elif isinstance(event, Warned):
            self._say(f"warning: {one_line(event.message)}", "yellow")
        elif isinstance(event, KernelDied):
            self._say(one_line(event.reason), "red")
        elif isinstance(event, ToolCalled) and event.tool == "run" and not event.refused:
            self._say(f"  ran {one_line(str(event.arguments.get('path')))}", "dim")
        elif isinstance(event, CellChanged):
            name = self._names.get(event.cell, "")
            self._say(
                f"  changed for this run: {name}: {one_line(event.reason)}".rstrip(": "), "dim"
            )
        elif isinstance(event, ToolCalled) and event.refused:
            self._refused(event)
        elif isinstance(event, NoteAdded):
            self._say(noted(event.text, "  "), "dim")
        else:
            self._draw()

    def _refused(self, event: ToolCalled) -> None:
        """The first few; the record has all."""
        self._refusals += 1
        if self._refusals <= REFUSALS:
            self._say(f"  {called(event)}", "yellow")

    def _line(self, event: CellFinished) -> None:
        n, total = self._order.get(event.cell, 0), len(self._order)
        if not n and event.status in ("ok", "carried"):
            return
        status = self.terminal.paint(event.status, COLOUR.get(event.status, ""), on_err=True)
        duration = took(event.duration) if event.status not in ("skipped", "not run") else ""
        width = len(str(total))
        name = self._names.get(event.cell, "")
        self._say(f"[{n:>{width}}/{total}] {status:<4} {duration:>8}  {name}".rstrip())

    def _say(self, text: str, colour: str = "") -> None:
        self._erase()
        self.terminal.err(self.terminal.paint(text, colour, on_err=True))

    def _draw(self) -> None:
        term, now = self.terminal, time.monotonic()
        if not term.live or term.busy or now - self._drawn < REDRAW:
            return
        self._drawn = now
        n, total = self._order.get(self._current, 0), len(self._order)
        filled = round(20 * (n - 1) / total) if total else 0
        bar = "█" * filled + "░" * (20 - filled)
        text = f"{bar} cell {n} of {total}  {took(now - self._began)}  "
        text += self._names.get(self._current, "")
        term.err(f"\r\x1b[K{text[: term.columns - 1]}", end="")
        self._bar = True

    def _erase(self) -> None:
        if self._bar and not self.terminal.busy:
            self.terminal.err("\r\x1b[K", end="")
            self._bar = False


def _name(title: str, source: str) -> str:
    """What to call a cell: its title, else its first line that says something, which `%%bash` does
    only where there is nothing else."""
    lines = [line for line in map(str.strip, source.splitlines()) if line and line[0] != "#"]
    text = title or next((line for line in lines if line[:2] != "%%"), lines[0] if lines else "")
    text = " ".join(plain(text).split())
    return text if len(text) <= 60 else text[:59] + "…"
