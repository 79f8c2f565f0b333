"""Which files a cell may name.

A path is resolved to its real one first, links and `..` included, and that must lie in one of the
roots and hold no protected name. Its folder is then opened, and the kernel's own name for what was
opened (/proc/self/fd) must be that same path: whoever puts a link in the place of a folder in
between is refused. From there on everything happens relative to the open folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..errors import ConfigError, Refused, ToolError

SECRET, READ_ONLY = "neither read nor written", "read only"
# Compared in lower case with the names below a root; "a/b" is a name in a folder. Secret is what
# holds keys and passwords, and what git and Quire keep for themselves. Read only is what decides
# what cells may do, whose records are trusted, and what git, agents, editors and CI run; the table
# of Quire in a pyproject.toml is kept by `policy.py`.
_TABLE = {
    SECRET: """
        .git .quire .ssh .gnupg .aws .env .env.* .envrc .netrc .pgpass .pypirc .npmrc
        .git-credentials id_rsa id_dsa id_ecdsa id_ed25519
        *.pem *.key *.p12 *.pfx *.jks *.kdbx *.ppk""",
    READ_ONLY: """
        quire.toml .quire-keys .gitattributes .gitmodules .githooks .husky .pre-commit-config.yaml
        .mcp.json .agents .claude .codex .cursor .gemini .hermes .opencode opencode.json
        opencode.jsonc .vscode
        .github/workflows .gitea/workflows .forgejo/workflows .gitlab-ci.yml""",
}
PROTECTED = {name: kind for kind, names in _TABLE.items() for name in names.split()}
HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist")

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 4096  # bytes of a path
_DEEPEST = 256  # folders below a root


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
    """A descriptor of the folder at this place; for a file, of the folder that it is in."""
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
        """`roots` are folders and whether they may be written; the first is the workspace. `closed`
        are folders that nothing reaches, wherever they are."""
        given = list(roots)
        found = [(path, _root(path, writable)) for path, writable in given]
        self.roots = [root for _, root in found if root is not None]
        self.missing = [path for path, root in found if root is None]
        own = {name.lower(): SECRET for name in protected}
        self.protected = {**PROTECTED, **own}
        self.harmless = tuple(
            name for name in HARMLESS if not any(fnmatchcase(name, one) for one in own)
        )
        self.closed = tuple(os.path.realpath(path) for path in closed)
        for root in self.roots:
            self._check_root(root, given[0][0])

    def _check_root(self, root: Root, workspace: str) -> None:
        """A root is not opened where it is, or lies in, a protected folder; folders that the
        workspace lies in too do not count."""
        for path, known in (
            (root.path, os.path.abspath(workspace)),
            (root.real, os.path.realpath(workspace)),
        ):
            if path == known:
                continue
            above = os.path.commonpath([path, known])
            names = _parts(path[len(above) :]) or _parts(path)[-1:]
            if name := self.forbidden(names, root.real, write=False):
                raise ConfigError(
                    f"the root {root.path} cannot be opened: {name} is protected",
                    hint="name another folder in read_roots or write_roots under [tools]",
                )

    @contextlib.contextmanager
    def at(
        self, path: object, cwd: object, *, write: bool = False, make: int | None = None
    ) -> Iterator[Spot]:
        """The place that a cell means by a path. `make`: missing folders on the way are made, with
        this mode."""
        said = _checked(path)
        base = _checked(cwd)
        if not os.path.isabs(base):
            raise ToolError("the folder of the cell is not known", hint="give an absolute path")
        spelled = os.path.normpath(os.path.join(base, said))
        try:
            real = os.path.realpath(os.path.join(base, said))
        except (OSError, RecursionError):  # a link became a folder while it was read
            raise _too_many_links(said) from None
        found = self._below(real, write=write)
        if found is None:
            raise self._outside(said, write=write)
        root, names = found
        if len(names) > _DEEPEST:
            raise ToolError(f"{said} lies too deep", hint="use fewer folders")
        # The name of a link counts as much as the name of what it leads to.
        _, own = self._below(spelled, write=False) or (None, [])
        name = self.forbidden(names, real, write=write) or self.forbidden(own, real, write=write)
        if name:
            raise Refused(
                f"{said}: {name} is protected",
                hint="file tools do not touch keys, .env, .git or .quire, and do not write what"
                " decides what others run",
            )
        folders, last = (names[:-1], names[-1]) if names else ([], ".")
        fd = _folder(root, folders, said, make)
        try:
            status = _status(fd, last, said)
            yield Spot(fd, last, real, status)
        finally:
            os.close(fd)

    def _below(self, path: str, *, write: bool) -> tuple[Root, list[str]] | None:
        """The deepest root that a path is in, and the names from there on."""
        found = [
            (root, path[len(spelled) :])
            for root in self.roots
            if root.writable or not write
            for spelled in (root.path, root.real)
            if _is_in(path, spelled)
        ]
        if not found:
            return None
        root, rest = min(found, key=lambda one: len(one[1]))
        return root, _parts(rest)

    def forbidden(self, names: Sequence[str], path: str, *, write: bool) -> str:
        """Which of these names, one below the other, is protected; empty if none is."""
        for at, name in enumerate(names):
            here = "/".join(names[at : at + 2]).lower()
            for pattern, kind in (
                self.protected.items() if name.lower() not in self.harmless else ()
            ):
                what = here if "/" in pattern else name.lower()
                if (write or kind is SECRET) and fnmatchcase(what, pattern):
                    return "/".join(names[at : at + 1 + pattern.count("/")])
        return next((os.path.basename(one) for one in self.closed if _is_in(path, one)), "")

    def _outside(self, said: str, *, write: bool) -> Refused:
        key = "write_roots" if write else "read_roots"
        more = [root.path for root in self.roots[1:] if root.writable or not write]
        opened = f"the workspace is open, and {', '.join(more)}" if more else ""
        gone = f"; there is no folder {', '.join(self.missing)}"
        return Refused(
            f"{said} is outside of what this task may {'write' if write else 'read'}",
            hint=f"{opened or 'only the workspace is open'}; {key} under [tools] opens more"
            f"{gone if self.missing else ''}",
        )


def _folder(root: Root, names: Sequence[str], said: str, make: int | None) -> int:
    """A descriptor of the folder of these names below a root."""
    with contextlib.ExitStack() as opened_here:

        def step(path: str, folder: int | None = None) -> int:
            fd = os.open(path, _FOLDER, dir_fd=folder)
            opened_here.callback(os.close, fd)
            return fd

        try:
            here = step(root.real)
            _expect(here, root.real, said)
            status = os.fstat(here)
            if (status.st_dev, status.st_ino) != root.identity:
                raise Refused(f"{root.path} is not the folder it was when the run began")
            path = os.path.join(root.real, *names)
            if make is None:
                here = step(path)
            else:
                for name in names:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, make, dir_fd=here)
                    here = step(name, here)
        except FileNotFoundError:
            raise ToolError(f"there is no {said}", hint="check the path") from None
        except OSError as error:
            no_folder = error.errno in (errno.ENOTDIR, errno.ELOOP)
            why = "a name on the way is not a folder" if no_folder else error.strerror
            raise ToolError(f"{said}: {why}", hint="check the path") from error
        _expect(here, path, said)
        return os.dup(here)


def _expect(fd: int, path: str, said: str) -> None:
    try:
        real = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        raise Refused("what was opened cannot be checked", hint="mount /proc") from None
    if real != path:
        raise Refused(f"{said} changed while it was looked at")


def _status(folder: int, name: str, said: str) -> os.stat_result | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{said}: {error.strerror}", hint="check the path") from error
    if stat.S_ISLNK(status.st_mode):
        raise _too_many_links(said)
    return status


def _too_many_links(said: str) -> Refused:
    return Refused(f"{said} leads over too many links, or changed while it was looked at")


def _root(path: str, writable: bool) -> Root | None:
    real = os.path.realpath(path)
    try:
        status = os.stat(real)
    except OSError:
        return None  # a root that is not there opens nothing
    if not stat.S_ISDIR(status.st_mode):
        return None
    return Root(os.path.abspath(path), real, (status.st_dev, status.st_ino), writable)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


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
