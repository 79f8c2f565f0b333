"""What git's hooks do: bring the `.ipynb` of tasks up to date after a checkout, merge or rebase.

A hook never fails what it follows, never writes a `.py`, and leaves a notebook that somebody
edited. And it writes nothing that git would then see as changed: a changed file stops the next
checkout, and putting it back would call the hook again. Most calls find nothing to do: what syncing
needs is imported only when there is something.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .. import config
from ..errors import QuireError
from .repository import Repository, call, environment

HOOKS = ("post-checkout", "post-merge", "post-rewrite")
# While one of these is in the git folder git goes on by itself, and a file we changed would be in
# its way. The hook at the end, or the next one, makes up for it.
_BUSY = ("rebase-merge", "rebase-apply", "BISECT_LOG")
_SHOWN = 5
# Hooks are told their repository by these; it may be one that no folder leads to.
_TOLD = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR")


def hook(name: str, args: Sequence[str], cwd: Path, env: Mapping[str, str]) -> list[str]:
    """Do what is to be done after this; lines to tell the user. Raises nothing of ours."""
    try:
        repository = told_repository(cwd, env)
        if repository is None or repository.top is None:
            return []
        if _is_left_alone(repository, name, args):
            return []
        root = repository.top
        folder = _folder(root)
        if folder is None:
            return []
        stems = list(_candidates(repository, folder, _changed(repository, folder, name, args)))
        return _regenerated(repository, root, env, stems) if stems else []
    except (QuireError, OSError) as error:
        return [f"notebooks were not regenerated: {error}", *_hint(error)]


def told_repository(cwd: Path, env: Mapping[str, str]) -> Repository | None:
    """The repository git called us for."""
    world = environment(env) | {key: env[key] for key in _TOLD if key in env}

    def ask(*question: str) -> str | None:
        said = call(cwd, world, ["rev-parse", *question])
        return said.text if said.code == 0 else None

    git_dir, common = ask("--absolute-git-dir"), ask("--git-common-dir")
    if git_dir is None or common is None:
        return None
    top = ask("--show-toplevel")  # refused where there is no working tree
    # A folder of git's may be given relative to where we are.
    absolute = {key: os.path.abspath(cwd / world[key]) for key in _TOLD if key in world}
    return Repository(
        Path(top) if top else None,
        Path(git_dir),
        (cwd / common).resolve(),
        world | absolute,
    )


def _folder(root: Path) -> Path | None:
    """The notebooks folder, if it lies in the repository."""
    folder = Path(os.path.normpath(root / config.read(root).notebooks))
    inside = folder.resolve().is_relative_to(root.resolve()) and folder.is_relative_to(root)
    return folder if inside and folder.is_dir() else None


def _is_left_alone(repository: Repository, name: str, args: Sequence[str]) -> bool:
    if name == "post-rewrite":
        # An amended commit changes no file. And what was put aside by a rebase comes back after us:
        # it must find its files as they were.
        stashed = (repository.git_dir / "rebase-merge" / "autostash").exists()
        return "rebase" not in args or stashed
    return any((repository.git_dir / name).exists() for name in _BUSY)


def _changed(
    repository: Repository, folder: Path, name: str, args: Sequence[str]
) -> frozenset[Path]:
    """The tasks that the step before us brought, each as its `.py`."""
    old: str | None
    if name == "post-checkout":
        if len(args) < 3 or args[2] != "1" or args[0] == args[1]:
            return frozenset()  # single files; their times tell
        old = args[0] if args[0].strip("0") else None
    else:
        old = "ORIG_HEAD"
    commit = repository.resolve(old) if old else None
    if commit:
        listed: tuple[str, ...] = (
            "diff",
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            "-z",
            commit,
            "HEAD",
        )
    else:
        listed = ("ls-files", "-z")
    said = repository.ask(*listed, "--", f":(top,literal){folder.relative_to(repository.here)}")
    names = said.out.decode("utf-8", "surrogateescape").split("\0") if said.code == 0 else []
    found = (repository.here / name for name in names if name.endswith((".py", ".ipynb")))
    return frozenset(path.with_suffix(".py") for path in found)


def _candidates(repository: Repository, folder: Path, changed: frozenset[Path]) -> Iterator[Path]:
    """Tasks whose notebook may be behind: the changed ones, and those newer than their notebook."""
    missing: list[Path] = []
    for py in _sources(folder):
        try:
            behind = py.stat().st_mtime_ns > py.with_suffix(".ipynb").stat().st_mtime_ns
        except OSError:
            missing += [py] if py in changed else []
            continue
        if behind or py in changed:
            yield py
    if missing:
        yield from _ignored(repository, missing)


def _sources(folder: Path) -> Iterator[Path]:
    for place, subfolders, names in os.walk(folder):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(place, name) for name in sorted(names) if name.endswith(".py"))


def _ignored(repository: Repository, missing: list[Path]) -> Iterator[Path]:
    """Those whose notebook git ignores.

    Any other would be an untracked file in the way of the next checkout that brings one; or git has
    it, and somebody deleted it.
    """
    notebooks = {str(py.with_suffix(".ipynb").relative_to(repository.here)): py for py in missing}
    names = "\0".join(notebooks).encode("utf-8", "surrogateescape")
    said = repository.ask("check-ignore", "-z", "--stdin", input=names).out
    there = set(said.decode("utf-8", "surrogateescape").split("\0"))
    yield from (py for name, py in notebooks.items() if name in there)


def _regenerated(
    repository: Repository, root: Path, env: Mapping[str, str], stems: Sequence[Path]
) -> list[str]:
    from ..task.sync import is_task, plan, take
    from ..workspace import Workspace

    workspace = Workspace(root, cwd=root, env=env)
    written: list[str] = []
    behind: list[str] = []
    told: list[str] = []
    for py in stems:
        try:
            steps = plan(workspace, [py]) if is_task(py) else []
            for step in steps:
                result = step.result
                name = workspace.named(result.target)
                if result.action == "conflict":
                    told.append(f"left {name} as it is: {result.hint}")
                elif result.action == "written" and result.target.suffix == ".ipynb":
                    if all(_is_seen_as(repository, path, text) for path, text in step.files):
                        take([step])
                        written.append(name)
                    else:
                        behind.append(name)
        except (QuireError, OSError) as error:
            told += [f"{workspace.named(py)}: {error}", *_hint(error)]
    if behind:
        told.insert(0, f"behind the .py, and left to you as git keeps it: {_some(behind)}")
        told.insert(1, f"hint: quire sync {workspace.config.notebooks}, then commit")
    if written:
        told.insert(0, f"regenerated {_some(written)}")
    return told


def _is_seen_as(repository: Repository, path: Path, text: str) -> bool:
    """Whether git sees no change in the file with this text: it has the same, or no such file."""
    from .filters import strip

    name = path.relative_to(repository.here)
    said = repository.ask("ls-files", "-z", "--stage", "--", f":(top,literal){name}")
    entries = said.text.split("\0")[:-1]
    if said.code or len(entries) > 1:
        return False  # a conflict is to be resolved
    if not entries:
        return True
    mode, blob, _ = entries[0].partition("\t")[0].split(" ")
    kept = repository.ask("cat-file", "blob", blob)
    same = kept.code == 0 and kept.out == strip(text.encode("utf-8")).data
    return same and mode != "120000"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _hint(error: Exception) -> list[str]:
    return [f"hint: {error.hint}"] if isinstance(error, QuireError) and error.hint else []
