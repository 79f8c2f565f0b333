"""Files that are either there as a whole or not at all, and what the disk says when it cannot."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .errors import StorageError


@contextlib.contextmanager
def disk(what: str) -> Iterator[None]:
    """Turn an OSError into one that says what could not be written and what to do."""
    try:
        yield
    except OSError as error:
        hint = "check that the folder exists and that you may write to it"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            hint = "free some space, or point --output and the workspace at another disk"
        elif error.errno == errno.EROFS:
            hint = "the file system is read-only: use a workspace on one that is not"
        raise StorageError(f"cannot write {what}: {error.strerror or error}", hint=hint) from error


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """Whole when it returns; until then the old file, or none, is there.

    `durable=False` for what can be made again: it may not survive a power cut.
    """
    with disk(str(path)):
        fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), mode)
                if durable:
                    os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        if durable:
            sync_folder(path.parent)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time, without a file of its own that could be left behind."""
    with disk(str(folder)):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with disk(str(folder)):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
