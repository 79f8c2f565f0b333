"""The skill that teaches agents to work with Quire: show it, and put it where agents look.

What else tells agents of Quire (a section for AGENTS.md, llms.txt) is made from the same text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..files import disk, write_atomic
from ..workspace import STATE, Workspace

SOURCE = Path(__file__).parents[1] / "shipped" / "skill"
NAME = "quire"
# Beside the skill: which text was installed, so that a newer one can tell what a person changed.
_INSTALLED = ".quire-skill.json"
_AGENTS = (".claude", ".agents")
_PRIVATE = (".git", STATE)
_FOR_AGENTS = ("When a notebook, and when not", "Rules")
AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class Installed:
    """One copy of the skill, and which of its files were written now."""

    folder: Path
    written: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {"folder": str(self.folder), "written": list(self.written)}


def files() -> dict[str, bytes]:
    """The skill, by the names its files have below its folder."""
    found = sorted(path for path in SOURCE.rglob("*.md") if path.is_file())
    return {
        path.relative_to(SOURCE).as_posix(): _without_comments(path.read_text("utf-8")).encode()
        for path in found
    }


def _without_comments(text: str) -> str:
    """What tells the project's tests how to run an example is for nobody else."""
    return re.sub(r"^<!--.*?-->\n", "", text, flags=re.MULTILINE)


def install(ws: Workspace, *, to: Sequence[str] = (), force: bool = False) -> tuple[Installed, ...]:
    """Every place is looked at before the first file is written. An edited copy stays."""
    given = dict.fromkeys(_given(ws, one) for one in to if one)
    folders = list(given) or _found(ws)
    shipped = files()
    plans = [(folder, _needed(ws, folder, shipped, force)) for folder in folders]
    return tuple(_write(folder, shipped, needed) for folder, needed in plans)


def _found(ws: Workspace) -> list[Path]:
    there = [name for name in _AGENTS if (ws.root / name).is_dir()] or [_AGENTS[0]]
    root = ws.root.resolve()
    for name in there:
        if not (ws.root / name / "skills" / NAME).resolve().is_relative_to(root):
            raise UsageError(
                f"{name} is a link that leads out of {ws.root}",
                hint=f"name the folder that is meant: quire skill install --to {name}/skills",
            )
    return [ws.root / name / "skills" / NAME for name in there]


def _given(ws: Workspace, to: str) -> Path:
    if "\0" in to:
        raise UsageError(f"{to!r} is no folder", hint="quire skill install --to .claude/skills")
    if to == "~" or to.startswith("~/"):
        home = ws.env.get("HOME", "")
        if not os.path.isabs(home):
            raise UsageError("HOME is not set, so ~ is nowhere", hint="give the folder in full")
        to = home + to[1:]
    elif to.startswith("~"):
        raise UsageError(
            f"{to} is in another user's home", hint="give the folder in full; ./~x is one here"
        )
    folder = Path(os.path.normpath(ws.cwd / to))
    # Who names the skill's own folder means it, not one inside it.
    folder = folder if folder.name == NAME and (folder / "SKILL.md").exists() else folder / NAME
    if any(part.casefold() in _PRIVATE for part in folder.resolve().parts):
        raise UsageError(
            f"{ws.named(folder)} lies in a folder of git's or Quire's own",
            hint="quire skill install --to .claude/skills",
        )
    return folder


def _needed(ws: Workspace, folder: Path, shipped: dict[str, bytes], force: bool) -> tuple[str, ...]:
    """The files that have to be written; an error where that would lose somebody's work."""
    before = _recorded(folder)
    needed, edited = [], []
    for name, data in shipped.items():
        path = folder / name
        _passable(ws, folder, path)
        with disk(str(path)):
            there = path.read_bytes() if path.is_file() else None
        if there != data:
            needed.append(name)
        if there is not None and there != data and _digest(there) != before.get(name):
            edited.append(name)
    if edited and not force:
        raise UsageError(
            f"{ws.named(folder)} was edited: {', '.join(edited)}",
            hint="keep it, or install over it with --force",
        )
    return tuple(needed)


def _passable(ws: Workspace, folder: Path, path: Path) -> None:
    """No link and nothing but folders below the skill's own folder and at its place."""
    for part in (*reversed(folder.parents), folder, path.parent):
        if os.path.lexists(part) and not part.is_dir():
            raise UsageError(f"{ws.named(part)} is not a folder", hint="move it away")
    linked = [part for part in (folder, path.parent, path) if part.is_symlink()]
    if linked:
        raise UsageError(f"{ws.named(linked[0])} is a link", hint="remove it first")
    if path.is_dir():
        raise UsageError(f"{ws.named(path)} is a folder", hint="move it away")


def _recorded(folder: Path) -> dict[str, str]:
    """What was installed there, by name. Only ever compared."""
    try:
        found = json.loads((folder / _INSTALLED).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(folder: Path, shipped: dict[str, bytes], needed: tuple[str, ...]) -> Installed:
    record = json.dumps({name: _digest(data) for name, data in shipped.items()}, indent=1)
    with disk(str(folder)):
        for name in needed:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / name, shipped[name])
        if _recorded(folder) != json.loads(record):
            write_atomic(folder / _INSTALLED, f"{record}\n".encode())
    return Installed(folder, needed)


# Texts


def show(part: str = "") -> str:
    """The skill's page, one of its references by name, or the section for AGENTS.md."""
    if part == AGENTS:
        return agents_section()
    known = {Path(name).stem.lower(): name for name in files()}
    name = known.get((part or "skill").lower().removesuffix(".md").rsplit("/", 1)[-1])
    if name is None:
        others = sorted({*known, AGENTS} - {"skill"})
        raise UsageError(f"the skill has no part {part!r}", hint=f"its parts: {', '.join(others)}")
    return files()[name].decode()


def sections(text: str) -> dict[str, str]:
    """What stands under each `##`, by title."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return {title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def steps() -> list[tuple[str, list[str]]]:
    """The whole way: each step, and the commands that it shows."""
    way = sections(show())["The whole way"]
    parts = re.split(r"^### \d+\. (.*)\n", way, flags=re.MULTILINE)
    return [
        (title, re.findall(r"^\$ (quire .*)$", body, flags=re.MULTILINE))
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    ]


def agents_section() -> str:
    """A section for the AGENTS.md of a repository with tasks."""
    told = sections(show())
    rows = "\n".join(
        f"{n}. {title}: `{'`, `'.join(calls)}`" for n, (title, calls) in enumerate(steps(), 1)
    )
    when, rules = (told[title] for title in _FOR_AGENTS)
    return (
        "## Notebooks with Quire\n\n"
        "`quire skill show` prints all of what follows, with examples; `quire skill install` puts "
        "it where agents look.\n\n"
        f"### {_FOR_AGENTS[0]}\n\n{when}\n\n### The whole way\n\n{rows}\n\n"
        f"### {_FOR_AGENTS[1]}\n\n{rules}\n"
    )
