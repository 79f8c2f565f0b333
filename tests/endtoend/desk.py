"""A workspace for runs in this process, and what they printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quire
from quire.workspace import Engine


@dataclass
class Desk:
    """A workspace of one test, on an engine that all tests of the session share."""

    root: Path
    env: dict[str, str]
    engine: Engine

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def cells(self, name: str, *cells: str) -> Path:
        return self.write(name, "".join(f"# %%\n{cell}\n" for cell in cells))

    def workspace(self, env: Mapping[str, str] | None = None) -> quire.Workspace:
        everything = {**self.env, **(env or {})}
        return quire.Workspace(self.root, cwd=self.root, env=everything, engine=self.engine)

    def run(self, name: str, parameters: Any = None, **more: Any) -> quire.Record:
        return quire.run(name, parameters, workspace=self.workspace(), **more)

    def ran(self, *cells: str, **more: Any) -> quire.Record:
        """A task of these cells, run."""
        self.cells("t.py", *cells)
        return self.run("t.py", **more)


def shown(record: quire.Record, name: str = "stdout") -> str:
    return "".join(
        output["text"]
        for cell in record.cells
        for output in cell.outputs
        if output["output_type"] == "stream" and output["name"] == name
    )
