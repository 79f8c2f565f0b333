"""`from quire.runtime import terminal, ask, run, glue, …`: what cells can ask of the engine."""

from .kernel.inside import cell_runtime as _runtime
from .kernel.inside.cell_runtime import *  # noqa: F403 - the same names, whatever they are

__all__ = list(_runtime.__all__)
