"""Read a task from disk, and say clearly when it is none."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from ..errors import DocumentError
from ..workspace import Workspace
from . import fences, formats, logbook, params, templates
from .document import Document


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    text: str
    document: Document


def parameters(workspace: Workspace, path: str | Path) -> tuple[params.Parameter, ...]:
    """What the task at the path can be given."""
    return params.declared(read(workspace, path).document)


def read(workspace: Workspace, path: str | Path) -> Source:
    if not str(path):
        raise DocumentError("the path is empty", hint="name a .py, .ipynb or .md file")
    full = _place(workspace, path)
    try:
        mode = full.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise DocumentError(
                f"{path} is a device or a pipe, not a task", hint="name a .py, .ipynb or .md file"
            )
        data = full.read_bytes()
    except FileNotFoundError:
        hint = _nearby(workspace, Path(path), full)
        raise DocumentError(f"there is no file {path}", hint=hint) from None
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
        document = parsed(workspace, text, full.suffix)
    except DocumentError as error:
        raise DocumentError(f"{path}: {error.message}", hint=error.hint) from error
    return Source(full.resolve(), text, document)


def parsed(workspace: Workspace, text: str, suffix: str) -> Document:
    """The document of a text. A logbook may have steps for any kernel that is installed."""
    if suffix.lower() != formats.LOGBOOK:
        return formats.loads(text, suffix)
    return formats.loads(text, suffix, _kernels(workspace, text))


def _kernels(workspace: Workspace, text: str) -> frozenset[str]:
    """The installed kernels, where a fence may mean one of them: that takes a look at folders."""
    lines = text.replace("\r\n", "\n").split("\n")
    languages = {fences.parse(block.info).language for block in fences.blocks(lines)}
    if all(not name or logbook.is_step(fences.Info(name)) for name in languages):
        return frozenset()
    from ..kernel.kernelspecs import installed

    return frozenset(installed(workspace.env))


def _place(workspace: Workspace, path: str | Path) -> Path:
    """The file of that name, or the logbook template that is called so."""
    full = workspace.cwd / path
    try:
        is_there = full.exists()
    except (OSError, ValueError):
        return full  # reading it will say what is wrong
    named = None if is_there or Path(path).is_absolute() else templates.find(workspace, str(path))
    return named or full


def _nearby(workspace: Workspace, asked: Path, full: Path) -> str:
    import difflib

    if not asked.suffix and len(asked.parts) == 1:
        known = templates.names(workspace)
        near = difflib.get_close_matches(asked.name, known, 1, 0.6)
        near = near or [name for name in known if name.lower() == asked.name.lower()]
        if near:
            return f"did you mean the template {near[0]}?"
    try:
        names = [p.name for p in full.parent.iterdir() if _may_be_task(p)]
    except OSError:
        return "check the path"
    near = difflib.get_close_matches(full.name, names, 1, 0.7)
    return f"did you mean {asked.parent / near[0]}?" if near else "check the path"


def _may_be_task(path: Path) -> bool:
    return path.suffix in (".py", ".ipynb", ".md") and path.is_file()


def _inside(folder: Path) -> str:
    try:
        names = sorted(p.name for p in folder.iterdir() if _may_be_task(p))
    except OSError:
        names = []
    return f"name a task in it: {', '.join(names[:5])}" if names else "it holds no tasks"
