"""Quire: the notebook execution layer for agents.

import quire

record = quire.run("notebooks/report.py", {"region": "eu"})
record.outcome, record.values
"""

from __future__ import annotations

__version__ = "0.1.0"

# Spelled out because importing `typing` would be a third of the command's start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .engine.run import NotebookExecutor as NotebookExecutor
    from .engine.run import run as run
    from .errors import QuireError as QuireError
    from .record.record import Record as Record
    from .record.record import Result as Result
    from .workspace import Workspace as Workspace

# Loaded when first used: importing quire in a cell, or starting the command, must cost nothing.
_HOMES = {
    "NotebookExecutor": "quire.engine.run",
    "QuireError": "quire.errors",
    "Record": "quire.record.record",
    "Result": "quire.record.record",
    "Workspace": "quire.workspace",
    "run": "quire.engine.run",
}

__all__ = ["NotebookExecutor", "QuireError", "Record", "Result", "Workspace", "__version__", "run"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        module = __import__(_HOMES[name], fromlist=[name])
        globals()[name] = value = getattr(module, name)
        return value
    raise AttributeError(f"module 'quire' has no attribute {name!r}")
