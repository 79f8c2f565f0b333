"""Notebooks of a commit, made again from the `.py` files beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from ..errors import DocumentError
from ..git import commit_files
from ..git.commit_files import Change
from ..git.filters import strip
from ..git.objects import Objects, entries
from ..git.repository import Repository
from ..task import formats, notebook_twin
from ..task.notebook_twin import Twin

_FILES = ("100644", "100755")


def regenerated(
    repository: Repository, tree: str, wanted: Iterable[str] = ()
) -> tuple[str, tuple[str, ...]]:
    """The tree with every twin in step, and what was made anew.

    `wanted` are tasks that get a notebook even where they have none, unless git ignores it.
    A notebook that was never made from its `.py` is somebody's own and stays.
    """
    files = {e.path: e.id for e in entries(repository, tree) if e.mode in _FILES}
    asked = set(wanted)
    changes: list[Change] = []
    with Objects(repository) as objects:
        for path in files:
            if not path.endswith(".py"):
                continue
            nb = str(PurePosixPath(path).with_suffix(".ipynb"))
            if nb in files or (path in asked and not _is_ignored(repository, nb)):
                text = _made(objects, files, path, nb)
                if text is not None:
                    changes.append(Change(nb, text))
    if not changes:
        return tree, ()
    return commit_files.edited(repository, tree, changes), tuple(change.path for change in changes)


def _made(objects: Objects, files: Mapping[str, str], py: str, nb: str) -> bytes | None:
    """The notebook as it should be; None where it is."""
    here = side(objects.read(files[py]), py)
    if here is None:
        return None
    data = objects.read(files[nb]) if nb in files else None
    there = side(data, nb)
    if data is not None:
        if there is None:
            # What a merge left with its marks in it was once made from the text, or is nobody's.
            if b'"source_sha256"' not in data:
                return None
        elif there.stamp is None or in_step(here, there):
            return None
    made = strip(notebook_twin.notebook_text(here, there).encode("utf-8", "replace")).data
    return None if made == data else made


def in_step(here: Twin, there: Twin) -> bool:
    """Whether a notebook says what its `.py` says, and knows which text that is."""
    known = there.stamp is not None and there.stamp.source == here.text_digest
    return known and here.digest == there.digest


def side(data: bytes | None, path: str) -> Twin | None:
    """None for what is not there, and for what cannot be read: a stranger may have put it there."""
    if data is None:
        return None
    try:
        return notebook_twin.loads(formats.decode(data, path), PurePosixPath(path).suffix)
    except (DocumentError, RecursionError, ValueError, TypeError, KeyError):
        return None


def _is_ignored(repository: Repository, path: str) -> bool:
    return repository.ask("check-ignore", "--quiet", "--no-index", "--", path).code == 0
