"""Drive a kernel cell by cell and look at what came out, as a notebook would show it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quire.kernel.protocol import Kernel, KernelEvent
from quire.record.events import (
    CellFinished,
    KernelDied,
    OutputAdded,
    OutputsCleared,
    OutputUpdated,
)


def clean_environment(home: Path) -> dict[str, str]:
    """What a kernel gets in these tests: nothing of pytest's, nothing of the user's home."""
    # Finding fonts takes matplotlib seconds, so its cache outlives the test run.
    fonts = Path(tempfile.gettempdir()) / "quire-test-matplotlib"
    fonts.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "IPYTHONDIR": str(home / "ipython"),
        "MPLCONFIGDIR": str(fonts),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }


@dataclass
class Sheet:
    """The outputs of each cell, kept up to date by events."""

    cells: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _shown: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _to_clear: set[str] = field(default_factory=set)

    def take(self, event: KernelEvent) -> None:
        outputs = self.cells.setdefault(event.cell, [])
        match event:
            case OutputAdded(cell, output, display_id):
                if cell in self._to_clear:
                    self._to_clear.discard(cell)
                    outputs.clear()
                kind = output["output_type"]
                last = outputs[-1] if outputs else {}
                if kind == "stream" and last.get("name") == output["name"]:
                    last["text"] += output["text"]
                    return
                outputs.append(dict(output))
                if display_id:
                    self._shown.setdefault(display_id, []).append(outputs[-1])
            case OutputUpdated(_, display_id, data, metadata):
                for output in self._shown.get(display_id, ()):
                    output["data"], output["metadata"] = data, metadata
            case OutputsCleared(cell, wait):
                if wait:
                    self._to_clear.add(cell)
                else:
                    outputs.clear()


@dataclass
class Ran:
    """One executed cell."""

    outputs: list[dict[str, Any]]
    events: list[KernelEvent]
    end: CellFinished | KernelDied

    def text(self, name: str) -> str:
        return "".join(o["text"] for o in self.outputs if o.get("name") == name)

    @property
    def stdout(self) -> str:
        return self.text("stdout")

    @property
    def stderr(self) -> str:
        return self.text("stderr")

    def data(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The MIME bundles, of one output type or of both."""
        return [o["data"] for o in self.outputs if "data" in o and kind in (None, o["output_type"])]

    @property
    def error(self) -> str:
        assert isinstance(self.end, CellFinished)
        return self.end.error.name if self.end.error else ""


def run(kernel: Kernel, code: str, cell: str = "c", sheet: Sheet | None = None) -> Ran:
    """Run a cell to its end, whatever that is. Checks that there is exactly one end."""
    sheet = Sheet() if sheet is None else sheet
    sheet.cells.setdefault(cell, [])
    events = [event for event in kernel.execute(code, cell) if event is not None]
    for event in events:
        sheet.take(event)
    ends = [event for event in events if isinstance(event, CellFinished | KernelDied)]
    assert len(ends) == 1
    assert events[-1] is ends[0]
    assert ends[0].cell == cell
    return Ran(sheet.cells[cell], events, ends[0])


def ok(kernel: Kernel, code: str) -> Ran:
    ran = run(kernel, code)
    assert isinstance(ran.end, CellFinished), ran.end
    assert ran.end.status == "ok", ran.end.error
    assert ran.end.error is None
    return ran


def failed(kernel: Kernel, code: str) -> Ran:
    """A failure is told twice: as an output of the cell and in its end."""
    ran = run(kernel, code)
    assert isinstance(ran.end, CellFinished), ran.end
    assert ran.end.status == "failed"
    assert ran.end.error is not None
    shown = [o for o in ran.outputs if o["output_type"] == "error"]
    assert [o["ename"] for o in shown] == [ran.end.error.name]
    assert [o["evalue"] for o in shown] == [ran.end.error.value]
    return ran
