"""The run's journal: events appended as they happen, the only write during a run.

The writer holds a lock on the file for as long as it lives, so a reader knows whether a run that
has not finished is still going. A torn last line, left by a kill in mid-write, is not read.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from ..files import disk
from .events import CellFinished, Event, RunFinished, dumps, loads

SYNC_EVERY = 1.0  # seconds
BLOCK = 1 << 16  # bytes
LINES = 1 << 17  # bytes read at once, where all is read


class Journal:
    def __init__(self, path: Path, *, reopen: bool = False) -> None:
        """`reopen` goes on with a journal whose writer has gone."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self.path = path
        self._synced = time.monotonic()
        self._unsynced = False
        with disk(str(path)):
            self._fd = os.open(path, flags | (0 if reopen else os.O_CREAT | os.O_EXCL), 0o600)
            try:
                # A new file waits for the instant in which a reader may be asking whether we are
                # there; an old one may have a writer that stays.
                fcntl.flock(self._fd, fcntl.LOCK_EX | (fcntl.LOCK_NB if reopen else 0))
            except OSError:
                os.close(self._fd)
                raise

    def append(self, event: Event) -> None:
        """In the file when it returns: a kill of this process loses nothing that was appended."""
        self._unsynced = True
        with disk(str(self.path)):
            view = memoryview(dumps(event).encode() + b"\n")
            while view:
                view = view[os.write(self._fd, view) :]
        if isinstance(event, CellFinished) and time.monotonic() - self._synced > SYNC_EVERY:
            self.sync()

    def sync(self) -> None:
        """On the disk when it returns: a power cut loses nothing either."""
        with disk(str(self.path)):
            os.fsync(self._fd)
        self._unsynced = False
        self._synced = time.monotonic()

    def close(self) -> None:
        if self._fd >= 0:
            try:
                if self._unsynced:
                    self.sync()
            finally:
                os.close(self._fd)
                self._fd = -1


def read(path: Path, without: Collection[type[Event]] = ()) -> Iterator[Event]:
    """Every whole event, in order. Stops at the first line that is not one. Those of the kinds in
    `without` are passed over unread: what cells gave out may be most of a journal."""
    passed = tuple(b'{"event":"%s",' % kind.__name__.encode() for kind in without)
    with open(path, "rb", buffering=LINES) as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            if passed and line.startswith(passed):
                continue
            try:
                yield loads(line)
            except (ValueError, KeyError, TypeError):
                return


def amend(path: Path, event: Event) -> None:
    """Append to the journal of a run whose writer has gone. The caller sees to it that it has."""
    with disk(str(path)):
        mend(path)
        with open(path, "ab") as file:
            file.write(dumps(event).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def mend(path: Path) -> None:
    """Cut off a torn last line, so that what is appended next stands on a line of its own."""
    with open(path, "rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - BLOCK)
            file.seek(start)
            cut = file.read(end - start).rfind(b"\n")
            if cut >= 0:
                file.truncate(start + cut + 1)
                return
            end = start
        file.truncate(0)


def is_live(path: Path) -> bool:
    """Whether the process that writes this journal is still there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def finished(path: Path) -> RunFinished | None:
    """How the run ended, where the last whole line says so; reads only the end of the file."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - BLOCK))
        lines = file.read().splitlines(keepends=True)
    if not lines or not lines[-1].endswith(b"\n"):
        return None
    try:
        last = loads(lines[-1])
    except (ValueError, KeyError, TypeError):
        return None
    return last if isinstance(last, RunFinished) else None
