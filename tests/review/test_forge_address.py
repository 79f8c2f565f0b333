"""Where a remote is. Addresses come from a repository, and from whoever wrote its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.config import Forge as Settings
from quire.errors import ConfigError, ForgeError, UsageError
from quire.git.repository import Repository
from quire.review.choose_forge import choose
from quire.review.forge_address import Address, address, owner_and_name, server
from quire.review.github import api
from quire.review.pull_requests import Pulls
from scratch import Scratch

TOKENS = {"GITEA_TOKEN": "t", "GITHUB_TOKEN": "t"}


@pytest.mark.parametrize(
    ("url", "web", "repository"),
    [
        ("https://github.com/ada/tasks.git", "https://github.com", "ada/tasks"),
        ("https://github.com/ada/tasks", "https://github.com", "ada/tasks"),
        ("https://github.com/ada/tasks/", "https://github.com", "ada/tasks"),
        ("https://GitHub.com/Ada/Tasks.git", "https://github.com", "Ada/Tasks"),
        ("git@github.com:ada/tasks.git", "https://github.com", "ada/tasks"),
        ("github.com:ada/tasks", "https://github.com", "ada/tasks"),
        ("ssh://git@github.com/ada/tasks.git", "https://github.com", "ada/tasks"),
        ("ssh://git@ssh.github.com:443/ada/tasks.git", "https://github.com", "ada/tasks"),
        ("ssh://git@git.test:2222/ada/my.tasks.git", "https://git.test", "ada/my.tasks"),
        ("https://git.test:8443/ada/tasks", "https://git.test:8443", "ada/tasks"),
        ("http://localhost:3000/ada/tasks.git", "http://localhost:3000", "ada/tasks"),
        ("https://git.test/code/ada/tasks.git", "https://git.test/code", "ada/tasks"),
        ("https://ada:hunter2@git.test/ada/tasks.git", "https://git.test", "ada/tasks"),
        ("http://[::1]:3000/ada/tasks", "http://[::1]:3000", "ada/tasks"),
        ("git@[::1]:ada/tasks.git", "https://[::1]", "ada/tasks"),
        ("git@git.test:/ada/tasks.git", "https://git.test", "ada/tasks"),
    ],
)
def test_addresses(url: str, web: str, repository: str) -> None:
    found = address(url)
    assert found is not None
    assert (found.web, found.repository) == (web, repository)
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    "url",
    [
        "", "/srv/git/tasks.git", "../tasks", "file:///srv/tasks.git", "C:/tasks/x", "C:\\a\\b",
        "https://github.com/ada", "https://github.com/", "https://github.com/ada/..",
        "https://github.com/ada/tasks?x=1/..", "git@github.com:tasks.git", "https:///ada/tasks",
        "https://git.test:port/ada/tasks", "https://git test/ada/tasks", "git@-x:ada/tasks",
        "https://git.test/ada/ta%2f..%2fsks", "https://git.test/ada/a b", "ext::sh -c true/a/b",
        "https://[::1/ada/tasks", "git@git.test:ada/tasks\nHost: x",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_forge(url: str) -> None:
    assert address(url) is None


@pytest.mark.parametrize(
    ("web", "kind"),
    [
        ("https://github.com", "github"),
        ("https://acme.ghe.com", "github"),
        ("https://github.acme.test", "github"),
        ("https://codeberg.org", "gitea"),
        ("https://gitea.acme.test:3000", "gitea"),
        ("https://forgejo.acme.test", "gitea"),
        ("https://git.acme.test", None),
        ("https://notgithub.com", None),
        ("https://github.com.evil.test", "github"),
    ],
)
def test_kinds_by_host(web: str, kind: str | None) -> None:
    assert Address(web, "a", "b").kind == kind


def test_where_githubs_interface_is() -> None:
    assert api(Address("https://github.com", "a", "b")) == "https://api.github.com"
    assert api(Address("https://acme.ghe.com", "a", "b")) == "https://api.acme.ghe.com"
    assert api(Address("https://git.test:8443", "a", "b")) == "https://git.test:8443/api/v3"
    # Not github.com, whatever its name begins with: nothing goes to api.github.com or is like it.
    there = api(Address("https://github.com.evil.test", "a", "b"))
    assert there == "https://github.com.evil.test/api/v3"


@pytest.mark.parametrize(
    "url",
    ["git.test", "ftp://git.test", "https://", "https://a:b@git.test", "https://git.test/?q=1",
     "https://git.test/#x", "https://git.test/a b", "https://git.test:x", "javascript:alert(1)"],
)  # fmt: skip
def test_a_server_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match=r"forge\.url"):
        server(url)


def test_a_server_of_ones_own() -> None:
    assert server("https://Git.test:8443/code/") == "https://git.test:8443/code"
    assert owner_and_name("ada/tasks.git") == ("ada", "tasks")
    for text in ("ada", "a/b/c", "../x", "a/..", "a b/c", "/"):
        with pytest.raises(ConfigError, match=r"forge\.repository"):
            owner_and_name(text)


def chosen(repo: Scratch, settings: Settings, **env: str) -> Pulls | None:
    made = choose(Repository.find(repo.root), settings, {**TOKENS, **env})
    return made if isinstance(made, Pulls) else None


def test_without_a_remote_it_is_local(repo: Scratch) -> None:
    assert chosen(repo, Settings()) is None
    repo.git("remote", "add", "origin", "/srv/tasks.git")
    assert chosen(repo, Settings()) is None
    repo.git("remote", "set-url", "origin", "https://git.acme.test/ada/tasks")
    assert chosen(repo, Settings()) is None  # nobody knows what is there
    assert chosen(repo, Settings(kind="local")) is None


def test_the_remote_says_where(repo: Scratch) -> None:
    repo.git("remote", "add", "origin", "git@github.com:ada/tasks.git")
    made = chosen(repo, Settings())
    assert made is not None
    assert (made.kind, made.where) == ("github", "https://github.com/ada/tasks")
    repo.git("remote", "set-url", "origin", "https://git.acme.test:3000/code/ada/tasks.git")
    made = chosen(repo, Settings(kind="gitea"))
    assert made is not None
    assert made.rest.server.api == "https://git.acme.test:3000/code/api/v1"
    made = chosen(repo, Settings(kind="gitea", repository="team/shared"))
    assert made is not None
    assert made.where == "https://git.acme.test:3000/code/team/shared"


def test_the_configuration_cannot_send_the_token_to_a_stranger(repo: Scratch) -> None:
    """It comes with the branch under review."""
    repo.git("remote", "add", "origin", "git@git.acme.test:ada/tasks.git")
    stolen = Settings(kind="gitea", url="https://evil.test", repository="ada/tasks")
    with pytest.raises(ForgeError, match=r"evil\.test.*the token is not sent") as caught:
        chosen(repo, stolen)
    assert caught.value.hint.endswith("QUIRE_FORGE_HOST=evil.test in the environment")
    # Neither in the clear to the right one.
    with pytest.raises(ForgeError, match="not sent"):
        chosen(repo, Settings(kind="gitea", url="http://git.acme.test"))
    own = chosen(repo, Settings(kind="gitea", url="https://git.acme.test:8443/code"))
    assert own is not None
    assert own.where == "https://git.acme.test:8443/code/ada/tasks"
    trusted = chosen(repo, stolen, QUIRE_FORGE_HOST="evil.test")
    assert trusted is not None


def test_what_cannot_be_chosen(repo: Scratch, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'gitlab'"):
        chosen(repo, Settings(kind="gitlab"))
    with pytest.raises(ForgeError, match="no remote says where"):
        chosen(repo, Settings(kind="github"))
    with pytest.raises(ForgeError, match="no git repository") as caught:
        choose(None, Settings(), {})
    assert caught.value.hint == "quire init"
    repo.git("remote", "add", "origin", "https://github.com/ada/tasks")
    with pytest.raises(ForgeError, match="no token for GitHub"):
        choose(Repository.find(repo.root), Settings(), {}).proposals()
    assert choose(Repository.find(repo.root), Settings(), {}).kind == "github"
    with pytest.raises(UsageError):
        chosen(repo, Settings(kind="github", repository="../x"))


def test_the_workspace_has_one(repo: Scratch) -> None:
    from quire import Workspace

    assert Workspace(repo.root).forge.kind == "local"
    repo.git("remote", "add", "origin", "https://github.com/ada/tasks")
    assert Workspace(repo.root, env={**TOKENS, "PATH": "/usr/bin:/bin"}).forge.kind == "github"
