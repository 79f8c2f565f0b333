"""Write a run as a file for people: a notebook, a web page or Markdown."""

from __future__ import annotations

from pathlib import Path

from .. import __version__
from ..errors import UsageError
from ..files import write_atomic
from ..record.record import Record
from ..workspace import Workspace
from .read import find

SUFFIXES = (".ipynb", ".html", ".md")


def export(workspace: Workspace, run: str, target: str | Path, *, force: bool = False) -> Path:
    """The suffix of `target` says what to write. An existing file stays unless `force`."""
    path = workspace.cwd / target
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"cannot tell from the name {path.name!r} what to write",
            hint="end it in .ipynb, .html or .md",
        )
    if path.is_dir():
        raise UsageError(f"{target} is a folder", hint=f"name a file in it: {target}/run.html")
    if not path.parent.is_dir():
        raise UsageError(
            f"there is no folder {path.parent}", hint="make it, or choose another target"
        )
    if path.exists() and not force:
        raise UsageError(
            f"{target} is already there", hint="choose another name, or replace it with --force"
        )
    # Through a link: the file it points to is replaced, not the link.
    path = path.resolve()
    write_atomic(path, _rendered(find(workspace, run).record, path))
    return path


def _rendered(record: Record, path: Path) -> bytes:
    suffix = path.suffix.lower()
    if suffix == ".ipynb":
        from ..record.executed_notebook import dumps, notebook

        return dumps(notebook(record, output_path=str(path), version=__version__))
    if suffix == ".html":
        from ..render.html import render
    else:
        from ..render.markdown import render
    return render(record).encode()
