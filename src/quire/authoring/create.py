"""Create a task from a description of it."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import UsageError
from ..files import disk, write_atomic
from ..task.params import Parameter, declared
from ..task.waiting_cells import Waiting
from ..workspace import STATE, Workspace
from .declared_inputs import declared_inputs
from .draft import draft
from .draft_with_model import ask
from .language_model import configured

_NAME = 60
_PRIVATE = (".git", STATE)  # also as .GIT: some file systems take that for the same
_LONGEST = 20_000  # characters of a description


@dataclass(frozen=True, slots=True)
class Created:
    """`waiting` are the cells still to be written; `note` says why the model drafted nothing."""

    path: Path
    title: str
    drafted_by: Literal["model", "built-in"]
    parameters: tuple[Parameter, ...]
    waiting: tuple[Waiting, ...]
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "title": self.title,
            "drafted_by": self.drafted_by,
            "note": self.note,
            "parameters": [
                {"name": p.name, "type": p.type, "default": p.default_source, "help": p.help}
                for p in self.parameters
            ],
            "waiting": [
                {"cell": w.cell_id, "index": w.index, "title": w.title, "what": w.what}
                for w in self.waiting
            ],
        }


def new(
    ws: Workspace,
    description: str,
    *,
    parameters: Sequence[str | Mapping[str, Any]] = (),
    path: str | Path | None = None,
    model: bool = True,
) -> Created:
    """Write a task whose cells wait to be written. Never over a file that is there.

    Each of `parameters` is a line `NAME: TYPE = DEFAULT  # HELP`, or a mapping with the keys name,
    type, default and help. Without any, those are taken that the description states outright.
    Where a language model is configured it writes the draft, unless `model` says otherwise.
    """
    lines = _worded(description)
    given = declared_inputs(parameters)
    place = _given(ws, path) if path is not None else _chosen(ws, description)
    for there in (place, place.with_suffix(".ipynb")):
        if os.path.lexists(there):
            raise _taken(ws, there)
    drafted, note = ask(ws, lines, given) if model and configured(ws) else (None, "")
    made = drafted or draft(lines, given)
    if not _create(place, made.text.encode()):
        raise _taken(ws, place)
    by: Literal["model", "built-in"] = "model" if drafted else "built-in"
    return Created(place, made.title, by, declared(made.document), made.waiting, note)


def _taken(ws: Workspace, path: Path) -> UsageError:
    return UsageError(
        f"{ws.named(path)} is already there", hint="describe it otherwise, or give --path"
    )


def _folded(text: str) -> str:
    """Lower case, without accents."""
    plain = unicodedata.normalize("NFKD", text.lower().replace("ß", "ss"))
    return "".join(c for c in plain if not unicodedata.combining(c))


def slug(description: str) -> str:
    """A file name of letters, digits and underscores. Never empty, never long."""
    # What has no letters in ASCII parts words: 7天100元 is not 7100.
    words = re.findall(r"[a-z0-9]+", _folded(description))
    name = ""
    for word in words:
        longer = f"{name}_{word}".lstrip("_")
        if len(longer) > _NAME:
            break
        name = longer
    name = name or "".join(words)[:_NAME]
    letters = sum(c.isalnum() for c in description)
    if not name or len("".join(words)) * 2 < min(letters, _NAME):
        # Little of it can be said in ASCII: the rest has to tell two such names apart.
        digest = hashlib.sha256(description.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        name = f"{name[:40] or 'task'}_{digest}"
    # A file `json.py` would be found in place of the module by every task beside it.
    return f"task_{name}" if name in sys.stdlib_module_names or name[0].isdigit() else name


def _worded(description: str) -> list[str]:
    """The lines of a description, of which the first has something in it."""
    if len(description) > _LONGEST:
        raise UsageError(
            f"the description has more than {_LONGEST:,} characters",
            hint="say it in fewer; what else there is to say goes into the task",
        )
    kept = "".join(
        c for c in description if c in "\n\t" or not unicodedata.category(c).startswith("C")
    )
    lines = [" ".join(line.split()) for line in kept.strip().splitlines()]
    if not lines or not lines[0]:
        raise UsageError(
            "the description is empty", hint='quire new "Report the health of this machine"'
        )
    return lines


def _chosen(ws: Workspace, description: str) -> Path:
    folder = Path(os.path.normpath(ws.root / ws.config.notebooks))
    return _inside(ws, folder / f"{slug(description)}.py")


def _given(ws: Workspace, path: str | Path) -> Path:
    place = Path(os.path.normpath(ws.cwd / path))
    if place.suffix != ".py" or "\0" in str(path):
        raise UsageError(f"{str(path)!r} is no name for a task", hint="end it in .py")
    return _inside(ws, place)


def _inside(ws: Workspace, place: Path) -> Path:
    root, leads_to = ws.root.resolve(), place.parent.resolve()
    if not leads_to.is_relative_to(root):
        raise UsageError(
            f"{ws.named(place)} lies outside of {ws.root}", hint="keep tasks in the repository"
        )
    parts = (*leads_to.relative_to(root).parts, place.name)
    if any(part.casefold() in _PRIVATE for part in parts):
        raise UsageError(
            f"{ws.named(place)} lies in a folder of git's or Quire's own",
            hint=f"choose another, such as {ws.config.notebooks}/{place.name}",
        )
    return place


def _create(path: Path, data: bytes) -> bool:
    """Whole, and only where nothing is; whether it could be."""
    with disk(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.open("xb").close()
        except FileExistsError:
            return False
        try:
            write_atomic(path, data)
        except BaseException:
            path.unlink()
            raise
    return True
