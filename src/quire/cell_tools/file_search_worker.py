"""Looks through files; run by `deadline_process.py`, as a regular expression may take for ever.

Standard library only: it starts for each search.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

# Nobody looks for something in these by hand.
SKIPPED = ("node_modules", "__pycache__", "site-packages", ".venv", "venv")
LARGEST = 10_000_000  # bytes of a file that is looked through
FILES = 100_000
LINE = 500  # characters of a line that are shown
CHARACTERS = 400_000  # of all matches together
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return Search(request).run()
    except re.error as error:
        said = f"that is no regular expression: {error}"
    except (OSError, RecursionError, MemoryError, OverflowError) as error:
        said = f"{type(error).__name__}: {error}"
    return {"error": said, "hint": "mend the pattern, or the path"}


class Search:
    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.found: list[dict[str, Any]] = []
        self.total = self.files = self.shown = 0
        self.cut = False

    def run(self) -> dict[str, Any]:
        request = self.request
        by_name = request["target"] == "files"
        globs = [request["pattern"]] if by_name else []
        globs += [request["glob"]] if request["glob"] else []
        pattern = re.compile("" if by_name else request["pattern"])
        for path, name, folder in self.walk():
            if self.files >= FILES:
                self.cut = True
            if self.cut:
                break
            if request["file"] == "" and not all(fits(path, name, glob) for glob in globs):
                continue
            with contextlib.suppress(OSError):  # gone in the meantime
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    continue
                self.files += 1
                if by_name:
                    self.add({"path": path, "size": status.st_size})
                elif status.st_size <= LARGEST:
                    with open(os.open(name, _READ, dir_fd=folder), "rb") as file:
                        self.look(path, file.read(LARGEST), pattern)
        more = self.total > request["offset"] + len(self.found)
        return {
            "matches": self.found,
            "total": self.total,
            "files": self.files,
            "truncated": self.cut or more,
        }

    def walk(self) -> Iterator[tuple[str, str, int]]:
        """Each file by its path from where we begin, its name, and its open folder."""
        request = self.request
        if request["file"]:
            yield "", request["file"], request["fd"]
            return
        for folder, folders, names, fd in os.fwalk(".", dir_fd=request["fd"]):
            real = os.path.normpath(os.path.join(request["path"], folder))
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".") and name not in SKIPPED and self.may(name, real)
            )
            for name in sorted(names):
                if self.may(name, real):
                    yield os.path.join(folder, name)[2:], name, fd

    def may(self, name: str, folder: str) -> bool:
        low = name.lower()
        if low not in self.request["harmless"] and any(
            fnmatchcase(low, pattern) for pattern in self.request["secret"]
        ):
            return False
        path = os.path.join(folder, name)
        return not any(path == one or path.startswith(one + "/") for one in self.request["closed"])

    def look(self, path: str, data: bytes, pattern: re.Pattern[str]) -> None:
        if b"\0" in data[:8192]:
            return
        rows = data.decode("utf-8", "replace").split("\n")
        around = self.request["context"]
        for at, row in enumerate(rows):
            if self.cut or not pattern.search(row):
                continue
            match: dict[str, Any] = {"path": path, "line": at + 1, "text": row[:LINE]}
            if around:
                match["before"] = [one[:LINE] for one in rows[max(0, at - around) : at]]
                match["after"] = [one[:LINE] for one in rows[at + 1 : at + 1 + around]]
            self.add(match)

    def add(self, match: dict[str, Any]) -> None:
        self.total += 1
        if self.total <= self.request["offset"] or len(self.found) >= self.request["limit"]:
            return
        match["path"] = os.path.join(self.request["shown"], match["path"]).rstrip("/")
        self.shown += len(json.dumps(match))
        if self.shown > CHARACTERS:
            self.cut = True
        else:
            self.found.append(match)


def fits(path: str, name: str, glob: str) -> bool:
    if "/" not in glob:
        return fnmatchcase(name, glob)
    glob = glob.removeprefix("./")  # `**/` may also stand for no folder at all
    return fnmatchcase(path, glob) or fnmatchcase(path, glob.replace("**/", ""))
