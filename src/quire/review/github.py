"""GitHub, and GitHub Enterprise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import ForgeError
from .forge_address import Address, host_of
from .forge_answers import Fields
from .forge_http import Refused, Rest, Server, Token
from .protocol import Proposal
from .pull_requests import Dialect, Pulls

if TYPE_CHECKING:
    import httpx2

TOKENS = ("QUIRE_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
SCOPES = (
    "read and write of contents, pull requests, issues and commit statuses "
    "(the scope repo in a classic one)"
)
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


def github(
    address: Address, env: Mapping[str, str], transport: httpx2.BaseTransport | None = None
) -> Pulls:
    server = Server("GitHub", api(address), HEADERS, SCOPES)
    names = variables(address, env)
    rest = Rest(server, lambda: Token.find(env, names, "GitHub"), transport=transport)
    return Pulls(_DIALECT, address, rest)


def variables(address: Address, env: Mapping[str, str]) -> tuple[str, ...]:
    """The common ones hold a token of github.com: no other server gets it, unless it made it."""
    host = host_of(address.web)
    known = host == "github.com" or host.endswith(".ghe.com")
    return TOKENS if known or host == host_of(env.get("GITHUB_SERVER_URL", "")) else TOKENS[:1]


def api(address: Address) -> str:
    """github.com and its tenants have a host for it, a server of one's own has a path."""
    host = host_of(address.web)
    if host == "github.com" or host.endswith(".ghe.com"):
        return f"https://api.{host}"
    return f"{address.web}/api/v3"


def _merge(rest: Rest, repo: str, proposal: Proposal, message: str) -> str | None:
    title, _, text = message.partition("\n")
    said = {
        "merge_method": "merge",
        "commit_title": title,
        "commit_message": text.strip("\n"),
        "sha": proposal.head,
    }
    try:
        path = f"{repo}/pulls/{proposal.number}/merge"
        got = rest.send(f"merge proposal {proposal.number}", "PUT", path, said)
    except Refused as error:
        if error.status != 405:
            raise
        raise ForgeError(
            f"proposal {proposal.number} cannot be merged: {error.message}",
            hint=f"if it conflicts: git merge {proposal.base} on {proposal.branch}, mend, commit "
            "and push; the rules of the base may also ask for an approval or a check",
        ) from None
    return Fields.of(got, "the merge", "GitHub").needed("sha")


def _attach(rest: Rest, repo: str, number: int, name: str, data: bytes) -> str | None:
    """Its API takes no files on a pull request."""
    return None


_DIALECT = Dialect(
    kind="github",
    name="GitHub",
    events={"approve": "APPROVE", "comment": "COMMENT", "request_changes": "REQUEST_CHANGES"},
    states={
        "APPROVED": "approve",
        "COMMENTED": "comment",
        "CHANGES_REQUESTED": "request_changes",
        "DISMISSED": "comment",
    },
    status="state",
    late=(),
    file="blob",
    merge=_merge,
    attach=_attach,
)
