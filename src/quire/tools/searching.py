"""Looks through files for a cell, in a process of its own: a bad regular expression takes for ever.

Run by path, standard library only:  python -I -S searching.py
The request is JSON on stdin: as an argument it could be too long, and everybody could see it. `fd`
in it is the open folder, or file, to look through. One JSON object on stdout.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import stat
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

# Nobody looks for something in these by hand.
SKIPPED = ("node_modules", "__pycache__", "site-packages", ".venv", "venv")
LARGEST = 10_000_000  # bytes of a file that is looked through
FILES = 100_000
LINE = 500  # characters of a line that are shown
CHARACTERS = 400_000  # of all lines together
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Search:
    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.protected = request["protected"]
        self.closed = request["closed"]
        self.glob = request["glob"]
        self.found: list[dict[str, Any]] = []
        self.total = self.files = self.shown = 0
        self.cut = False

    def run(self) -> dict[str, Any]:
        request = self.request
        by_name = request["target"] == "files"
        expression = None if by_name else re.compile(request["pattern"])
        for folder, names in self.walk():
            for name in names:
                if self.files >= FILES or self.cut:
                    self.cut = True
                    break
                path = os.path.join(folder, name) if folder else name
                if expression is None:
                    self.name(path, name)
                elif not self.glob or self.fits(path, name, self.glob):
                    self.look(path, name, expression)
        return {
            "matches": self.found,
            "total": self.total,
            "files": self.files,
            "truncated": self.cut or self.total > request["offset"] + len(self.found),
        }

    def walk(self) -> Iterator[tuple[str, list[str]]]:
        """Folders by their path from where we begin, and the names of files in them."""
        if self.request["file"]:
            self.fd = self.request["fd"]
            yield "", [self.request["file"]]
            return
        for folder, folders, names, fd in os.fwalk(".", dir_fd=self.request["fd"]):
            here = folder[2:]
            real = os.path.join(self.request["path"], here) if here else self.request["path"]
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".") and name not in SKIPPED and self.open_to(name, real)
            )
            self.fd = fd
            yield here, sorted(name for name in names if self.open_to(name, real))

    def open_to(self, name: str, folder: str) -> bool:
        low = name.lower()
        if low not in self.request["harmless"] and any(
            fnmatchcase(low, pattern) for pattern in self.protected
        ):
            return False
        path = os.path.join(folder, name)
        return not any(path == one or path.startswith(one + "/") for one in self.closed)

    def fits(self, path: str, name: str, pattern: str) -> bool:
        if "/" not in pattern:
            return fnmatchcase(name, pattern)
        pattern = pattern.removeprefix("./")  # `**/` may also stand for no folder at all
        return fnmatchcase(path, pattern) or fnmatchcase(path, pattern.replace("**/", ""))

    def name(self, path: str, name: str) -> None:
        self.files += 1
        if not self.fits(path, name, self.request["pattern"]):
            return
        if self.glob and not self.fits(path, name, self.glob):
            return
        with contextlib.suppress(OSError):  # gone in the meantime
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                self.add({"path": self.named(path), "size": status.st_size})

    def look(self, path: str, name: str, expression: re.Pattern[str]) -> None:
        with contextlib.suppress(OSError):
            fd = os.open(name, _READ, dir_fd=self.fd)
            with open(fd, "rb") as file:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                    return
                data = file.read(LARGEST + 1)
            self.files += 1
            if b"\0" not in data[:8192]:
                self.lines(path, data.decode("utf-8", "replace").split("\n"), expression)

    def lines(self, path: str, rows: list[str], expression: re.Pattern[str]) -> None:
        around = self.request["context"]
        for at, row in enumerate(rows):
            if not expression.search(row):
                continue
            match: dict[str, Any] = {"path": self.named(path), "line": at + 1, "text": row[:LINE]}
            if around:
                match["before"] = [one[:LINE] for one in rows[max(0, at - around) : at]]
                match["after"] = [one[:LINE] for one in rows[at + 1 : at + 1 + around]]
            self.add(match)
            if self.cut:
                return

    def named(self, path: str) -> str:
        if self.request["file"]:
            return str(self.request["shown"])
        return os.path.join(str(self.request["shown"]), path)

    def add(self, match: dict[str, Any]) -> None:
        self.total += 1
        if self.total <= self.request["offset"] or len(self.found) >= self.request["limit"]:
            return
        self.shown += len(json.dumps(match))
        if self.shown > CHARACTERS:
            self.cut = True
            return
        self.found.append(match)


def main() -> None:
    # Not longer than whoever wants to know.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    request = json.load(sys.stdin)
    if os.getppid() != request["parent"]:
        return
    try:
        told = Search(request).run()
    except re.error as error:
        told = {"error": f"that is no regular expression: {error}"}
    except (OSError, RecursionError, MemoryError, OverflowError) as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
