"""A forge that behaves like a server: it has its own repository, and only what was pushed there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from quire.errors import ForgeError
from quire.git.repository import Repository
from quire.review.local_forge import LocalForge
from quire.review.protocol import Check, Finish, Proposal
from quire.workspace import Workspace
from scratch import Scratch

WEB = "https://forge.example/ada/tasks"


class ServerForge(LocalForge):
    """Proposals of a bare repository. It merges by itself, keeps files and has addresses."""

    finishes = False

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository)
        self.attached: dict[str, bytes] = {}
        self.broken: set[str] = set()  # names of methods that answer with an error

    @property
    def kind(self) -> str:
        return "gitea"

    def open(self, *, branch: str, base: str, title: str, body: str) -> Proposal:
        made = super().open(branch=branch, base=base, title=title, body=body)
        return self.proposal(made.number)

    def proposal(self, number: int) -> Proposal:
        return replace(super().proposal(number), url=f"{WEB}/pulls/{number}")

    def set_check(self, commit: str, check: Check) -> None:
        self._may("set_check")
        super().set_check(commit, check)

    def attach(self, number: int, name: str, data: bytes) -> str | None:
        self._may("attach")
        self.attached[name] = data
        return f"{WEB}/files/{name}"

    def link(self, commit: str, path: str) -> str | None:
        return f"{WEB}/src/commit/{commit}/{path}"

    def merge(self, number: int, message: str, finish: Finish | None = None) -> str:
        return super().merge(number, message)

    def _may(self, what: str) -> None:
        if what in self.broken:
            raise ForgeError(f"the server answered 500 to {what}", hint="try again")


def server(repo: Scratch, ws: Workspace, folder: Path) -> ServerForge:
    """A server for a repository, with its main branch pushed; from now on its forge."""
    repo.git("init", "--quiet", "--bare", "--initial-branch=main", str(folder))
    bare = Scratch(folder)
    bare.git("config", "user.name", "Forge")
    bare.git("config", "user.email", "forge@example.org")
    repo.git("remote", "add", "origin", str(folder))
    repo.git("push", "--quiet", "origin", "main")
    repo.git("fetch", "--quiet", "origin")
    repository = Repository.find(folder, ws.env)
    assert repository is not None
    forge = ServerForge(repository)
    ws.__dict__["forge"] = forge
    return forge
