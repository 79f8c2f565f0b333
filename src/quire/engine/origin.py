"""Where a run comes from: what its kernel can import, the commit, who asked for it."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import QuireError
from ..files import write_atomic
from ..git.repository import Repository
from ..kernel.protocol import Kernel
from ..masking.masker import Masker
from ..record.events import Event, OriginNoted, Warned
from ..record.listener import Finisher, Scene
from ..record.plan import Plan, slug_of
from ..record.record import Record
from ..workspace import STATE, Workspace
from .environment_difference import difference

STATUS_TIMEOUT = 20.0
LOOK_BACK, MOST_READ = 2_000, 3  # archived runs, when there is no note of the last one


def finding_out(
    ws: Workspace, kernel: Kernel, plan: Plan, masker: Masker
) -> Future[Sequence[Event]]:
    """In a thread of its own: asking git takes about as long as a short task runs."""
    future: Future[Sequence[Event]] = Future()

    def find_out() -> None:
        try:
            environment = masker.mask_json(dict(kernel.environment()))
            found = OriginNoted(
                environment,
                {"name": "quire", "version": __version__},
                masker.mask_json(commit(ws, plan.path)),
                masker.mask_json(asked(ws.env)),
            )
            said = warnings(plan, environment, _last(ws, plan.task))
            future.set_result((found, *(Warned("", masker.mask(text)) for text in said)))
        except BaseException as error:  # noqa: BLE001 - whoever waits for it shall have it
            future.set_exception(error)

    threading.Thread(target=find_out, name="quire-origin", daemon=True).start()
    return future


def warnings(plan: Plan, environment: Mapping[str, Any], last: Mapping[str, Any]) -> Iterator[str]:
    """What a reader should know of the environment, beyond what is in it."""
    declared = plan.environment
    if declared and declared.get("lock") is None:
        executable = environment.get("interpreter", {}).get("executable", "")
        yield (
            f"it ran in {executable or 'an interpreter that was asked for'}: what the task "
            "declares to need was not installed for it"
        )
    said = difference(last.get("environment", {}), environment) if last else ""
    if said:
        yield f"the environment is not that of the last run, {last.get('run_id', '')}: {said}"


def _note(ws: Workspace, task: str) -> Path:
    """Where the environment of a task's last run is noted."""
    name = hashlib.sha256(task.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return ws.root / STATE / "environments" / f"{name}.json"


def _last(ws: Workspace, task: str) -> Mapping[str, Any]:
    """The last run of the task in this workspace, by its note, else the last one in the archive."""
    try:
        found = json.loads(_note(ws, task).read_bytes())
    except FileNotFoundError:
        found = _last_archived(ws, task)
    except (OSError, ValueError, RecursionError):
        return {}
    fits = isinstance(found, dict) and isinstance(found.get("environment"), dict)
    return found if fits else {}


def _last_archived(ws: Workspace, task: str) -> Mapping[str, Any]:
    """Only a clone in which the task has not run yet has to look there."""
    from ..archive.read import find_archived

    if not ws.config.archive.enabled:
        return {}
    with suppress(QuireError):
        slug = slug_of(task)
        hits = [i for i in ws.archive.ids()[:LOOK_BACK] if i[18:-5] == slug]
        for run_id in hits[:MOST_READ]:
            record = find_archived(ws, run_id).record
            if record.task == task and record.origin:
                return {"run_id": run_id, "environment": record.origin.get("environment")}
    return {}


def remember(ws: Workspace, record: Record) -> None:
    """For the next run of the task."""
    environment = record.origin.get("environment")
    if not environment:
        return
    told = {"task": record.task, "run_id": record.run_id, "environment": environment}
    path = _note(ws, record.task)
    with suppress(QuireError, OSError):  # then nobody is told when it changes
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, json.dumps(told).encode(), durable=False)


class _Noter(Finisher):
    def finished(self, record: Record) -> None:
        remember(self.scene.ws, record)


def listen(scene: Scene) -> _Noter:
    return _Noter(scene)


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
        dirty = any(changed_inside(repository))
    if not dirty:
        listed = repository.ask("ls-files", "--error-unmatch", "-z", "--", str(task))
        dirty = listed.code != 0  # a task that no commit holds
    return {
        "commit": None if commit == "(initial)" else commit,
        "branch": None if branch == "(detached)" else branch,
        "dirty": dirty,
    }


def changed_inside(repository: Repository) -> Iterator[str]:
    """Submodules in which a file was changed. git would look into them with a git that obeys the
    configuration there: each is asked as a repository of its own."""
    top = repository.top
    if top is None or not (top / ".gitmodules").exists():
        return
    for line in repository.raw("ls-files", "--stage", "-z").split(b"\0"):
        facts, _, name = line.partition(b"\t")
        if not facts.startswith(b"160000 "):
            continue
        place = top / os.fsdecode(name)
        inner = Repository.find(place, repository.env)
        if inner is None or inner.top != place.resolve():
            continue  # not cloned
        if inner.git("status", "--porcelain", "--untracked-files=no") or any(changed_inside(inner)):
            yield os.fsdecode(name)
