"""Make `from quire.runtime import …` work in every kernel, also where Quire is not installed.

The runtime beside this file is the one that this engine understands, so it answers before a Quire
that may be installed there too. `hermes_runtime` and `hermes_tools` are other names of it.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NAMES = ("quire.runtime", "hermes_runtime", "hermes_tools")


class RuntimeLoader:
    """A module with the runtime's names."""

    def create_module(self, _spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        runtime = importlib.import_module("_quire_inside.cell_runtime")
        module.__doc__ = runtime.__doc__
        names: list[str] = runtime.__all__
        vars(module).update({name: getattr(runtime, name) for name in names}, __all__=list(names))


class RuntimeFinder:
    """Asked first."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name in NAMES:
            return ModuleSpec(name, RuntimeLoader(), origin="quire")  # type: ignore[arg-type]
        return None


class PackageFinder:
    """Asked last: an installed Quire answers first."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name != "quire":
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = []
        return spec


def install() -> None:
    if not any(type(finder).__name__ == RuntimeFinder.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, RuntimeFinder())
        sys.meta_path.append(PackageFinder())
