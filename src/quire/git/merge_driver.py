"""Merge two versions of an `.ipynb` for git.

A notebook that was made from its `.py` is made again from the merged `.py`: whatever there is to
decide, a person decides in the text. Any other notebook is merged cell by cell.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import QuireError
from ..task import formats, notebook_twin
from ..task.notebook_twin import Twin
from .repository import Repository

_HEAD = re.compile(r"GITHEAD_([0-9a-f]{40}|[0-9a-f]{64})")
_PICK = re.compile(r"\w+ (?:-[cC] )?([0-9a-f]{40}|[0-9a-f]{64})\b")
_ANY = "0" * 64
# The exit status for conflicts: not 1, with which a program that does not start ends as well.
CONFLICT = 3


class Merged(NamedTuple):
    data: bytes
    conflict: bool = False
    told: str = ""


def merge(repository: Repository, base: bytes, ours: bytes, theirs: bytes, path: str) -> Merged:
    one, other = _generated(ours), _generated(theirs)
    py = str(Path(path).with_suffix(".py"))
    if one is not None and other is not None and _is_source(repository, py):
        sources = _sources(repository, (base, ours, theirs), path, py)
        text = (sources and _from_text(repository, sources, one)) or _from_json(
            repository, base, one, other
        )
        # Ours is as good as any: it says of itself that it is behind its .py.
        return Merged(text.encode("utf-8") if text else ours)
    return _by_cells(repository, base, ours, theirs, path)


def _generated(data: bytes) -> Twin | None:
    """The notebook, if it is as it was made from its `.py`."""
    try:
        there = notebook_twin.loads(formats.decode(data, "notebook.ipynb"), ".ipynb")
        return there if there.stamp and there.stamp.cells == there.digest else None
    except (QuireError, RecursionError):
        return None


def _is_source(repository: Repository, py: str) -> bool:
    return (repository.here / py).is_file() or repository.blob("HEAD", py) is not None


def _sources(
    repository: Repository, notebooks: tuple[bytes, bytes, bytes], path: str, py: str
) -> tuple[bytes, bytes, bytes] | None:
    """The three texts of the task, if the commits that are being merged can be known for sure."""
    for old, new in _commits(repository):
        sides = (old, "HEAD", new)
        if tuple(repository.blob(side, path) for side in sides) == notebooks:
            base, ours, theirs = (repository.blob(side, py) for side in sides)
            if base is not None and ours is not None and theirs is not None:
                return base, ours, theirs
    return None


def _commits(repository: Repository) -> Iterator[tuple[str, str]]:
    """Pairs of the commit both sides come from and theirs. Git tells its drivers only so much."""
    for key in repository.env:
        head = _HEAD.fullmatch(key)
        if head:
            common = repository.ask("merge-base", "HEAD", head[1])
            if common.code == 0:
                yield common.text, head[1]
    try:
        done = (repository.git_dir / "rebase-merge" / "done").read_text("utf-8", "replace")
    except OSError:
        return
    pick = _PICK.match(done.strip().rpartition("\n")[2])
    if pick:
        yield f"{pick[1]}^", pick[1]


def _from_text(
    repository: Repository, sources: tuple[bytes, bytes, bytes], one: Twin
) -> str | None:
    base, ours, theirs = sources
    merged, conflict = lines(repository, base, ours, theirs)
    if conflict:
        return None
    try:
        here = notebook_twin.loads(formats.decode(merged, "task.py"), ".py")
        return notebook_twin.notebook_text(here, one)
    except (QuireError, RecursionError):
        return None


def _from_json(repository: Repository, base: bytes, one: Twin, other: Twin) -> str | None:
    """Line by line, which is enough for most: but for the stamps, which always differ."""
    merged, conflict = lines(
        repository, _unstamped(_generated(base), base), _unstamped(one), _unstamped(other)
    )
    if conflict:
        return None
    try:
        found = notebook_twin.loads(formats.decode(merged, "notebook.ipynb"), ".ipynb")
    except (QuireError, RecursionError):
        return None
    # Of which text it is nobody knows yet; that it was not edited by hand we do know.
    return notebook_twin.stamped(found, source="")


def _unstamped(there: Twin | None, data: bytes = b"") -> bytes:
    if there is None or there.stamp is None:
        return data
    text = there.text.replace(there.stamp.source, _ANY).replace(there.stamp.cells, _ANY)
    return text.encode("utf-8", "surrogatepass")


def _by_cells(repository: Repository, base: bytes, ours: bytes, theirs: bytes, path: str) -> Merged:
    from ..workspace import Workspace
    from .merge_notebooks import merge_files

    top = repository.here
    workspace = Workspace(top, cwd=top, env=repository.env)
    try:
        found = merge_files(base, ours, theirs, path=path, workspace=workspace)
    except QuireError as error:
        told = f"{path}: merged line by line: {error.message}"
        return Merged(*lines(repository, base, ours, theirs), told)
    told = f"{path}: {found.note}" if found.note else ""
    return Merged(found.data, bool(found.conflicts), told)


def lines(repository: Repository, base: bytes, ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    """As git merges texts. Where both sides changed a line, both stand there, with marks."""
    with tempfile.TemporaryDirectory(prefix="quire-") as folder:
        names = ("ours", "base", "theirs")
        for name, data in zip(names, (ours, base, theirs), strict=True):
            Path(folder, name).write_bytes(data)
        where = [os.path.join(folder, name) for name in names]
        labels = [word for name in names for word in ("-L", name)]
        said = repository.ask("merge-file", "-p", *labels, *where)
    if said.code > 127:
        return ours, True  # not text
    return said.out, said.code != 0
