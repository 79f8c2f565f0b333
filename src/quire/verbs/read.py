"""Read a task from disk, and say clearly when it is none."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from ..document import formats
from ..document.model import Document
from ..errors import DocumentError
from ..workspace import Workspace


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    text: str
    document: Document


def read(workspace: Workspace, path: str | Path) -> Source:
    if not str(path):
        raise DocumentError("the path is empty", hint="name a .py or .ipynb file")
    full = workspace.cwd / path
    try:
        mode = full.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise DocumentError(
                f"{path} is a device or a pipe, not a task", hint="name a .py or .ipynb file"
            )
        data = full.read_bytes()
    except FileNotFoundError:
        raise DocumentError(f"there is no file {path}", hint=_nearby(Path(path), full)) from None
    except IsADirectoryError:
        raise DocumentError(f"{path} is a folder, not a task", hint=_inside(full)) from None
    except OSError as error:
        raise DocumentError(
            f"cannot read {path}: {error.strerror}", hint="check its permissions"
        ) from error
    except ValueError as error:  # a NUL in the path
        raise DocumentError(f"{str(path)!r} is not a path: {error}", hint="check it") from error
    text = formats.decode(data, str(path))
    try:
        document = formats.loads(text, full.suffix)
    except DocumentError as error:
        raise DocumentError(f"{path}: {error.message}", hint=error.hint) from error
    return Source(full.resolve(), text, document)


def _nearby(asked: Path, full: Path) -> str:
    import difflib

    try:
        names = [p.name for p in full.parent.iterdir() if _may_be_task(p)]
    except OSError:
        return "check the path"
    near = difflib.get_close_matches(full.name, names, 1, 0.7)
    return f"did you mean {asked.parent / near[0]}?" if near else "check the path"


def _may_be_task(path: Path) -> bool:
    return path.suffix in (".py", ".ipynb") and path.is_file()


def _inside(folder: Path) -> str:
    try:
        names = sorted(p.name for p in folder.iterdir() if _may_be_task(p))
    except OSError:
        names = []
    return f"name a task in it: {', '.join(names[:5])}" if names else "it holds no tasks"
