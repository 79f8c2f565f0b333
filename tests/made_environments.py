"""Virtual environments with chosen packages of this one: no network, made in a moment."""

from __future__ import annotations

import sys
import venv
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement


def needed(name: str) -> dict[str, metadata.Distribution]:
    """A package of this environment and everything it requires."""
    found: dict[str, metadata.Distribution] = {}
    todo = [name]
    while todo:
        distribution = metadata.distribution(todo.pop())
        key = distribution.metadata["Name"].lower()
        if key in found:
            continue
        found[key] = distribution
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(requirement.name)
    return found


def make(folder: Path, *packages: str) -> Path:
    """An environment with these packages and nothing else; returns its interpreter."""
    venv.create(folder, symlinks=True, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    for package in packages:
        for distribution in needed(package).values():
            for file in distribution.files or ():
                top = file.parts[0]
                source = Path(str(distribution.locate_file(top)))
                if top not in ("..", "__pycache__") and not (site / top).exists():
                    (site / top).symlink_to(source)
    return folder / "bin" / "python"
