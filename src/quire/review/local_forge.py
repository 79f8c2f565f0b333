"""Proposals in the repository itself: a branch, and a ref `refs/quire/proposals/<number>`.

Needs no server, and travels with push and fetch. The ref's first commit holds what is proposed;
every comment, review, check and change of state is one more file on top (`proposal_events.py`).
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable
from typing import Any, get_args

from ..errors import ForgeError, GitError, Hint, NextStep, UsageError
from ..git.objects import Objects, entries
from ..git.ref_log import GitLog, Look, Step
from ..git.repository import Repository, branch_name
from .branch_merge import land, land_there, upstream
from .proposal_events import (
    EVENTS,
    FILES,
    FIRST,
    FORMAT,
    Kept,
    dumps,
    event_path,
    fold,
    loads,
    time_of,
)
from .proposal_rules import (
    fit_commit,
    fit_context,
    fit_number,
    fit_review,
    fit_text,
    fit_title,
    must_be_mergeable,
    must_be_open,
    nothing_to_propose,
)
from .protocol import Check, CheckState, Finish, Proposal, State, Verdict

REFS = "refs/quire/proposals/"
LARGEST = 1_000_000  # bytes of one event; nothing we write comes near
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


class LocalForge:
    finishes = True

    def __init__(self, repository: Repository, clock: Callable[[], float] = time.time) -> None:
        self.repository = repository
        self.clock = clock

    @property
    def kind(self) -> str:
        return "local"

    @property
    def where(self) -> str:
        return str(self.repository.here)

    def open(self, *, branch: str, base: str, title: str, body: str) -> Proposal:
        title, body = fit_title(title), fit_text(body, "body")
        head = self._openable(branch_name(branch), branch_name(base))
        first = {
            "format": FORMAT,
            "id": secrets.token_hex(16),
            "title": title,
            "body": body,
            "branch": branch,
            "base": base,
            "head": head,
            **self._signed(),
        }

        def begin(look: Look) -> list[Step]:
            # None where somebody else took that number since we looked.
            return [Step({FIRST: dumps(first)}, f"Propose: {title}")] if look.tip is None else []

        number = max(self.refs(), default=0)
        while True:
            number += 1
            tip = GitLog(self.repository, f"{REFS}{number}").change(begin)
            kept = self.read(tip) if tip else None
            if kept is not None and kept.id == first["id"]:
                return fold(number, kept, head)

    def update(self, number: int, *, title: str | None = None, body: str | None = None) -> Proposal:
        said: dict[str, str] = {}
        if title is not None:
            said["title"] = fit_title(title)
        if body is not None:
            said["body"] = fit_text(body, "body")
        kept = self._kept(number)
        if said:
            # What is proposed now. Where the branch is not here, nothing new is.
            branch = fold(number, kept).branch
            if head := self.repository.resolve(f"refs/heads/{branch}"):
                said["head"] = head
            self._append(number, kept, "updated", said)
        return self.proposal(number)

    def proposals(self, state: State | None = "open") -> list[Proposal]:
        found = []
        for number, tip in sorted(self.refs().items(), reverse=True):
            kept = self.read(tip)
            if kept is not None:
                proposal = self._folded(number, kept)
                if state in (None, proposal.state):
                    found.append(proposal)
        return found

    def proposal(self, number: int) -> Proposal:
        return self._folded(number, self._kept(number))

    def comment(self, number: int, text: str) -> None:
        said = {"text": fit_text(text, "comment")}
        self._append(number, self._kept(number), "comment", said)

    def review(self, number: int, verdict: Verdict, text: str) -> None:
        said = {"verdict": verdict, "text": fit_review(verdict, text)}
        kept = self._kept(number)
        found = self._folded(number, kept)
        self._must_be_here(found)
        said["commit"] = found.head
        self._append(number, kept, "review", said)

    def set_check(self, commit: str, check: Check) -> None:
        """Kept with every open proposal that the commit is part of."""
        if check.state not in get_args(CheckState):
            raise UsageError(f"{check.state!r} is no state", hint=", ".join(get_args(CheckState)))
        said = {
            "commit": fit_commit(commit),
            "context": fit_context(check.context),
            "state": check.state,
            "description": fit_text(check.description, "description"),
            "url": check.url,
        }
        there = [p for p in self.proposals() if self._holds(p, commit)]
        if not there:
            raise ForgeError(
                f"no open proposal has the commit {commit[:12]}",
                hint=Hint(
                    "without a server a check is kept with a proposal: {} first",
                    NextStep("propose"),
                ),
            )
        for proposal in there:
            self._append(proposal.number, self._kept(proposal.number), "check", said)

    def attach(self, number: int, name: str, data: bytes) -> str | None:
        """Beside the events; `git show <address>` prints it."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip(".")[:100] or "file"
        path = f"{FILES}{hashlib.sha256(data).hexdigest()[:12]}-{plain}"
        said = {"name": plain, "file": path}
        self._append(number, self._kept(number), "attached", said, {path: data})
        return f"{REFS}{number}:{path}"

    def link(self, commit: str, path: str) -> str | None:
        return None

    def merge(self, number: int, message: str, finish: Finish | None = None) -> str:
        """Where a remote has the base, it is merged there: noted only once the remote took it.

        Whatever goes wrong before that leaves nothing behind, and saying it again takes it up.
        """
        kept = self._kept(number)
        found = self._folded(number, kept)
        must_be_mergeable(found)
        self._must_be_here(found)
        self._must_be_current(found)
        said = fit_text(message, "message").strip() or f"Merge proposal {number}: {found.title}"
        there = upstream(self.repository, found.base)
        if there is None:
            commit = land(self.repository, found, said + "\n", finish)
        else:
            commit = land_there(self.repository, found, there, said + "\n", finish)
        self._append(number, kept, "merged", {"commit": commit, "head": found.head})
        return commit

    def close(self, number: int) -> None:
        kept = self._kept(number)
        found = self._folded(number, kept)
        must_be_open(found, "closed")
        self._append(number, kept, "closed", {"head": found.head})

    # The refs and what they hold.

    def refs(self, under: str = REFS) -> dict[int, str]:
        """The tip of each proposal by its number."""
        listed = self.repository.git(
            "for-each-ref", "--format=%(objecttype) %(objectname) %(refname)", under
        )
        found = {}
        for line in filter(None, listed.split("\n")):
            kind, tip, ref = line.split(" ", 2)
            number = ref.removeprefix(under)
            if kind == "commit" and _NUMBER.fullmatch(number):
                found[int(number)] = tip
        return found

    def read(self, tip: str) -> Kept | None:
        """None where a ref holds something else than a proposal."""
        with Objects(self.repository) as objects:
            files: dict[str, bytes] = {}
            for entry in entries(self.repository, tip):
                wanted = entry.path == FIRST or entry.path.startswith(EVENTS)
                if not wanted or entry.mode != "100644":
                    continue
                try:
                    data = objects.read(entry.id, LARGEST)
                except GitError:
                    continue
                if data is not None:
                    files[entry.path] = data
        return loads(files)

    def _kept(self, number: int) -> Kept:
        tip = self.repository.resolve(f"{REFS}{fit_number(number)}")
        if tip is None:
            there = ", ".join(map(str, sorted(self.refs()))) or "none"
            raise ForgeError(
                f"there is no proposal {number}",
                hint=f"quire proposals; there are: {there}. Another clone's come with git fetch "
                "and quire push",
            )
        kept = self.read(tip)
        if kept is None:
            raise ForgeError(
                f"{REFS}{number} does not hold a proposal that can be read",
                hint=f"look at it with git log -p {REFS}{number}; a newer Quire may have made it",
            )
        return kept

    def _append(
        self,
        number: int,
        kept: Kept,
        kind: str,
        said: dict[str, Any],
        files: dict[str, bytes] | None = None,
    ) -> None:
        event = {"kind": kind, **self._signed(), **said}
        path = event_path(event["at"], secrets.token_hex(4), kind)
        step = Step({path: dumps(event), **(files or {})}, f"{kind} on proposal {number}")

        def add(look: Look) -> list[Step]:
            now = loads({FIRST: look.found[FIRST] or b""})
            if now is None or now.id != kept.id:
                raise ForgeError(
                    f"proposal {number} has another number since a moment ago",
                    hint="quire proposals has the new one",
                )
            return [step]

        GitLog(self.repository, f"{REFS}{number}").change(add, (FIRST,))

    def _signed(self) -> dict[str, str]:
        """Who says it and when. As true as git's own authors: whoever writes can write any name."""
        who = self.repository.git("var", "GIT_AUTHOR_IDENT")
        found = re.match(r"(.*?) ?<([^>]*)> \d+ ", who)
        name, mail = (found[1], found[2]) if found else (who, "")
        return {"author": name or mail, "mail": mail, "at": time_of(self.clock())}

    # Branches.

    def _folded(self, number: int, kept: Kept) -> Proposal:
        proposal = fold(number, kept)
        if proposal.state != "open":
            return proposal
        return fold(number, kept, self._head(proposal.branch, proposal.head))

    def _head(self, branch: str, proposed: str) -> str:
        """Where the branch went since it was proposed; a place it left before counts no more.

        A clone may have an old one, or none. What was proposed last is then what is proposed, and
        whoever needs its commits says that they are missing.
        """
        if self.repository.resolve(proposed) is None:
            return proposed
        tips = self._tips(branch)
        if len(tips) == 1 and "" in tips:
            return tips[""]  # nobody else's: the branch is the proposal, also after an amendment
        head = proposed
        for tip in tips.values():
            if self.repository.is_ancestor(head, tip):
                head = tip
        return head

    def _tip(self, branch: str) -> str | None:
        """Where a branch is, here or as it was last fetched, whichever is ahead."""
        found = None
        for tip in self._tips(branch).values():
            if found is None or self.repository.is_ancestor(found, tip):
                found = tip
        return found

    def _tips(self, branch: str) -> dict[str, str]:
        """The commits a branch is at, by remote; "" is the one here, and comes first."""
        refs = {"": f"refs/heads/{branch}"}
        refs |= {name: f"refs/remotes/{name}/{branch}" for name in self.repository.remotes()}
        found = {name: self.repository.resolve(ref) for name, ref in refs.items()}
        return {name: tip for name, tip in found.items() if tip is not None}

    def _must_be_here(self, found: Proposal) -> None:
        if self.repository.resolve(found.head) is None:
            raise ForgeError(
                f"the commits of proposal {found.number} are not here: {found.branch} is "
                f"proposed at {found.head[:12]}",
                hint="quire push brings them, once the author has pushed the branch",
            )

    def _must_be_current(self, found: Proposal) -> None:
        """Refused where the branch was rewritten and not proposed again: which one is meant?"""
        ask = self.repository.is_ancestor
        tips = {name: tip for name, tip in self._tips(found.branch).items() if name}
        if any(ask(found.head, tip) or ask(tip, found.head) for tip in tips.values()):
            return
        for remote, tip in tips.items():
            raise ForgeError(
                f"proposal {found.number} is of {found.head[:12]}, and {found.branch} of {remote} "
                f"was rewritten since: it is at {tip[:12]}",
                hint=Hint(
                    "whoever rewrote it proposes it again: {}",
                    NextStep("propose", {"branch": found.branch}),
                ),
            )

    def _openable(self, branch: str, base: str) -> str:
        head, onto = self._tip(branch), self._tip(base)
        for name, found in ((branch, head), (base, onto)):
            if found is None:
                raise ForgeError(
                    f"there is no branch {name!r}", hint=f"git branch --list; git switch -c {name}"
                )
        assert head is not None
        assert onto is not None
        if branch == base or self.repository.is_ancestor(head, onto):
            raise nothing_to_propose(branch, base)
        for other in self.proposals():
            if (other.branch, other.base) == (branch, base):
                raise ForgeError(
                    f"there is an open proposal for {branch} already: {other.number}",
                    hint="commit to the branch to change it, or close that one first",
                )
        return head

    def _holds(self, proposal: Proposal, commit: str) -> bool:
        if proposal.head == commit:
            return True
        base = self._tip(proposal.base)
        there = self.repository.resolve(commit) is not None
        if not there or not self.repository.is_ancestor(commit, proposal.head):
            return False
        return base is None or not self.repository.is_ancestor(commit, base)
