"""`from quire.runtime import terminal, ask, run, glue, …`: what cells can ask of the engine."""

from .kernel.inside import runtime as _runtime
from .kernel.inside.runtime import *  # noqa: F403 - the same names, whatever they are

__all__ = list(_runtime.__all__)
