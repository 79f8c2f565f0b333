"""The places the contract of a forge is tried in: each with a repository and two people.

local is a repository. gitea is a live server where QUIRE_TEST_GITEA_URL and QUIRE_TEST_GITEA_TOKEN
(an administrator's) are set, and a tape everywhere else. github is a tape, written from its
documentation (`documented_github.py`). QUIRE_RECORD=1 writes the tapes anew.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2

from forges.documented_github import SOURCE, DocumentedGitHub
from forges.fixed import FIXED
from forges.tape import EXCHANGES, Player, Recorder, Tape
from quire.git.repository import Repository
from quire.review.forge_address import Address
from quire.review.gitea import gitea
from quire.review.github import github
from quire.review.local_forge import LocalForge
from quire.review.protocol import Forge
from quire.review.pull_requests import Pulls

KINDS = ("local", "gitea", "github")
PEOPLE = ("author", "reviewer")
RECORD = os.environ.get("QUIRE_RECORD") == "1"


class World:
    """A repository with `main`; `seen` says whether branches can be looked at on the forge."""

    kind = ""
    seen = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.main = self.commit("main", {"notebooks/sum.py": "print(1 + 1)\n", "README": "Tasks\n"})

    def git(self, *args: str, **env: str) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=self.folder,
            env={**os.environ, **FIXED, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, branch: str, files: Mapping[str, str]) -> str:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", f"Change {', '.join(files)}")
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, files: Mapping[str, str], start: str = "main") -> str:
        """A branch with one commit, on the forge; its id."""
        self.git("switch", "--quiet", "--create", name, start)
        commit = self.commit(name, files)
        self.git("switch", "--quiet", "main")
        self.publish(name)
        return commit

    def on_main(self, files: Mapping[str, str]) -> str:
        self.git("switch", "--quiet", "main")
        commit = self.commit("main", files)
        self.publish("main")
        return commit

    def publish(self, name: str) -> None: ...

    def forge(self, who: str = "author") -> Forge:
        raise NotImplementedError

    def show(self, name: str, path: str) -> str:
        """A file at the tip of a branch of the forge."""
        return self.git("show", f"refs/heads/{name}:{path}")

    def tip(self, name: str) -> str:
        return self.git("rev-parse", f"refs/heads/{name}")

    def close(self) -> None: ...


class LocalWorld(World):
    kind = "local"

    def forge(self, who: str = "author") -> Forge:
        names = {"GIT_AUTHOR_NAME": who, "GIT_AUTHOR_EMAIL": f"{who}@example.org"}
        names |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in names.items()}
        repository = Repository.find(self.folder, {**os.environ, **names})
        assert repository is not None
        return LocalForge(repository)


class TapedWorld(World):
    """Played back. Branches are made here too: their ids are in the requests."""

    seen = False
    web = ""
    make: Any

    def __init__(self, folder: Path, test: str) -> None:
        super().__init__(folder)
        path = EXCHANGES / self.kind / f"{test}.json"
        self.tape = self.new_tape(path)
        self.address = Address(self.web, "author", "tasks")

    def new_tape(self, path: Path) -> Tape:
        return Tape.load(path)

    def transport(self, who: str) -> httpx2.BaseTransport:
        return Player(self.tape, who)

    def token(self, who: str) -> str:
        return f"{who}-token"

    def forge(self, who: str = "author") -> Forge:
        env = {f"QUIRE_{self.kind.upper()}_TOKEN": self.token(who)}
        made: Pulls = type(self).make(self.address, env, self.transport(who))
        made.rest.pause = lambda _: None  # nobody is waited for
        return made

    def close(self) -> None:
        self.tape.finish()


class TapedGitea(TapedWorld):
    kind = "gitea"
    web = "https://gitea.test"
    make = staticmethod(gitea)


class TapedGitHub(TapedWorld):
    kind = "github"
    web = "https://github.com"
    make = staticmethod(github)


class WrittenGitHub(TapedGitHub):
    """Answers as the documentation says, and writes that down."""

    def __init__(self, folder: Path, test: str) -> None:
        super().__init__(folder, test)
        self.documented = DocumentedGitHub(self.folder)

    def new_tape(self, path: Path) -> Tape:
        return Tape(path, {"server": "GitHub", "origin": SOURCE}, [])

    def transport(self, who: str) -> httpx2.BaseTransport:
        return Recorder(self.tape, who, self.documented.by(who))

    def close(self) -> None:
        self.tape.save()


class LiveGitea(TapedWorld):
    kind = "gitea"
    seen = True
    make = staticmethod(gitea)

    def __init__(self, folder: Path, test: str) -> None:
        self.web = os.environ["QUIRE_TEST_GITEA_URL"].rstrip("/")
        self.admin = Admin(self.web, os.environ["QUIRE_TEST_GITEA_TOKEN"])
        super().__init__(folder, test)
        self.name = f"quire-{secrets.token_hex(6)}"
        self.admin.repository(self.name)
        self.address = Address(self.web, self.admin.login, self.name)
        self.tape.names = {
            f"{self.admin.login}/{self.name}": "author/tasks",
            self.web: "https://gitea.test",
        }
        scheme, _, rest = self.web.partition("://")
        self.remote = f"{scheme}://{self.admin.login}:{self.admin.token}@{rest}"
        self.remote += f"/{self.admin.login}/{self.name}.git"
        self.publish("main")

    def new_tape(self, path: Path) -> Tape:
        version = self.admin.ask("GET", "/version")["version"]
        return Tape(path, {"server": f"Gitea {version}", "origin": "recorded"}, [])

    def transport(self, who: str) -> httpx2.BaseTransport:
        return Recorder(self.tape, who, httpx2.HTTPTransport())

    def token(self, who: str) -> str:
        return self.admin.token if who == "author" else self.admin.reviewer()

    def forge(self, who: str = "author") -> Forge:
        import time

        made = super().forge(who)
        assert isinstance(made, Pulls)
        made.rest.pause = time.sleep  # a real server takes its time
        return made

    def publish(self, name: str) -> None:
        self.git("push", "--quiet", self.remote, f"{name}:{name}")

    def show(self, name: str, path: str) -> str:
        self.git("fetch", "--quiet", self.remote, f"+{name}:refs/remotes/there/{name}")
        return self.git("show", f"refs/remotes/there/{name}:{path}")

    def tip(self, name: str) -> str:
        return self.git("ls-remote", self.remote, f"refs/heads/{name}").split()[0]

    def close(self) -> None:
        self.admin.ask("DELETE", f"/repos/{self.admin.login}/{self.name}")
        if RECORD:
            self.tape.save()


class Admin:
    """What makes repositories and a second person on a live Gitea."""

    _reviewers: dict[str, str] = {}  # noqa: RUF012 - one for the whole session

    def __init__(self, web: str, token: str) -> None:
        self.web, self.token = web, token
        self.login = str(self.ask("GET", "/user")["login"])

    def ask(self, method: str, path: str, body: Any = None, auth: Any = None) -> Any:
        headers = {} if auth else {"Authorization": f"token {self.token}"}
        url = f"{self.web}/api/v1{path}"
        got = httpx2.request(method, url, json=body, headers=headers, auth=auth, timeout=60)
        assert got.status_code < 300, f"{method} {path}: {got.status_code} {got.text}"
        return got.json() if got.content else None

    def repository(self, name: str) -> None:
        self.ask("POST", "/user/repos", {"name": name, "private": True, "default_branch": "main"})
        self.reviewer()
        self.ask(
            "PUT",
            f"/repos/{self.login}/{name}/collaborators/{self.second}",
            {"permission": "write"},
        )

    @property
    def second(self) -> str:
        return "reviewer"

    def reviewer(self) -> str:
        """The token of a second person, who is made when first needed."""
        if self.web not in self._reviewers:
            password = secrets.token_urlsafe(18)
            known = httpx2.get(f"{self.web}/api/v1/users/{self.second}", timeout=60)
            person = {"email": "reviewer@example.org", "password": password}
            if known.status_code == 404:
                new = person | {"username": self.second, "must_change_password": False}
                self.ask("POST", "/admin/users", new)
            else:
                change = {"password": password, "login_name": self.second, "source_id": 0}
                change["must_change_password"] = False
                self.ask("PATCH", f"/admin/users/{self.second}", change)
            token = self.ask(
                "POST",
                f"/users/{self.second}/tokens",
                {"name": secrets.token_hex(8), "scopes": ["all"]},
                auth=(self.second, password),
            )
            self._reviewers[self.web] = str(token["sha1"])
        return self._reviewers[self.web]


def world(kind: str, folder: Path, test: str) -> World:
    if kind == "local":
        return LocalWorld(folder)
    if kind == "gitea":
        live = "QUIRE_TEST_GITEA_URL" in os.environ and "QUIRE_TEST_GITEA_TOKEN" in os.environ
        return (LiveGitea if live else TapedGitea)(folder, test)
    return (WrittenGitHub if RECORD else TapedGitHub)(folder, test)
