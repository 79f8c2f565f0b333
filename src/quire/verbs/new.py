"""Begin a task from a description of it."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from ..document import formats
from ..document.model import Cell, Document
from ..errors import UsageError
from ..store.files import disk
from ..workspace import STATE, Workspace

_TITLE = 120
_NAME = 60
_PRIVATE = (".git", STATE)  # also as .GIT: some file systems take that for the same
_ABOUT = """\
**What it does.** Say in a few sentences what goes in and what comes out.

**Why.** Say who needs the result, and what they do with it. A reviewer reads this first."""
_PARAMETERS = """\
limit: int = 10  # how many items to look at
threshold: float = 0.5  # share of items that have to pass
label: str = "example"  # name for the report"""
_GATHER = """\
# What the task works on. Replace it with your data.
items = [{"name": f"{label} {n}", "value": n / limit} for n in range(1, limit + 1)]
print(f"{len(items)} items")"""
_DECIDE = """\
passed = [item for item in items if item["value"] >= threshold]
share = len(passed) / len(items) if items else 0.0
status = "ok" if share >= threshold else "low"
print(f"{len(passed)} of {len(items)} pass: {status}")"""
_REPORT = """\
from quire.runtime import glue

# Results have names, so that people and programs can ask for them.
glue("items", len(items))
glue("share", round(share, 3))
glue("status", status)"""


@dataclass(frozen=True, slots=True)
class Created:
    path: Path
    title: str


def new(ws: Workspace, description: str, *, path: str | Path | None = None) -> Created:
    """Write a task that can be run as it is. Never over a file that is there."""
    title, more = _worded(description)
    place = _given(ws, path) if path is not None else _chosen(ws, description)
    text = skeleton(title, more)
    for there in (place, place.with_suffix(".ipynb")):
        if os.path.lexists(there):
            raise _taken(ws, there)
    if not _create(place, text.encode()):
        raise _taken(ws, place)
    return Created(place, title)


def _taken(ws: Workspace, path: Path) -> UsageError:
    return UsageError(
        f"{ws.named(path)} is already there", hint="describe it otherwise, or give --path"
    )


def slug(description: str) -> str:
    """A file name of letters, digits and underscores. Never empty, never long."""
    folded = unicodedata.normalize("NFKD", description).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", folded.lower())
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
        return f"{name[:40] or 'task'}_{digest}"
    # A file `json.py` would be found in place of the module by every task beside it.
    return f"task_{name}" if name in sys.stdlib_module_names else name


def skeleton(title: str, more: str = "") -> str:
    about = f"# {title}\n\n" + (f"{more}\n\n" if more else "") + _ABOUT
    cells = (
        Cell("markdown", about),
        Cell("code", _PARAMETERS, title="parameters", tags=("parameters",)),
        Cell("code", _GATHER, title="gather"),
        Cell("markdown", "## Decide\n\nSay by which rule."),
        Cell("code", _DECIDE, title="decide"),
        Cell("markdown", "## Report"),
        Cell("code", _REPORT, title="report"),
    )
    return formats.dumps(Document(cells), ".py")


def _worded(description: str) -> tuple[str, str]:
    """The title, and what else was said."""
    kept = "".join(
        c for c in description if c in "\n\t" or not unicodedata.category(c).startswith("C")
    )
    lines = [" ".join(line.split()) for line in kept.strip().splitlines()]
    if not lines or not lines[0]:
        raise UsageError(
            "the description is empty", hint='quire new "Report the health of this machine"'
        )
    title, rest = lines[0], "\n".join(lines[1:]).strip()
    if len(title) > _TITLE:
        rest = f"{title}\n\n{rest}".strip()
        title = title[:_TITLE].rsplit(" ", 1)[0] + " …"
    return title, rest


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
        fd, name = tempfile.mkstemp(dir=path.parent, prefix=".new.", suffix=".tmp")
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(fd, 0o644)
                os.fsync(fd)
            os.link(name, path)
        except FileExistsError:
            return False
        finally:
            os.unlink(name)
    return True
