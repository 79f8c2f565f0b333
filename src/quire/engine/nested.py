"""A cell runs another task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..kernel.protocol import KernelSpec
from ..masking.secrets import Secret
from ..record.questions import Asker
from ..record.report import report
from ..workspace import Workspace
from .choose_kernel import interpreter
from .planning import Handed
from .run import NotebookExecutor, drained
from .run_plan import Cancel


def run_called(
    ws: Workspace,
    spec: KernelSpec,
    arguments: Mapping[str, Any],
    cancel: Cancel,
    *,
    asker: Asker,
    parent: str | None = None,
    chain: tuple[Path, ...] = (),
    secrets: tuple[Secret, ...] = (),
    archives: bool | None = None,
) -> dict[str, Any]:
    """Run the task that a cell asks for, under the policy that the cell itself is under."""
    parameters, cwd = arguments.get("parameters"), arguments.get("cwd")
    path = arguments.get("path")
    if not isinstance(parameters, Mapping) or not isinstance(path, str) or "\0" in path:
        raise UsageError("run() takes a path and parameters", hint="see the runtime's docs")
    if not isinstance(cwd, str) or "\0" in cwd or not Path(cwd).is_dir():
        raise UsageError("the cell's folder is gone", hint="go to one that is there: os.chdir")
    here = Workspace(
        ws.root,
        cwd=cwd,
        env=ws.env,
        engine=ws.engine,
        asker=asker,
        settings=ws.config,
        say=ws.say,
        caller=ws.caller,
    )
    child = NotebookExecutor(
        path,
        parameters,
        workspace=here,
        env=_environment(arguments.get("env"), spec.env),
        python=_asked_for(ws, spec),
        parent=parent,
        chain=chain,
        cancel=cancel,
        archives=archives,
        # A cell chooses what its child sees, not which programs run for it nor what is masked.
        handed=Handed(spec.env if spec.commands is None else spec.commands, secrets),
    )
    return report(drained(child), str(child.folder.notebook), child.archived)


def _asked_for(ws: Workspace, spec: KernelSpec) -> str | None:
    """The interpreter somebody named for the task, which then counts for the tasks it runs too.
    What a task declares to need is its own, and so is what the configuration says."""
    own = spec.environment.get("lock") or spec.python == interpreter(ws, ws.config.python, ws.root)
    return None if own else spec.python


def _environment(given: Any, otherwise: Mapping[str, str]) -> Mapping[str, str]:
    """A child has its parent's environment as it is at the call."""
    fits = isinstance(given, dict) and all(
        isinstance(value, str) and "\0" not in f"{name}{value}" and "=" not in name[1:] and name
        for name, value in given.items()
    )
    return given if fits else otherwise
