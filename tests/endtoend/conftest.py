from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import Desk
from live import Live

from quire.workspace import Engine


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


@pytest.fixture(scope="session")
def lasting() -> Iterator[Engine]:
    """An engine as a host has it: kernels stay when a call is over."""
    engine = Engine(outlives=True)
    yield engine
    engine.close()


@pytest.fixture
def live(tmp_path: Path, lasting: Engine, kernel_env: dict[str, str]) -> Iterator[Live]:
    (tmp_path / "quire.toml").write_text("")
    live = Live(tmp_path, kernel_env, lasting)
    yield live
    live.close()
