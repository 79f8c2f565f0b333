"""Which files a cell may name, and the way there.

A path is walked from the folder of a root, one name at a time, and each step is taken from the
folder before it: what somebody puts in the place of a name in the meantime is not followed. Links
are read by us and stay within the roots, or are refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import ConfigError, Refused, ToolError

# Compared in small letters with each name on the way. What holds keys, and what git and Quire keep
# for themselves: whoever may write there decides what others run.
PROTECTED = (
    ".git",
    ".quire",
    ".ssh",
    ".gnupg",
    ".aws",
    ".env",
    ".env.*",
    ".envrc",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "*.ppk",
)
# Shown to people on purpose.
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist")
# What the policy itself is read from: it may be looked at.
POLICY_FILES = ("quire.toml",)

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = (errno.ELOOP, errno.ENOTDIR)
_LONGEST = 4096
_LINKS = 40
_DEEPEST = 256


@dataclass(frozen=True, slots=True)
class Root:
    path: str  # as a person writes it
    real: str
    identity: tuple[int, int]
    writable: bool


@dataclass(frozen=True, slots=True)
class Spot:
    """A name in an open folder. `status` is None where nothing is there."""

    folder: int
    name: str
    path: str  # the real one, for messages and the record
    status: os.stat_result | None

    @property
    def is_folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)


def opened(spot: Spot) -> int:
    """A descriptor of the folder that a place is; of a file the one that it is in."""
    if spot.status is None:
        raise ToolError(f"there is no {spot.path}", hint="check the path")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(spot.name if spot.is_folder else ".", flags, dir_fd=spot.folder)
    except OSError as error:
        raise ToolError(f"{spot.path}: {error.strerror}", hint="check the path") from error


class Places:
    def __init__(
        self,
        roots: Iterable[tuple[str, bool]],
        protected: Iterable[str] = (),
        closed: Iterable[str] = (),
    ) -> None:
        """The first root is the workspace. `closed` are folders that nothing reaches, wherever
        they lie."""
        given = list(roots)
        self.roots: list[Root] = []
        self.missing: list[str] = []
        for path, writable in given:
            root = _root(path, writable)
            if root is None:
                self.missing.append(path)
            else:
                self.roots.append(root)
        own = tuple(name.lower() for name in protected)
        self.protected = (*PROTECTED, *own)
        self.harmless = tuple(
            name for name in HARMLESS if not any(fnmatchcase(name, one) for one in own)
        )
        self.closed = tuple(os.path.realpath(path) for path in closed)
        for root in self.roots:
            self._may_be_open(root, given[0][0])

    def _may_be_open(self, root: Root, workspace: str) -> None:
        """The names on the way to a root are not walked, so they are looked at here; those that
        the workspace has above it too are no secret of anybody."""
        for path, known in (
            (root.path, os.path.abspath(workspace)),
            (root.real, os.path.realpath(workspace)),
        ):
            if path == known:
                continue
            above = len(Path(os.path.commonpath([path, known])).parts)
            for name in Path(path).parts[above:] or (Path(path).name,):
                if self.forbids(name, root.real, write=False):
                    raise ConfigError(
                        f"the root {root.path} cannot be opened: {name} is protected",
                        hint="name another folder in read_roots or write_roots under [tools]",
                    )

    @contextlib.contextmanager
    def at(
        self, path: object, cwd: object, *, write: bool = False, make: int | None = None
    ) -> Iterator[Spot]:
        """The place a cell means by a path. `make`: with the folders on the way, of this mode."""
        text = _checked(path)
        base = _checked(cwd)
        if not os.path.isabs(base):
            raise ToolError("the folder of the cell is not known", hint="give an absolute path")
        walk = _Walk(self, os.path.join(base, text), text, write=write, make=make)
        try:
            yield walk.go()
        finally:
            walk.close()

    def root_of(self, parts: list[str], *, write: bool) -> tuple[Root, int] | None:
        """The deepest root these names begin with, and how many of them are its own."""
        found: tuple[Root, int] | None = None
        for root in self.roots:
            if write and not root.writable:
                continue
            for spelled in {root.path, root.real}:
                own = [part for part in spelled.split("/") if part]
                if parts[: len(own)] == own and (found is None or len(own) > found[1]):
                    found = root, len(own)
        return found

    def forbids(self, name: str, path: str, *, write: bool) -> bool:
        low = name.lower()
        if write and low in POLICY_FILES:
            return True
        if low not in self.harmless and any(
            fnmatchcase(low, pattern) for pattern in self.protected
        ):
            return True
        return any(path == one or path.startswith(f"{one}/") for one in self.closed)


class _Walk:
    def __init__(
        self, places: Places, path: str, said: str, *, write: bool, make: int | None
    ) -> None:
        self.places, self.said, self.write, self.make = places, said, write, make
        self.todo = deque(part for part in path.split("/") if part not in ("", "."))
        self.links = 0
        self.folders: list[int] = []
        self.names: list[str] = []
        self.root: Root | None = None

    def close(self) -> None:
        for fd in self.folders:
            os.close(fd)
        self.folders = []

    def go(self) -> Spot:
        self._enter_root()
        while self.todo:
            if len(self.folders) > _DEEPEST:
                raise ToolError(f"{self.said} lies too deep", hint="use fewer folders")
            name = self.todo.popleft()
            if name == "..":
                self._up()
                continue
            self._look_at(name)
            status = self._status(name)
            if status is not None and stat.S_ISLNK(status.st_mode):
                self._follow(name)
            elif not self.todo:
                return Spot(self.folders[-1], name, self._real(name), status)
            else:
                self._down(name, status)
        # The path ended in a folder that was walked into, or is the root itself.
        fd = self.folders[-1]
        return Spot(fd, ".", self._real(), os.fstat(fd))

    def _enter_root(self) -> None:
        found = self.places.root_of(list(self.todo), write=self.write)
        if found is None:
            raise self._outside()
        root, own = found
        for _ in range(own):
            self.todo.popleft()
        self.close()
        self.names, self.root = [], root
        try:
            fd = os.open(root.real, _FOLDER)
        except OSError as error:
            raise ToolError(
                f"{root.path} cannot be opened: {error.strerror}", hint="it may have gone"
            ) from error
        self.folders.append(fd)
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != root.identity:
            raise Refused(f"{root.path} is not the folder it was when the run began")

    def _up(self) -> None:
        if self.names:
            os.close(self.folders.pop())
            self.names.pop()
            return
        assert self.root is not None
        above = [part for part in self.root.real.split("/") if part][:-1]
        self._start_over([*above, *self.todo])

    def _start_over(self, parts: list[str]) -> None:
        self._count()
        self.todo = deque(part for part in parts if part not in ("", "."))
        self._enter_root()

    def _count(self) -> None:
        self.links += 1
        if self.links > _LINKS:
            raise ToolError(f"{self.said} leads through too many links", hint="name its target")

    def _look_at(self, name: str) -> None:
        if len(os.fsencode(name)) > 255:
            raise ToolError(f"{self.said} has a name that is too long", hint="shorten it")
        if self.places.forbids(name, self._real(name), write=self.write):
            raise Refused(
                f"{self.said}: {name} is protected",
                hint="file tools never touch keys, .env, .git, .quire, or the policy itself",
            )

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.folders[-1], follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ToolError(f"{self.said}: {error.strerror}", hint="check the path") from error

    def _follow(self, name: str) -> None:
        self._count()
        try:
            target = os.readlink(name, dir_fd=self.folders[-1])
        except OSError as error:
            raise self._changed() from error
        if target.startswith("/"):
            self._start_over([*target.split("/"), *self.todo])
        else:
            self.todo.extendleft(
                part for part in reversed(target.split("/")) if part not in ("", ".")
            )

    def _down(self, name: str, status: os.stat_result | None) -> None:
        if status is None and self.make is None:
            raise ToolError(f"there is no {self.said}", hint="check the path")
        try:
            if status is None and self.make is not None:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, self.make, dir_fd=self.folders[-1])
            fd = os.open(name, _FOLDER, dir_fd=self.folders[-1])
        except OSError as error:
            if error.errno in _NO_FOLDER and status and _is_folder(status):
                raise self._changed() from error
            why = "is not a folder" if error.errno in _NO_FOLDER else error.strerror
            raise ToolError(f"{self.said}: {name} {why}", hint="check the path") from error
        self.folders.append(fd)
        self.names.append(name)

    def _real(self, *names: str) -> str:
        assert self.root is not None
        return "/".join((self.root.real.rstrip("/"), *self.names, *names)) or "/"

    def _changed(self) -> Refused:
        return Refused(f"{self.said} changed while it was looked at")

    def _outside(self) -> Refused:
        key = "write_roots" if self.write else "read_roots"
        more = [root.path for root in self.places.roots[1:] if root.writable or not self.write]
        opened = f"the workspace is open, and {', '.join(more)}" if more else ""
        gone = f"; there is no folder {', '.join(self.places.missing)}"
        return Refused(
            f"{self.said} is outside of what this task may {'write' if self.write else 'read'}",
            hint=f"{opened or 'only the workspace is open'}; {key} under [tools] opens more"
            f"{gone if self.places.missing else ''}",
        )


def _root(path: str, writable: bool) -> Root | None:
    real = os.path.realpath(path)
    try:
        status = os.stat(real)
    except OSError:
        return None  # a root that is not there opens nothing
    if not stat.S_ISDIR(status.st_mode):
        return None
    return Root(os.path.abspath(path), real, (status.st_dev, status.st_ino), writable)


def _is_folder(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode)


def _checked(path: object) -> str:
    if not isinstance(path, str) or not path:
        raise ToolError("a path is a text that is not empty", hint="give the path of a file")
    if "\0" in path:
        raise Refused("the path has a NUL in it")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise Refused("the path is no text that a file system knows") from None
    if size > _LONGEST:
        raise Refused(f"the path has {size:,} bytes; at most {_LONGEST:,} are looked at")
    return path
