"""Many objects of a repository by one `git cat-file`, many commits by one `git diff-tree`.

Nothing that is read here can be relied on: whoever may push may write any of it.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ..errors import GitError
from .git_process import Talk
from .repository import Repository


@dataclass(frozen=True, slots=True)
class Info:
    id: str
    kind: str  # commit, tree, blob or tag
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, a folder, or what else a tree may hold."""

    mode: str  # 100644 for a plain file
    id: str
    path: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit did to one path. The mode and id of what is not there are all zeros."""

    kind: str  # A added, M modified, D deleted, T another type
    old_mode: str
    mode: str
    old: str
    id: str
    path: str


@dataclass(frozen=True, slots=True)
class Commit:
    id: str
    parents: tuple[str, ...]
    who: str  # the committer and when: `Name <mail> seconds zone`
    message: str
    changes: tuple[Change, ...]  # against the first parent


class Objects:
    """Names are object ids, refs, or `commit:path`. Use it in a `with`."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._talk: Talk | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def info(self, name: str) -> Info | None:
        return self._ask("info", name)[0]

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """The bytes of a blob or commit; None where there is no such thing.

        With `most`, one that is larger is refused before it is read.
        """
        if most is not None:
            found = self.info(name)
            if found is not None and found.size > most:
                raise too_large(name, found.size, most)
        return self._ask("contents", name)[1]

    def _ask(self, command: str, name: str) -> tuple[Info | None, bytes | None]:
        if "\n" in name or "\0" in name:
            return None, None
        if self._talk is None:
            self._talk = Talk(self._repository, "cat-file", "--batch-command")
        try:
            self._talk.say(f"{command} {name}\n".encode("utf-8", "surrogateescape"))
            words = self._talk.line().decode("ascii", "replace").rsplit(" ", 2)
            # `missing`, `ambiguous` and the like stand where the size would.
            if len(words) != 3 or not words[2].isdigit():
                return None, None
            info = Info(words[0], words[1], int(words[2]))
            data = self._talk.read(info.size + 1)[:-1] if command == "contents" else None
        except GitError:
            self._close()  # the next question starts another
            raise
        return info, data

    def _close(self) -> None:
        if self._talk is not None:
            self._talk.close()
            self._talk = None


def too_large(name: str, size: int, most: int) -> GitError:
    return GitError(
        f"{name} has {size:,} bytes; at most {most:,} are read",
        hint="nothing that Quire writes there is as large",
    )


def tree(data: bytes, width: int) -> Iterator[Entry]:
    """The lines of a tree object; `width` is the length of its ids in hexadecimal digits."""
    at, size = 0, width // 2
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        name = data[space + 1 : end].decode("utf-8", "surrogateescape")
        yield Entry(data[at:space].decode("ascii"), data[end + 1 : end + 1 + size].hex(), name)
        at = end + 1 + size


def entries(
    repository: Repository, commit: str, under: str = "", *, folders: bool = False
) -> Iterator[Entry]:
    """Every file of a commit, or those below a folder; with `folders`, the folders instead."""
    options = ("-r", "-z", "--full-tree", *(["-d"] if folders else []))
    said = repository.raw("ls-tree", *options, commit, *([under] if under else []))
    for line in said.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, _, found = head.decode("ascii").split(" ")
        yield Entry(mode, found, path.decode("utf-8", "surrogateescape"))


BATCH = 1000
_FORMAT = "%H%x00%P%x00%cn <%ce> %cd%x00%B"
_OPTIONS = ("--stdin", "-r", "--root", "-m", "-z", "--raw", "--no-renames", "--no-abbrev")
_GRAFTS = os.devnull  # parents as they are, not as a local file says


def commits(repository: Repository, *range: str) -> Iterator[Commit]:
    """The commits of a range such as `old..new`, oldest first, with what each changed."""
    listed = repository.raw(
        "rev-list", "--reverse", "--topo-order", *range, "--", GIT_GRAFT_FILE=_GRAFTS
    )
    ids = listed.split()
    for at in builtins.range(0, len(ids), BATCH):
        asked = b"\n".join(ids[at : at + BATCH]) + b"\n"
        shown = (*_OPTIONS, "--always", f"--format={_FORMAT}", "--date=raw")
        said = repository.raw("diff-tree", *shown, input=asked, GIT_GRAFT_FILE=_GRAFTS)
        yield from _parsed(said.split(b"\0")[:-1])


def _parsed(parts: Sequence[bytes]) -> Iterator[Commit]:
    # A message holds no zero byte, so nothing in it is taken for anything else.
    text = [part.decode("utf-8", "surrogateescape") for part in parts]
    at, last = 0, ""
    while at < len(text):
        head = text[at : at + 4]
        at += 4
        changes: list[Change] = []
        while at < len(text) and (line := text[at].lstrip("\n")).startswith(":"):
            old_mode, mode, old, new, kind = line[1:].split(" ")
            changes.append(Change(kind, old_mode, mode, old, new, text[at + 1]))
            at += 2
        found = head[0].lstrip("\n")
        if found != last:  # a merge is told once for each parent
            yield Commit(found, tuple(head[1].split()), head[2], head[3], tuple(changes))
        last = found
