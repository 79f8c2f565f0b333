"""Which run took up one that waited for a person: `.quire/taken-up/<run id>` has its id.

A folder of its own, because what waits may be here or only in the archive.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from ..files import disk, locked, write_atomic
from ..record.run_folders import is_id


class TakenUp:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def by(self, run_id: str) -> str:
        """Empty: nobody has."""
        if not is_id(run_id):
            return ""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            told = (self.folder / run_id).read_text("utf-8").strip()
            return told if is_id(told) else ""
        return ""

    def claim(self, run_id: str, taker: str, check: Callable[[], None]) -> None:
        """From now on `taker` has taken it up, unless `check` raises. One claim at a time: of two
        that come at the same moment the second finds what the first has written."""
        with disk(str(self.folder)):
            self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder):
            check()
            write_atomic(self.folder / run_id, f"{taker}\n".encode())
