"""The file of the index, `.quire/index.sqlite`: opened, locked, replaced, and known as damaged.

index.sqlite         in WAL mode: any number read while one writes
index.lock           held shared while the index is open, alone while another takes its place
index.writing        held by the one that writes
index.sqlite.new     a rebuilt one, until it is whole
index.sqlite.broken  what could not be read, until the next one that cannot
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import StorageError
from ..files import disk
from .schema import APPLICATION, SCHEMA, VERSION, Writer

PATIENCE = 30.0  # seconds to wait for others that have the index open
# Bytes of words that FTS5 holds before it writes them. Less is sooner seen by others; more makes
# fewer parts, which need not be merged.
_USUAL, _GATHERED = 1 << 20, 1 << 26
_BAD = (sqlite3.DatabaseError, UnicodeDecodeError)  # the second for a text that is no UTF-8
_SIDES = ("", "-wal", "-shm", "-journal")


class BadIndex(Exception):
    """There is one and it is of no use: why."""


class Index:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "index.sqlite"

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Raises BadIndex where there is none that can be read."""
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._lock("index.lock", fcntl.LOCK_SH))
                con = self._connect()
            except StorageError as error:
                if not isinstance(error.__cause__, (OSError, sqlite3.Error)):
                    raise
                # A disk that is full or read-only has no room for a lock: the file is read as it
                # stands. A process that replaces it makes another file.
                con = self._connect("?immutable=1")
            try:
                yield con
            except _BAD as error:
                raise _judged(self.path, error) from error
            finally:
                con.close()

    def _connect(self, how: str = "") -> sqlite3.Connection:
        if not self.path.is_file():
            raise BadIndex("is not there")
        place = f"{self.path.absolute().as_uri()}{how}"
        with contextlib.ExitStack() as unless_good:
            try:
                con = sqlite3.connect(place, isolation_level=None, timeout=PATIENCE, uri=True)
                unless_good.callback(con.close)
                con.execute("PRAGMA cache_size = -32768")
                (application,) = con.execute("PRAGMA application_id").fetchone()
                (version,) = con.execute("PRAGMA user_version").fetchone()
            except _BAD as error:
                raise _judged(self.path, error) from error
            if application != APPLICATION:
                raise BadIndex("is not one of Quire's")
            if version != VERSION:
                age = "a newer" if version > VERSION else "an older"
                raise BadIndex(f"was made by {age} Quire (format {version}, this is {VERSION})")
            unless_good.pop_all()
        return con

    @contextlib.contextmanager
    def writing(self, *, within: float = 0.0) -> Iterator[Writer | None]:
        """None where another process is writing, after so many seconds still."""
        with self._lock("index.writing", fcntl.LOCK_EX, within=within) as mine:
            if not mine:
                yield None
                return
            with self.reading() as con:
                con.execute("PRAGMA synchronous = NORMAL")
                yield Writer(con)

    @contextlib.contextmanager
    def rebuilding(self) -> Iterator[Writer]:
        """Another index, which takes the place of this one when it is whole."""
        new = self.path.with_name(f"{self.path.name}.new")
        with self._lock("index.writing", fcntl.LOCK_EX):
            _remove(new)
            with disk(str(new)):
                os.close(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
            con = sqlite3.connect(new, isolation_level=None)
            try:
                # No other process sees it before it is whole: a crash leaves nothing to keep.
                for line in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -131072",
                             "temp_store = MEMORY", "locking_mode = EXCLUSIVE"):  # fmt: skip
                    con.execute(f"PRAGMA {line}")
                con.executescript(SCHEMA)
                con.execute("BEGIN")
                _gather(con, _GATHERED)
                yield Writer(con)
                _gather(con, _USUAL)
                con.execute("COMMIT")
                con.execute("PRAGMA locking_mode = NORMAL")
                con.execute("PRAGMA journal_mode = WAL")
                con.close()
            except BaseException as error:
                con.close()
                _remove(new)  # the disk may be full
                if isinstance(error, sqlite3.OperationalError):
                    raise _unusable(new, error) from error
                raise
            with self._lock("index.lock", fcntl.LOCK_EX), disk(str(self.path)):
                _remove(self.path)
                os.replace(new, self.path)

    def set_aside(self) -> str:
        """Make room, and keep what cannot be read for people to look at."""
        aside = self.path.with_name(f"{self.path.name}.broken")
        with self._lock("index.lock", fcntl.LOCK_EX), disk(str(self.path)):
            if not self.path.exists():
                return ""
            for side in _SIDES[1:]:
                Path(f"{self.path}{side}").unlink(missing_ok=True)
            os.replace(self.path, aside)
        return aside.name

    def size(self) -> int:
        with contextlib.suppress(OSError):
            return self.path.stat().st_size
        return 0

    @contextlib.contextmanager
    def _lock(self, name: str, how: int, *, within: float | None = None) -> Iterator[bool]:
        """Whether it was got, where `within` is given; else it is an error that it was not."""
        with disk(str(self.folder)):
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            fd = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if name == "index.writing" and within is None:
                fcntl.flock(fd, how)  # a rebuild may take minutes
                yield True
                return
            got = _locked(fd, how, PATIENCE if within is None else within)
            if not got and within is None:
                raise StorageError(
                    "another process has had the index open for too long",
                    hint="let its search end, or end it, and try again",
                )
            yield got
        finally:
            os.close(fd)


def _locked(fd: int, how: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.02)


def _gather(con: sqlite3.Connection, size: int) -> None:
    con.execute("INSERT INTO words(words, rank) VALUES('hashsize', ?)", (size,))


def _remove(path: Path) -> None:
    for side in _SIDES:
        Path(f"{path}{side}").unlink(missing_ok=True)


def _judged(path: Path, error: Exception) -> StorageError | BadIndex:
    """Damage, or what another file would have as well, such as a disk that is full."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    outside = isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR
    return _unusable(path, error) if outside else BadIndex(f"is damaged: {error}")


def _unusable(path: Path, error: Exception) -> StorageError:
    text = str(error)
    if "fts5" in text:
        return StorageError(
            "this Python's SQLite has no full-text search (FTS5)",
            hint="use a Python whose sqlite3 was built with it, such as one of uv's",
        )
    hint = "check that you may write there and that the disk is not full; quire index rebuild"
    return StorageError(f"the index {path} cannot be used: {text}", hint=hint)
