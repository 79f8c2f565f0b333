"""The story on a real Gitea: branch, pull request, status, attachment, review, merge.

Runs where a server is at hand; `tests/forges/gitea_server.py` starts one.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from typing import Any

import httpx2
import pytest

from forges.worlds import Admin
from made_records import made
from quire.record.events import ResultGlued
from quire.review.proposal_body import Place, Told, render
from scratch import Scratch

pytestmark = pytest.mark.skipif(
    not {"QUIRE_TEST_GITEA_URL", "QUIRE_TEST_GITEA_TOKEN"} <= set(os.environ),
    reason="no Gitea at hand",
)


def test_a_change_goes_through_a_real_gitea(repo: Scratch) -> None:
    web = os.environ["QUIRE_TEST_GITEA_URL"].rstrip("/")
    admin = Admin(web, os.environ["QUIRE_TEST_GITEA_TOKEN"])
    name = f"quire-{secrets.token_hex(6)}"
    admin.repository(name)
    place = f"/repos/{admin.login}/{name}"
    scheme, _, rest = web.partition("://")
    url = f"{scheme}://{admin.login}:{admin.token}@{rest}/{admin.login}/{name}.git"
    author = {"QUIRE_GITEA_TOKEN": admin.token}

    def ask(*args: str, code: int = 0, **env: str) -> Any:
        done = repo.quire(*args, "--json", env=author | env)
        assert done.returncode == code, f"{args}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    repo.write("quire.toml", '[forge]\nkind = "gitea"\n')
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Say which forge")
    repo.git("remote", "add", "origin", url)
    repo.git("push", "--quiet", "origin", "main")
    try:
        before = ask("run", "notebooks/sum.py")
        task = (repo.root / "notebooks/sum.py").read_text()
        repo.write("notebooks/sum.py", task.replace("range(n)", "range(n + 1)"))
        assert ask("commit", "notebooks/sum.py", "-m", "Include n")["pushed"] == "origin"
        ran = ask("run", "notebooks/sum.py")
        opened = ask("propose", "--title", "Include n", "--body", "As asked.")
        assert opened["warnings"] == []
        assert opened["url"].startswith(f"{web}/{admin.login}/{name}/pulls/")
        number = str(opened["number"])
        shown = admin.ask("GET", f"{place}/pulls/{number}")
        assert f"| Run | `{ran['run_id']}` |" in shown["body"]
        (asset,) = admin.ask("GET", f"{place}/issues/{number}/assets")
        assert asset["name"].startswith(ran["run_id"])
        (status,) = admin.ask("GET", f"{place}/commits/{opened['head']}/statuses")
        assert (status["status"], status["context"]) == ("success", "quire/notebooks/sum.py")

        assert ask("propose")["created"] is False
        assert len(admin.ask("GET", f"{place}/issues/{number}/assets")) == 1

        seen = ask("review", number)
        assert seen["tasks"][0]["before"] == before["run_id"]
        assert seen["tasks"][0]["proof"]["verified"] is True
        assert "+total = sum(range(n + 1))" in seen["diff"]
        reviewer = {"QUIRE_GITEA_TOKEN": admin.reviewer()}
        ask("review", number, "--request-changes", "Why?", **reviewer)
        ask("merge-proposal", number, code=2)
        ask("review", number, "--approve", "-m", "Ah.", **reviewer)
        merged = ask("merge-proposal", number)
        assert merged["warnings"] == []
        repo.git("switch", "--quiet", "main")
        repo.git("pull", "--quiet", "origin", "main")
        assert merged["commit"] in repo.git("log", "--format=%H")
        assert repo.quire("sync", "notebooks", "--check").returncode == 0
        assert [p["number"] for p in ask("proposals", "--state", "merged")] == [int(number)]
    finally:
        admin.ask("DELETE", place)


NASTY = [
    "@author and fixes #1, author/tasks#1, !1",
    "https://evil.example www.evil.example mail@evil.example",
    "<script>x</script> <img src=http://evil.example/x> [a](http://evil.example)",
    "a | b \\| c `tick` ``` fence",
    "- [ ] a box\n# heading\n1. one",
]


def test_gitea_finds_nothing_in_what_notebooks_say() -> None:
    """Its own renderer, in the mode in which it shows a pull request."""
    web = os.environ["QUIRE_TEST_GITEA_URL"].rstrip("/")
    admin = Admin(web, os.environ["QUIRE_TEST_GITEA_TOKEN"])
    name = f"quire-{secrets.token_hex(6)}"
    admin.repository(name)
    place = f"/repos/{admin.login}/{name}"
    try:
        admin.ask("POST", f"{place}/issues", {"title": "The first"})
        for nasty in NASTY:
            record = made(
                title=nasty,
                source=nasty,
                results=(ResultGlued("c0", nasty, "json", nasty),),
                plan={"parameters": {nasty: nasty}},
            )
            body = render("", [Told(nasty, nasty, nasty, record, nasty)], Place("b", "origin"))
            page = shown(admin, name, body)
            # A heading has a link to itself.
            links = re.findall(r'<a (?![^>]*href="#)[^>]*>', page)
            assert links == [], nasty
            assert not re.search(r"<(script|img|input)", page)
        assert f"{web}/author" in shown(admin, name, "@author")  # it would find one
    finally:
        admin.ask("DELETE", place)


def shown(admin: Admin, name: str, text: str) -> str:
    answer = httpx2.post(
        f"{admin.web}/api/v1/markdown",
        json={"Text": text, "Mode": "comment", "Context": f"/{admin.login}/{name}"},
        headers={"Authorization": f"token {admin.token}"},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    return answer.text
