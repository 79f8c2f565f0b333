"""What a task can be given."""

from __future__ import annotations

from pathlib import Path

from ..workspace import Workspace
from . import params
from .read_task import read


def parameters(workspace: Workspace, path: str | Path) -> tuple[params.Parameter, ...]:
    return params.declared(read(workspace, path).document)
