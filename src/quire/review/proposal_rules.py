"""What holds for every forge: what may be said, and when a proposal may be merged. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import get_args

from ..errors import ForgeError, Hint, NextStep, UsageError
from .protocol import Comment, Proposal, Verdict

TITLE = 255  # the least that the forges take
TEXT = 65_000  # GitHub's limit is 65,536
CONTEXT = 120
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def fit_title(title: str) -> str:
    title = title.strip()
    if not title:
        raise UsageError("the title is empty", hint='give one, such as "Add a health report"')
    if _CONTROL.search(title) or _UNFIT.search(title):
        raise UsageError(
            f"the title {title[:60]!r} has a line break or a control character",
            hint="one line of text; the rest belongs in the body",
        )
    if len(title) > TITLE:
        raise UsageError(
            f"the title has {len(title)} characters; at most {TITLE} are taken",
            hint="say the rest in the body",
        )
    return title


def fit_text(text: str, what: str) -> str:
    if found := _UNFIT.search(text):
        raise UsageError(
            f"the {what} has the character {found[0]!r}", hint="text only: take it out"
        )
    if len(text) > TEXT:
        raise UsageError(
            f"the {what} has {len(text):,} characters; at most {TEXT:,} are taken",
            hint="shorten it, and link to the rest",
        )
    return text


def fit_review(verdict: Verdict, text: str) -> str:
    if verdict not in get_args(Verdict):
        raise UsageError(f"{verdict!r} is no verdict", hint=", ".join(get_args(Verdict)))
    if verdict != "approve" and not text.strip():
        raise UsageError("the review says nothing", hint="say what you think, or what must change")
    return fit_text(text, "review")


def fit_number(number: int) -> int:
    if isinstance(number, bool) or not 0 < number < 10**9:
        raise UsageError(f"{number!r} is not the number of a proposal", hint="quire proposals")
    return number


def fit_commit(commit: str) -> str:
    if not _COMMIT.fullmatch(commit):
        raise UsageError(f"{commit!r} is not the full id of a commit", hint="git rev-parse HEAD")
    return commit


def fit_context(context: str) -> str:
    if not context.strip() or _CONTROL.search(context) or len(context) > CONTEXT:
        raise UsageError(
            f"{context[:60]!r} cannot be the name of a check", hint="one line, such as quire/ci"
        )
    return context


def requesting(comments: Iterable[Comment]) -> list[str]:
    """Who asks for changes. A later approval takes that back; a mere comment does not."""
    said = {c.author: c.verdict for c in comments if c.verdict in ("approve", "request_changes")}
    return [author for author, verdict in said.items() if verdict == "request_changes"]


def nothing_to_propose(branch: str, base: str) -> ForgeError:
    return ForgeError(
        f"there is nothing to propose: {branch} has no commit that {base} has not",
        hint=Hint("commit something on a branch other than {} first: {}", base, NextStep("commit")),
    )


def must_be_open(proposal: Proposal, deed: str) -> None:
    if proposal.state == "merged":
        raise ForgeError(
            f"proposal {proposal.number} cannot be {deed}: it is merged already, as "
            f"{(proposal.merged or '')[:12]}",
            hint=Hint("open another one for what is still to change: {}", NextStep("propose")),
        )
    if proposal.state == "closed":
        raise ForgeError(
            f"proposal {proposal.number} cannot be {deed}: it is closed",
            hint=Hint("open another one from the same branch: {}", NextStep("propose")),
        )


def must_be_mergeable(proposal: Proposal) -> None:
    must_be_open(proposal, "merged")
    if who := requesting(proposal.comments):
        raise ForgeError(
            f"proposal {proposal.number} is not merged: {', '.join(who)} asked for changes",
            hint=f"mend it and ask for another look; quire review {proposal.number} --approve",
        )
