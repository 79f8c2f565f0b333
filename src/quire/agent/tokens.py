"""Tokens: what an agent shows to come in over HTTP, and what it may do then."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from ..errors import UsageError
from ..host.person_only import refuse_from_kernel
from ..workspace import STATE, Workspace
from .token_file import Token, Tokens

SCOPES = ("read", "run", "write", "review")
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.@:/+-]{0,63}")


def tokens(ws: Workspace) -> Tokens:
    return Tokens(ws.root / STATE)


def create(ws: Workspace, agent: str, scopes: Sequence[str]) -> tuple[Token, str]:
    """The second is the token itself, to be shown once."""
    refuse_from_kernel(ws, "a token")
    if not _AGENT.fullmatch(agent):
        raise UsageError(
            f"{agent[:80]!r} is no name for an agent",
            hint="use up to 64 letters, digits, spaces and . _ @ : / + -",
        )
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        raise UsageError(
            f"there is no scope {wrong[0]!r}" if wrong else "a token needs a scope",
            hint=f"scopes are {', '.join(SCOPES)}",
        )
    granted = [scope for scope in SCOPES if scope in scopes]
    return tokens(ws).create(agent, granted, datetime.now(UTC).isoformat(timespec="seconds"))


def revoke(ws: Workspace, ident: str) -> Token:
    """The token that counts no more."""
    refuse_from_kernel(ws, "to take a token back")
    return tokens(ws).revoke(ident)
