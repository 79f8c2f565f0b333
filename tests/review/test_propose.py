"""`quire propose`: a branch with what its tasks did, on a forge, once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from forge_server import WEB, server
from quire.errors import GitError, QuireError, UsageError
from quire.review.commit import commit
from quire.review.proposal_body import own_words
from quire.review.propose import propose
from quire.workspace import Workspace
from scratch import Scratch

GREET = "# %% [markdown]\n# # Greet\n#\n# Says hello.\n\n# %%\nprint('hello')\n"


@pytest.fixture
def ws(repo: Scratch) -> Workspace:
    return workspace(repo)


def workspace(repo: Scratch) -> Workspace:
    return Workspace(repo.root, cwd=repo.root, env=dict(os.environ))


def changed(repo: Scratch, ws: Workspace, *, run: bool = True) -> str:
    """A branch `include-n` with a change of the sum; the id of the run of it."""
    path = repo.root / "notebooks/sum.py"
    path.write_text(path.read_text().replace("range(n)", "range(n + 1)"))
    commit(ws, ["notebooks/sum.py"], "Include n")
    if not run:
        return ""
    code, told = repo.run("notebooks/sum.py", "-p", "n", "5")
    assert code == 0
    return str(told["run_id"])


def refs(repo: Scratch) -> str:
    return repo.git("for-each-ref")


def test_a_proposal_shows_what_was_run(repo: Scratch, ws: Workspace) -> None:
    run_id = changed(repo, ws)
    done = propose(ws, title="Include n", body="As asked.")
    found = done.proposal
    assert (done.created, found.number, found.state) == (True, 1, "open")
    assert (found.branch, found.base) == ("include-n", "main")
    assert found.head == repo.git("rev-parse", "include-n")
    assert own_words(found.body) == "As asked."
    for line in (
        "## Add up",
        f"| Run | `{run_id}` |",
        "| Outcome | **ok** |",
        "| Parameter `n` | `5` |",
        "| `total` | `15` |",
        "$ git switch include-n",
        """$ quire run notebooks/sum.py -y '{"n": 5}'""",
    ):
        assert line in found.body.split("\n")
    assert f"| Verify | verified {run_id}: signed by this machine" in found.body
    day = run_id[:10].replace("-", "/")
    kept = f"reports:runs/{day}/{run_id}/notebook.ipynb"
    assert f"`git show {kept}`" in found.body
    assert json.loads(repo.git("show", kept))["cells"]
    (check,) = ws.forge.proposal(1).checks
    assert (check.context, check.state) == ("quire/notebooks/sum.py", "success")
    assert check.description.startswith("ok in ")
    (task,) = done.tasks
    assert task.as_dict() == {
        "path": "notebooks/sum.py",
        "change": "changed",
        "run_id": run_id,
        "outcome": "ok",
        "verified": True,
        "waiting": [],
    }


def test_a_run_of_another_version_does_not_count(repo: Scratch, ws: Workspace) -> None:
    repo.run("notebooks/sum.py")
    changed(repo, ws, run=False)
    done = propose(ws, title="Include n")
    assert [task.ran for task in done.tasks] == [None]
    assert "**No archived run of this version exists.**" in done.proposal.body
    assert "$ quire run notebooks/sum.py" in done.proposal.body
    assert ws.forge.proposal(1).checks == ()


def test_said_again_it_is_brought_up_to_date(repo: Scratch, ws: Workspace) -> None:
    changed(repo, ws, run=False)
    propose(ws, title="Include n", body="Mine.")
    _, told = repo.run("notebooks/sum.py")
    done = propose(ws)
    assert (done.created, done.proposal.number, done.proposal.title) == (False, 1, "Include n")
    assert own_words(done.proposal.body) == "Mine."
    assert told["run_id"] in done.proposal.body
    done = propose(ws, title="Better", body="")
    assert (done.proposal.title, own_words(done.proposal.body)) == ("Better", "")
    assert len(ws.forge.proposals(None)) == 1


def test_a_failed_run_is_a_failed_check(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/bad.py", "# %%\n1 / 0\n")
    commit(ws, ["notebooks/bad.py"], "Add bad")
    assert repo.run("notebooks/bad.py")[0] == 1
    done = propose(ws)
    assert done.proposal.title == "Add bad"
    assert "**failed**: `ZeroDivisionError: division by zero`" in done.proposal.body
    (check,) = ws.forge.proposal(1).checks
    assert check.state == "failure"


def test_a_forged_run_is_an_error(repo: Scratch, ws: Workspace) -> None:
    """Somebody puts a run into the archive that nobody signed."""
    run_id = changed(repo, ws)
    files = dict(ws.archive.files(run_id))
    forged = f"{run_id[:-4]}ffff"
    record = files["record.json"].replace(b'"value": 15', b'"value": 99')
    files["record.json"] = record.replace(run_id.encode(), forged.encode())
    ws.archive.add(forged, files)
    repo.git("update-ref", "-d", "refs/heads/none")
    done = propose(workspace(repo), run=forged)
    assert done.tasks[0].verdict is not None
    assert not done.tasks[0].verdict.ok
    assert f"NOT verified {forged}" in done.proposal.body
    (check,) = ws.forge.proposal(1).checks
    assert (check.state, check.description[:12]) == ("error", "NOT verified")


def test_several_tasks_gone_ones_and_others(repo: Scratch, ws: Workspace) -> None:
    repo.git("switch", "--quiet", "-c", "many")
    (repo.root / "notebooks/sum.py").unlink()
    repo.write("notebooks/greet.py", GREET)
    repo.write("notebooks/module.py", "def nothing():\n    return 1\n")
    repo.write("README", "words\n")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Much at once")
    done = propose(ws)
    assert [(t.file.path, t.file.kind) for t in done.tasks] == [
        ("notebooks/greet.py", "added"),
        ("notebooks/sum.py", "removed"),
    ]
    assert "Says hello." in done.proposal.body
    assert "This task is removed." in done.proposal.body


def test_a_change_without_tasks(repo: Scratch, ws: Workspace) -> None:
    repo.git("switch", "--quiet", "-c", "words")
    repo.write("README", "words\n")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Words")
    assert "This change touches no task." in propose(ws).proposal.body


def test_the_run_may_be_named(repo: Scratch, ws: Workspace) -> None:
    _, old = repo.run("notebooks/sum.py")
    first = changed(repo, ws)
    second = repo.run("notebooks/sum.py")[1]["run_id"]
    assert second in propose(ws).proposal.body
    named = propose(ws, run=first).proposal.body
    assert first in named
    assert second not in named
    with pytest.raises(UsageError, match=r"ran another version of notebooks/sum\.py"):
        propose(ws, run=old["run_id"])
    repo.write("notebooks/loose.py", GREET)
    loose = repo.run("notebooks/loose.py")[1]["run_id"]
    with pytest.raises(UsageError, match=r"notebooks/loose\.py, which is not on the branch"):
        propose(ws, run=loose)
    with pytest.raises(QuireError, match="nope"):
        propose(ws, run="nope")


def test_what_is_not_committed_is_said(repo: Scratch, ws: Workspace) -> None:
    changed(repo, ws, run=False)
    with (repo.root / "notebooks/sum.py").open("a") as file:
        file.write("1\n")
    (warning,) = propose(ws).warnings
    assert warning == "notebooks/sum.py has changes that are not committed; they are not proposed"


def test_a_workspace_below_the_top(repo: Scratch) -> None:
    repo.write("team/quire.toml", "")
    repo.write("team/notebooks/greet.py", GREET)
    team = Scratch(repo.root / "team")
    ws = workspace(team)
    commit(ws, ["notebooks/greet.py"], "Add greet")
    run_id = team.run("notebooks/greet.py")[1]["run_id"]
    done = propose(ws)
    assert [t.file.path for t in done.tasks] == ["team/notebooks/greet.py"]
    assert run_id in done.proposal.body
    assert "$ cd team\n$ quire run notebooks/greet.py" in done.proposal.body
    team.quire("host", "stop")


# What cannot be proposed.


@pytest.mark.parametrize(
    ("title", "why"),
    [
        ("", "is empty"),
        (" ", "is empty"),
        ("a\nb", "line break"),
        ("\x1b[1m", "control"),
        ("x" * 256, "has 256"),
    ],
)
def test_titles_that_cannot_be(repo: Scratch, ws: Workspace, title: str, why: str) -> None:
    changed(repo, ws, run=False)
    before = refs(repo)
    with pytest.raises(UsageError, match=why):
        propose(ws, title=title)
    assert refs(repo) == before


@pytest.mark.parametrize("title", ["--force", "-x", "a..b", "q\"uo'te $(x)", "größe ✓", "x" * 255])
def test_titles_that_can_be(repo: Scratch, ws: Workspace, title: str) -> None:
    changed(repo, ws, run=False)
    assert propose(ws, title=title).proposal.title == title


def test_branches_that_cannot_be(repo: Scratch, ws: Workspace) -> None:
    def refused(match: str, **given: str) -> None:
        before = refs(repo)
        with pytest.raises(UsageError, match=match):
            propose(ws, title="T", **given)
        assert refs(repo) == before

    refused("main is what proposals go to")
    repo.git("branch", "same")
    refused("same changes nothing that main does not have", branch="same")
    refused("there is no branch nowhere", branch="nowhere")
    refused("there is no branch nowhere", branch="same", base="nowhere")
    for name in ("-x", "a..b", "a b", "a\nb", "", "refs/heads/main"):
        refused("cannot be the name of a branch", branch=name)
        refused("cannot be the name of a branch", branch="same", base=name)
    repo.git("checkout", "--quiet", "--detach")
    refused("on no branch")
    repo.git("switch", "--quiet", "--orphan", "apart")
    repo.git("commit", "--quiet", "--allow-empty", "-m", "Apart")
    refused("no common history")
    repo.git("branch", "reports", "main")
    refused("holds the archive of runs", branch="reports")
    refused("at most 20,000", branch="same", body="x" * 20_001)
    refused("has the character", branch="same", body="\x1b[2J")


def test_repositories_that_cannot_be(repo: Scratch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not in a git repository"):
        propose(workspace(Scratch(tmp_path)), title="T")
    repo.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    with pytest.raises(UsageError, match="no working tree"):
        propose(workspace(Scratch(tmp_path / "bare")), title="T")


def test_from_a_worktree(repo: Scratch, ws: Workspace, tmp_path: Path) -> None:
    repo.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = Scratch(tmp_path / "side")
    side.write("notebooks/greet.py", GREET)
    commit(workspace(side), ["notebooks/greet.py"], "Add greet")
    done = propose(workspace(side))
    assert done.proposal.branch == "side"
    assert ws.forge.proposals()[0].number == done.proposal.number


# A forge with a server.


def test_a_server_gets_the_branch_and_the_notebook(
    repo: Scratch, ws: Workspace, tmp_path: Path
) -> None:
    forge = server(repo, ws, tmp_path / "server.git")
    run_id = changed(repo, ws)
    repo.git("push", "--quiet", "origin", "--delete", "include-n")
    done = propose(ws, title="Include n")
    assert done.proposal.url == f"{WEB}/pulls/1"
    assert forge.repository.resolve("refs/heads/include-n") == done.proposal.head
    assert done.warnings == ()
    address = f"{WEB}/files/{run_id}.ipynb"
    assert f"| Executed notebook | [`notebook.ipynb`](<{address}>) |" in done.proposal.body
    assert json.loads(forge.attached[f"{run_id}.ipynb"])["cells"]
    assert "$ git fetch origin include-n" in done.proposal.body
    (check,) = forge.proposal(1).checks
    assert (check.state, check.url) == ("success", address)
    forge.attached.clear()
    assert address in propose(ws).proposal.body
    assert not forge.attached
    repo.write("quire.toml", "[archive]\npush = true\n")
    pushing = workspace(repo)
    pushing.__dict__["forge"] = forge
    linked = propose(pushing).proposal.body
    tip = forge.repository.resolve("refs/heads/reports")
    assert f"(<{WEB}/src/commit/{tip}/runs/" in linked


def test_what_a_server_cannot_do_is_a_warning(repo: Scratch, ws: Workspace, tmp_path: Path) -> None:
    forge = server(repo, ws, tmp_path / "server.git")
    changed(repo, ws)
    forge.broken = {"attach", "set_check"}
    done = propose(ws, title="Include n")
    assert done.proposal.number == 1
    assert [warning.partition(":")[0] for warning in done.warnings] == [
        "the executed notebook was not attached",
        "the commit's status was not set",
    ]
    assert "`git show reports:runs/" in done.proposal.body


def test_a_branch_that_cannot_be_pushed_is_not_proposed(
    repo: Scratch, ws: Workspace, tmp_path: Path
) -> None:
    forge = server(repo, ws, tmp_path / "server.git")
    changed(repo, ws, run=False)
    other = repo.git("commit-tree", "-m", "theirs", "main^{tree}")
    repo.git("push", "--quiet", "--force", "origin", f"{other}:refs/heads/include-n")
    with pytest.raises(GitError, match="git push"):
        propose(ws, title="Include n")
    assert forge.proposals() == []


# The command.


def test_the_command(repo: Scratch, ws: Workspace) -> None:
    changed(repo, ws)
    done = repo.quire("propose", "--title", "Include n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[0] == "opened: proposal 1, include-n into main"
    assert lines[1].startswith("  notebooks/sum.py: ok, verified ")
    done = repo.quire("propose", "--json")
    told = json.loads(done.stdout)
    assert (told["number"], told["created"], told["state"]) == (1, False, "open")
    assert set(told) == {
        *("number", "url", "title", "branch", "base", "head", "state"),
        *("created", "tasks", "warnings"),
    }
    done = repo.quire("propose", "--branch", "nope", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "usage"
