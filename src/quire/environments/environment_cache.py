"""Environments that were made for tasks, in a cache that all workspaces of a user share.

resolved/<digest>/     what is asked for, by the digest of the declaration and the Python
    lock.txt               every package with its version and hashes
    made.json              where its environment is
    lock                   held while somebody finds it out
made/<key>/            an environment, by the digest of the lock and the Python
    venv/                  what kernels start in
    environment.json       written last: without it there is no environment here
    lock                   held while somebody makes or removes it, also by the uv he started
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import KernelNotFound, StorageError
from ..files import disk, write_atomic
from .uv import Uv

FORMAT = 1
DAY = 86_400.0
WAIT = 0.05
LOCK = "lock.txt"


@dataclass(frozen=True, slots=True)
class Base:
    """A Python to make environments with."""

    path: Path
    version: str
    home: str  # the installation it belongs to, whatever environment it was found in


@dataclass(frozen=True, slots=True)
class Environment:
    folder: Path
    lock: str  # digest of the lock's text
    version: str  # of Python
    packages: Mapping[str, str]

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"


class Environments:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.made = root / "made"
        self.resolved = root / "resolved"

    @classmethod
    def of(cls, env: Mapping[str, str], root: Path = Path("/")) -> Environments:
        """In the folder that the caller's environment names for such things."""
        cache = env.get("QUIRE_CACHE")
        if not cache:
            home = env.get("HOME") or os.path.expanduser("~")
            shared = env.get("XDG_CACHE_HOME", "")
            cache = os.path.join(shared if os.path.isabs(shared) else f"{home}/.cache", "quire")
        return cls(Path(os.path.normpath(root / cache)) / "environments")

    # What was asked for before.

    def known(self, digest: str) -> Environment | None:
        """The environment of a declaration. Two small files and a look at a folder."""
        try:
            made = json.loads((self.resolved / digest / "made.json").read_bytes())
            return self.read(self.made / str(made["environment"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def lock_of(self, digest: str) -> str:
        """The versions found out for a declaration; empty where that has not happened."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return (self.resolved / digest / LOCK).read_text("utf-8")
        return ""

    @contextlib.contextmanager
    def resolving(self, digest: str, waiting: Callable[[], object]) -> Iterator[None]:
        """One at a time finds out what a declaration means."""
        with held(self.resolved / digest, waiting):
            yield

    def keep(self, digest: str, lock: str, environment: Environment) -> None:
        folder = self.resolved / digest
        with disk(str(folder)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(folder / LOCK, lock.encode(), durable=False)
        told = {"format": FORMAT, "environment": environment.folder.name}
        write_atomic(folder / "made.json", json.dumps(told).encode(), durable=False)

    # Environments.

    def read(self, folder: Path) -> Environment | None:
        """None where it is not whole, or not what it was when it was made."""
        try:
            data = (folder / "environment.json").read_bytes()
            told = json.loads(data)
            site = os.stat(folder / "venv" / told["site"]).st_mtime_ns
            if told["format"] != FORMAT or site != told["changed"]:
                return None
            found = Environment(folder, told["lock"], told["version"], told["packages"])
            return found if os.path.exists(found.python) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def used(self, environment: Environment) -> None:
        """Remember that somebody still wants it; once a day is enough."""
        stamp = environment.folder / "environment.json"
        with contextlib.suppress(OSError):
            if time.time() - os.stat(stamp).st_mtime > DAY:
                os.utime(stamp)

    def of_python(self, python: str) -> Environment | None:
        """The environment that an interpreter is the one of."""
        path = Path(python)
        if path.parent.parent.parent.parent != self.made:
            return None
        return self.read(path.parent.parent.parent)

    def make(self, lock: str, base: Base, uv: Uv, say: Callable[[str], None]) -> Environment:
        """The environment of a lock: the one that is there, or a new one."""
        text = f"{lock}\0{base.home}\0{base.version}"
        key = hashlib.sha256(text.encode()).hexdigest()[:24]
        for number in range(1000):
            folder = self.made / (f"{key}-{number}" if number else key)
            found = self.read(folder)
            if found is None and not (folder / "environment.json").exists():
                with held(folder, uv.look) as fd:
                    found = self.read(folder)
                    if found is None:
                        say(f"making an environment with Python {base.version} …")
                        found = self._build(folder, fd, lock, base, uv)
            if found is not None:
                return found
            # Somebody installed something in it. Kernels may live there: it is left alone.
        raise StorageError(f"{self.made} is full of changed environments", hint="quire env clean")

    def _build(self, folder: Path, fd: int, lock: str, base: Base, uv: Uv) -> Environment:
        with disk(str(folder)):
            shutil.rmtree(folder / "venv", ignore_errors=True)
            (folder / LOCK).write_text(lock, "utf-8")
        uv.make(folder / "venv", base.path, folder / LOCK, keep=fd)
        with disk(str(folder)):
            (site,) = (folder / "venv").glob("lib/python*/site-packages")
            # Python writes this one itself at the first import; later changes are somebody else's.
            (site / "__pycache__").mkdir(exist_ok=True)
            told = {
                "format": FORMAT,
                "lock": digest_of(lock),
                "version": base.version,
                "packages": _installed(site),
                "site": str(site.relative_to(folder / "venv")),
                "changed": site.stat().st_mtime_ns,
            }
            write_atomic(folder / "environment.json", json.dumps(told).encode(), durable=False)
        found = self.read(folder)
        if found is None:
            raise StorageError(
                f"the environment in {folder} is not whole", hint="quire env clean --all; try again"
            )
        return found

    def folders(self) -> list[Path]:
        try:
            return sorted(path for path in self.made.iterdir() if path.is_dir())
        except FileNotFoundError:
            return []

    def remove(self, folder: Path) -> bool:
        """False where somebody is making it, or kernels live in it."""
        with contextlib.suppress(_Busy), held(folder, _busy):
            if folder in self.in_use():
                return False
            with disk(str(folder)):
                (folder / "environment.json").unlink(missing_ok=True)
                shutil.rmtree(folder / "venv", ignore_errors=True)
                shutil.rmtree(folder)
            return True
        return False

    def in_use(self) -> set[Path]:
        """Environments that processes were started from."""
        found: set[Path] = set()
        prefix = os.fsencode(self.made) + b"/"
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:
                    program = file.read(4096).split(b"\0")[0]
                    if program.startswith(prefix):
                        name = program.removeprefix(prefix).split(b"/")[0]
                        found.add(self.made / os.fsdecode(name))
        return found


class _Busy(Exception):
    """Somebody else holds it."""


def _busy() -> None:
    raise _Busy


def _installed(site: Path) -> dict[str, str]:
    from importlib.metadata import distributions

    found = {one.metadata["Name"].lower(): one.version for one in distributions(path=[str(site)])}
    return dict(sorted(found.items()))


@contextlib.contextmanager
def held(folder: Path, waiting: Callable[[], object]) -> Iterator[int]:
    """One process at a time is in the folder, which is made if need be; `waiting` is called while
    it is another one, and may raise. Gives the open lock."""
    while True:
        with disk(str(folder)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                fd = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue  # it was removed in this very moment
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            here = os.stat(folder / "lock").st_ino == os.fstat(fd).st_ino
        except (BlockingIOError, FileNotFoundError):
            here = False
        if here:
            break
        os.close(fd)
        waiting()
        time.sleep(WAIT)
    try:
        yield fd
    finally:
        os.close(fd)


def digest_of(lock: str) -> str:
    return hashlib.sha256(lock.encode()).hexdigest()


def base_of(python: str) -> Base:
    """Asks the interpreter itself: only where an environment has to be made."""
    code = (
        "import platform, sys; print(platform.python_version(), "
        "getattr(sys, '_base_executable', sys.executable), sep='\\n')"
    )
    try:
        done = subprocess.run(
            [python, "-I", "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=True,
            text=True,
        )
        version, home = done.stdout.splitlines()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise KernelNotFound(
            f"{python} is no Python that could be asked for its version",
            hint="set `python` in the configuration to one that works",
        ) from error
    return Base(Path(python), version, os.path.realpath(home))


def identity(python: str) -> str:
    """Changes when another interpreter is put in its place. One look at the file."""
    with contextlib.suppress(OSError):
        return f"{os.path.realpath(python)} {os.stat(python).st_mtime_ns}"
    return python


def summary(environments: Environments, folder: Path) -> dict[str, Any]:
    """What a person wants to know of one: its size, when it was last used."""
    found = environments.read(folder)
    size = sum(
        os.lstat(os.path.join(top, name)).st_size
        for top, _, names in os.walk(folder)
        for name in names
    )
    used = 0.0
    with contextlib.suppress(OSError):
        used = os.stat(folder / "environment.json").st_mtime
    return {
        "environment": folder.name,
        "folder": str(folder),
        "state": "ready" if found else ("changed" if used else "unfinished"),
        "python": found.version if found else "",
        "packages": dict(found.packages) if found else {},
        "lock": found.lock if found else "",
        "size": size,
        "used": used,
    }
