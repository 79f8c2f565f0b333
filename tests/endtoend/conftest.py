from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def kernel_env() -> dict[str, str]:
    # Finding fonts takes matplotlib seconds, so its cache outlives the test run.
    fonts = Path(tempfile.gettempdir()) / "quire-test-matplotlib"
    fonts.mkdir(exist_ok=True)
    return {**os.environ, "MPLCONFIGDIR": str(fonts)}


@pytest.fixture
def desk(tmp_path: Path, engine: Engine, kernel_env: dict[str, str]) -> Desk:
    (tmp_path / "quire.toml").write_text("")
    return Desk(tmp_path, kernel_env, engine)


def shown(record: quire.Record, name: str = "stdout") -> str:
    return "".join(
        output["text"]
        for cell in record.cells
        for output in cell.outputs
        if output["output_type"] == "stream" and output["name"] == name
    )
