"""Check that a repository is set up well, and say what to do where it is not. Changes nothing."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .. import __version__
from ..errors import QuireError
from ..host.host_socket import address, connect
from ..proof.trust import LIST, short
from ..workspace import STATE, Workspace
from . import setup
from .repository import Repository, call, environment
from .setup import Program

Level = Literal["ok", "warning", "problem"]
OLDEST_GIT = (2, 38)
_SHOWN = 5
# What can be looked at without a working tree, and without git.
_OF_BARE = ("git", "archive", "runs", "kernels", "host")
_WITHOUT_GIT = ("git", "kernels", "host")


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    about: str
    said: str
    hint: str = ""  # the next step


def doctor(ws: Workspace) -> list[Finding]:
    checks: dict[str, Callable[[Workspace], Iterator[Finding]]] = {
        "git": _git,
        "configuration": _configuration,
        "filter": _filter,
        "drivers": _drivers,
        "attributes": _attributes,
        "outputs": _outputs,
        "hooks": _hooks,
        "keys": _keys,
        "archive": _archive,
        "runs": _runs,
        "kernels": _kernels,
        "host": _host,
        "ignored": _ignored,
        "notebooks": _notebooks,
    }
    repository = ws.repository
    if repository is not None and repository.refusal() is not None:
        checks = {about: checks[about] for about in _WITHOUT_GIT}
    elif repository is not None and repository.top is None:
        checks = {about: checks[about] for about in _OF_BARE}
    found: list[Finding] = []
    for about, check in checks.items():
        try:
            found += check(ws)
        except QuireError as error:
            found.append(Finding("problem", about, error.message, error.hint))
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            found.append(Finding("problem", about, what, "check its permissions"))
    return found


def is_well(found: list[Finding]) -> bool:
    return not any(finding.level == "problem" for finding in found)


def _git(ws: Workspace) -> Iterator[Finding]:
    said = call(ws.root, environment(ws.env), ["--version"]).text
    number = re.search(r"(\d+)\.(\d+)", said)
    if number is None or (int(number[1]), int(number[2])) < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        yield Finding("problem", "git", said, f"install git {oldest} or newer")
    else:
        yield Finding("ok", "git", said)
    repository = ws.repository
    refusal = repository.refusal() if repository is not None else None
    if refusal is not None:
        yield Finding("problem", "git", refusal.message, refusal.hint)
    elif repository is not None and repository.top is None:
        said = f"{repository.git_dir} has no working tree, and tasks need one"
        yield Finding("problem", "git", said, "git clone it, and work in the clone")
    if repository is None:
        hint = "quire init; without git, records are kept in .quire/archive"
        yield Finding("warning", "git", f"{ws.root} is in no repository", hint)


def _configuration(ws: Workspace) -> Iterator[Finding]:
    folder = ws.root / ws.config.notebooks
    for name in ("quire.toml", "pyproject.toml"):
        if (ws.root / name).is_file():
            yield Finding("ok", "configuration", f"{name} is valid")
            break
    else:
        yield Finding("ok", "configuration", "none; the defaults count")
    if not folder.is_dir():
        yield Finding(
            "problem",
            "configuration",
            f"there is no folder {ws.config.notebooks} for tasks",
            'quire init, or name the one you have: notebooks = "…"',
        )
    elif not folder.resolve().is_relative_to(ws.root.resolve()):
        said = f"the folder {ws.config.notebooks} lies outside of {ws.root}"
        yield Finding("problem", "configuration", said, "make it a folder of the repository")


def _wanted(repository: Repository) -> dict[str, str]:
    external = setup.has_external_diff(repository)
    return setup.wanted_config(Program.here(), external=external)


def _settings(ws: Workspace, about: str, prefixes: tuple[str, ...], done: str) -> Iterator[Finding]:
    repository = ws.repository
    if repository is None:
        return
    there = setup.local_config(repository)
    missing: list[str] = []
    other: list[str] = []
    for key, value in _wanted(repository).items():
        if key.startswith(prefixes) and there.get(key) != value:
            (other if key in there else missing).append(key)
    if missing:
        said = f"this clone does not have {', '.join(missing)}"
        yield Finding("problem", about, said, "quire init")
    elif other:
        said = f"{', '.join(other)} differ from what this Quire sets"
        yield Finding("warning", about, said, "quire init sets them again")
    else:
        yield Finding("ok", about, done)


def _filter(ws: Workspace) -> Iterator[Finding]:
    return _settings(ws, "filter", ("filter.",), "outputs are stripped on git add")


def _drivers(ws: Workspace) -> Iterator[Finding]:
    return _settings(
        ws, "drivers", ("diff.", "merge."), "git diffs and merges notebooks through Quire"
    )


def _attributes(ws: Workspace) -> Iterator[Finding]:
    repository = ws.repository
    if repository is None or repository.top is None:
        return
    name = os.path.relpath(ws.root / ws.config.notebooks / "x.ipynb", repository.top)
    said = setup.effective_attributes(repository, name)
    wanted = {"filter": "quire", "diff": "quire", "merge": "quire"}
    wrong = {key: said.get(key, "unspecified") for key in wanted if said.get(key) != wanted[key]}
    if not wrong:
        yield Finding("ok", "attributes", "git knows notebooks as Quire's")
        return
    unset = [key for key, value in wrong.items() if value in ("unspecified", "unset")]
    level: Level = "problem" if unset else "warning"
    told = ", ".join(f"{key} is {value}" for key, value in wrong.items())
    hint = "quire init" if unset else f"git check-attr -a {name} and .gitattributes say why"
    yield Finding(level, "attributes", f"for notebooks, {told}", hint)


def _outputs(ws: Workspace) -> Iterator[Finding]:
    """Notebooks that git has with outputs although they are to be stripped."""
    repository = ws.repository
    if repository is None or repository.top is None:
        return
    question = ("grep", "--cached", "-l", "-z", "--no-color", "--text", "-F", "-e", '"output_type"')
    said = repository.ask(*question, "--", ":(top,icase)*.ipynb")
    names = [name for name in said.out.decode("utf-8", "replace").split("\0") if name]
    filtered = [n for n in names if setup.effective_attributes(repository, n)["filter"] == "quire"]
    if filtered:
        yield Finding(
            "warning",
            "outputs",
            f"git has notebooks with outputs: {_some(filtered)}",
            "git add --renormalize ':(icase)*.ipynb', then commit; "
            "-filter in .gitattributes exempts one",
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _hooks(ws: Workspace) -> Iterator[Finding]:
    repository = ws.repository
    if repository is None or repository.top is None:
        return
    hooks = setup.wanted_hooks(repository, Program.here())
    if hooks.blocked:
        hint = "git config --unset it there, or run quire sync after a checkout"
        yield Finding("warning", "hooks", f"not set up: {hooks.blocked}", hint)
        return
    there = setup.local_config(repository)
    unset = [key for key, value in hooks.config.items() if there.get(key.lower()) != value]
    missing = [path.name for path in hooks.files if not os.access(path, os.X_OK)]
    there_are = {path: text for path, text in hooks.files.items() if path.exists()}
    other = [path.name for path, text in there_are.items() if not _says(path, text)]
    if not there_are:
        yield Finding("problem", "hooks", "not set up", "quire init")
    elif missing or unset:
        what = f"missing: {', '.join(missing)}" if missing else f"not called: {', '.join(unset)}"
        yield Finding("problem", "hooks", what, "quire init")
    elif other:
        said = f"{', '.join(other)} differ from what this Quire sets"
        yield Finding("warning", "hooks", said, "quire init sets them again")
    else:
        how = ", after your own hooks" if hooks.chained else ""
        yield Finding("ok", "hooks", f".ipynb are regenerated after checkout and merge{how}")


def _says(path: Path, text: str) -> bool:
    return path.read_bytes() == text.encode("utf-8", "surrogateescape")


def _keys(ws: Workspace) -> Iterator[Finding]:
    keys = ws.keys
    held = keys.held()  # says itself what is wrong with the file or its folder
    if held is None:
        yield Finding("ok", "keys", "no key yet; the first run makes one")
    else:
        mode = stat.S_IMODE(keys.path.stat().st_mode)
        yield Finding("ok", "keys", f"key {short(held.key.id)}, mode {mode:04o}")
    listed = keys.listed()
    if listed is None:
        said = f"there is no {LIST}: only this machine's key counts"
        yield Finding("warning", "keys", said, "quire init, or quire key trust")
    elif held is not None and held.key.id not in listed.keys:
        said = f"{LIST} does not have your key: what you run does not verify, here or elsewhere"
        yield Finding("warning", "keys", said, "quire key trust, and have the change reviewed")
    else:
        yield Finding("ok", "keys", f"{LIST} trusts {_count(len(listed.keys), 'key')}")


def _archive(ws: Workspace) -> Iterator[Finding]:
    if not ws.config.archive.enabled:
        yield Finding("warning", "archive", "switched off", "archive.enabled = true")
        return
    ids = ws.archive.ids()
    lost = ws.archive.witness_problem()
    if lost:
        yield Finding("problem", "archive", lost, "quire verify --all")
    else:
        yield Finding("ok", "archive", f"{ws.archive.where}: {_count(len(ids), 'run')}")


def _runs(ws: Workspace) -> Iterator[Finding]:
    if not ws.config.archive.enabled:
        return
    owed = [folder.run_id for folder in ws.runs.owed()]
    if owed:
        said = f"not archived yet: {_some(owed)}"
        yield Finding("warning", "runs", said, "quire push archives them; it says why it cannot")


def _kernels(ws: Workspace) -> Iterator[Finding]:
    from ..engine.choose_kernel import interpreter
    from ..kernel import kernelspecs

    name = ws.config.kernel
    interpreter(ws, ws.config.python, ws.root)
    if name:
        kernelspecs.find(name, ws.env)
    others = sorted(kernelspecs.installed(ws.env))
    named = name or "the native one for Python"
    more = f"; Jupyter kernels: {_some(others)}" if others else ""
    yield Finding("ok", "kernels", f"{named}{more}")


def _host(ws: Workspace) -> Iterator[Finding]:
    own = address(str(ws.root), __version__)
    sockets = sorted({str(path) for path in (ws.root / STATE).glob("host-*.sock")} | {own})
    for path in sockets:
        if not os.path.lexists(path):
            continue
        sock = connect(path)
        if sock is None:
            hint = "the next run replaces it" if path == own else "remove it"
            yield Finding("warning", "host", f"nobody listens at {ws.named(Path(path))}", hint)
        else:
            sock.close()
            yield Finding("ok", "host", "a host is there")


def _ignored(ws: Workspace) -> Iterator[Finding]:
    repository = ws.repository
    if repository is None or repository.top is None:
        return
    name = os.path.relpath(ws.root / STATE / "x", repository.top)
    tracked = repository.ask("ls-files", "-z", "--", f":(top,literal){os.path.dirname(name)}").out
    if tracked:
        said = "git keeps files of .quire, which belong to this machine only"
        yield Finding("problem", "ignored", said, "git rm -r --cached .quire")
    elif repository.ask("check-ignore", "--quiet", "--no-index", name).code:
        yield Finding("warning", "ignored", "git does not ignore .quire", "quire init")
    else:
        yield Finding("ok", "ignored", "git ignores .quire")


def _notebooks(ws: Workspace) -> Iterator[Finding]:
    from ..task.sync import sync

    folder = ws.root / ws.config.notebooks
    if not folder.is_dir():
        return
    found = sync(ws, [folder], check=True)
    stale = [ws.named(s.target) for s in found if s.action == "stale" and s.target.exists()]
    split = [ws.named(s.source) for s in found if s.action == "conflict"]
    if split:
        said = f"the .ipynb says something else than the .py: {_some(split)}"
        yield Finding("warning", "notebooks", said, f"quire sync {ws.config.notebooks} says more")
    if stale:
        said = f"behind their other half: {_some(stale)}"
        yield Finding("warning", "notebooks", said, f"quire sync {ws.config.notebooks}")
    if not split and not stale:
        yield Finding("ok", "notebooks", f"{_count(len(found), 'task')}, none out of step")
