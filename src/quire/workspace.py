"""A folder with tasks, and everything made for working in it. The only place that constructs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from . import __version__, config
from .executors.resume import Kept
from .executors.session import Budget, Session
from .kernel.calls import CallServer, Line
from .kernel.hostline import find_root
from .kernel.protocol import KernelSpec
from .kernel.start import Kernels
from .store.git import Repository
from .store.journal import Journal
from .store.runs import RunStore
from .store.sessions import SessionStore

STATE = ".quire"
KEPT_RUNS = 8


@dataclass(slots=True)
class LiveSession:
    session: Session
    journal: Journal
    path: Path
    parameters: Mapping[str, Any]
    line: Line
    spec: KernelSpec


class Engine:
    """What runs share in one process: kernels and the line that cells call back on."""

    def __init__(self, *, outlives: bool = False) -> None:
        """`outlives`: the process stays when the call is over, as a host does."""
        self.outlives = outlives
        self.kernels = Kernels(spare=outlives)
        self.calls = CallServer()
        # Live sessions by name, with the journals they are written to. Only a host has any.
        self.sessions: dict[str, LiveSession] = {}
        self.sessions_lock = threading.Lock()
        self.reviving = threading.Lock()  # one at a time, so that none is revived twice
        # Failed runs that can be resumed, oldest first.
        self.kept: dict[str, Kept] = {}

    def keep(self, kept: Kept) -> None:
        self.kept[kept.run_id] = kept
        self.tidy()

    def tidy(self) -> None:
        """Let go of runs whose time is over, and of the oldest where there are many."""
        now = time.monotonic()
        for run_id, kept in list(self.kept.items()):
            if now > kept.expires or len(self.kept) > KEPT_RUNS:
                self.kept.pop(run_id).drop()

    def close(self) -> None:
        for kept in self.kept.values():
            kept.drop()
        for live in self.sessions.values():
            live.session.close()
            live.journal.close()
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
        world: Mapping[str, Any] | None = None,
    ) -> None:
        self.cwd = Path(cwd) if cwd is not None else Path.cwd()
        self.env = dict(os.environ if env is None else env)
        self.root = Path(root) if root is not None else Path(find_root(str(self.cwd)))
        self._engine = engine
        # What else kernels should have of the caller's process; empty: what they inherit.
        self.world = dict(world or {})

    @cached_property
    def config(self) -> config.Config:
        return config.read(self.root)

    @cached_property
    def repository(self) -> Repository | None:
        """The git repository the workspace is in."""
        return Repository.find(self.root, self.env)

    @property
    def runs(self) -> RunStore:
        return RunStore(self.root / STATE / "runs", __version__)

    @property
    def snapshot_budget(self) -> Budget:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        # One share for all that sets states aside here, divided among them.
        parts = max(1, len(self.engine.sessions) + len(self.engine.kept))
        return Budget(self.config.snapshots, int(self.config.snapshot_memory * memory / parts))

    @property
    def sessions(self) -> SessionStore:
        return SessionStore(self.root / STATE / "sessions")

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
