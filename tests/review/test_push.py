"""`quire push`: what it sends, what it takes, what it says, and what it does when it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from made_archive import git
from quire.archive.branch import GitArchive
from quire.errors import GitError, UsageError
from quire.review.push import push
from quire.workspace import Workspace
from scratch import Scratch


@pytest.fixture
def hub(repo: Scratch) -> Path:
    hub = repo.root.parent / "hub.git"
    git(repo.root.parent, "init", "--quiet", "--bare", "hub.git")
    repo.git("remote", "add", "origin", str(hub))
    return hub


def run(repo: Scratch) -> str:
    code, told = repo.run("notebooks/sum.py", "--no-host")
    assert code == 0
    return str(told["run_id"])


def test_runs_go_to_the_remote_and_are_good_there(repo: Scratch, hub: Path) -> None:
    runs = [run(repo), run(repo)]
    done = repo.quire("push")
    assert (done.returncode, done.stdout) == (0, "sent 2 runs to origin\n"), done.stderr
    listed = git(hub, "ls-tree", "-r", "--name-only", "reports").split("\n")
    for name in runs:
        assert any(f"/{name}/record.json" in path for path in listed)
    again = repo.quire("push")
    assert (again.returncode, again.stdout) == (0, "origin has everything already\n")
    assert git(hub, "for-each-ref", "--format=%(refname)") == "refs/heads/reports"


def test_two_clones_and_their_seals(repo: Scratch, hub: Path) -> None:
    run(repo)
    repo.git("push", "--quiet", "origin", "main")
    git(hub, "symbolic-ref", "HEAD", "refs/heads/main")
    git(hub.parent, "clone", "--quiet", str(hub), "other")
    other = Scratch(hub.parent / "other")
    other.git("config", "user.name", "Grace")
    other.git("config", "user.email", "g@example.org")
    run(other)
    run(other)
    assert repo.quire("push").stdout == "sent 1 run to origin\n"
    said = other.quire("push")
    assert said.stdout == (
        "sent 2 runs to origin, 2 of them after those of others\ntook 1 run from origin\n"
    ), said.stderr
    told = json.loads(repo.quire("push", "--json").stdout)
    assert (told["sent"], told["taken"], told["remote"], told["branch"]) == (
        0,
        2,
        "origin",
        "reports",
    )
    for folder in (repo.root, other.root):
        ws = Workspace(folder, cwd=folder)
        assert len(ws.archive.ids()) == 3
        assert [link.problems for link in ws.archive.history()] == [(), (), ()]
        verified = Scratch(folder).quire("verify", "--all")
        assert verified.returncode == 0, verified.stdout + verified.stderr


def test_what_could_not_be_archived_is_archived_first(repo: Scratch, hub: Path) -> None:
    repo.git("branch", "reports")  # an unrelated one stands in the way
    code, told = repo.run("notebooks/sum.py", "--no-host")
    assert code == 0
    assert told["archived"] is None
    refused = repo.quire("push")
    assert refused.returncode == 2
    assert "archive.branch" in refused.stderr
    repo.git("branch", "--quiet", "-D", "reports")
    done = repo.quire("push")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "archived 1 run that had to wait\nsent 1 run to origin\n"


def test_proposals_go_even_if_runs_are_refused(repo: Scratch, hub: Path) -> None:
    run(repo)
    hook = hub / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ntest "$1" != refs/heads/reports\n')
    hook.chmod(0o755)
    ws = Workspace(repo.root, cwd=repo.root)
    repo.git("branch", "change")
    repo.git("checkout", "--quiet", "change")
    repo.write("notebooks/sum.py", (repo.root / "notebooks/sum.py").read_text() + "\n# more\n")
    repo.git("commit", "--quiet", "-a", "-m", "Change")
    number = ws.forge.open(branch="change", base="main", title="Change", body="").number
    with pytest.raises(GitError, match="origin refused refs/heads/reports"):
        push(ws)
    refs = git(hub, "for-each-ref", "--format=%(refname)")
    assert refs.split() == ["refs/heads/change", f"refs/quire/proposals/{number}"]


def test_no_remote(repo: Scratch) -> None:
    run(repo)
    done = repo.quire("push")
    assert done.returncode == 2
    assert "this repository has no remote" in done.stderr
    assert "git remote add origin" in done.stderr
    named = repo.quire("push", "--remote", "-x")
    assert named.returncode == 2
    assert "there is no remote '-x'" in named.stderr


def test_several_remotes(repo: Scratch, hub: Path) -> None:
    repo.git("remote", "rename", "origin", "one")
    repo.git("remote", "add", "two", str(hub))
    run(repo)
    with pytest.raises(UsageError, match="several remotes: one, two"):
        push(Workspace(repo.root, cwd=repo.root))
    assert push(Workspace(repo.root, cwd=repo.root), "two").runs.sent == 1


def test_a_dead_remote_fails_the_push_and_no_run(repo: Scratch, hub: Path) -> None:
    repo.write("quire.toml", "[archive]\npush = true\n")
    repo.git("remote", "set-url", "origin", "/no/such/place")
    code, told = repo.run("notebooks/sum.py", "--no-host")
    assert (code, told["outcome"]) == (0, "ok")
    assert told["archived"]
    done = repo.quire("push", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert "cannot fetch from origin" in error["message"]
    assert error["hint"]
    repo.git("remote", "set-url", "origin", str(hub))
    assert repo.quire("push").stdout == "sent 1 run to origin\n"


def test_outside_a_repository(scratch: Scratch) -> None:
    scratch.write("a.py", "# %%\nprint(1)\n")
    code, told = scratch.run("a.py", "--no-host")
    assert code == 0
    assert (
        scratch.root / ".quire" / "archive" / told["archived"]["place"] / "record.json"
    ).exists()
    done = scratch.quire("push")
    assert done.returncode == 2
    assert "in no git repository" in done.stderr
    assert ".quire/archive" in done.stderr


def test_the_archive_of_a_workspace(repo: Scratch, scratch: Scratch) -> None:
    (repo.root / "quire.toml").write_text('[archive]\nbranch = "records/runs"\n')
    archive = Workspace(repo.root, cwd=repo.root).archive
    assert isinstance(archive, GitArchive)
    assert (archive.kind, archive.where) == ("git", "git branch records/runs")
    run(repo)
    assert repo.git("branch", "--list", "records/*").strip() == "records/runs"
