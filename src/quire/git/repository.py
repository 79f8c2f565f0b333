"""A git repository, spoken to by git itself: plumbing only, no shell, nothing of ours in its way.

The only place that starts git; how it is called is said in `hardened_git.py`. Each call names the
repository that was found, and none is made when another one lies there by now. No name from
outside reaches git unchecked: `branch_name` says what may pass, and paths always stand behind `--`.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ..errors import GitError, QuireError, UsageError
from . import hardened_git
from .hardened_git import environment
from .refusals import explained

__all__ = ["Repository", "Said", "branch_name", "call", "environment", "refused"]
TIMEOUT = 120.0
LISTED = 30.0  # seconds for which a person's own settings are not asked for again


@dataclass(frozen=True, slots=True)
class Said:
    """What one call of git came to."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "surrogateescape").rstrip("\n")


class _Held:
    """Folders that stay what they are: as long as one is held, no other one gets its number."""

    def __init__(self, *paths: Path) -> None:
        self._fds: list[int] = []
        for path in dict.fromkeys(paths):
            with contextlib.suppress(OSError):
                self._fds.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))

    def __del__(self) -> None:
        for fd in self._fds:
            os.close(fd)


@dataclass(frozen=True)
class Repository:
    """`top` is the working tree, None in a bare repository; `common` is shared by all worktrees."""

    top: Path | None
    git_dir: Path
    common: Path
    env: Mapping[str, str] = field(repr=False)
    # Which folders these were when the repository was found.
    _which: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)
    _held: _Held = field(init=False, repr=False, compare=False)
    _let_in: list[bool] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_which", self._now())
        object.__setattr__(self, "_held", _Held(self.git_dir, self.common))

    @classmethod
    def find(cls, folder: Path, env: Mapping[str, str] | None = None) -> Repository | None:
        """The repository a folder is in, or None. Looks for it as git does, without calling it."""
        world = environment(os.environ if env is None else env)
        folder = folder.resolve()
        bare: Path | None = None
        for place in (folder, *folder.parents):
            git_dir = _git_dir(place / ".git")
            if git_dir is not None:
                if bare is not None and bare.is_relative_to(git_dir.resolve()):
                    break  # the inside of a .git
                # What looks like a bare repository and lies in another one came with that.
                return cls(place, git_dir, _common(git_dir), world)
            if bare is None and _is_git_dir(place):
                bare = place
        return cls(None, bare, _common(bare), world) if bare is not None else None

    def _now(self) -> tuple[tuple[int, int], ...]:
        try:
            places = (self.git_dir, _common(self.git_dir))  # git reads itself where it leads to
            return tuple((s.st_dev, s.st_ino) for s in map(os.stat, places))
        except OSError:
            return ()

    @property
    def id(self) -> str:
        """Tells it from another one at the same place, as long as the disk is the same."""
        return str(self._which[-1][1]) if self._which else ""

    def must_be_the_same(self) -> None:
        """Raises where another repository, or none, is by now where this one was found."""
        if self._now() != self._which:
            raise GitError(
                f"{self.git_dir} is not the repository any more that it was a moment ago: "
                "somebody replaced it",
                hint="nothing was written there; put the right one back, then quire doctor",
            )

    def refusal(self) -> GitError | None:
        """Why git will have nothing to do with this repository, where that is so."""
        question = ("rev-parse", "--git-dir")
        said = self.ask(*question)
        return refused(said, question) if said.code else None

    @property
    def here(self) -> Path:
        return self.top or self.git_dir

    def ask(
        self,
        *args: str,
        input: bytes | None = None,
        timeout: float = TIMEOUT,
        hooks: bool = False,
        **env: str,
    ) -> Said:
        """Call git and return what it came to, whatever that is.

        `hooks`: with those of the repository, for what a person asks for as they ask git.
        """
        self.must_be_the_same()
        world = {**self.env, **env}
        if (objection := self._objection(world)) is not None:
            return objection
        command = self._command(args, hooks=hooks)
        return _run(self.here, command, self._world(world, args, hooks=hooks), input, timeout)

    def git(
        self,
        *args: str,
        input: bytes | None = None,
        timeout: float = TIMEOUT,
        hooks: bool = False,
        **env: str,
    ) -> str:
        """Call git; its answer as text. Raises GitError when it refuses."""
        return (
            self.raw(*args, input=input, timeout=timeout, hooks=hooks, **env)
            .rstrip(b"\n")
            .decode("utf-8", "surrogateescape")
        )

    def raw(
        self,
        *args: str,
        input: bytes | None = None,
        timeout: float = TIMEOUT,
        hooks: bool = False,
        **env: str,
    ) -> bytes:
        said = self.ask(*args, input=input, timeout=timeout, hooks=hooks, **env)
        if said.code:
            raise refused(said, args)
        return said.out

    def start(self, *args: str, err: IO[bytes], buffer: int = -1) -> subprocess.Popen[bytes]:
        """A git to talk with, line by line. Ctrl-C on a terminal does not reach it."""
        self.must_be_the_same()
        if (objection := self._objection(self.env)) is not None:
            raise refused(objection, args)
        try:
            return subprocess.Popen(
                self._command(args),
                cwd=self.here,
                env=self._world(self.env, args),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                start_new_session=True,
                bufsize=buffer,
            )
        except FileNotFoundError as error:
            raise _not_started(self.here) from error

    # How git is told which repository it is about, and whose settings count.

    def _command(self, args: Sequence[str], *, hooks: bool = False) -> list[str]:
        tree = "--bare" if self.top is None else f"--work-tree={self.top}"
        place = (f"--git-dir={self.git_dir}", tree)
        program = hardened_git.program(self.env, self.top)
        return [program, *hardened_git.arguments(place, args, hooks=hooks)]

    def _world(
        self, env: Mapping[str, str], args: Sequence[str], *, hooks: bool = False
    ) -> dict[str, str]:
        world = dict(env)
        if not hooks:
            world["PATH"] = hardened_git.search_path(env, self.top)
        if args[0] in ("config", "hook"):  # starts nothing, or what is to see all that is set
            return world
        text = hardened_git.written(self.git_dir, self.common)
        listed = self._listed(text, world) if hardened_git.names_programs(text) else ()
        settings, more = hardened_git.overrides(
            text, listed, needed=hardened_git.needs_filters(args)
        )
        return hardened_git.with_settings({**world, **more}, settings)

    def left_out(self) -> frozenset[str]:
        """Filters that are named in the repository's own configuration, and are not called."""
        text = hardened_git.written(self.git_dir, self.common)
        if not hardened_git.names_programs(text):
            return frozenset()
        return hardened_git.left_out(self._listed(text, self.env))

    def _listed(self, text: bytes, world: Mapping[str, str]) -> Settings:
        """All settings; asked of git once where they are all said in one place."""
        key = (text, str(self.common), *(world.get(name) for name in _SAID_BY))
        until, found = _settings.get(key, (0.0, ()))
        if time.monotonic() > until:
            command = self._command(("config", "--list", "-z", "--show-scope"))
            said = _run(self.here, command, world)
            if said.code:
                raise refused(said, ["config"])
            found = hardened_git.parsed(said.out)
            if b"include" not in text.lower():
                _settings.clear()  # of one repository at a time there is enough
                _settings[key] = (time.monotonic() + LISTED, found)
        return found

    def _objection(self, env: Mapping[str, str]) -> Said | None:
        """What git says of a repository that belongs to somebody else, and that the person has
        not said they trust. It looks at that only where it is not told which repository to take.
        """
        if "GIT_TEST_ASSUME_DIFFERENT_OWNER" not in env and (self._let_in or self._is_own()):
            return None
        bare = ("-c", "safe.bareRepository=all") if self.top is None else ()
        question = (*bare, "rev-parse", "--git-dir")
        said = call(self.here, env, question)
        if said.code:
            return said
        self._let_in.append(True)
        return None

    def _is_own(self) -> bool:
        places = [self.git_dir, *((self.top, self.top / ".git") if self.top else ())]
        try:
            own = all(p.lstat().st_uid == os.geteuid() for p in places if os.path.lexists(p))
        except OSError:
            return False
        if own:
            self._let_in.append(True)
        return own

    def resolve(self, name: str) -> str | None:
        """The id of the commit that a full ref name, or an id, stands for."""
        said = self.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        return said.text if said.code == 0 else None

    def head(self) -> str | None:
        """The current commit; None before the first one."""
        return self.resolve("HEAD")

    def branch(self) -> str | None:
        """The current branch, also before its first commit; None when the head is detached."""
        said = self.ask("symbolic-ref", "--quiet", "--short", "HEAD")
        return said.text if said.code == 0 else None

    def config(self, key: str) -> str | None:
        said = self.ask("config", "--get", "--end-of-options", key)
        return said.text if said.code == 0 else None

    def blob(self, commit: str, path: str) -> bytes | None:
        """A file as it is in a commit."""
        said = self.ask("cat-file", "blob", f"{commit}:{path}")
        return said.out if said.code == 0 else None

    def checked_out(self, ref: str) -> str | None:
        """The working tree in which that branch is the current one."""
        place = ""
        for line in self.git("worktree", "list", "--porcelain").split("\n"):
            if line.startswith("worktree "):
                place = line[9:]
            elif line == f"branch {ref}":
                return place
        return None

    def is_ancestor(self, old: str, new: str) -> bool:
        return self.ask("merge-base", "--is-ancestor", old, new).code == 0

    def remotes(self) -> list[str]:
        return self.git("remote").split()

    def remote(self, wanted: str = "") -> str | None:
        """The one asked for, else the current branch's, else `origin`, else the only one."""
        known = self.remotes()
        if wanted:
            if wanted not in known:
                raise UsageError(
                    f"there is no remote {wanted!r}",
                    hint=f"git remote add {wanted} …; there are: {', '.join(known) or 'none'}",
                )
            return wanted
        branch = self.branch()
        mine = self.config(f"branch.{branch}.remote") if branch else None
        if mine in known:
            return mine
        if "origin" in known:
            return "origin"
        return known[0] if len(known) == 1 else None


def _git_dir(path: Path) -> Path | None:
    """What `.git` stands for: a folder, or a file that names one (worktrees, submodules)."""
    if _is_git_dir(path):
        return path
    try:
        text = path.read_text("utf-8", "surrogateescape")
    except OSError:
        return None
    if not text.startswith("gitdir: "):
        return None
    named = (path.parent / text[8:].rstrip("\n")).resolve()
    return named if _is_git_dir(named) else None


def _is_git_dir(path: Path) -> bool:
    return (path / "HEAD").is_file() and (
        (path / "commondir").is_file() or ((path / "objects").is_dir() and (path / "refs").is_dir())
    )


def _common(git_dir: Path) -> Path:
    """Where refs and objects are: elsewhere in a worktree."""
    try:
        return (git_dir / (git_dir / "commondir").read_text().strip()).resolve()
    except OSError:
        return git_dir


# Who says what a person's own settings are.
_SAID_BY = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM",
            "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS")  # fmt: skip
Settings = Sequence[tuple[str, str, str]]
_settings: dict[tuple[object, ...], tuple[float, Settings]] = {}


def call(
    folder: Path,
    env: Mapping[str, str],
    args: Sequence[str],
    input: bytes | None = None,
    timeout: float = TIMEOUT,
) -> Said:
    """Where there is no repository yet, or git itself is to say which it is."""
    command = [hardened_git.program(env, None), *hardened_git.arguments((), args)]
    world = {**env, "PATH": hardened_git.search_path(env, None)}
    return _run(folder, command, world, input, timeout)


def _run(
    folder: Path,
    command: Sequence[str],
    env: Mapping[str, str],
    input: bytes | None = None,
    timeout: float = TIMEOUT,
) -> Said:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            timeout=timeout,
            start_new_session=True,  # ssh finds no terminal to ask on
        )
    except FileNotFoundError as error:
        raise _not_started(folder) from error
    except PermissionError as error:
        raise UsageError(f"cannot enter {folder}", hint="check its permissions") from error
    except subprocess.TimeoutExpired as error:
        late = GitError(
            f"git {hardened_git.name_of(command)} did not answer within {timeout:g} s",
            hint="is a remote or a network disk hanging?",
        )
        late.retryable = True
        raise late from error
    return Said(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip())


def _not_started(folder: Path) -> QuireError:
    if not folder.is_dir():
        return UsageError(f"there is no folder {folder}", hint="cd to one that exists")
    hardened_git.forget_program()
    return GitError("git is not installed", hint="install git 2.38 or newer")


def refused(said: Said, args: Sequence[str]) -> GitError:
    """What git said, in one line, with the next step where we know it."""
    return explained(said.err, said.code, args[0])


# Names that git itself writes to and reads from, such as FETCH_HEAD.
_GITS_OWN = re.compile(r"([A-Z]+_)*HEAD|AUTO_MERGE")
_BAD = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-./]|/\.|\.lock(/|$)|[./]$|^@$")


# Each part of the name is a file's, with `.lock` behind it while git writes it.
LONGEST_PART, LONGEST_NAME = 250, 1000


def branch_name(name: str) -> str:
    """The name, if it can be a branch; otherwise an error that says so."""
    raw = name.encode("utf-8", "replace")
    if len(raw) > LONGEST_NAME or max(map(len, raw.split(b"/"))) > LONGEST_PART:
        raise UsageError(
            f"{name[:40]!r}… cannot be the name of a branch: it has {len(name):,} characters",
            hint="a shorter one, such as add-health-report",
        )
    if not name or _BAD.search(name) or _GITS_OWN.fullmatch(name) or name.startswith("refs/"):
        raise UsageError(
            f"{name!r} cannot be the name of a branch",
            hint="letters, digits, '-', '_' and '/', such as add-health-report",
        )
    return name
