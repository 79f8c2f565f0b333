"""Which forge a repository's proposals are on: what the configuration says, else its remote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..config import Forge as Settings
from ..errors import ConfigError, ForgeError
from ..git.repository import Repository
from .forge_address import Address, address, host_of, owner_and_name, server
from .local_forge import LocalForge
from .protocol import Forge

KINDS = ("local", "gitea", "github")
TRUSTED = "QUIRE_FORGE_HOST"


def choose(repository: Repository | None, settings: Settings, env: Mapping[str, str]) -> Forge:
    if settings.kind and settings.kind not in KINDS:
        raise ConfigError(
            f"forge.kind is {settings.kind!r}; there is no such forge",
            hint=f"one of {', '.join(KINDS)}; Forgejo is gitea",
        )
    if repository is None:
        raise ForgeError(
            "this folder is in no git repository, and proposals need one", hint="quire init"
        )
    if settings.kind == "local":
        return LocalForge(repository)
    place = located(repository, settings, env)
    kind = settings.kind or (place.kind if place else None) or "local"
    if kind == "local":
        return LocalForge(repository)
    if place is None:
        raise ForgeError(
            f"forge.kind is {kind!r}, but no remote says where that is",
            hint="git remote add origin <address>, or set forge.url and forge.repository",
        )
    if kind == "gitea":
        from .gitea import gitea

        return gitea(place, env)
    from .github import github

    return github(place, env)


def located(repository: Repository, settings: Settings, env: Mapping[str, str]) -> Address | None:
    remote = repository.remote()
    place = address(_url(repository, remote)) if remote else None
    if settings.repository:
        owner, name = owner_and_name(settings.repository)
    elif place:
        owner, name = place.owner, place.name
    else:
        return None
    if settings.url:
        web = server(settings.url)
        _must_be_trusted(web, repository, env)
        return Address(web, owner, name)
    return replace(place, owner=owner, name=name) if place else None


def _must_be_trusted(web: str, repository: Repository, env: Mapping[str, str]) -> None:
    """The configuration comes with the repository, and with whatever branch is checked out.

    It must not be able to send a token to a server that whoever runs this has nothing to do with.
    """
    known = set()
    for remote in repository.remotes():
        place = address(_url(repository, remote))
        if place is not None:
            scheme, host = place.web.split(":")[0], host_of(place.web)
            known |= {(scheme, host), ("https", host)}
    host = host_of(web)
    if (web.split(":")[0], host) in known or env.get(TRUSTED, "").lower() == host:
        return
    raise ForgeError(
        f"forge.url in the configuration is {web}, and no remote of this repository is there; "
        "the token is not sent to it",
        hint=f"if that is your server: {TRUSTED}={host} in the environment",
    )


def _url(repository: Repository, remote: str) -> str:
    said = repository.ask("remote", "get-url", remote)
    return said.text if said.code == 0 else ""
