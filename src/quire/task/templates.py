"""Logbook templates: tasks that are called by their name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import ConfigError, DocumentError, Hint, NextStep
from ..workspace import Workspace
from .formats import LOGBOOK

_NAME = re.compile(r"[^\x00-\x1f]+\Z")


def folder(ws: Workspace) -> Path:
    """Where logbooks are kept: templates and, beside them, the records of runs."""
    name = ws.config.logbooks
    root = ws.root.resolve()
    place = Path(os.path.normpath(root / name))
    if not place.is_relative_to(root) or not place.resolve().is_relative_to(root):
        raise ConfigError(
            f"the folder of logbooks {name} lies outside of {ws.root}",
            hint='logbooks = "logbooks"',
        )
    return place


def find(ws: Workspace, name: str) -> Path | None:
    """The template of that name, written as it is; None where there is none."""
    if not _NAME.match(name) or name.startswith(("/", ".", "~")) or ".." in Path(name).parts:
        return None
    wanted = name.removesuffix(LOGBOOK)
    hits = [path for path, called in _templates(ws) if wanted in called]
    if len(hits) > 1:
        listed = " and ".join(ws.named(path) for path in hits)
        raise DocumentError(
            f"{len(hits)} templates are called {name}: {listed}",
            hint=Hint("give the path: {}", NextStep("run", {"path": ws.named(hits[0])})),
        )
    return hits[0] if hits else None


def names(ws: Workspace) -> list[str]:
    return sorted({path.stem for path, _ in _templates(ws)})


def _templates(ws: Workspace) -> Iterator[tuple[Path, set[str]]]:
    """Every template, with what it may be called: its name, alone or with its folders."""
    top = folder(ws) / "templates"
    root = ws.root.resolve()
    for here, folders, files in os.walk(top):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for file in sorted(files):
            path = Path(here, file)
            inside = path.resolve().is_relative_to(root)
            if file.endswith(LOGBOOK) and not file.startswith(".") and inside:
                stem = path.with_suffix("")
                yield path, {stem.name, stem.relative_to(top).as_posix()}
