"""Which kernel a task gets, from what the caller, the task and the workspace say."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..document.model import Document
from ..errors import KernelNotFound, UsageError
from ..kernel.protocol import KernelSpec
from ..store.environments import Environment
from ..workspace import Workspace
from . import environments


def kernel_spec(
    workspace: Workspace,
    document: Document,
    *,
    kernel: str | None = None,
    python: str | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    task: Path | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> KernelSpec:
    """`task` is where the document is from. Where it declares dependencies they are there when
    this returns, which may take a while the first time."""
    config = workspace.config
    if kernel and python:
        raise UsageError(
            "--kernel and --python were both given", hint="a kernel has its interpreter: give one"
        )
    folder = _folder(workspace.cwd / cwd if cwd is not None else workspace.cwd)
    variables = workspace.env if env is None else env
    if python is None:
        chosen = interpreter(workspace, config.python, workspace.root)
    else:
        chosen = interpreter(workspace, python, workspace.cwd)
    found, about = _environment(workspace, document, task, python, chosen, cancelled)
    return KernelSpec(
        cwd=folder,
        env=environments.activated(workspace, variables, found),
        name=kernel if kernel is not None else _kernel(document.kernel_name, config.kernel),
        python=str(found.python) if found is not None else chosen,
        preload=config.preload,
        world=workspace.world,
        environment=about,
    )


def _environment(
    workspace: Workspace,
    document: Document,
    task: Path | None,
    python: str | None,
    chosen: str,
    cancelled: Callable[[], bool],
) -> tuple[Environment | None, Mapping[str, Any]]:
    """What the task declares to need. An interpreter that the caller names goes first."""
    if python is None:
        asked = environments.wish(workspace, document, task, chosen)
        if asked is None:
            return None, {}
        found: Environment | None = environments.lease(workspace, asked, cancelled)
    else:
        found = workspace.environments.of_python(chosen) if chosen else None
        asked = environments.wish(workspace, document, task, chosen, anew=True)
    if asked is not None:
        return found, environments.told(workspace, asked, found)
    return found, {}


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}", hint="give --cwd a folder that exists")
    return path


def _kernel(asked: str, configured: str) -> str:
    """Empty for the native kernel. A notebook made for Python asks for `python3`: that is ours."""
    if configured:
        return configured
    native = not asked or asked in ("python", "python3") or sys.platform == "win32"
    return "" if native else asked


def interpreter(workspace: Workspace, python: str, folder: Path) -> str:
    """A path is one from that folder; a name is looked for on the caller's path."""
    if not python:
        return ""
    if "/" in python:
        found: str | None = str(folder / Path(python).expanduser())
    else:
        found = shutil.which(python, path=workspace.env.get("PATH"))
    if found is None or not Path(found).is_file():
        raise KernelNotFound(
            f"there is no interpreter {python}",
            hint="give --python the path of a Python that has IPython installed",
        )
    return found
