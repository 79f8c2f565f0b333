"""Housekeeping of a repository that gets a small pack with every change."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path

from .ref_log import own_folder
from .repository import Repository

ABANDONED = 86_400.0  # seconds after which nobody is still writing an unfinished pack
PACKS = 50  # above which they are rolled up


def tidy(repository: Repository, most: int = PACKS) -> bool:
    """Roll the small packs of many changes up into few; whether there was something to do.

    For when nobody waits. Packs that others add meanwhile stay as they are, and so does all that
    a repository holds besides: git rolls up small packs only, and removes them when the new one
    is on the disk.
    """
    pack = repository.common / "objects" / "pack"
    try:
        names = os.listdir(pack)
        _sweep(pack, [name for name in names if name.startswith("tmp_pack_")])
        count = sum(1 for name in names if name.endswith(".pack"))
        if count <= most or repository.config("extensions.partialClone"):
            return False
        fd = os.open(own_folder(repository) / "tidy.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        said = repository.ask("repack", "--geometric=2", "-d", "-l", "--quiet", timeout=600)
        return said.code == 0
    except OSError:
        return False  # somebody else is at it
    finally:
        os.close(fd)


def _sweep(pack: Path, names: Sequence[str]) -> None:
    """What a killed git was writing; git itself takes two weeks to be sure of that."""
    for path in (pack / name for name in names):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()
