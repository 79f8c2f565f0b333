"""Which kernel a task gets, from what the caller, the task and the workspace say."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ..environments import resolve
from ..environments.environment_cache import Environment
from ..errors import KernelNotFound, UsageError
from ..kernel.engine_calls import Line
from ..kernel.protocol import Kernel, KernelSpec
from ..task.document import Document
from ..workspace import Workspace


def kernel_spec(
    workspace: Workspace,
    document: Document,
    *,
    kernel: str | None = None,
    python: str | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    task: Path | None = None,
) -> KernelSpec:
    """`task` is where the document is from. Where it declares dependencies they are there when
    this returns, which may take a while the first time."""
    spec = unprepared(workspace, document, kernel=kernel, python=python, cwd=cwd, env=env)
    return prepared(workspace, spec, document, python, task=task)


def unprepared(
    workspace: Workspace,
    document: Document,
    *,
    kernel: str | None = None,
    python: str | None = None,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
) -> KernelSpec:
    """Everything but what the task declares to need."""
    config = workspace.config
    if kernel and python:
        raise UsageError(
            "--kernel and --python were both given", hint="a kernel has its interpreter: give one"
        )
    if python is None:
        chosen = interpreter(workspace, config.python, workspace.root)
    else:
        chosen = interpreter(workspace, python, workspace.cwd)
    return KernelSpec(
        cwd=_folder(workspace.cwd / cwd if cwd is not None else workspace.cwd),
        env=environment(workspace, env),
        name=kernel if kernel is not None else _kernel(document.kernel_name, config.kernel),
        python=chosen,
        preload=config.preload,
        world=workspace.world,
    )


def prepared(
    workspace: Workspace,
    spec: KernelSpec,
    document: Document,
    python: str | None,
    *,
    task: Path | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> KernelSpec:
    """With the environment that the task declares; a `python` that the caller named goes first."""
    found: Environment | None = None
    if python is None:
        asked = resolve.wish(workspace, document, task, spec.python)
        found = resolve.lease(workspace, asked, cancelled) if asked is not None else None
    else:
        asked = resolve.wish(workspace, document, task, spec.python, anew=True)
        found = workspace.environments.of_python(spec.python) if spec.python else None
    return replace(
        spec,
        env=resolve.activated(workspace, spec.env, found),
        commands=spec.commands and resolve.activated(workspace, spec.commands, found),
        python=str(found.python) if found is not None else spec.python,
        environment=resolve.told(workspace, asked, found) if asked is not None else {},
    )


def environment(workspace: Workspace, env: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """The variables of a kernel: the caller's, and what only `.env` says."""
    given = workspace.env if env is None else env
    whole = {**workspace.dotenv, **given} if workspace.dotenv else given
    if workspace.config.sql and not whole.get("QUIRE_SQL"):
        address = re.sub(
            r"\$\{(\w+)\}|\$(\w+)",
            lambda found: whole.get(found[1] or found[2], ""),
            workspace.config.sql,
        )
        whole = {**whole, "QUIRE_SQL": address}
    return whole


def hidden(workspace: Workspace) -> tuple[str, ...]:
    """Names of variables whose values nobody may see, whatever they are called."""
    return (*workspace.config.mask, *workspace.dotenv)


def other_kernels(document: Document) -> dict[str, str]:
    """The steps of a logbook that run in another kernel than the rest."""
    if document.format != "logbook":
        return {}
    kernels = ((cell.id, cell.metadata.get("kernel")) for cell in document.cells)
    return {id_: kernel for id_, kernel in kernels if isinstance(kernel, str)}


def beside(
    kernel: Kernel, workspace: Workspace, spec: KernelSpec, document: Document, line: Line
) -> Kernel:
    """That kernel, and others for the steps that name another one."""
    others = other_kernels(document)
    if not others:
        return kernel
    from ..kernel.multi_kernel import SeveralKernels

    engine = workspace.engine

    def start(name: str) -> Kernel:
        own = engine.calls.another(line)
        return engine.kernels.start(replace(spec, name=name), own.as_context())

    return SeveralKernels(kernel, others, start)


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
