"""A proposal kept in a repository: the file it begins with, what was said since, and their sum.

Every event is a file with a name of its own, so that what two clones add is the union. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast, get_args

from ..errors import UsageError
from ..git.repository import branch_name
from .protocol import Check, CheckState, Comment, Proposal, State, Verdict

FORMAT = 1
FIRST = "proposal.json"
EVENTS = "events/"
FILES = "files/"


@dataclass(frozen=True, slots=True)
class Kept:
    """What one ref holds. `id` stays when the number changes."""

    id: str
    first: Mapping[str, Any]
    events: tuple[Mapping[str, Any], ...]  # oldest first


def dumps(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"


def time_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def event_path(at: str, chance: str, kind: str) -> str:
    """Names sort by time; `chance` keeps two of the same moment apart."""
    plain = at.replace(":", "").replace("-", "")
    return f"{EVENTS}{plain}-{chance}-{kind}.json"


def loads(files: Mapping[str, bytes]) -> Kept | None:
    """None where that is no proposal. An event that is none of ours is left out."""
    first = _object(files.get(FIRST))
    if first is None or first.get("format") != FORMAT or not isinstance(first.get("id"), str):
        return None
    if not _text(first, "title") or not _commit(first, "head"):
        return None
    try:
        branch_name(_text(first, "branch"))
        branch_name(_text(first, "base"))
    except UsageError:
        return None
    events = []
    for path in sorted(files):
        event = _object(files[path]) if path.startswith(EVENTS) else None
        if event is not None:
            events.append(event)
    return Kept(str(first["id"]), first, tuple(events))


def fold(number: int, kept: Kept, head: str | None = None) -> Proposal:
    """`head`: where the branch is now, else what was proposed last.

    What became of a merged or closed one stays as it was.
    """
    first = kept.first
    proposal = Proposal(
        number=number,
        title=_text(first, "title"),
        body=_text(first, "body"),
        branch=_text(first, "branch"),
        base=_text(first, "base"),
        head=_text(first, "head"),
        state="open",
        author=_text(first, "author"),
        at=_text(first, "at"),
    )
    for event in kept.events:
        proposal = _after(proposal, event)
    if head is not None and proposal.state == "open":
        proposal = replace(proposal, head=head)
    return replace(proposal, checks=_checks(proposal.head, kept.events))


def _after(proposal: Proposal, event: Mapping[str, Any]) -> Proposal:
    match event.get("kind"):
        case "updated":
            return replace(
                proposal,
                title=_text(event, "title") or proposal.title,
                body=_text(event, "body") if "body" in event else proposal.body,
                head=_commit(event, "head") or proposal.head,
            )
        case "comment" | "review":
            verdict = event.get("verdict")
            said = Comment(
                author=_text(event, "author"),
                at=_text(event, "at"),
                text=_text(event, "text"),
                verdict=cast(Verdict, verdict) if verdict in get_args(Verdict) else None,
                commit=_commit(event, "commit"),
            )
            return replace(proposal, comments=(*proposal.comments, said))
        case "merged" | "closed" as state:
            # Closed in one clone and merged in another: what is in the branch is in the branch.
            if proposal.state == "merged":
                return proposal
            return replace(
                proposal,
                state=cast(State, state),
                head=_commit(event, "head") or proposal.head,
                merged=_commit(event, "commit") or None,
            )
    return proposal


def _checks(head: str, events: Iterable[Mapping[str, Any]]) -> tuple[Check, ...]:
    found: dict[str, Check] = {}
    for event in events:
        if event.get("kind") != "check" or event.get("commit") != head:
            continue
        state = event.get("state")
        known = state if state in get_args(CheckState) else "error"
        check = Check(
            context=_text(event, "context"),
            state=cast(CheckState, known),
            description=_text(event, "description"),
            url=_text(event, "url"),
            at=_text(event, "at"),
        )
        found[check.context] = check
    return tuple(found.values())


def _object(data: bytes | None) -> dict[str, Any] | None:
    try:
        value = json.loads(data or b"null")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _commit(values: Mapping[str, Any], name: str) -> str:
    """An id, and no other name that git would follow."""
    value = _text(values, name)
    return value if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", value) else ""


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""
