"""A folder with tasks, and everything made for working in it. The only place that constructs."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from . import __version__, config
from .kernel.calls import CallServer
from .kernel.hostline import find_root
from .kernel.start import Kernels
from .store.runs import RunStore

STATE = ".quire"


class Engine:
    """What runs share in one process: kernels and the line that cells call back on."""

    def __init__(self, *, spare: bool = False) -> None:
        self.kernels = Kernels(spare=spare)
        self.calls = CallServer()

    def close(self) -> None:
        self.calls.close()
        self.kernels.close()


class Workspace:
    """`cwd` and `env` are the caller's: paths are read from there, kernels start there."""

    def __init__(
        self,
        root: Path | str | None = None,
        *,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.cwd = Path(cwd) if cwd is not None else Path.cwd()
        self.env = dict(os.environ if env is None else env)
        self.root = Path(root) if root is not None else Path(find_root(str(self.cwd)))
        self._engine = engine

    @cached_property
    def config(self) -> config.Config:
        return config.read(self.root)

    @property
    def runs(self) -> RunStore:
        return RunStore(self.root / STATE / "runs", __version__)

    @property
    def engine(self) -> Engine:
        return self._engine or shared_engine()

    def named(self, path: Path) -> str:
        """A path as a person writes it: relative to the workspace where it is inside."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


_shared: Engine | None = None
_shared_lock = threading.Lock()


def shared_engine() -> Engine:
    """The engine of this process, made on first use and gone with the process."""
    global _shared
    with _shared_lock:
        if _shared is None:
            import atexit

            _shared = Engine()
            atexit.register(_shared.close)
        return _shared
