"""Where a run comes from: what its kernel can import, the commit, who asked for it."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import QuireError
from ..kernel.protocol import Kernel
from ..runs.events import OriginNoted
from ..runs.masking import Masker
from ..store.git import Repository
from ..workspace import Workspace

STATUS_TIMEOUT = 20.0


def finding_out(ws: Workspace, kernel: Kernel, task: Path, masker: Masker) -> Future[OriginNoted]:
    """In a thread of its own: asking git takes about as long as a short task runs."""
    future: Future[OriginNoted] = Future()

    def find_out() -> None:
        try:
            found = OriginNoted(
                masker.mask_json(dict(kernel.environment())),
                {"name": "quire", "version": __version__},
                masker.mask_json(commit(ws, task)),
                masker.mask_json(asked(ws.env)),
            )
            future.set_result(found)
        except BaseException as error:  # noqa: BLE001 - whoever waits for it shall have it
            future.set_exception(error)

    threading.Thread(target=find_out, name="quire-origin", daemon=True).start()
    return future


def asked(env: Mapping[str, str]) -> dict[str, Any]:
    """`QUIRE_ACTOR` names the agent or person who asks, `QUIRE_ON_BEHALF_OF` for whom."""
    user = env.get("QUIRE_ACTOR", "")
    if not user:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = "unknown"
    return {"by": user, "behalf": env.get("QUIRE_ON_BEHALF_OF") or None}


def commit(ws: Workspace, task: Path) -> dict[str, Any] | None:
    """The commit the working tree is at, and whether what ran may differ from it."""
    repository = ws.repository
    if repository is None:
        return None
    try:
        return _state(repository, task)
    except QuireError as error:
        # The run is not git's affair; that its commit is not known is.
        return {"commit": None, "branch": None, "dirty": None, "unknown": error.message}


def _state(repository: Repository, task: Path) -> dict[str, Any]:
    if repository.top is None:
        return {"commit": repository.head(), "branch": repository.branch(), "dirty": None}
    told = repository.git(
        "status", "--porcelain=v2", "--branch", "--untracked-files=no", timeout=STATUS_TIMEOUT
    )
    facts: dict[str, str] = {}
    dirty = False
    for line in told.split("\n"):
        if line.startswith("# "):
            key, _, value = line[2:].partition(" ")
            facts[key] = value
        elif line:
            dirty = True
    commit, branch = facts.get("branch.oid"), facts.get("branch.head")
    if not dirty:
        listed = repository.ask("ls-files", "--error-unmatch", "-z", "--", str(task))
        dirty = listed.code != 0  # a task that no commit holds
    return {
        "commit": None if commit == "(initial)" else commit,
        "branch": None if branch == "(detached)" else branch,
        "dirty": dirty,
    }
