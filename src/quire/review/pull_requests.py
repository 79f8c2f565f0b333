"""Proposals as pull requests, as Gitea and GitHub both have them. What differs is in a Dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast, get_args
from urllib.parse import quote

from ..errors import ForgeError
from ..git.repository import branch_name
from .forge_address import Address
from .forge_answers import Fields
from .forge_http import Refused, Rest
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
from .protocol import Check, CheckState, Comment, Finish, Proposal, State, Verdict

DESCRIPTION = 140  # characters of a status that GitHub takes
PATIENCE = (0.2, 0.4, 0.8, 1.6, 3.0)  # while a server still looks whether it can be merged


@dataclass(frozen=True, slots=True)
class Dialect:
    kind: str
    name: str  # for people
    events: Mapping[Verdict, str]  # what a review is sent as
    states: Mapping[str, Verdict]  # what it comes back as; others say nothing
    status: str  # the field of a commit's status
    late: tuple[float, ...]  # how long to wait for it to learn of a branch that was just pushed
    file: str  # the part of a web address between repository and commit
    merge: Callable[[Rest, str, Proposal, str], str | None]  # the commit, where it says so
    attach: Callable[[Rest, str, int, str, bytes], str | None]


class Pulls:
    """A Forge over REST."""

    finishes = False  # the server makes the commit

    def __init__(self, dialect: Dialect, address: Address, rest: Rest) -> None:
        self.dialect = dialect
        self.address = address
        self.rest = rest
        self.repo = f"/repos/{address.owner}/{address.name}"

    @property
    def kind(self) -> str:
        return self.dialect.kind

    @property
    def where(self) -> str:
        return self.address.page()

    def open(self, *, branch: str, base: str, title: str, body: str) -> Proposal:
        said = {
            "title": fit_title(title),
            "body": fit_text(body, "body"),
            "head": branch_name(branch),
            "base": branch_name(base),
        }
        asked = f"open a proposal for {branch} on {self.address.repository}"
        try:
            if self.dialect.late:
                self._must_differ(asked, branch, base)
            got = self._patient(lambda: self.rest.send(asked, "POST", f"{self.repo}/pulls", said))
            return self._proposal(got)
        except Refused as error:
            raise self._not_opened(error, branch, base) from None

    def _must_differ(self, asked: str, branch: str, base: str) -> None:
        """For a server that would open an empty one."""
        path = f"{self.repo}/compare/{quote(base)}...{quote(branch)}"
        got = self._patient(lambda: self.rest.get(asked, path))
        if Fields.of(got, "the comparison", self.dialect.name).number("total_commits") == 0:
            raise nothing_to_propose(branch, base)

    def _patient(self, ask: Callable[[], Any]) -> Any:
        """A branch that was just pushed may not be known yet: then it says 404, and did nothing."""
        for wait in self.dialect.late:
            try:
                return ask()
            except Refused as error:
                if error.status != 404:
                    raise
                self.rest.pause(wait)
        return ask()

    def update(self, number: int, *, title: str | None = None, body: str | None = None) -> Proposal:
        said: dict[str, str] = {}
        if title is not None:
            said["title"] = fit_title(title)
        if body is not None:
            said["body"] = fit_text(body, "body")
        path = f"{self.repo}/pulls/{fit_number(number)}"
        if said:
            self.rest.send(f"change proposal {number}", "PATCH", path, said)
        return self.proposal(number)

    def proposals(self, state: State | None = "open") -> list[Proposal]:
        wanted = {None: "all", "open": "open"}.get(state, "closed")
        asked = f"list the proposals of {self.address.repository}"
        found = [
            self._proposal(item)
            for item in self.rest.pages(asked, f"{self.repo}/pulls", state=wanted)
        ]
        kept = [proposal for proposal in found if state in (None, proposal.state)]
        return sorted(kept, key=lambda proposal: proposal.number, reverse=True)

    def proposal(self, number: int) -> Proposal:
        path = f"{self.repo}/pulls/{fit_number(number)}"
        asked = f"show proposal {number} of {self.address.repository}"
        bare = self._proposal(self.rest.get(asked, path))
        said = [
            self._comment(item)
            for item in self.rest.pages(asked, f"{self.repo}/issues/{number}/comments")
        ]
        said += self._reviews(asked, f"{path}/reviews")
        checks = self._checks(asked, bare.head) if bare.head else ()
        said.sort(key=lambda comment: comment.at)
        return replace(bare, comments=tuple(said), checks=checks)

    def comment(self, number: int, text: str) -> None:
        path = f"{self.repo}/issues/{fit_number(number)}/comments"
        self.rest.send(
            f"comment on proposal {number}", "POST", path, {"body": fit_text(text, "comment")}
        )

    def review(self, number: int, verdict: Verdict, text: str) -> None:
        path = f"{self.repo}/pulls/{fit_number(number)}/reviews"
        said = {"body": fit_review(verdict, text), "event": self.dialect.events[verdict]}
        try:
            self.rest.send(f"review proposal {number}", "POST", path, said)
        except Refused as error:
            if error.status == 422 and "your own pull" in error.said.lower():
                raise ForgeError(
                    f"{self.dialect.name} lets nobody review their own proposal, "
                    f"and {number} is yours",
                    hint="ask somebody else, or say it without a verdict: "
                    f"quire review {number} --comment …",
                ) from None
            raise

    def set_check(self, commit: str, check: Check) -> None:
        said = {
            "state": check.state,
            "context": fit_context(check.context),
            "description": fit_text(check.description, "description")[:DESCRIPTION],
        }
        if check.url:
            said["target_url"] = check.url
        path = f"{self.repo}/statuses/{fit_commit(commit)}"
        self.rest.send(f"set the check {check.context} of {commit[:12]}", "POST", path, said)

    def attach(self, number: int, name: str, data: bytes) -> str | None:
        return self.dialect.attach(self.rest, self.repo, fit_number(number), name, data)

    def link(self, commit: str, path: str) -> str | None:
        return self.address.page(*self.dialect.file.split("/"), fit_commit(commit), path)

    def merge(self, number: int, message: str, finish: Finish | None = None) -> str:
        found = self.proposal(number)
        must_be_mergeable(found)
        commit = self.dialect.merge(self.rest, self.repo, found, fit_text(message, "message"))
        if commit:
            return commit
        path = f"{self.repo}/pulls/{number}"
        merged = self._proposal(self.rest.get(f"show proposal {number}", path)).merged
        if merged is None:
            raise ForgeError(
                f"{self.dialect.name} took the merge of proposal {number} but does not show it",
                hint="look at it again in a moment: quire proposals",
            )
        return merged

    def close(self, number: int) -> None:
        path = f"{self.repo}/pulls/{fit_number(number)}"
        asked = f"close proposal {number}"
        must_be_open(self._proposal(self.rest.get(asked, path)), "closed")
        self.rest.send(asked, "PATCH", path, {"state": "closed"})

    # Reading.

    def _proposal(self, value: Any) -> Proposal:
        got = Fields.of(value, "the proposal", self.dialect.name)
        merged = bool(got.text("merged_at"))
        state: State = "merged" if merged else "closed" if got.text("state") != "open" else "open"
        return Proposal(
            number=got.number("number"),
            title=got.text("title"),
            body=got.text("body").replace("\r\n", "\n"),
            branch=got.inside("head").needed("ref"),
            base=got.inside("base").needed("ref"),
            head=got.inside("head").text("sha"),
            state=state,
            author=got.login(),
            at=got.text("created_at"),
            url=got.text("html_url"),
            # Before it is merged, GitHub has there the commit of a trial.
            merged=got.text("merge_commit_sha") or None if merged else None,
        )

    def _comment(self, value: Any) -> Comment:
        got = Fields.of(value, "a comment", self.dialect.name)
        return Comment(got.login(), got.text("created_at"), got.text("body"))

    def _reviews(self, asked: str, path: str) -> list[Comment]:
        """Oldest first. One set aside counts no more, unless its author came back to it."""
        found: list[Comment] = []
        judged: set[str] = set()  # who says more later on
        for item in reversed(list(self.rest.pages(asked, path))):
            got = Fields.of(item, "a review", self.dialect.name)
            verdict = self.dialect.states.get(got.text("state"))
            if verdict is None:
                continue  # asked for, or not yet sent
            who = got.login()
            if got.flag("dismissed") and who not in judged:
                verdict = "comment"
            elif verdict != "comment":
                judged.add(who)
            at, commit = got.text("submitted_at"), got.text("commit_id")
            found.append(Comment(who, at, got.text("body"), verdict, commit))
        return found[::-1]

    def _checks(self, asked: str, commit: str) -> tuple[Check, ...]:
        """The newest of each context, in the order in which the contexts were first heard of."""
        path = f"{self.repo}/commits/{fit_commit(commit)}/statuses"
        heard: dict[str, tuple[int, Check]] = {}
        first: dict[str, int] = {}
        for item in self.rest.pages(asked, path):
            got = Fields.of(item, "a check", self.dialect.name)
            place, check = got.number("id"), self._check(got)
            first[check.context] = min(first.get(check.context, place), place)
            if check.context not in heard or heard[check.context][0] < place:
                heard[check.context] = place, check
        return tuple(heard[context][1] for context in sorted(first, key=lambda c: first[c]))

    def _check(self, got: Fields) -> Check:
        state = got.text(self.dialect.status)
        known = state if state in get_args(CheckState) else "error"
        return Check(
            context=got.text("context"),
            state=cast(CheckState, known),
            description=got.text("description"),
            url=got.text("target_url"),
            at=got.text("created_at"),
        )

    def _not_opened(self, error: Refused, branch: str, base: str) -> ForgeError:
        said = error.said.lower()
        if error.status in (409, 422) and "already exists" in said:
            return ForgeError(
                f"there is an open proposal for {branch} already",
                hint="push to the branch to change it; quire proposals has its number",
            )
        if "no commits between" in said or "no changes between" in said:
            return nothing_to_propose(branch, base)
        invalid = error.status == 422 and ("head invalid" in said or "base invalid" in said)
        if error.status == 404 or invalid:
            return ForgeError(
                f"{error.message}; is the branch {branch} there, and {base}?",
                hint=f"push it first: git push -u <remote> {branch}. {error.hint}",
            )
        return error
