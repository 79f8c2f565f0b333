"""The tasks of a workspace: what is found under its notebooks folder, and what each says of CI."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DocumentError, UsageError
from ..task import percent, percent_header
from ..task.document import Document
from ..task.read_task import Source
from ..task.sync import is_of_a_run, is_task
from ..workspace import Workspace

SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "templates"})


@dataclass(frozen=True, slots=True)
class Found:
    """What lies there: tasks, and links that are not followed, each with the reason. `lost` were
    tasks before the change and cannot be run any more."""

    tasks: tuple[Path, ...]
    links: Mapping[Path, str] = field(default_factory=dict)
    lost: Mapping[Path, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a task says of itself for CI, as `quire: ci:` in its metadata."""

    wanted: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    cell_timeout: float | None = None


def folder(ws: Workspace) -> Path:
    """The notebooks folder, which lies in the workspace."""
    name = ws.config.notebooks
    root = ws.root.resolve()
    try:
        place = (root / name).resolve()
        is_there = place.is_dir()
    except (OSError, ValueError):
        place, is_there = root, False
    if not place.is_relative_to(root):
        raise UsageError(
            f"the notebooks folder {name} lies outside of {ws.root}",
            hint="set `notebooks` to a folder of the repository",
        )
    if not is_there:
        raise UsageError(
            f"there is no folder {name} with tasks in {ws.root}",
            hint='make it, or name the one you have: notebooks = "…" in the configuration',
        )
    return place


def find(ws: Workspace) -> Found:
    """Every task under the notebooks folder, by name. Each file once, whatever links lead to it."""
    root, top = ws.root.resolve(), folder(ws)
    tasks: dict[Path, None] = {}
    links: dict[Path, str] = {}
    for path in _walked(top):
        real = path.resolve()
        if not real.is_relative_to(root):
            links[path] = "a link that leads out"
        elif not real.is_dir():
            tasks[real] = None
        elif not real.is_relative_to(top):
            links[path] = "a link to a folder, which is not followed"
    return Found(tuple(sorted(tasks)), links)


def _walked(top: Path) -> Iterator[Path]:
    """Tasks, and folders that are links; what lies in those is not looked at."""
    for here, folders, names in os.walk(top):
        folders[:] = sorted(
            name
            for name in folders
            if not is_skipped(name) and not Path(here, name, "pyvenv.cfg").exists()
        )
        yield from filter(Path.is_symlink, (Path(here, name) for name in folders))
        stems = {
            Path(here, name).with_suffix("")
            for name in names
            if name.endswith((".py", ".ipynb")) and not name.startswith((".", "_"))
        }
        for stem in sorted(stems):
            path = task_of(stem.with_name(f"{stem.name}.py"), stem.with_name(f"{stem.name}.ipynb"))
            if path is not None:
                yield path


def is_skipped(folder: str) -> bool:
    return folder.startswith((".", "_")) or folder in SKIPPED


def task_of(py: Path, nb: Path) -> Path | None:
    """The `.py`, or the `.ipynb` that has none. What cannot be read counts: running it says why."""
    for path in (py, nb):
        try:
            if path == py and py.is_file() and is_task(py):
                return py
            if path == nb and nb.is_file() and not is_of_a_run(nb):
                return nb
        except DocumentError:
            return path
    return None


def said_by(source: Source) -> Settings:
    """What a task says of itself; an error where it seems to say something that nobody reads."""
    if source.path.suffix == ".py":
        percent_header.check(percent.split_lines(source.text))
    return settings(source.document)


def settings(document: Document) -> Settings:
    section = document.metadata.get("quire", {})
    if not isinstance(section, Mapping | None):
        raise DocumentError(
            f"`quire` in the task's header is {section!r}"[:200],
            hint="write `ci:` and other keys below it, indented",
        )
    asked = section.get("ci") if section else None
    if asked is None or isinstance(asked, bool):
        return Settings(asked is not False)
    known = {"run", "parameters", "timeout", "cell_timeout"}
    if not isinstance(asked, Mapping) or not set(asked) <= known:
        strange = sorted(set(map(str, asked)) - known) if isinstance(asked, Mapping) else [asked]
        raise DocumentError(
            f"`ci` in the task's header has {', '.join(map(str, strange))}",
            hint=f"it is true, false, or has keys: {', '.join(sorted(known))}",
        )
    wanted, parameters = asked.get("run", True), asked.get("parameters") or {}
    if not isinstance(wanted, bool) or not isinstance(parameters, Mapping):
        raise DocumentError(
            "`ci` in the task's header does not fit: `run` is true or false, "
            "`parameters` has names and values",
            hint="ci: {parameters: {region: eu}}",
        )
    limits = {name: _seconds(name, asked.get(name)) for name in ("timeout", "cell_timeout")}
    return Settings(wanted, {str(k): v for k, v in parameters.items()}, **limits)


def _seconds(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise DocumentError(
            f"`ci` in the task's header: {name} must be above 0, not {value!r}",
            hint=f"{name}: 60",
        )
    return float(value)
