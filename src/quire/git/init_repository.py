"""Set up a repository for tasks: files, git's configuration for this clone, hooks, a list of keys.

Everything is worked out first, as a list of steps; whatever cannot be is refused before the first
of them. Each step is done whole or not at all, and only where it is still needed. So a second call
changes nothing, and one after a crash does the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import ConfigError, StorageError, UsageError
from ..files import disk, write_atomic
from ..host.person_only import refuse_from_kernel
from ..proof.keys import trusted
from ..proof.trust import LIST
from ..workspace import Workspace
from . import setup
from .hooks import HOOKS
from .repository import Repository, call, environment, refused
from .setup import Program

SHIPPED = Path(__file__).parents[1] / "shipped"
EXAMPLE = "agent_task_system_health.py"
_IGNORED = "/.quire/"
_OF_CLONE = "in git's configuration of this clone"

Action = Literal["write", "append", "set", "remove", "git init", "trust", "keep"]


@dataclass(frozen=True, slots=True)
class Step:
    """`target` and `note` are for people; the rest is what it takes."""

    action: Action
    target: str
    note: str = ""
    path: Path | None = None
    data: bytes = b""
    mode: int = 0o644

    @property
    def changes(self) -> bool:
        return self.action != "keep"


@dataclass(frozen=True, slots=True)
class SetUp:
    root: Path
    steps: tuple[Step, ...]
    dry_run: bool

    @property
    def changed(self) -> bool:
        return any(step.changes for step in self.steps)

    def as_dict(self) -> dict[str, Any]:
        steps = [{"action": s.action, "target": s.target, "note": s.note} for s in self.steps]
        return {
            "root": str(self.root),
            "changed": self.changed and not self.dry_run,
            "dry_run": self.dry_run,
            "steps": steps,
        }


def init(ws: Workspace, *, git: bool = True, dry_run: bool = False) -> SetUp:
    """Set up the repository that the caller's folder is in, or that folder itself."""
    ws = _at_top(ws)
    program = Program.here()
    steps = list(_steps(ws, program, git=git))
    _writable(ws, steps)
    if dry_run:
        return SetUp(ws.root, tuple(steps), dry_run)
    if any(step.action in ("trust", "git init") for step in steps):
        refuse_from_kernel(ws, "to begin a list of trusted keys")
    if steps and steps[0].action == "git init":
        _make_repository(ws)
        # A template may have brought hooks of its own.
        ws = _rooted(ws, ws.root)
        steps = [steps[0], *_steps(ws, program, git=git)]
    for step in steps:
        _take(ws, step)
    return SetUp(ws.root, tuple(steps), dry_run)


def _rooted(ws: Workspace, root: Path) -> Workspace:
    return Workspace(root, cwd=ws.cwd, env=ws.env)


def _at_top(ws: Workspace) -> Workspace:
    repository = Repository.find(ws.cwd, ws.env)
    if repository is None:
        return _rooted(ws, ws.cwd)
    if repository.top is None:
        raise UsageError(
            f"{repository.git_dir} has no working tree to set up",
            hint="clone it, and run quire init in the clone",
        )
    refusal = repository.refusal()
    if refusal is not None:
        raise refusal
    return _rooted(ws, repository.top)


def _make_repository(ws: Workspace) -> None:
    world = environment(ws.env)
    named = call(ws.root, world, ["config", "--get", "init.defaultBranch"]).text
    branch = [] if named else ["--initial-branch=main"]
    said = call(ws.root, world, ["init", "--quiet", *branch])
    if said.code:
        raise refused(said, ["init"])


def _steps(ws: Workspace, program: Program, *, git: bool) -> Iterator[Step]:
    notebooks = _notebooks(ws)
    repository = ws.repository if git else None
    if git and repository is None:
        yield Step("git init", ".git", "there is no repository yet")
        yield from _later_steps(program)
    elif repository is not None:
        yield from _config_steps(repository, program)
        yield from _hook_steps(ws, repository, program)
    if git:
        yield from _attribute_steps(ws, repository, notebooks)
        yield from _ignore_steps(ws, repository)
    for target, data in _files(ws, notebooks).items():
        yield _file_step(ws, repository, target, data)
    yield _settings_step(ws)
    yield _trust_step(ws)


# Files


def _notebooks(ws: Workspace) -> str:
    return _inside(ws.config.notebooks, "notebooks")


def _inside(folder: str, key: str) -> str:
    name = os.path.normpath(folder)
    if os.path.isabs(name) or name.split(os.sep)[0] == "..":
        raise ConfigError(
            f"the {key} folder {folder} lies outside of the repository",
            hint=f'{key} = "{key}"',
        )
    return name


def _files(ws: Workspace, notebooks: str) -> dict[str, bytes]:
    guide = (SHIPPED / "NOTEBOOK_WORKFLOW.md").read_text("utf-8")
    guide = guide.replace("{notebooks}", notebooks).replace("{branch}", ws.config.archive.branch)
    templates = os.path.join(_inside(ws.config.logbooks, "logbooks"), "templates")
    return {
        **{
            os.path.join(templates, path.name): path.read_bytes()
            for path in sorted((SHIPPED / "logbooks").glob("*.md"))
        },
        os.path.join(notebooks, EXAMPLE): (SHIPPED / f"{EXAMPLE}.txt").read_bytes(),
        "docs/NOTEBOOK_WORKFLOW.md": guide.encode(),
        ".gitea/workflows/notebook-ci.yml": (SHIPPED / "notebook-ci.gitea.yml").read_bytes(),
        ".github/workflows/notebook-ci.yml": (SHIPPED / "notebook-ci.github.yml").read_bytes(),
    }


def _file_step(ws: Workspace, repository: Repository | None, target: str, data: bytes) -> Step:
    path = _placed(ws.root, target)
    if os.path.lexists(path):
        return Step("keep", target, "" if _same(path, data) else "is there and stays as it is")
    if repository is not None and _was_removed(repository, target):
        return Step("keep", target, "was removed here before, and is not brought back")
    return Step("write", target, path=path, data=data)


def _same(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _was_removed(repository: Repository, target: str) -> bool:
    """Whether git knows a file of that name which is no longer there."""
    if repository.head() is None:
        return False
    top = f":(top,literal){target}"
    return bool(repository.ask("log", "-1", "--format=%H", "HEAD", "--", top).text)


def _placed(root: Path, target: str) -> Path:
    """Where a file goes. Refuses what is not a folder on the way, and links that lead outside."""
    path, inside = root, root.resolve()
    for part in Path(target).parts[:-1]:
        path = path / part
        if os.path.lexists(path) and not path.is_dir():
            raise UsageError(
                f"{path.relative_to(root)} is not a folder, and {target} has to go there",
                hint='move it away, or name another folder: notebooks = "…"',
            )
        if not path.resolve().is_relative_to(inside):
            raise UsageError(
                f"{path.relative_to(root)} is a link that leads out of the repository",
                hint="make it a folder of the repository",
            )
    path = root / target
    if path.is_dir():
        raise UsageError(f"{target} is a folder, and has to be a file", hint="move it away")
    return path


def _settings_step(ws: Workspace) -> Step:
    """The configuration: a table in pyproject.toml where there is one, else a file of its own."""
    import tomllib

    own, shared = ws.root / "quire.toml", ws.root / "pyproject.toml"
    for path in (own, shared):
        if path.is_dir():
            raise UsageError(f"{path.name} is a folder, and has to be a file", hint="move it away")
    if os.path.lexists(own):
        return Step("keep", "quire.toml")
    table = (
        b'notebooks = "notebooks"  # where the tasks are\n'
        b"archive.push = true  # send archived runs to the remote, where there is one\n"
    )
    if not os.path.lexists(shared):
        text = b"# How Quire works here; docs/NOTEBOOK_WORKFLOW.md says more.\n" + table
        return Step("write", "quire.toml", path=own, data=text)
    place = shared.resolve()
    if not place.is_relative_to(ws.root.resolve()):
        raise UsageError(
            "pyproject.toml is a link that leads out of the repository",
            hint="make an empty quire.toml: it is used instead",
        )
    old = place.read_bytes()
    before = tomllib.loads(old.decode())
    if "quire" in before.get("tool", {}):
        return Step("keep", "pyproject.toml", "has [tool.quire]")
    new = appended(old, b"\n[tool.quire]\n" + table)
    try:
        tomllib.loads(new.decode())
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            "pyproject.toml has its tables in a way that [tool.quire] cannot be added to",
            hint="add it by hand, or make an empty quire.toml: it is used instead",
        ) from error
    return Step("append", "pyproject.toml", "[tool.quire]", place, new, _mode(place))


def appended(old: bytes, new: bytes) -> bytes:
    """The old bytes, and below them the new lines, with the line ends that the file has."""
    end = b"\r\n" if b"\r\n" in old else b"\n"
    gap = end if old and not old.endswith(b"\n") else b""
    return old + gap + (new if old else new.lstrip(b"\n")).replace(b"\n", end)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _added_line(path: Path, target: str, line: str, note: str) -> Step:
    if path.is_symlink():
        raise UsageError(
            f"{target} is a link, which git does not read", hint="make it a file of its own"
        )
    if path.is_dir():
        raise UsageError(f"{target} is a folder, and has to be a file", hint="move it away")
    old = path.read_bytes() if path.exists() else b""
    mode = _mode(path) if path.exists() else 0o644
    return Step("append", target, note or line, path, appended(old, f"{line}\n".encode()), mode)


# Git


def _attribute_steps(
    ws: Workspace, repository: Repository | None, notebooks: str
) -> Iterator[Step]:
    path = ws.root / ".gitattributes"
    if repository is None:
        yield _added_line(path, ".gitattributes", setup.ATTRIBUTE_LINE, "")
        yield Step("append", "info/attributes", f"{setup.LOCAL_ATTRIBUTE} (this clone)")
        return
    local = repository.common / "info" / "attributes"
    text = local.read_text("utf-8", "replace") if local.is_file() else ""
    wanted = setup.wanted_attributes(repository, text, os.path.join(notebooks, "x.ipynb"))
    if wanted.line:
        yield _added_line(path, ".gitattributes", wanted.line, "")
    if wanted.kept or not wanted.line:
        note = f"says otherwise of notebooks: {', '.join(wanted.kept)}" if wanted.kept else ""
        yield Step("keep", ".gitattributes", note)
    if wanted.local:
        yield _added_line(local, "info/attributes", wanted.local, f"{wanted.local} (this clone)")


def _ignore_steps(ws: Workspace, repository: Repository | None) -> Iterator[Step]:
    path = ws.root / ".gitignore"
    question = ("check-ignore", "--quiet", "--no-index", ".quire/x")
    if repository is not None and repository.ask(*question).code == 0:
        return
    yield _added_line(path, ".gitignore", _IGNORED, "")


def _config_steps(repository: Repository, program: Program) -> Iterator[Step]:
    there = setup.local_config(repository)
    external = setup.has_external_diff(repository)
    for key, value in setup.wanted_config(program, external=external).items():
        if there.get(key) != value:
            yield Step("set", key, _OF_CLONE, data=os.fsencode(value))


def _later_steps(program: Program) -> Iterator[Step]:
    """What will be said to a repository that is still to be made."""
    for key in setup.wanted_config(program, external=False):
        yield Step("set", key, _OF_CLONE)
    for name in HOOKS:
        yield Step("write", f"hooks/{name}")


def _hook_steps(ws: Workspace, repository: Repository, program: Program) -> Iterator[Step]:
    hooks = setup.wanted_hooks(repository, program)
    if hooks.blocked:
        yield Step("keep", "hooks", f"not set up: {hooks.blocked}")
    for path, text in hooks.files.items():
        data = text.encode("utf-8", "surrogateescape")
        if not (_same(path, data) and os.access(path, os.X_OK)):
            name = f"{path.parent.relative_to(repository.common)}/{path.name}"
            note = "calls your own hook first" if hooks.chained else ""
            yield Step("write", name, note, path, data, 0o755)
    there = setup.local_config(repository)
    # What was there is put by before it is replaced.
    for key in ("quire.hooksPath", "core.hooksPath"):
        value = hooks.config.get(key)
        if value is not None and there.get(key.lower()) != value:
            yield Step("set", key, _OF_CLONE, data=os.fsencode(value))
    for path in hooks.surplus:
        yield Step("remove", f"hooks/{path.name}", "called from quire/hooks now", path)


def _trust_step(ws: Workspace) -> Step:
    """A list is begun with this machine's key. One that is there is for people to change."""
    keys = ws.keys
    if os.path.lexists(keys.list_path):
        listed, held = keys.listed(), keys.held()
        known = listed is not None and held is not None and held.key.id in listed.keys
        note = "" if known else "your key is not in it; to add it: quire key trust"
        return Step("keep", LIST, note)
    return Step("trust", LIST, "the key of this machine", keys.list_path)


# Doing it


def _writable(ws: Workspace, steps: list[Step]) -> None:
    """Say that something cannot be written before anything is."""
    repository = ws.repository
    places = [step.path for step in steps if step.path is not None]
    if repository is not None and any(step.action == "set" for step in steps):
        places.append(repository.common / "config")
    for path in places:
        folder = path.parent
        while not folder.exists():
            folder = folder.parent
        if not os.access(folder, os.W_OK | os.X_OK):
            raise StorageError(
                f"cannot write {path}: {folder} is read-only for you",
                hint="use a repository that you may write to",
            )


def _take(ws: Workspace, step: Step) -> None:
    match step.action:
        case "write" | "append":
            assert step.path is not None
            with disk(str(step.path)):
                step.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(step.path, step.data, mode=step.mode)
        case "set":
            assert ws.repository is not None
            ws.repository.git(
                "config", "--local", "--replace-all", step.target, os.fsdecode(step.data)
            )
        case "remove":
            assert step.path is not None
            with disk(str(step.path)):
                step.path.unlink(missing_ok=True)
        case "trust":
            trusted(ws, None)
