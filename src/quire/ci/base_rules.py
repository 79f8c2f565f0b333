"""What the base says of the gate. A change cannot make the rules by which it is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from .. import config
from ..errors import DocumentError, QuireError
from ..git.repository import Repository
from ..review import change_set
from ..review.notebook_pairs import LINK, is_notebook, of_commit
from ..task import formats
from ..workspace import Workspace
from . import tasks
from .tasks import Found, Settings


def config_of(ws: Workspace, repository: Repository, commit: str) -> config.Config:
    """The workspace's configuration as a commit has it; its own where that cannot be read."""
    folder = _folder(ws, repository)
    try:
        return config.read_from(
            lambda file: repository.blob(commit, (folder / file).as_posix()), f"{commit}:{folder}"
        )
    except QuireError:
        return ws.config


def _folder(ws: Workspace, repository: Repository) -> PurePosixPath:
    """The workspace, as git names it."""
    assert repository.top is not None
    root, top = ws.root.resolve(), repository.top.resolve()
    return PurePosixPath(root.relative_to(top) if root.is_relative_to(top) else ".")


@dataclass(frozen=True)
class Rules:
    """`onto` as in `Change`: the commit that the change goes onto, '' for none, None for one that
    is not here. `since` is where the change left it."""

    ws: Workspace
    onto: str | None
    since: str = ""

    def settings(self, path: Path, said: Settings) -> Settings:
        """What counts of what a task says of itself. To be left out it must be so in the base."""
        if said.wanted or self.onto == "":
            return said
        before = self._before(path)
        return replace(said, wanted=True) if before is None else before

    def _before(self, path: Path) -> Settings | None:
        repository = self.ws.repository
        if self.onto is None or repository is None:
            return None
        data = repository.blob(self.onto, self._named(repository, path))
        try:
            if data is not None:
                return tasks.settings(formats.loads(formats.decode(data, path.name), path.suffix))
        except DocumentError:
            return None
        return None

    def find(self, found: Found) -> Found:
        """With the tasks that the base's gate looks at and this one does not, because of a
        configuration, a folder, or a link that came with the change."""
        more = set(found.tasks)
        links, gone = dict(found.links), {}
        for py, nb in self._stems:
            path = tasks.task_of(py, nb)
            if path is not None:
                real = path.resolve()
                if real.is_relative_to(self.ws.root.resolve()):
                    more.add(real)
                else:
                    links.pop(path, None)
                    gone[path] = "it became a link that leads out of the repository"
        return Found(tuple(sorted(more)), links, gone)

    def removed(self) -> Iterator[Path]:
        """The tasks that the change takes away."""
        repository = self.ws.repository
        if repository is None or not self.since:
            return
        for py, nb in self._stems:
            if tasks.task_of(py, nb) is not None:
                continue
            data = repository.blob(self.since, self._named(repository, py))
            if data is None:
                yield nb
            elif change_set.is_task(data, py.name):
                yield py

    @cached_property
    def _stems(self) -> list[tuple[Path, Path]]:
        """What the base's gate looks at, by name: each as the `.py` and the `.ipynb` it may be."""
        repository, commit = self.ws.repository, self.since or self.onto
        if repository is None or repository.top is None or not commit or not self.onto:
            return []
        settings = config_of(self.ws, repository, self.onto)
        place = _folder(self.ws, repository) / settings.notebooks
        files = of_commit(repository, commit)
        stems: dict[Path, None] = {}
        for name, stored in files.items():
            path = PurePosixPath(name)
            is_one = name.endswith(".py") or (is_notebook(name) and path.suffix == ".ipynb")
            if not is_one or stored.mode == LINK or not path.is_relative_to(place):
                continue
            inner = path.relative_to(place)
            folders = [place.joinpath(*inner.parts[:n]) for n in range(1, len(inner.parts))]
            if not path.name.startswith((".", "_")) and not any(
                tasks.is_skipped(folder.name) or str(folder / "pyvenv.cfg") in files
                for folder in folders
            ):
                stems[repository.top.resolve() / path.with_suffix("")] = None
        return [(s.with_name(f"{s.name}.py"), s.with_name(f"{s.name}.ipynb")) for s in stems]

    def _named(self, repository: Repository, path: Path) -> str:
        assert repository.top is not None
        return path.relative_to(repository.top.resolve()).as_posix()
