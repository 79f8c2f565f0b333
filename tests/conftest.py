from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scratch import Scratch


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    (tmp_path / "quire.toml").write_text("")
    scratch = Scratch(tmp_path)
    yield scratch
    if (tmp_path / ".quire").exists():
        scratch.quire("host", "stop")
