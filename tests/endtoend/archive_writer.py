"""A process that adds runs to an archive, and says so only when each is there.

python archive_writer.py KIND FOLDER FIRST COUNT [push]
"""

from __future__ import annotations

import sys
from pathlib import Path

from made_archive import git_archive, run_files, run_id, seal
from quire.archive.branch import GitArchive
from quire.archive.folder_archive import FolderArchive
from quire.archive.layout import Archive
from quire.errors import QuireError


def main(kind: str, folder: Path, first: int, count: int, *, push: bool) -> None:
    archive: Archive = FolderArchive(folder, seal) if kind == "folder" else git_archive(folder)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(first, first + count):
        run = run_id(number)
        try:
            archive.add(run, run_files(run, b"x" * 20_000))
        except QuireError as error:  # git was killed under us: the run is still owed
            print("failed", error.message.replace("\n", " "), flush=True)
            continue
        print("archived", run, flush=True)
        if push and isinstance(archive, GitArchive):
            archive.push("origin")
            print("pushed", run, flush=True)


if __name__ == "__main__":
    kind, folder, first, count, *more = sys.argv[1:]
    main(kind, Path(folder), int(first), int(count), push="push" in more)
