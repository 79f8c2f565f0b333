"""The environment that a task declares: found in the cache, or resolved and made by uv."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DependencyError, DocumentError, UsageError
from ..files import write_atomic
from ..task.document import Document
from ..task.read_task import read
from ..workspace import Workspace
from . import requirements
from .environment_cache import Base, Environment, base_of, digest_of, identity, summary
from .requirements import Dependencies
from .uv import Uv

# What kernels need to run there, besides what the task wants.
KERNEL = "ipykernel>=6.29"
LOCK = ".lock.txt"
_DECLARES = "# declares: "

Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a task, or the workspace for it, says that it needs."""

    of: Dependencies
    by: str  # task or workspace
    lock_file: Path  # where its versions are fixed, if somebody has done that
    python: str  # the interpreter to begin with
    lock: str = ""  # the text of that file

    @property
    def digest(self) -> str:
        more = (digest_of(self.lock),) if self.lock else ()
        return self.of.digest(KERNEL, identity(self.python), *more)

    @property
    def declares(self) -> str:
        """What the head of a lock says, to be told from one of another declaration."""
        return self.of.digest(KERNEL)


def wish(
    workspace: Workspace, document: Document, task: Path | None, python: str, *, anew: bool = False
) -> Wish | None:
    """None: the task runs in an interpreter as it is. `anew`: whatever its lock was made for."""
    found, by = requirements.declared(document), "task"
    if found is None and workspace.config.dependencies and document.language == "python":
        found, by = Dependencies(workspace.config.dependencies), "workspace"
    if found is None:
        return None
    own = by == "task" and task is not None
    lock_file = task.with_suffix(LOCK) if own and task else workspace.root / f"quire{LOCK}"
    made = Wish(found, by, lock_file, python or sys.executable)
    text = _lock_text(lock_file)
    if not text:
        return made
    if not anew and _DECLARES + made.declares not in text.split("\n")[:5]:
        raise DependencyError(
            f"{workspace.named(lock_file)} was made for other dependencies than are declared now",
            hint="quire env lock TASK makes it anew; or remove it",
        )
    return replace(made, lock=text)


def _lock_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(
            f"the lock {path.name} cannot be read: {error}", hint="quire env lock TASK"
        ) from error


def lease(workspace: Workspace, asked: Wish, cancelled: Cancelled = lambda: False) -> Environment:
    """The environment of a wish. Nothing but a look at two files where it is there."""
    store = workspace.environments
    digest = asked.digest
    found = store.known(digest)
    if found is None:
        uv = Uv(workspace.root, workspace.env, cancelled)
        with store.resolving(digest, uv.look):
            found = store.known(digest) or _made(workspace, asked, digest, uv)
    store.used(found)
    return found


def _made(workspace: Workspace, asked: Wish, digest: str, uv: Uv) -> Environment:
    store, base = workspace.environments, _base(asked, uv)
    lock = asked.lock or store.lock_of(digest)
    if not lock:
        lock = _resolved(workspace, asked, base, uv)
    entries = requirements.pins(lock, workspace.named(asked.lock_file))
    made = store.make("".join(f"{entry}\n" for *_, entry in entries), base, uv, workspace.say)
    store.keep(digest, lock, made)
    return made


def _resolved(
    workspace: Workspace,
    asked: Wish,
    base: Base,
    uv: Uv,
    *,
    known: str = "",
    universal: bool = False,
) -> str:
    wanted = _checked(asked)
    count = f"{len(wanted)} dependenc{'y' if len(wanted) == 1 else 'ies'}"
    workspace.say(f"finding versions of {count} …")
    newest = asked.of.newest
    return uv.resolve([*wanted, KERNEL], base.path, newest=newest, known=known, universal=universal)


def _checked(asked: Wish) -> list[str]:
    try:
        return requirements.checked(asked.of)
    except DocumentError as error:
        if asked.by == "task":
            raise
        raise ConfigError(f"dependencies: {error.message}", hint=error.hint) from error


def _base(asked: Wish, uv: Uv) -> Base:
    """A Python that the task says it runs on: the workspace's, or another one of this machine."""
    _checked(asked)
    base = base_of(asked.python)
    if requirements.fits(asked.of.python, base.version):
        return base
    other = uv.find(asked.of.python)
    if other is not None:
        found = base_of(str(other))
        if requirements.fits(asked.of.python, found.version):
            return found
    raise DependencyError(
        f"the task needs Python {asked.of.python}; tasks run in {base.version} here, and there is "
        "no other that fits",
        hint="install one (uv python install), or name one: python = … in the configuration",
    )


def told(workspace: Workspace, asked: Wish, made: Environment | None) -> dict[str, Any]:
    """What a record says of it. Without an environment it was asked to do without."""
    return {
        "declared_by": asked.by,
        **asked.of.as_json(),
        "lock": made.lock if made is not None else None,
        **({"lock_file": workspace.named(asked.lock_file)} if asked.lock else {}),
        **({"python": made.version} if made is not None else {}),
    }


def activated(
    workspace: Workspace, env: Mapping[str, str], made: Environment | None
) -> Mapping[str, str]:
    """With the programs of the environment first, and without those of a calling task's."""
    inside = f"{workspace.environments.made}{os.sep}"
    path = env.get("PATH", "").split(os.pathsep)
    kept = [folder for folder in path if not folder.startswith(inside)]
    if made is None:
        if kept == path:
            return env
        rest = {key: value for key, value in env.items() if key != "VIRTUAL_ENV"}
        return {**rest, "PATH": os.pathsep.join(kept)}
    folder = made.python.parent
    path = [str(folder), *kept]
    return {**env, "PATH": os.pathsep.join(path), "VIRTUAL_ENV": str(folder.parent)}


# What a person asks for.


@dataclass(frozen=True, slots=True)
class Shown:
    """The environment of a task as it stands."""

    asked: Wish
    made: Environment | None
    lock_file: str  # named as a person does; empty where there is none


def _asked(workspace: Workspace, path: str | Path | None, *, anew: bool = False) -> Wish:
    from ..engine.choose_kernel import interpreter  # which itself needs what is here

    python = interpreter(workspace, workspace.config.python, workspace.root)
    if path is None:
        found = wish(workspace, Document(()), None, python, anew=anew)
        if found is None:
            raise UsageError(
                "the workspace declares no dependencies", hint="name a task, or set `dependencies`"
            )
        return found
    source = read(workspace, path)
    found = wish(workspace, source.document, source.path, python, anew=anew)
    if found is None:
        raise UsageError(
            f"{workspace.named(source.path)} declares no dependencies, and neither does the "
            "workspace: it runs in an interpreter as it is",
            hint='begin it with `# /// script`, `# dependencies = ["pandas>=2"]`, `# ///`',
        )
    return found


def show(workspace: Workspace, path: str | Path | None) -> Shown:
    """Makes nothing."""
    asked = _asked(workspace, path)
    _checked(asked)
    return _shown(workspace, asked, workspace.environments.known(asked.digest))


def _shown(workspace: Workspace, asked: Wish, made: Environment | None) -> Shown:
    return Shown(asked, made, workspace.named(asked.lock_file) if asked.lock else "")


def build(workspace: Workspace, path: str | Path | None, *, upgrade: bool = False) -> Shown:
    """Make it without running anything; `upgrade` finds the newest versions that are allowed."""
    asked = _asked(workspace, path)
    if upgrade and asked.lock:
        raise UsageError(
            f"the versions are fixed by {workspace.named(asked.lock_file)}",
            hint="quire env lock TASK --upgrade",
        )
    if upgrade:
        uv, digest = Uv(workspace.root, workspace.env), asked.digest
        with workspace.environments.resolving(digest, uv.look):
            base = _base(asked, uv)
            lock = _resolved(workspace, asked, base, uv)
            entries = requirements.pins(lock, "uv")
            text = "".join(f"{entry}\n" for *_, entry in entries)
            made = workspace.environments.make(text, base, uv, workspace.say)
            workspace.environments.keep(digest, lock, made)
    return _shown(workspace, asked, lease(workspace, asked))


def lock(workspace: Workspace, path: str | Path | None, *, upgrade: bool = False) -> Path:
    """Fix the versions in a file beside the task, for everybody who has that file."""
    asked = _asked(workspace, path, anew=True)
    uv = Uv(workspace.root, workspace.env)
    base = _base(asked, uv)
    known = asked.lock or workspace.environments.lock_of(asked.digest)
    text = _resolved(workspace, asked, base, uv, known="" if upgrade else known, universal=True)
    entries = requirements.pins(text, "uv")
    head = f"# Made by `quire env lock` from what is declared.\n{_DECLARES}{asked.declares}\n"
    body = "".join(f"{entry}\n" for *_, entry in entries)
    write_atomic(asked.lock_file, (head + body).encode())
    return asked.lock_file


def listed(workspace: Workspace) -> list[dict[str, Any]]:
    store = workspace.environments
    used = store.in_use()
    return [{**summary(store, one), "in_use": one in used} for one in store.folders()]


def clean(workspace: Workspace, days: float = 30.0, *, everything: bool = False) -> dict[str, Any]:
    """Remove those that nobody has used for a while. Versions that were found out stay known."""
    store, now = workspace.environments, time.time()
    removed, kept = [], []
    for folder in store.folders():
        about = summary(store, folder)
        old = everything or about["state"] != "ready" or now - about["used"] > days * 86_400
        if old and store.remove(folder):
            removed.append(about)
        elif old:
            kept.append(folder.name)
    size = sum(about["size"] for about in removed)
    return {"removed": [about["environment"] for about in removed], "size": size, "in_use": kept}
