"""Where a run comes from is in its record."""

from __future__ import annotations

import json

from quire.engine.origin import asked, commit
from quire.workspace import Workspace
from scratch import Scratch


def of(repo: Scratch, task: str = "notebooks/sum.py") -> dict[str, object] | None:
    return commit(Workspace(repo.root, cwd=repo.root), repo.root / task)


def test_the_commit_and_whether_it_is_what_ran(repo: Scratch) -> None:
    head = repo.git("rev-parse", "HEAD")
    assert of(repo) == {"commit": head, "branch": "main", "dirty": False}
    repo.write("notebooks/new.py", "# %%\n1\n")
    assert of(repo) == {"commit": head, "branch": "main", "dirty": False}
    assert of(repo, "notebooks/new.py") == {"commit": head, "branch": "main", "dirty": True}
    repo.write("notebooks/sum.py", "# %%\n1\n")
    assert of(repo) == {"commit": head, "branch": "main", "dirty": True}
    repo.git("checkout", "--quiet", "--detach", "--force")
    assert of(repo) == {"commit": head, "branch": None, "dirty": False}


def test_before_the_first_commit_and_outside_of_git(repo: Scratch, scratch: Scratch) -> None:
    assert of(scratch, "x.py") is None
    repo.git("checkout", "--quiet", "--orphan", "fresh")
    assert of(repo) == {"commit": None, "branch": "fresh", "dirty": True}


def test_a_worktree_and_a_broken_repository(repo: Scratch) -> None:
    repo.git("worktree", "add", "--quiet", "../other", "-b", "side")
    other = Scratch(repo.root.parent / "other")
    assert of(other) == {"commit": repo.git("rev-parse", "HEAD"), "branch": "side", "dirty": False}
    (repo.root / ".git" / "index").write_bytes(b"rubbish")
    told = of(repo)
    assert told is not None
    assert told["commit"] is None
    assert "index" in str(told["unknown"])


def test_who_asks() -> None:
    assert asked({"QUIRE_ACTOR": "bot", "QUIRE_ON_BEHALF_OF": "ada"}) == {
        "by": "bot",
        "behalf": "ada",
    }
    assert asked({})["by"]
    assert asked({})["behalf"] is None


def test_a_run_says_where_it_comes_from(repo: Scratch) -> None:
    env = {"QUIRE_ACTOR": "agent-7", "QUIRE_ON_BEHALF_OF": "ada"}
    for way in ((), ("--no-host",)):
        assert repo.run("notebooks/sum.py", *way, env=env)[0] == 0
        told = json.loads(repo.quire("show", "last", "--json").stdout)["origin"]
        assert told["asked"] == {"by": "agent-7", "behalf": "ada"}
        assert told["git"]["commit"] == repo.git("rev-parse", "HEAD")
        assert told["engine"]["name"] == "quire"
        environment = told["environment"]
        assert environment["interpreter"]["language"] == "python"
        assert "ipykernel" in environment["packages"]
    assert "asked for by agent-7 on behalf of ada" in repo.quire("show", "last").stdout
