"""`from quire.runtime import glue, run`: the engine's side door, for use inside cells."""

from .kernel.inside.runtime import RunResults, TaskFailed, glue, run

__all__ = ["RunResults", "TaskFailed", "glue", "run"]
