"""A folder with tasks, and everything made for working in it. The only place that constructs."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__, config
from .archive.branch import GitArchive
from .archive.folder_archive import FolderArchive
from .archive.large_objects import Objects, objects
from .archive.layout import Archive
from .engine import dotenv
from .engine.resume_point import Kept
from .engine.run_underway import Underway
from .engine.saved_states import Budget
from .engine.taken_up import TakenUp
from .environments.environment_cache import Environments
from .errors import QuireError
from .git.repository import Repository
from .host.host_socket import find_root
from .kernel.engine_calls import CallServer, Line
from .kernel.protocol import KernelSpec
from .kernel.start_kernel import Kernels
from .masking.known_secrets import Known
from .proof.key_store import Keys
from .proof.signatures import check_seal
from .record.journal import Journal
from .record.questions import Asker, Nobody
from .record.run_folders import RunStore
from .sessions.background_exec import Given
from .sessions.live_session import Session
from .sessions.promotion_underway import Promotion
from .sessions.session_folders import SessionStore

if TYPE_CHECKING:
    from .review.protocol import Forge

STATE = ".quire"
KEPT_RUNS = 8
KEPT_SIGNED = 64
ENDING = 10.0  # seconds that runs get which are called off because their process ends


@dataclass(slots=True)
class LiveSession:
    session: Session
    journal: Journal
    path: Path
    parameters: Mapping[str, Any]
    line: Line
    spec: KernelSpec
    calls: Any = None  # answers what its cells ask for
    others: dict[str, str] = field(default_factory=dict)  # cells that run in another kernel


class Seen:
    """The cells of a notebook as each caller last read them; the oldest are forgotten."""

    def __init__(self, limit: int = 512) -> None:
        self.limit = limit
        self._cells: dict[tuple[str, Path], Any] = {}
        self._lock = threading.Lock()

    def put(self, caller: str, path: Path, cells: Any) -> None:
        with self._lock:
            self._cells.pop((caller, path), None)
            self._cells[caller, path] = cells
            if len(self._cells) > self.limit:
                del self._cells[next(iter(self._cells))]

    def get(self, caller: str, path: Path) -> Any:
        """None for what that caller has not read."""
        with self._lock:
            return self._cells.get((caller, path))


class Engine:
    """What runs share in one process: kernels and the line that cells call back on."""

    def __init__(self, *, outlives: bool = False) -> None:
        """`outlives`: the process stays when the call is over, as a host does."""
        self.outlives = outlives
        self.kernels = Kernels(spare=outlives)
        self.calls = CallServer()
        # What must not be seen of any caller: kernels may find more than their own run's.
        self.known = Known()
        if not outlives:
            self.known.meet(os.environ)  # the kernels' parent has it, whatever they were given
        # Live sessions by name, with the journals they are written to. Only a host has any.
        self.sessions: dict[str, LiveSession] = {}
        self.sessions_lock = threading.Lock()
        self.reviving = threading.Lock()  # one at a time, so that none is revived twice
        # Runs that go on in this process, by id.
        self.underway: dict[str, Underway] = {}
        self.seen = Seen()
        # What each session was last told to run, and what became of it.
        self.given: dict[str, Given] = {}
        self.promotions: dict[str, Promotion] = {}  # under way, by session
        # Failed runs that can be resumed, oldest first.
        self.kept: dict[str, Kept] = {}
        self.vouched: dict[str, bytes] = {}  # runs that are owed, as they were signed here
        self.silent_remotes: dict[str, float] = {}  # until when each is not tried again
        self._chores: dict[str, tuple[float, Callable[[], object]]] = {}  # with when it is due
        self._at_chores: threading.Thread | None = None

    def later(self, name: str, chore: Callable[[], object], *, after: float = 0.0) -> None:
        """What can wait until nobody does; of two with one name the newer is enough. `after`: so
        many seconds from the first time it is asked for, whatever is asked for since."""
        due, _ = self._chores.get(name, (time.monotonic() + after, chore))
        self._chores[name] = due, chore

    def do_chores(self) -> bool:
        """Begin what is due, in a thread of its own; whether there is anything to do."""
        if self._at_chores is not None and self._at_chores.is_alive():
            return True
        if not self._due():
            return False
        self._at_chores = threading.Thread(target=self._do_chores, name="quire-chores", daemon=True)
        self._at_chores.start()
        return True

    def _due(self) -> list[str]:
        now = time.monotonic()
        return [name for name, (due, _) in list(self._chores.items()) if due <= now]

    def _do_chores(self) -> None:
        while due := self._due():
            _, chore = self._chores.pop(due[-1])
            # Nobody is there to be told; what was to be done is still owed, and `doctor` says so.
            with contextlib.suppress(QuireError):
                chore()

    def ended(self, run: Underway | None) -> None:
        """All there is to know of a run is on the disk; whoever waits for it is told."""
        if run is not None:
            self.underway.pop(run.run_id, None)
            run.end()

    def call_off(self) -> None:
        """End the runs that are under way and let them write their records."""
        runs = list(self.underway.values())
        for run in runs:
            run.cancel()
        deadline = time.monotonic() + ENDING
        for run in runs:
            run.wait(max(0.0, deadline - time.monotonic()))

    def keep(self, kept: Kept) -> None:
        self.kept[kept.run_id] = kept
        self.tidy()

    def vouch(self, run_id: str, signed: bytes) -> None:
        """Remember what was signed of a run that the archive still lacks; the oldest go first."""
        self.vouched[run_id] = signed
        for old in list(self.vouched)[:-KEPT_SIGNED]:
            self.vouched.pop(old, None)

    def tidy(self) -> None:
        """Let go of runs whose time is over, and of the oldest where there are many."""
        now = time.monotonic()
        for run_id, kept in list(self.kept.items()):
            if now > kept.expires or len(self.kept) > KEPT_RUNS:
                self.kept.pop(run_id).drop()

    def close(self) -> None:
        if self.outlives:
            self.call_off()
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
        asker: Asker | None = None,
        say: Callable[[str], None] | None = None,
        settings: config.Config | None = None,
        caller: int = 0,
    ) -> None:
        """`settings`: instead of what the configuration says by now. `caller`: the process that
        asks, where that is not this one."""
        self.caller = caller
        self.cwd = Path(cwd) if cwd is not None else Path.cwd()
        self.env = dict(os.environ if env is None else env)
        self.root = Path(root) if root is not None else Path(find_root(str(self.cwd)))
        self._engine = engine
        # What else kernels should have of the caller's process; empty: what they inherit.
        self.world = dict(world or {})
        self._settings = settings
        # Who answers when a task, or what it needs, has a question.
        self.asker: Asker = asker or Nobody()
        # Told what takes a while before a run begins.
        self.say: Callable[[str], None] = say or (lambda _: None)

    @cached_property
    def config(self) -> config.Config:
        return self._settings or config.read(self.root)

    @cached_property
    def dotenv(self) -> Mapping[str, str]:
        """What `.env` says. The caller's own variables go before it."""
        return dotenv.read(self.root, self.env)

    @cached_property
    def repository(self) -> Repository | None:
        """The git repository the workspace is in."""
        return Repository.find(self.root, self.env)

    @property
    def keys(self) -> Keys:
        """What this machine signs with, and whom the repository trusts."""
        top = self.repository.top if self.repository is not None else None
        return Keys(self.env, top or self.root, tracked=top is not None)

    @cached_property
    def forge(self) -> Forge:
        """Where changes are put up for review."""
        from .review.choose_forge import choose  # few commands need it, and every one would wait

        return choose(self.repository, self.config.forge, self.env)

    @cached_property
    def archive(self) -> Archive:
        """Where runs are kept for good: a branch, or a folder where there is no repository."""
        settings = self.config.archive
        if self.repository is None:
            folder = self.root / STATE / "archive"
            return FolderArchive(folder, self.keys.seal, self.named(folder))
        return GitArchive(
            self.repository, settings.branch, self.keys.seal, settings.remote, self._objection
        )

    def _objection(self, data: bytes, seal: str) -> str:
        """What is wrong with a seal, by the repository's list of keys and by our own."""
        listed = self.keys.listed()
        own = check_seal(data, seal, self.keys.own_trust())
        found = check_seal(data, seal, listed) if own and listed is not None else own
        return found[0].what if found else ""

    @cached_property
    def objects(self) -> Objects:
        """Outputs that are too large for the archive."""
        return objects(self.config.archive.objects, self.root / STATE / "objects", self.root)

    @property
    def runs(self) -> RunStore:
        return RunStore(self.root / STATE / "runs", __version__)

    @property
    def taken_up(self) -> TakenUp:
        return TakenUp(self.root / STATE / "taken-up")

    @cached_property
    def environments(self) -> Environments:
        """What was made for tasks that declare what they need."""
        return Environments.of(self.env, self.root)

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
