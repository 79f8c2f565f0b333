"""The archive as a folder, where there is no repository: the same layout, and a chain of seals.

    runs/YYYY/MM/DD/<run id>/…
    chain.jsonl                  a line for each run: {"run", "after", "seal"}

`after` is the digest of the line before. A run is there when its line is there: a folder without
one was left by a writer that was killed.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Hint, NextStep, RunNotFound, StorageError
from ..files import disk, locked, sync_folder, write_atomic
from ..record import journal
from .layout import (
    DIGEST,
    LARGEST,
    READ,
    Link,
    News,
    Place,
    Sign,
    checked_files,
    checked_seal,
    choose,
    differs,
    is_run_file,
    is_run_id,
    is_seal,
    run_folder,
    sealed,
    some,
)

START = "start"
Known = tuple[int, str]  # the number and the digest of a line
_NUMBER_AND_DIGEST = re.compile(rb"^([0-9]+) ([0-9a-f]{64})\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    digest: str  # of the line
    run_id: str
    after: str
    seal: str
    problem: str = ""


class FolderArchive:
    kind = "folder"

    def __init__(self, folder: Path, sign: Sign | None, where: str = "") -> None:
        self.folder = folder
        self.where = where or str(folder)
        self._sign = sign
        self.warning = ""
        # Of the archive as it was at one moment: what was acknowledged, and the lines.
        self._at: tuple[list[Known], tuple[Line, ...]] | None = None

    @property
    def _chain(self) -> Path:
        return self.folder / "chain.jsonl"

    # Adding.

    def add(self, run_id: str, files: Mapping[str, bytes]) -> str:
        place = run_folder(run_id)
        checked_files(files)
        self.warning = ""
        with disk(str(self.folder)):
            _make_folder(self.folder)
            with locked(self.folder):
                if self._chain.exists():
                    journal.mend(self._chain)  # what was cut off was never acknowledged
                before = _last_line(self._chain)
                after = _digest(before) if before else START
                missing = self._missing(after)
                if missing:
                    told = self._told(missing, but=run_id)
                    self.warning = f"{told}; quire verify --all says what to do"
                if self._has(run_id):
                    if self._files(run_id) != dict(files):
                        raise differs(run_id, self.where)
                    return place
                self._write_files(place, files)
                line = self._line(run_id, after, files)
                _append(self._chain, line)
                self._witnessed(after, _digest(line), missing)
        return place

    def _has(self, run_id: str) -> bool:
        # A run without a folder has no line either: no need to read them all.
        there = (self.folder / run_folder(run_id)).exists()
        return there and any(line.run_id == run_id for line in self._lines())

    def _write_files(self, place: str, files: Mapping[str, bytes]) -> None:
        """The whole folder, on the disk, before it gets its name."""
        path = self.folder / place
        _make_folder(path.parent)
        new = Path(tempfile.mkdtemp(dir=self.folder, prefix=".new-"))
        try:
            for name, data in files.items():
                with open(new / name, "xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            new.chmod(0o755)
            sync_folder(new)
            if path.exists():
                shutil.rmtree(path)  # left by a writer that was killed: no line speaks of it
            new.rename(path)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        sync_folder(path.parent)

    def _line(self, run_id: str, after: str, files: Mapping[str, bytes]) -> bytes:
        told = {"run": run_id, "after": after}
        if self._sign is not None:
            told["seal"] = checked_seal(self._sign(sealed(run_id, after, files)))
        return json.dumps(told).encode() + b"\n"

    def write_digest(self, data: bytes) -> str:
        with disk(str(self.folder)):
            _make_folder(self.folder)
        write_atomic(self.folder / DIGEST, data, durable=False)
        return str(self.folder / DIGEST)

    # Reading.

    def _lines(self) -> Iterator[Line]:
        """Every whole line. A torn last one was never acknowledged."""
        if self._at is not None:
            yield from self._at[1]
            return
        with contextlib.suppress(FileNotFoundError), open(self._chain, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield _read_line(number, line)

    def path(self, run_id: str) -> str:
        return run_folder(run_id)

    def ids(self) -> list[str]:
        return sorted({line.run_id for line in self._lines() if line.run_id}, reverse=True)

    def files(self, run_id: str) -> dict[str, bytes]:
        if run_id not in self.ids():
            raise RunNotFound(
                f"the archive has no run {run_id!r}", hint=Hint("`{}` lists them", NextStep("log"))
            )
        return self._files(run_id)

    def _files(self, run_id: str) -> dict[str, bytes]:
        path = self.folder / run_folder(run_id)
        found: dict[str, bytes] = {}
        try:
            for name in sorted(os.listdir(path)):
                found[name] = _read_plain(path / name)
        except OSError as error:
            raise StorageError(
                f"cannot read {path}: {error.strerror or error}",
                hint=f"quire verify {run_id} says more",
            ) from error
        return found

    def each(self, ids: Iterable[str]) -> Iterator[tuple[str, dict[str, bytes]]]:
        for run_id in ids:
            files: dict[str, bytes] = {}
            with contextlib.suppress(StorageError):
                files = self._files(run_id)
            yield run_id, files

    def news(self, state: str) -> News:
        """The state is how long the chain was, and the digest of its last line."""
        last = _last_line(self._chain)
        if last is None:
            return News("", whole=bool(state))
        size, _, digest = state.partition(":")
        cut = int(size) if size.isdigit() else 0
        with open(self._chain, "rb") as file:
            told = file.read()
        told = told[: told.rfind(b"\n") + 1]  # a torn last line was never acknowledged
        known = cut > 0 and _digest(_end(told[:cut])) == digest
        new = told[cut:] if known else told
        ids = {_read_line(0, line).run_id for line in new.splitlines(keepends=True)}
        now = f"{len(told)}:{_digest(_end(told))}"
        return News(now, tuple(map(Place, sorted(ids - {""}))), whole=not known)

    def read(self, places: Sequence[Place]) -> Iterator[tuple[str, dict[str, bytes]]]:
        for place in places:
            files: dict[str, bytes] = {}
            for name in READ:
                with contextlib.suppress(OSError):
                    files[name] = _read_plain(self.folder / run_folder(place.run_id) / name)
            yield place.run_id, files

    def find(self, name: str) -> str:
        return choose(self, name)

    def history(self) -> Iterator[Link]:
        after, seen = START, set[str]()
        for line in self._lines():
            problems = [line.problem] if line.problem else []
            if line.after != after:
                problems.append("does not follow the line before it")
            if line.run_id in seen:
                problems.append(f"adds the run {line.run_id}, which was archived before")
            if not line.seal and not line.problem:
                problems.append("has no seal")
            after = line.digest
            seen.add(line.run_id)
            files: dict[str, bytes] = {}
            if line.run_id:
                try:
                    files = self._files(line.run_id)
                except StorageError as error:
                    problems.append(error.message)
            data = sealed(line.run_id, line.after, files) if line.run_id else b""
            place = f"{self._chain.name}:{line.number}"
            yield Link(line.run_id, place, data, line.seal, tuple(problems), files)

    # What was acknowledged, told apart from what the folder says.

    @property
    def _witness(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-tip")

    def now(self) -> FolderArchive:
        known = self._known()  # before the lines: what is added in between is among them
        there = copy.copy(self)
        there._at = known, tuple(self._lines())
        return there

    def witness_problem(self) -> str | None:
        missing = self._missing()
        if not missing:
            return None
        return f"{self._told(missing)}. To have them back: put {self._chain} back from a backup"

    def _told(self, missing: Sequence[Known], but: str = "") -> str:
        """`but`: a run that is only now being added."""
        told = (
            f"{self._chain} once had {missing[-1][0]} lines of which the last is gone or was "
            "changed: runs were removed"
        )
        here = set(self.ids()) | {but}
        left = [path.name for path in self.folder.glob("runs/*/*/*/*") if is_run_id(path.name)]
        left = sorted(set(left) - here)
        return f"{told}; folders without a line: {some(left)}" if left else told

    def _missing(self, last: str = "") -> list[Known]:
        """The lines that were once the last and are not there any more. `last` is the digest of the
        one that is now: where it is the known one, the others need not be read."""
        known = self._known()
        if not known or (len(known) == 1 and known[0][1] == last):
            return []
        lines = {(line.number, line.digest) for line in self._lines()}
        return [one for one in (*known[1:], known[0]) if one not in lines]

    def _known(self) -> list[Known]:
        """The line that was the last one here; then those that were, and were lost."""
        if self._at is not None:
            return self._at[0]
        try:
            data = self._witness.read_bytes()
        except OSError:
            return []
        found = _NUMBER_AND_DIGEST.findall(data)
        return [(int(number), digest.decode()) for number, digest in found]

    def _witnessed(self, before: str, last: str, lost: Sequence[Known]) -> None:
        """What was lost stays known, whatever comes on top."""
        known = self._known()
        if known and known[0][1] == before:
            number = known[0][0] + 1
        else:
            number = sum(1 for _ in self._lines())
        lines = "".join(f"{n} {digest}\n" for n, digest in ((number, last), *lost))
        with contextlib.suppress(OSError, StorageError):
            write_atomic(self._witness, lines.encode(), durable=False)

    def tidy(self) -> None:
        """What killed writers have left."""
        if not self.folder.is_dir():
            return
        with contextlib.suppress(OSError, StorageError), locked(self.folder):
            for path in self.folder.glob(".new-*"):
                shutil.rmtree(path, ignore_errors=True)


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _end(lines: bytes) -> bytes:
    return lines[lines.rfind(b"\n", 0, -1) + 1 :]


def _append(chain: Path, line: bytes) -> None:
    with open(chain, "ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(chain.parent)


def _last_line(chain: Path) -> bytes | None:
    """Of whole lines; reads only the end of the file, unless a line is very long."""
    try:
        file = open(chain, "rb")  # noqa: SIM115 - entered two lines below
    except FileNotFoundError:
        return None
    with file:
        size, block = file.seek(0, os.SEEK_END), 1 << 12
        while True:
            file.seek(max(0, size - block))
            data = file.read()
            cut = data.rfind(b"\n", 0, -1)
            if cut >= 0 or block >= size:
                return data[cut + 1 :] or None
            block *= 8


def _read_line(number: int, line: bytes) -> Line:
    digest = _digest(line)
    try:
        told = json.loads(line)
        run_id, after, seal = told["run"], told["after"], told.get("seal", "")
        good = isinstance(run_id, str) and isinstance(after, str) and isinstance(seal, str)
        if not (good and is_run_id(run_id) and (not seal or is_seal(seal))):
            raise ValueError("not one of ours")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Line(number, digest, "", "", "", "is not a line of Quire's")
    return Line(number, digest, run_id, after, seal)


def _read_plain(path: Path) -> bytes:
    """A file that is one: links and devices are not followed."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode) or not is_run_file(path.name):
            raise OSError(f"{path.name!a} is no file of a run")
        if state.st_size > LARGEST:
            raise OSError(f"{path.name} has {state.st_size:,} bytes, more than is read")
        return file.read()


def _make_folder(path: Path) -> None:
    """With the folders above it, so that a power cut leaves them there."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)
