"""The folder a gate writes to. It may hold other things, so it knows what it has put there itself.

A list of its own files lies beside them. Only those are cleared when the next gate begins, and
nothing that is not on the list is ever written over. A report that goes elsewhere says by itself
that a gate has written it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from ..errors import UsageError
from ..files import disk, write_atomic
from .gate_report import MARK

LIST = ".quire-ci.json"
STATE = ".quire"
_SUFFIXES = (".ipynb", ".xml", ".md")


class GateFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self, names: Iterable[str]) -> None:
        """Whether these files can be written here. Changes nothing."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(
                f"{self.path} is a file, not a folder", hint="give --output another name"
            )
        own = set(self._own())
        for name in names:
            if name not in own and os.path.lexists(self.path / name):
                raise UsageError(
                    f"{self.path / name} is there, and no gate has written it",
                    hint="give --output a folder of its own, or move that file away",
                )

    @contextlib.contextmanager
    def claimed(self, names: Iterable[str]) -> Iterator[None]:
        """Make room for these files. While this lasts no other gate writes here."""
        names = list(names)
        with disk(str(self.path)):
            self.path.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"another gate is at work in {self.path}",
                    hint="wait until it is over, or give --output another folder",
                ) from None
            self.check(names)
            self._clear()
            with disk(str(self.path)):
                for name in names:
                    (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            # Listed before they are written: what a killed gate leaves behind is known too.
            text = json.dumps({"format": 1, "files": sorted(names)}, indent=1)
            write_atomic(self.path / LIST, text.encode() + b"\n", durable=False)
            yield
        finally:
            os.close(fd)

    def _own(self) -> list[str]:
        """What an earlier gate has listed. The list may have come with a stranger's repository."""
        try:
            told = json.loads((self.path / LIST).read_bytes())
            files = told["files"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return []
        if not isinstance(files, list):
            return []
        return [name for name in files if isinstance(name, str) and self._is_own(name)]

    def _is_own(self, name: str) -> bool:
        pure = PurePosixPath(name)
        plain = "\0" not in name and not pure.is_absolute() and ".." not in pure.parts
        if not plain or pure.suffix not in _SUFFIXES:
            return False
        path = self.path / name
        # No link on the way, so that nothing outside of this folder is meant.
        inside = path.parent.resolve() == self.path.resolve().joinpath(*pure.parts[:-1])
        with contextlib.suppress(OSError):
            return inside and stat.S_ISREG(path.lstat().st_mode)
        return False

    def _clear(self) -> None:
        with disk(str(self.path)):
            for name in self._own():
                (self.path / name).unlink(missing_ok=True)
                for parent in list(PurePosixPath(name).parents)[:-1]:
                    with contextlib.suppress(OSError):  # not empty: there is something else in it
                        (self.path / parent).rmdir()


def is_free(path: Path) -> bool:
    """Whether a report can go there: nothing is there, or what a gate has written."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with open(path, "rb") as file:
            return MARK.encode() in file.read(200)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def check_report(path: Path) -> None:
    """Whether a report can be written there. Changes nothing."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file in it")
    if not is_free(path):
        raise UsageError(
            f"{path} is there, and no gate has written it",
            hint="name another file, or move that one away",
        )
    above = next(parent for parent in path.parents if os.path.lexists(parent))
    if not above.is_dir():
        raise UsageError(f"{above} is a file, not a folder", hint="name a file in a folder")


def check_place(folder: Path, root: Path, own: Path, git: Iterable[Path] = ()) -> None:
    """Whether a gate may write to a folder, by where it lies: not where git (`git` are its folders)
    and Quire keep what is theirs, but for its `own`, nor where a link leads out of `root`."""
    try:
        real = folder.resolve()
    except (OSError, RuntimeError, ValueError):
        raise UsageError(f"{str(folder)!r} leads nowhere", hint="name another folder") from None
    inside = real.is_relative_to(root)
    if Path(os.path.normpath(folder)).is_relative_to(root) and not inside:
        raise UsageError(
            f"{folder} is behind a link that leads out of {root}", hint=f"name the place: {real}"
        )
    parts = {part.lower() for part in (real.relative_to(root) if inside else real).parts}
    theirs = (place for place in git if not root.is_relative_to(place))
    if ".git" in parts or any(map(real.is_relative_to, theirs)):
        owner = "git"
    elif STATE in parts and real != own:
        owner = "Quire"
    else:
        return
    raise UsageError(
        f"{folder} is where {owner} keeps what is its own",
        hint="give it a folder of its own, such as notebook-ci",
    )
