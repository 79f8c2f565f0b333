"""Make `from quire.runtime import …` work where Quire is not installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


class RuntimeFinder:
    """Asked last: an installed Quire answers first."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name == "quire":
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = []
            return spec
        if name == "quire.runtime":
            return importlib.util.spec_from_file_location(name, os.path.join(HERE, "runtime.py"))
        return None


def install() -> None:
    sys.meta_path.append(RuntimeFinder())
