"""Pairs in git: does a `.ipynb` say what the `.py` beside it says?

A forge folds notebooks away, so what stands in one alone was reviewed by nobody. What cannot be
read is no better.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from ..errors import DocumentError
from ..git.objects import Objects, entries
from ..git.repository import Repository
from ..task.sync import STAMP, has_cells
from .regenerate import side

LINK = "120000"


class Stored(NamedTuple):
    """What git has under a path."""

    mode: str
    id: str


def disagreement(py: bytes, nb: bytes, name: str) -> str:
    """What is wrong with a pair; '' if it says the same twice, or is none: an ordinary module may
    stand beside a notebook of its own. `name` is the notebook's."""
    text = source(name)
    if not is_pair(py, nb, text):
        return ""
    here, there = side(py, text), side(nb, name)
    if here is None:
        return f"{text} cannot be read"
    if there is None:
        return "it cannot be read as a notebook"
    return "" if here.says == there.says else f"it does not say what {text} says"


def is_pair(py: bytes, nb: bytes | None, name: str) -> bool:
    try:
        return has_cells(py, name) or (nb is not None and STAMP in nb)
    except DocumentError:
        return True  # not even text


def is_notebook(path: str) -> bool:
    """X.IPYNB as well: nothing may hide behind its name."""
    return path.lower().endswith(".ipynb")


def source(path: str) -> str:
    """The `.py` of a pair, by either of its names."""
    pure = PurePosixPath(path)
    return str(pure.with_suffix(".py")) if pure.name.strip(".") else path


def disagreeing(repository: Repository, files: Mapping[str, Stored]) -> Iterator[tuple[str, str]]:
    """Of the files of a tree the notebooks that do not say what their `.py` says, each with what
    is wrong."""
    with Objects(repository) as objects:
        for path in sorted(filter(is_notebook, files)):
            text = source(path)
            if text not in files:
                continue
            links = [name for name in (text, path) if files[name].mode == LINK]
            if links:
                yield path, f"{links[0]} is a link; a pair is two files"
                continue
            py, nb = objects.read(files[text].id), objects.read(files[path].id)
            if py is None or nb is None:
                yield path, f"git does not have the content of {text if py is None else path}"
            elif wrong := disagreement(py, nb, path):
                yield path, wrong


def touched(repository: Repository, commit: str, paths: Iterable[str]) -> dict[str, str]:
    """Of the pairs that a change of these paths touches the notebooks that say something else."""
    stems = set(map(source, paths))
    files = of_commit(repository, commit)
    return dict(disagreeing(repository, {p: files[p] for p in files if source(p) in stems}))


def of_commit(repository: Repository, commit: str) -> dict[str, Stored]:
    return {e.path: Stored(e.mode, e.id) for e in entries(repository, commit)}


def of_index(repository: Repository) -> dict[str, Stored]:
    """What the next commit would have. Without what a merge has left open: nobody can commit it."""
    found: dict[str, Stored] = {}
    for line in repository.raw("ls-files", "--stage", "-z", "--", ":(top)").split(b"\0")[:-1]:
        facts, _, name = line.partition(b"\t")
        mode, id_, stage = facts.decode().split(" ")
        if stage == "0":
            found[os.fsdecode(name)] = Stored(mode, id_)
    return found
