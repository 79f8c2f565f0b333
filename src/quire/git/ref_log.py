"""A ref that only grows: each change is one commit on the last, made without a working tree.

A change is one `git fast-import` that names the tip it stands on. git moves the ref only if that is
still the tip, so of several writers each lands in turn and none is lost. When a change returns, its
objects, its ref and the folders that hold them are on the disk.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import GitError, UsageError
from ..files import disk, sync_folder
from .git_process import Talk
from .objects import Objects, entries, too_large
from .repository import Repository, Said, refused

TRIES = 60
TURN = 10.0  # seconds to wait for other writers of this machine before going ahead all the same
LOCK = 2000  # milliseconds git waits for the lock of a ref
LARGEST = 256_000_000  # bytes of one file that is looked at
NOWHERE = "0" * 40  # an id that no commit has
USER_KNOWN = 30.0  # seconds for which the name of a user is not asked again


@dataclass(frozen=True, slots=True)
class Step:
    """What one commit changes: new contents by path, or None for a file that goes.

    A message that speaks of the commit before it is a function of that commit's id.
    """

    files: Mapping[str, bytes | None]
    message: str | Callable[[str | None], str]
    who: str = ""  # `Name <mail> seconds +0000`; empty: the user of the repository, now
    author: str = ""  # the same, where somebody else has made what is committed here


@dataclass(frozen=True, slots=True)
class Look:
    """The ref at one moment: its commit, and the files that were asked for (None: not there).

    A folder has some bytes or none; that it is there is all they say.
    """

    tip: str | None
    found: Mapping[str, bytes | None]


Make = Callable[[Look], Sequence[Step]]


class CheckedOut(GitError):
    """Somebody has the branch in a working tree."""


class GitLog:
    def __init__(
        self, repository: Repository, ref: str, *, start: Callable[[], str | None] | None = None
    ) -> None:
        """`start` names another ref to begin from as long as there is no `ref`: a fresh clone's."""
        if not ref.startswith("refs/"):
            raise UsageError(f"{ref!r} is not the full name of a ref", hint="refs/heads/reports")
        self.repository = repository
        self.ref = ref
        self.start = start

    # Reading.

    def now(self) -> GitLog:
        """The log as it is at this moment, for reading."""
        there = copy.copy(self)
        there.ref, there.start = self.tip() or NOWHERE, None
        return there

    def tip(self) -> str | None:
        return self.look().tip

    def look(self, *paths: str) -> Look:
        with Objects(self.repository) as objects:
            found = objects.info(f"{self.ref}^{{commit}}")
            if found is None and self.start and (other := self.start()):
                found = objects.info(f"{other}^{{commit}}")
            if found is None:
                return Look(None, dict.fromkeys(paths))
            read = {path: objects.read(f"{found.id}:{path}", LARGEST) for path in paths}
            return Look(found.id, read)

    def loose(self) -> str | None:
        """The tip, where a file of its own tells it: no process is needed for that."""
        try:
            text = (self.repository.common / self.ref).read_text("ascii").strip()
        except (OSError, ValueError):
            return None  # packed with others, or kept in another way: git knows
        return text if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text) else None

    def read(self, path: str) -> bytes | None:
        return self.look(path).found[path]

    def paths(self, prefix: str = "") -> list[str]:
        """The files at the tip, below a folder if one is given."""
        tip = self.tip()
        return [entry.path for entry in entries(self.repository, tip, prefix)] if tip else []

    # Writing.

    def append(self, files: Mapping[str, bytes | None], message: str) -> str:
        """One commit on top of whatever is there then; its id."""
        commit = self.change(lambda _: [Step(files, message)])
        assert commit is not None
        return commit

    def change(self, make: Make, looks: Sequence[str] = ()) -> str | None:
        """Ask `make` for steps as long as another writer is quicker; the commit on top.

        `make` gets the tip and the files named in `looks` as they are there. Its steps land
        together; with none, all stays as it is.
        """
        self.repository.must_be_the_same()
        self.must_be_free()
        with self.turn():
            for attempt in range(TRIES):
                # It starts while we look.
                with Import(self.repository, self.ref) as stream:
                    tip = self.loose()
                    look = stream.look(tip, looks) if tip else self.look(*looks)
                    steps = make(look)
                    if not steps:
                        return look.tip
                    stream.onto(look.tip)
                    for step in steps:
                        stream.commit(step)
                    known = (self.repository.common / self.ref).parent.is_dir()
                    if stream.finish():
                        self.settle(deep=not known)
                        return stream.tip
                time.sleep(random.uniform(0, 0.01 * 2 ** min(attempt, 5)))
        raise GitError(
            f"{self.ref} moved {TRIES} times while this waited for its turn", hint="say it again"
        )

    def must_be_free(self) -> None:
        """A branch that somebody has checked out would change under their feet."""
        if not self.ref.startswith("refs/heads/") or not _may_be_checked_out(
            self.repository, self.ref
        ):
            return
        if place := self.repository.checked_out(self.ref):
            raise CheckedOut(
                f"the branch {self.ref[11:]} is checked out in {place}",
                hint=f"switch to another one there: git -C {place} switch -",
            )

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """One writer of this repository at a time, so that few have to try again.

        Only a courtesy: where locks do not work, or one is held for too long, git's own
        comparison of the ref still lets nothing be lost.
        """
        try:
            fd = os.open(own_folder(self.repository), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            yield
            return
        try:
            end = time.monotonic() + TURN
            while time.monotonic() < end:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(random.uniform(0.001, 0.008))
                except OSError:
                    break
            yield
        finally:
            os.close(fd)

    def settle(self, *, deep: bool = True) -> None:
        """git syncs files, not the folders that name them; `deep`: nor those above them."""
        common = self.repository.common
        with disk(str(common)):
            sync_folder(common / "objects" / "pack")
            if (common / "reftable").is_dir():
                sync_folder(common / "reftable")
            folder = (common / self.ref).parent
            while folder.is_relative_to(common):
                if folder.is_dir():
                    sync_folder(folder)
                if not deep:
                    break
                folder = folder.parent


def _may_be_checked_out(repository: Repository, ref: str) -> bool:
    """Quickly: git itself is asked only if some HEAD names the branch, or cannot be read."""
    common = repository.common
    if (common / "reftable").is_dir():
        return True
    try:
        heads = [common / "HEAD", *(common / "worktrees").glob("*/HEAD")]
        return any(head.read_bytes().strip() == f"ref: {ref}".encode() for head in heads)
    except OSError:
        return True


def own_folder(repository: Repository) -> Path:
    """Where we keep what belongs to the repository but is no part of it."""
    folder = repository.common / "quire"
    folder.mkdir(exist_ok=True)
    return folder


class Import:
    """One `git fast-import` into one ref. The ref moves in `finish`, or not at all."""

    def __init__(
        self, repository: Repository, ref: str, parent: str | None = None, *, force: bool = False
    ) -> None:
        """`force` for a private ref, which stands for nothing."""
        self.tip = parent
        self._repository = repository
        self._ref = ref
        args = ("--quiet", "--done", *(["--force"] if force else []))
        self._talk = Talk(repository, "fast-import", *args, options=waiting())
        self._count = 0

    def onto(self, parent: str | None) -> None:
        """What the first commit stands on."""
        self.tip = parent

    def __enter__(self) -> Import:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Without `finish` git finds that its orders end too early, and leaves the ref alone."""
        if error is None and self._count == 0:
            with contextlib.suppress(GitError):
                self._talk.say(b"done\n")  # nothing was ordered
        self._talk.close()
        if error is not None:
            self._clear(str(error))

    def look(self, tip: str, paths: Sequence[str]) -> Look:
        """As `GitLog.look`, by the git that is here anyway. Of a folder only that it is there."""
        found: dict[str, bytes | None] = {}
        for path in paths:
            self._talk.say(_line(f"ls {tip} {checked_path(path)}"))
            head = self._talk.line().partition(b"\t")[0].split(b" ")
            if head[0] == b"missing":
                found[path] = None
            else:
                found[path] = self._blob(head[2].decode("ascii")) if head[1] == b"blob" else b""
        return Look(tip, found)

    def _blob(self, name: str) -> bytes:
        self._talk.say(_line(f"cat-blob {name}"))
        size = int(self._talk.line().split(b" ")[2])
        if size > LARGEST:
            raise too_large(name, size, LARGEST)
        return self._talk.read(size + 1)[:-1]

    def commit(self, step: Step) -> str:
        """The id the commit has; the next one stands on it."""
        self._count += 1
        message = step.message if isinstance(step.message, str) else step.message(self.tip)
        lines = [f"commit {self._ref}", f"mark :{self._count}"]
        lines += [f"author {step.author}"] if step.author else []
        lines.append(f"committer {step.who or user(self._repository)}")
        parts = [_line("\n".join(lines)), _data(message.encode("utf-8", "surrogateescape"))]
        if self._count == 1 and self.tip is not None:
            parts.append(_line(f"from {self.tip}"))  # later ones stand on the one before
        for path, data in sorted(step.files.items()):
            name = checked_path(path)
            if data is None:
                parts.append(_line(f"D {name}"))
            else:
                parts += [_line(f"M 100644 inline {name}"), _data(data)]
        self._talk.say(*parts, _line(f"get-mark :{self._count}"))
        self.tip = self._talk.line().decode("ascii")
        return self.tip

    def finish(self) -> bool:
        """Whether the ref has moved to the last commit. If not, somebody else was quicker."""
        self._talk.say(b"done\n")
        said = self._talk.end()
        if said.code and not is_race(said):
            raise refused(said, ["fast-import"])
        return said.code == 0

    def _clear(self, said: str) -> None:
        """What git leaves where it stopped: a report, and on a full disk what has filled it."""
        left = [self._repository.git_dir / f"fast_import_crash_{self._talk.pid}"]
        pack = self._repository.common / "objects" / "pack"
        left += [pack / name for name in re.findall(r"\btmp_pack_\w+", said)]
        for path in left:
            with contextlib.suppress(OSError):
                path.unlink()


def waiting() -> tuple[str, str]:
    """An option of git: how long to wait for whoever holds a ref right now."""
    return "-c", f"core.filesRefLockTimeout={LOCK}"


def is_race(said: Said) -> bool:
    """Whether git refused because the ref is not where we thought."""
    return bool(
        re.search(
            r"Not updating .* does not contain|but expected|reference already exists"
            r"|unable to resolve reference",
            said.err,
        )
    )


def _line(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape") + b"\n"


def _data(data: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(data), data)


def checked_path(path: str) -> str:
    """A path as a tree may hold it, and as no stranger can bend it."""
    parts = path.split("/")
    bad = any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)
    if bad or re.search(r'[\x00-\x1f\x7f\\"]', path):
        raise UsageError(f"{path!r} cannot be a path in git", hint="letters, digits, '-', '.', '/'")
    return path


_users: dict[tuple[str, ...], tuple[float, str]] = {}
_TOLD_BY = ("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL", "HOME", "XDG_CONFIG_HOME")


def user(repository: Repository) -> str:
    """Who commits here, and when. A host does not ask git for every run what the name is."""
    known = tuple(repository.env.get(name, "") for name in _TOLD_BY)
    key = (str(repository.git_dir), *known, repository.env.get("GIT_CONFIG_GLOBAL", ""))
    until, name = _users.get(key, (0.0, ""))
    if time.monotonic() > until:
        said = repository.ask("var", "GIT_COMMITTER_IDENT")
        # Whoever has not told git their name can run tasks all the same.
        name = "Quire <quire@localhost>" if said.code else said.text.rsplit(" ", 2)[0]
        _users[key] = (time.monotonic() + USER_KNOWN, name)
    return f"{name} {int(time.time())} {time.strftime('%z') or '+0000'}"
