from __future__ import annotations

from pathlib import Path

import pytest
from kept_runs import FAILS, MENDED, keep

from made_archive import repository
from quire.workspace import Workspace


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    folder = tmp_path / "repo"
    repository(folder)
    (folder / "quire.toml").write_text("")
    return Workspace(folder, cwd=folder)


@pytest.fixture
def filled(ws: Workspace) -> Workspace:
    keep(ws, 1, note="Nulls come from the old exporter")
    keep(ws, 2, FAILS, fails_at=2)
    keep(ws, 3, MENDED, parameters={"n": 9}, results=[("score", 0.91), ("region", "eu")])
    keep(ws, 4, results=[("score", 0.4), ("region", "us")])
    return ws
