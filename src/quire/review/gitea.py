"""Gitea and Forgejo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import ForgeError
from .forge_address import Address
from .forge_answers import Fields
from .forge_http import Refused, Rest, Server, Token
from .protocol import Proposal
from .pull_requests import PATIENCE, Dialect, Pulls

if TYPE_CHECKING:
    import httpx2

TOKENS = ("QUIRE_GITEA_TOKEN", "GITEA_TOKEN")
SCOPES = "write:repository and write:issue"


def gitea(
    address: Address, env: Mapping[str, str], transport: httpx2.BaseTransport | None = None
) -> Pulls:
    server = Server("Gitea", f"{address.web}/api/v1", {}, SCOPES)
    rest = Rest(server, lambda: Token.find(env, TOKENS, "Gitea"), transport=transport)
    return Pulls(_DIALECT, address, rest)


def _merge(rest: Rest, repo: str, proposal: Proposal, message: str) -> str | None:
    title, _, text = message.partition("\n")
    said = {
        # The names that Forgejo and older ones have too.
        "Do": "merge",
        "MergeTitleField": title,
        "MergeMessageField": text.strip("\n"),
        "head_commit_id": proposal.head,
    }
    asked = f"merge proposal {proposal.number}"
    for wait in (*PATIENCE, None):
        try:
            rest.told(asked, "POST", f"{repo}/pulls/{proposal.number}/merge", said)
            return None  # its answer is empty
        except Refused as error:
            if error.status != 405:
                raise
            # It says so of a conflict, and as long as it has not yet looked for one. Nothing was
            # done, so asking again is safe.
            later = "try again later" in error.said.lower()
            if later and wait is not None:
                rest.pause(wait)
                continue
            why = f"Gitea finds a conflict with {proposal.base}" if later else error.message
            raise ForgeError(
                f"proposal {proposal.number} cannot be merged: {why}",
                hint=f"if it conflicts: git merge {proposal.base} on {proposal.branch}, mend, "
                "commit and push; the rules of the base may also ask for an approval or a check",
            ) from None
    return None


def _attach(rest: Rest, repo: str, number: int, name: str, data: bytes) -> str | None:
    """A server takes only the kinds of file it lists, and notebooks are mostly not among them."""
    plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:100] or "file"
    for attempt in (plain, f"{plain}.json"):
        try:
            path = f"{repo}/issues/{number}/assets"
            got = rest.upload(f"attach {plain} to proposal {number}", path, attempt, data)
        except Refused as error:
            if error.status == 422 and attempt == plain:
                continue
            raise
        return Fields.of(got, "the attachment", "Gitea").needed("browser_download_url")
    return None


_DIALECT = Dialect(
    kind="gitea",
    name="Gitea",
    events={"approve": "APPROVED", "comment": "COMMENT", "request_changes": "REQUEST_CHANGES"},
    states={"APPROVED": "approve", "COMMENT": "comment", "REQUEST_CHANGES": "request_changes"},
    status="status",
    late=(0.1, 0.2, 0.4, 0.8, 1.6),
    file="src/commit",
    merge=_merge,
    attach=_attach,
)
