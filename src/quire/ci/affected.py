"""Which tasks a change affects: what git says has changed, and what each task needs.

A task is affected by its own file and its twin, by modules of the repository that it imports, by
tasks and data files that stand in it as literal paths, and by the configuration. Where one cannot
know, everything is affected, and the reason is said.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..engine.origin import changed_inside
from ..errors import DocumentError, GitError, UsageError
from ..git.repository import Repository, branch_name
from ..task import formats
from ..workspace import Workspace
from . import base_rules, code_needs
from .code_needs import Import, Needs

# A change to one of these, wherever it lies, may change what every task does.
_CONFIGURATION = re.compile(
    r"quire\.toml|pyproject\.toml|setup\.(py|cfg)|\.python-version|\.tool-versions|\.quire-keys"
    r"|(uv|poetry|pdm|pixi|pylock.*|Pipfile)\.(lock|toml)|Pipfile"
    r"|quire\.lock\.txt|(requirements|constraints)[^/]*\.(txt|in)|(environment|conda)[^/]*\.ya?ml"
)
_CONFIGURATION_PATH = re.compile(
    r"(^|/)(requirements|constraints)/[^/]+\.(txt|in)$|(^|/)\.(github|gitea|forgejo)/workflows/"
)
_WILD = re.compile(r"[*?\[]")
_SHALLOW = "this is a shallow clone (in a workflow: fetch-depth: 0)"


@dataclass(frozen=True, slots=True)
class Change:
    """What differs from `base`, as paths. `everything` says why all tasks count; '' if files do.

    `onto` is what the change is to go onto: there stand the rules that it cannot make itself. It
    is '' where there is no such thing, as on main itself, and None where it is not in this clone.
    """

    files: frozenset[Path] = frozenset()
    base: str = ""
    everything: str = ""
    onto: str | None = ""


def change(ws: Workspace, base: str | None = None, *, everything: str = "") -> Change:
    """What has changed since the base: in commits, in the index and in the working tree. Not
    looked for where a reason to run `everything` is given."""
    try:
        repository = ws.repository
    except GitError as error:
        if base is not None:
            raise
        return Change(everything=everything or f"git could not be asked: {error.message}")
    if repository is None or repository.top is None:
        if base is not None:
            raise UsageError(
                f"--base {base}: {ws.root} is in no working tree of git", hint="leave out --base"
            )
        return Change(everything=everything or "there is no git repository to compare with")
    head = repository.head()
    if head is None and base is None:
        return Change(everything=everything or "the repository has no commit yet")
    found = _given(repository, base) if base is not None else _base(ws, repository, head or "")
    if isinstance(found, Change):
        return replace(found, everything=everything or found.everything)
    if everything:
        return Change(everything=everything, onto=found)
    said = repository.ask("merge-base", found, "HEAD")
    if said.code or not said.text:
        why = _SHALLOW if _is_shallow(repository) else "their histories have nothing in common"
        unknown = f"where it branched off from {found[:12]} is not known: {why}"
        return Change(everything=unknown, onto=found)
    since = said.text.split("\n")[0]
    files = frozenset(_changed(repository, since))
    return Change(files, since, _decisive(ws, files), found)


def _decisive(ws: Workspace, files: Iterable[Path]) -> str:
    """Why a change of these files affects every task; '' if it does not."""
    decisive = sorted(filter(configuration, files))
    return f"the configuration changed: {_World(ws, ()).named(decisive[0])}" if decisive else ""


def _given(repository: Repository, base: str) -> str | Change:
    commit = None if base.startswith("-") or "\0" in base else repository.resolve(base)
    if commit is not None:
        return commit
    if _is_shallow(repository):
        return Change(everything=f"{base} is not in this clone: {_SHALLOW}", onto=None)
    raise UsageError(
        f"git knows no commit {base!r} to compare with",
        hint="give --base a branch, a tag or a commit, or --all to run everything",
    )


def _base(ws: Workspace, repository: Repository, head: str) -> str | Change:
    """The commit to compare with, from CI's variables or from what the repository calls main."""
    asked = ws.env.get("GITHUB_BASE_REF") or ws.env.get("GITEA_BASE_REF")
    if asked:
        try:
            name = branch_name(asked)
        except UsageError as error:
            return Change(everything=error.message, onto=None)
        for ref in (f"refs/remotes/origin/{name}", f"refs/heads/{name}"):
            if commit := repository.resolve(ref):
                return commit
        why = f": {_SHALLOW}" if _is_shallow(repository) else ""
        return Change(everything=f"the base branch {name} is not in this clone{why}", onto=None)
    main = _main(ws, repository)
    if main is None:
        return Change(everything="there is no main branch to compare with (--base names one)")
    name, ref = main
    commit = repository.resolve(ref) or ""
    branch = repository.branch()
    if branch == name or (branch is None and repository.is_ancestor(head, commit)):
        return Change(everything=f"this is {name}")
    return commit


def _main(ws: Workspace, repository: Repository) -> tuple[str, str] | None:
    """The main branch: its name, and the ref to compare with, upstream's where there is one."""
    remote = repository.remote() or "origin"
    names = ["main", "master"]
    said = repository.ask("symbolic-ref", "--quiet", f"refs/remotes/{remote}/HEAD")
    if said.code == 0:
        names.insert(0, said.text.removeprefix(f"refs/remotes/{remote}/"))
    found = _first(repository, remote, names)
    # As main has it: a change must not be able to say what it is compared with.
    settings = base_rules.config_of(ws, repository, found[1]) if found else ws.config
    if settings.forge.base:
        found = _first(repository, remote, [branch_name(settings.forge.base)]) or found
    return found


def _first(repository: Repository, remote: str, names: Iterable[str]) -> tuple[str, str] | None:
    for name in names:
        for ref in (f"refs/remotes/{remote}/{name}", f"refs/heads/{name}"):
            if repository.resolve(ref) is not None:
                return name, ref
    return None


def _is_shallow(repository: Repository) -> bool:
    return repository.ask("rev-parse", "--is-shallow-repository").text == "true"


def _changed(repository: Repository, since: str) -> Iterator[Path]:
    assert repository.top is not None
    top = repository.top.resolve()
    committed = repository.raw(
        "diff-tree", "-r", "-z", "--name-only", "--no-renames", since, "HEAD"
    )
    for name in filter(None, committed.split(b"\0")):
        yield top / os.fsdecode(name)
    local = repository.raw(
        "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"
    )
    for line in filter(None, local.split(b"\0")):
        yield top / os.fsdecode(line[3:])
    yield from (top / name for name in changed_inside(repository))


def configuration(path: Path) -> bool:
    """Whether it is a file that decides how all tasks run."""
    known = _CONFIGURATION.fullmatch(path.name) is not None
    return known or _CONFIGURATION_PATH.search(path.as_posix()) is not None


def affected(ws: Workspace, tasks: Sequence[Path], changed: Change) -> dict[Path, str]:
    """The affected tasks, each with the reason, in the order they were given."""
    if changed.everything:
        return dict.fromkeys(tasks, changed.everything)
    world = _World(ws, changed.files)
    found = ((task, world.reason(task)) for task in tasks)
    return {task: reason for task, reason in found if reason}


def _beside(task: Path) -> tuple[Path, ...]:
    """What belongs to a task: its notebook, and the versions that its environment has."""
    return task.with_suffix(".ipynb"), task.with_suffix(".lock.txt")


class _World:
    """The repository as tasks see it, and what of it has changed."""

    def __init__(self, ws: Workspace, files: Iterable[Path]) -> None:
        repository = ws.repository
        self.root = ws.root.resolve()
        top = repository.top if repository is not None else None
        self.top = top.resolve() if top is not None else self.root
        self.files = frozenset(files)
        # Every folder that something changed in, with one such file: a task may name the folder.
        self.folders: dict[Path, Path] = {}
        for path in sorted(self.files):
            for parent in path.parents:
                if parent != self.top and parent.is_relative_to(self.top):
                    self.folders.setdefault(parent, path)
        self.preload = Needs(frozenset(Import(name) for name in ws.config.preload))
        self._read: dict[Path, Needs] = {}
        self._looked: dict[tuple[Path, Path], tuple[Path | None, tuple[Path, ...]]] = {}

    def named(self, path: Path) -> str:
        base = self.root if path.is_relative_to(self.root) else self.top
        return str(path.relative_to(base))

    def reason(self, task: Path) -> str:
        """Why the task is affected, or ''."""
        todo, seen = [task], {task}
        while todo:
            here = todo.pop()
            if self.changed(here) or not self.files.isdisjoint(_beside(here)):
                return "it changed" if here == task else f"{self.named(here)} changed"
            hit, follow = self._look(here, task.parent)
            if hit is not None:
                return f"{self.named(hit)} changed"
            todo += [path for path in follow if path not in seen]
            seen.update(follow)
        return ""

    def _look(self, here: Path, folder: Path) -> tuple[Path | None, tuple[Path, ...]]:
        """What `here` needs, for a task of that folder: a file that has changed, and code that is
        there and may need something itself."""
        if (here, folder) not in self._looked:
            bases = list(dict.fromkeys((self.root, here.parent, folder, self.top)))
            needed = self.needs(here) | self.preload
            modules = dict.fromkeys(self._modules(needed.imports, here, bases))
            hit = next(filter(self.changed, modules), None)
            hit = hit or self._named_and_changed(needed.paths, bases)
            follow = dict.fromkeys((*modules, *self._code(needed.paths, bases)))
            self._looked[here, folder] = hit, tuple(path for path in follow if path.is_file())
        return self._looked[here, folder]

    def changed(self, path: Path) -> bool:
        # A submodule changes as a whole: then a folder is what git names.
        return path in self.files or any(parent in self.files for parent in path.parents)

    def needs(self, path: Path) -> Needs:
        if path not in self._read:
            self._read[path] = _needs(path)
        return self._read[path]

    def _modules(
        self, imports: Iterable[Import], here: Path, bases: Sequence[Path]
    ) -> Iterator[Path]:
        places = [*bases, self.root / "src", self.top / "src"]
        for wanted in sorted(imports, key=repr):
            if not wanted.level:
                for base in places:
                    yield from _files_of(base, wanted)
                continue
            folder = here.parent
            for _ in range(wanted.level - 1):
                folder = folder.parent
            yield from _files_of(folder, wanted)

    def _code(self, texts: Iterable[str], bases: Sequence[Path]) -> Iterator[Path]:
        """Tasks and scripts that stand there as paths: they are run, so what they need counts."""
        for text in sorted(texts):
            if text.endswith(formats.SUFFIXES):
                yield from self._resolved(text, bases)

    def _named_and_changed(self, texts: Iterable[str], bases: Sequence[Path]) -> Path | None:
        for text in sorted(texts):
            for path in self._resolved(text, bases):
                if self.changed(path):
                    return path
                if path in self.folders:
                    return self.folders[path]
                if _WILD.search(text) and re.search(r"\w", text):
                    hits = fnmatch.filter(map(str, sorted(self.files)), str(path))
                    if hits:
                        return Path(hits[0])
        return None

    def _resolved(self, text: str, bases: Sequence[Path]) -> Iterator[Path]:
        if "\0" in text:
            return
        for base in bases:
            path = Path(os.path.normpath(base / text))
            if path.is_relative_to(self.top) and path not in (self.top, self.root):
                yield path


def _files_of(base: Path, wanted: Import) -> Iterator[Path]:
    """Every file that such an import may read below `base`, whether it is there or not."""
    folder = base
    for part in filter(None, wanted.module.split(".")):
        yield folder / f"{part}.py"
        folder = folder / part
        yield folder / "__init__.py"
    if not wanted.module:
        yield folder / "__init__.py"
    for name in wanted.names:
        yield folder / f"{name}.py"
        yield folder / name / "__init__.py"


def _needs(path: Path) -> Needs:
    """Nothing for what cannot be read: whether it changed is all that one can say then."""
    try:
        text = formats.decode(path.read_bytes(), path.name)
        if path.suffix == ".ipynb" or re.search(r"^\s*#\s*%%", text, re.MULTILINE):
            return code_needs.of_document(formats.loads(text, path.suffix))
        return code_needs.of_module(text)
    except (OSError, DocumentError):
        return Needs()
