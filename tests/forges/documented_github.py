"""Answers as GitHub's documentation says it gives them. Nothing here was seen on the real one.

It writes the tapes of `exchanges/github/`: the shapes, statuses and messages are those of the pages
on pulls, reviews, issue comments and commit statuses of https://docs.github.com/rest, version
2022-11-28. Times and ids count up from a fixed start.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from forges.fixed import FIXED

SOURCE = "written from GitHub's REST documentation (version 2022-11-28), not recorded"
DOCS = "https://docs.github.com/rest"
API = "https://api.github.com"
WEB = "https://github.com/author/tasks"
STATES = {"APPROVE": "APPROVED", "COMMENT": "COMMENTED", "REQUEST_CHANGES": "CHANGES_REQUESTED"}

Json = dict[str, Any]


class Said(Exception):
    def __init__(self, status: int, message: str, errors: list[Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.answer: Json = {"message": message}
        if errors is not None:
            self.answer["errors"] = errors
        self.answer |= {"documentation_url": DOCS, "status": str(status)}


class DocumentedGitHub:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pulls: dict[int, Json] = {}
        self.comments: dict[int, list[Json]] = {}
        self.reviews: dict[int, list[Json]] = {}
        self.statuses: dict[str, list[Json]] = {}
        self.count = 0

    def by(self, who: str) -> httpx2.MockTransport:
        def answer(request: httpx2.Request) -> httpx2.Response:
            assert request.headers["accept"] == "application/vnd.github+json"
            assert request.headers["x-github-api-version"] == "2022-11-28"
            try:
                status, value = self.route(who, request)
            except Said as said:
                status, value = said.status, said.answer
            return httpx2.Response(status, json=value)

        return httpx2.MockTransport(answer)

    def route(self, who: str, request: httpx2.Request) -> tuple[int, Any]:
        assert request.url.host == "api.github.com"
        body = json.loads(request.content) if request.content else {}
        asked = f"{request.method} {request.url.path.removeprefix('/repos/author/tasks')}"
        routes: list[tuple[str, Callable[..., tuple[int, Any]]]] = [
            (r"POST /pulls", lambda: self.open(who, body)),
            (r"GET /pulls", lambda: self.listed(request.url.params["state"])),
            (r"GET /pulls/(\d+)", lambda n: (200, self.pull(n))),
            (r"PATCH /pulls/(\d+)", lambda n: self.change(n, body)),
            (r"PUT /pulls/(\d+)/merge", lambda n: self.merge(n, body)),
            (r"GET /pulls/(\d+)/reviews", lambda n: self.kept(self.reviews, n)),
            (r"POST /pulls/(\d+)/reviews", lambda n: self.review(who, n, body)),
            (r"GET /issues/(\d+)/comments", lambda n: self.kept(self.comments, n)),
            (r"POST /issues/(\d+)/comments", lambda n: self.comment(who, n, body)),
            (r"POST /statuses/([0-9a-f]{40})", lambda sha: self.status(who, sha, body)),
            (r"GET /commits/([0-9a-f]{40})/statuses", self.checks),
        ]
        for pattern, act in routes:
            if found := re.fullmatch(pattern, asked):
                return act(*(int(g) if len(g) < 40 else g for g in found.groups()))
        raise Said(404, "Not Found")

    def open(self, who: str, body: Json) -> tuple[int, Any]:
        head, base = body["head"], body["base"]
        for field, name in (("head", head), ("base", base)):
            if self.sha(name) is None:
                error = {"resource": "PullRequest", "field": field, "code": "invalid"}
                raise Said(422, "Validation Failed", [error])
        custom = {"resource": "PullRequest", "code": "custom"}
        if not self.git("rev-list", f"{base}..{head}"):
            message = f"No commits between {base} and {head}"
            raise Said(422, "Validation Failed", [custom | {"message": message}])
        if any(p["head"]["ref"] == head and p["state"] == "open" for p in self.pulls.values()):
            message = f"A pull request already exists for author:{head}."
            raise Said(422, "Validation Failed", [custom | {"message": message}])
        number = len(self.pulls) + 1
        self.pulls[number] = self.fresh(who, number, body)
        self.comments[number], self.reviews[number] = [], []
        return 201, self.pull(number)

    def fresh(self, who: str, number: int, body: Json) -> Json:
        at = self.at()
        return {
            "url": f"{API}/repos/author/tasks/pulls/{number}",
            "id": self.id(),
            "node_id": "PR_documented",
            "html_url": f"{WEB}/pull/{number}",
            "diff_url": f"{WEB}/pull/{number}.diff",
            "patch_url": f"{WEB}/pull/{number}.patch",
            "number": number,
            "state": "open",
            "locked": False,
            "title": body["title"],
            "user": person(who),
            "body": body["body"],
            "labels": [],
            "milestone": None,
            "created_at": at,
            "updated_at": at,
            "closed_at": None,
            "merged_at": None,
            "merge_commit_sha": "e5bd3914e2e596debea16f433f57875b5b90bcd6",
            "assignee": None,
            "draft": False,
            "head": {"label": f"author:{body['head']}", "ref": body["head"], "user": person(who)},
            "base": {"label": f"author:{body['base']}", "ref": body["base"], "user": person(who)},
            "author_association": "OWNER",
            "merged": False,
            "mergeable": None,
            "merged_by": None,
        }

    def pull(self, number: int) -> Json:
        if number not in self.pulls:
            raise Said(404, "Not Found")
        pull = self.pulls[number]
        if pull["state"] == "open":
            for end in ("head", "base"):
                pull[end]["sha"] = self.sha(pull[end]["ref"])
        return pull

    def listed(self, state: str) -> tuple[int, Any]:
        kept = [self.pull(n) for n, p in self.pulls.items() if state in ("all", p["state"])]
        # The list has the shorter form, without what is costly to find out.
        long = ("merged", "mergeable", "merged_by")
        return 200, [{k: v for k, v in p.items() if k not in long} for p in reversed(kept)]

    def change(self, number: int, body: Json) -> tuple[int, Any]:
        pull = self.pull(number)
        pull |= {"updated_at": self.at(), **body}
        if body.get("state") == "closed":
            pull["closed_at"] = pull["updated_at"]
        return 200, pull

    def merge(self, number: int, body: Json) -> tuple[int, Any]:
        pull = self.pull(number)
        head, base = pull["head"]["sha"], pull["base"]["sha"]
        if body["sha"] != head:
            raise Said(409, "Head branch was modified. Review and try the merge again.")
        tried = self.run("merge-tree", "--write-tree", base, head)
        if pull["state"] != "open" or tried.returncode:
            raise Said(405, "Pull Request is not mergeable")
        tree = tried.stdout.strip()
        message = f"{body['commit_title']}\n\n{body['commit_message']}"
        sha = self.git("commit-tree", tree, "-p", base, "-p", head, "-m", message)
        at = self.at()
        pull |= {"state": "closed", "merged": True, "merge_commit_sha": sha}
        pull |= {"merged_at": at, "closed_at": at, "updated_at": at}
        return 200, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}

    def kept(self, where: dict[int, list[Json]], number: int) -> tuple[int, Any]:
        self.pull(number)
        return 200, where[number]

    def comment(self, who: str, number: int, body: Json) -> tuple[int, Any]:
        self.pull(number)
        at, own = self.at(), self.id()
        made = {
            "id": own,
            "node_id": "IC_documented",
            "url": f"{API}/repos/author/tasks/issues/comments/{own}",
            "html_url": f"{WEB}/pull/{number}#issuecomment-{own}",
            "body": body["body"],
            "user": person(who),
            "created_at": at,
            "updated_at": at,
            "issue_url": f"{API}/repos/author/tasks/issues/{number}",
            "author_association": "COLLABORATOR",
        }
        self.comments[number].append(made)
        return 201, made

    def review(self, who: str, number: int, body: Json) -> tuple[int, Any]:
        pull = self.pull(number)
        if body["event"] != "COMMENT" and pull["user"]["login"] == who:
            deed = "approve" if body["event"] == "APPROVE" else "request changes on"
            raise Said(422, "Unprocessable Entity", [f"Can not {deed} your own pull request"])
        own = self.id()
        made = {
            "id": own,
            "node_id": "PRR_documented",
            "user": person(who),
            "body": body["body"],
            "state": STATES[body["event"]],
            "html_url": f"{WEB}/pull/{number}#pullrequestreview-{own}",
            "pull_request_url": f"{API}/repos/author/tasks/pulls/{number}",
            "_links": {
                "html": {"href": f"{WEB}/pull/{number}#pullrequestreview-{own}"},
                "pull_request": {"href": f"{API}/repos/author/tasks/pulls/{number}"},
            },
            "submitted_at": self.at(),
            "commit_id": pull["head"]["sha"],
            "author_association": "COLLABORATOR",
        }
        self.reviews[number].append(made)
        return 200, made

    def status(self, who: str, sha: str, body: Json) -> tuple[int, Any]:
        if self.sha(sha) is None:
            raise Said(422, f"No commit found for SHA: {sha}")
        at = self.at()
        made = {
            "url": f"{API}/repos/author/tasks/statuses/{sha}",
            "avatar_url": None,
            "id": self.id(),
            "node_id": "SC_documented",
            "state": body["state"],
            "description": body["description"],
            "target_url": body.get("target_url"),
            "context": body["context"],
            "created_at": at,
            "updated_at": at,
            "creator": person(who),
        }
        self.statuses.setdefault(sha, []).insert(0, made)
        return 201, made

    def checks(self, sha: str) -> tuple[int, Any]:
        return 200, self.statuses.get(sha, [])

    # What it knows of the repository, and counting.

    def sha(self, name: str) -> str | None:
        said = self.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return said.stdout.strip() if said.returncode == 0 else None

    def git(self, *args: str) -> str:
        said = self.run(*args)
        assert said.returncode == 0, said.stderr
        return said.stdout.strip()

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:

        env = {**os.environ, **FIXED}
        return subprocess.run(
            ["git", *args], cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )

    def id(self) -> int:
        self.count += 1
        return 1000 + self.count

    def at(self) -> str:
        self.count += 1
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.count)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def person(who: str) -> Json:
    return {"login": who, "id": {"author": 1, "reviewer": 2}[who]}
