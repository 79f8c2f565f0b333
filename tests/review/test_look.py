"""`quire review` and `quire merge-proposal`: what is believed, and on whose word."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from forge_server import server
from quire.errors import ForgeError, GitError, UsageError
from quire.proof.trust import Trusted
from quire.proof.verify import verify_run
from quire.review.commit import commit
from quire.review.look import proposals, review, say
from quire.review.merge_proposal import merge_proposal
from quire.review.propose import propose
from quire.review.protocol import Check
from quire.workspace import Workspace
from scratch import Scratch

GREET = "# %% [markdown]\n# # Greet\n\n# %%\nprint('hello')\n"


@pytest.fixture
def ws(repo: Scratch) -> Workspace:
    return workspace(repo)


def workspace(repo: Scratch, **env: str) -> Workspace:
    return Workspace(repo.root, cwd=repo.root, env={**os.environ, **env})


def run(repo: Scratch, path: str = "notebooks/sum.py", **env: str) -> str:
    _, told = repo.run(path, "--no-host", env=env)
    return str(told["run_id"])


def edited(repo: Scratch, old: str = "range(n)", new: str = "range(n + 1)") -> None:
    path = repo.root / "notebooks/sum.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def proposed(repo: Scratch, ws: Workspace) -> tuple[str, str]:
    """Proposal 1, which changes the sum; the runs of main's version and of its own."""
    before = run(repo)
    edited(repo)
    commit(ws, ["notebooks/sum.py"], "Include n")
    after = run(repo)
    propose(ws, title="Include n")
    return before, after


def by_hand(repo: Scratch, message: str = "By hand") -> None:
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", message)


def notebook_of(ws: Workspace, run_id: str) -> dict[str, Any]:
    nb: dict[str, Any] = json.loads(ws.archive.files(run_id)["notebook.ipynb"])
    return nb


def test_it_shows_source_results_and_proof(repo: Scratch, ws: Workspace) -> None:
    before, after = proposed(repo, ws)
    seen = review(ws, 1)
    assert "-total = sum(range(n))\n+total = sum(range(n + 1))\n" in seen.diff
    assert ".ipynb" not in seen.diff
    (task,) = seen.tasks
    assert task.ran is not None
    assert task.before is not None
    assert (task.ran.run_id, task.before.run_id) == (after, before)
    assert task.proof is not None
    assert task.proof.ok
    assert task.comparison is not None
    (change,) = task.comparison.results
    assert (change.name, change.old, change.new) == ("total", 6, 10)
    assert (seen.problems, seen.warnings, seen.notebooks) == ((), (), ())


def test_it_says_when_nothing_was_run(repo: Scratch, ws: Workspace) -> None:
    edited(repo)
    commit(ws, ["notebooks/sum.py"], "Include n")
    propose(ws)
    seen = review(ws, 1)
    assert seen.problems == ("there is no archived run of this version of notebooks/sum.py",)
    assert (seen.tasks[0].ran, seen.warnings) == (None, ())
    assert repo.quire("review", "1").returncode == 1


def test_what_was_never_run_is_merged_only_by_force(repo: Scratch, ws: Workspace) -> None:
    """Else it would be enough not to run what would fail."""
    edited(repo)
    commit(ws, ["notebooks/sum.py"], "Include n")
    propose(ws)
    with pytest.raises(ForgeError, match=r"no archived run of this version of") as caught:
        merge_proposal(ws, 1)
    assert "on the branch include-n: quire run notebooks/sum.py, then" in caught.value.hint
    run(repo)
    assert review(ws, 1).problems == ()
    assert merge_proposal(ws, 1).warnings == ()
    edited(repo, "range(n + 1)", "range(n + 2)")
    commit(ws, ["notebooks/sum.py"], "Two more", branch="two-more")
    propose(ws)
    (warning,) = merge_proposal(ws, 2, force=True).warnings
    assert warning.startswith("merged all the same: there is no archived run")


def test_a_run_that_failed_is_in_the_way(repo: Scratch, ws: Workspace) -> None:
    edited(repo, "range(n)", "range(n / 0)")
    commit(ws, ["notebooks/sum.py"], "Break it")
    code, told = repo.run("notebooks/sum.py", "--no-host")
    assert code == 1
    propose(ws)
    seen = review(ws, 1)
    assert seen.problems == (f"the run {told['run_id']} of notebooks/sum.py failed",)
    with pytest.raises(ForgeError, match="failed"):
        merge_proposal(ws, 1)


def test_a_task_that_is_removed_needs_no_run(repo: Scratch, ws: Workspace) -> None:
    (repo.root / "notebooks/sum.py").unlink()
    commit(ws, ["notebooks/sum.py"], "Remove it")
    propose(ws)
    assert review(ws, 1).problems == ()
    merge_proposal(ws, 1)
    assert "notebooks/sum.py" not in repo.git("ls-tree", "-r", "--name-only", "main")


def test_a_run_that_does_not_verify_hides_none_that_does(
    repo: Scratch, ws: Workspace, tmp_path: Path
) -> None:
    """Whoever may write to the archive could put one of theirs on top."""
    ws.keys.trust(Trusted(ws.keys.own().public, "ada"))
    by_hand(repo, "Whom to trust")
    edited(repo)
    commit(ws, ["notebooks/sum.py"], "Include n")
    good = run(repo)
    propose(ws, title="Include n")
    theirs = run(repo, QUIRE_KEYS=str(tmp_path / "mallory"))
    seen = review(ws, 1)
    assert seen.tasks[0].ran is not None
    assert (seen.tasks[0].ran.run_id, seen.problems) == (good, ())
    note = f"a later run, {theirs}, does not verify: it does not count"
    assert seen.tasks[0].notes == (note,)
    assert f"note: {note}" in repo.quire("review", "1").stdout


def test_a_later_failure_is_noted(repo: Scratch, ws: Workspace) -> None:
    edited(repo, "total = ", "import os\n\nos.environ['GO']\ntotal = ")
    commit(ws, ["notebooks/sum.py"], "Needs GO")
    good = run(repo, GO="1")
    code, told = repo.run("notebooks/sum.py", "--no-host")
    assert code == 1
    propose(ws)  # shows the newest that verifies
    seen = review(ws, 1)
    assert seen.tasks[0].ran is not None
    assert seen.tasks[0].ran.run_id == told["run_id"]
    assert len(seen.problems) == 1
    again = run(repo, GO="1")
    assert review(ws, 1).tasks[0].notes == (
        f"a later run, {again}, went well: quire propose shows it",
    )
    propose(ws)
    seen = review(ws, 1)
    assert seen.tasks[0].ran is not None
    assert seen.tasks[0].ran.run_id == again
    assert (seen.problems, seen.tasks[0].notes) == ((), ())
    assert good != again


def test_a_text_of_an_earlier_version_is_said_to_be_one(repo: Scratch, ws: Workspace) -> None:
    proposed(repo, ws)
    old = review(ws, 1).proposal.head
    found, _ = say(ws, 1, "approve", "Good.")
    who = found.comments[0].author
    edited(repo, "range(n + 1)", "range(n + 2)")
    commit(ws, ["notebooks/sum.py"], "Two more")
    run(repo)
    seen = review(ws, 1)
    assert seen.described == old
    assert seen.warnings == (
        f"the proposal's text describes an earlier version ({old[:10]}): "
        "quire propose brings it up to date",
        f"{who} approved an earlier version ({old[:10]}), not this one",
    )
    text = repo.quire("review", "1").stdout
    assert f"approved an earlier version ({old[:10]})" in text
    propose(ws)
    say(ws, 1, "approve", "Still good.")
    assert review(ws, 1).warnings == ()


def test_without_a_run_of_mains_version_the_last_one_on_main_is_taken(
    repo: Scratch, ws: Workspace
) -> None:
    before = run(repo)
    edited(repo, "print(", "print('the', ")
    by_hand(repo, "On main")
    edited(repo)
    commit(ws, ["notebooks/sum.py"], "Include n")
    run(repo)
    propose(ws)
    found = review(ws, 1).tasks[0].before
    assert found is not None
    assert found.run_id == before


def test_a_key_that_the_proposal_brings_is_not_trusted(
    repo: Scratch, ws: Workspace, tmp_path: Path
) -> None:
    """On main, only the reviewer's key is on the list. The proposal adds the agent's."""
    ws.keys.trust(Trusted(ws.keys.own().public, "ada"))
    by_hand(repo, "Whom to trust")
    edited(repo)
    mallory = {"QUIRE_KEYS": str(tmp_path / "mallory")}
    commit(ws, ["notebooks/sum.py"], "Include n")
    ws.keys.trust(Trusted(workspace(repo, **mallory).keys.own().public, "mallory"))
    by_hand(repo, "Trust me")
    run_id = run(repo, **mallory)
    assert verify_run(ws, run_id).ok  # by the list that the proposal brings
    propose(ws, title="Include n")
    seen = review(ws, 1)
    assert seen.problems == (f"the run {run_id} of notebooks/sum.py does not verify",)
    assert "the change edits .quire-keys: it says whom this repository trusts" in seen.warnings
    assert "+ed25519 " in seen.diff
    with pytest.raises(ForgeError, match="does not verify"):
        merge_proposal(ws, 1)
    assert repo.quire("review", "1").returncode == 1


def test_outputs_that_no_run_produced_are_found(repo: Scratch, ws: Workspace) -> None:
    repo.git("switch", "--quiet", "-c", "forged")
    run_id = run(repo)
    nb = notebook_of(ws, run_id)
    stream = next(o for c in nb["cells"] for o in c.get("outputs", ()) if "text" in o)
    repo.write("shown/honest.ipynb", json.dumps(nb))
    stream["text"] = ["total 7000\n"]
    repo.write("shown/forged.ipynb", json.dumps(nb))
    repo.write("shown/excused.ipynb", json.dumps(nb))
    repo.write(".gitattributes", "shown/excused.ipynb quire=unproven\n")
    by_hand(repo)
    propose(ws, title="Show it")
    seen = review(ws, 1)
    assert sorted(nb.path for nb in seen.notebooks if nb.uncovered) == [
        "shown/excused.ipynb",  # by itself, which does not count
        "shown/forged.ipynb",
    ]
    assert len(seen.problems) == 2
    with pytest.raises(ForgeError, match=r"shown/forged\.ipynb shows what no archived run covers"):
        merge_proposal(ws, 1)
    assert repo.git("rev-list", "--count", "main") == "1"
    done = merge_proposal(ws, 1, force=True)
    assert any("shown/forged.ipynb" in warning for warning in done.warnings)


def test_main_may_excuse_a_notebook(repo: Scratch, ws: Workspace) -> None:
    repo.write(".gitattributes", "shown/*.ipynb quire=unproven\n")
    by_hand(repo, "Excuse them")
    repo.git("switch", "--quiet", "-c", "excused")
    nb = notebook_of(ws, run(repo))
    nb["cells"][-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["x"]}]
    repo.write("shown/a.ipynb", json.dumps(nb))
    by_hand(repo)
    propose(ws, title="Show it")
    assert review(ws, 1).problems == ()


def test_a_notebook_that_is_not_what_its_text_says(repo: Scratch, ws: Workspace) -> None:
    commit(ws, ["notebooks/sum.py"], "Its notebook", branch="main")
    repo.git("switch", "--quiet", "-c", "sly")
    path = repo.root / "notebooks/sum.ipynb"
    path.write_text(path.read_text().replace("sum(range(n))", "steal()"))
    by_hand(repo)
    propose(ws, title="Sly")
    seen = review(ws, 1)
    assert [(nb.path, nb.in_step) for nb in seen.notebooks] == [("notebooks/sum.ipynb", False)]
    with pytest.raises(ForgeError, match="does not say what"):
        merge_proposal(ws, 1)
    assert merge_proposal(ws, 1, force=True).regenerated == ("notebooks/sum.ipynb",)
    assert "steal()" not in repo.git("show", "main:notebooks/sum.ipynb")


def test_a_notebook_that_is_the_task_is_shown_as_text(repo: Scratch, ws: Workspace) -> None:
    nb = notebook_of(ws, run(repo))
    for cell in nb["cells"]:
        cell |= {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {}
    repo.write("notebooks/alone.ipynb", json.dumps(nb))
    by_hand(repo)
    repo.git("switch", "--quiet", "-c", "work")
    text = json.dumps(nb).replace("sum(range(n))", "max(range(n))")
    repo.write("notebooks/alone.ipynb", text)
    by_hand(repo)
    propose(ws, title="Alone")
    seen = review(ws, 1)
    assert "-total = sum(range(n))\n+total = max(range(n))\n" in seen.diff
    assert '"cell_type"' not in seen.diff


def test_a_strangers_text_does_nothing_to_a_terminal(repo: Scratch, ws: Workspace) -> None:
    edited(repo, '"total"', '"\x1b]0;evil\x07\x9b31m"')
    commit(ws, ["notebooks/sum.py"], "Odd")
    run(repo)
    propose(ws, title="Odd", body="\x9b2J gone \x9b1m")
    say(ws, 1, "comment", "over\rwritten \x9b31m")
    done = repo.quire("review", "1")
    assert done.returncode == 0, done.stderr
    assert "gone" in done.stdout
    assert not set(done.stdout + done.stderr) & set("\x1b\x07\x9b\r")


# Verdicts.


def test_verdicts(repo: Scratch, ws: Workspace) -> None:
    proposed(repo, ws)
    with pytest.raises(UsageError, match="nothing is said"):
        say(ws, 1, "request_changes", " ")
    say(ws, 1, "request_changes", "Off by one.")
    with pytest.raises(ForgeError, match="asked for changes"):
        merge_proposal(ws, 1, force=True)
    say(ws, 1, "comment", "Mended.")
    with pytest.raises(ForgeError, match="asked for changes"):
        merge_proposal(ws, 1)
    found, _ = say(ws, 1, "approve", "")
    assert [comment.verdict for comment in found.comments] == ["request_changes", None, "approve"]
    done = merge_proposal(ws, 1)
    assert repo.git("rev-parse", "main") == done.commit
    with pytest.raises(ForgeError, match="merged already"):
        merge_proposal(ws, 1)
    with pytest.raises(ForgeError, match="merged already"):
        say(ws, 1, "approve", "")
    say(ws, 1, "comment", "Thanks.")
    with pytest.raises(ForgeError, match="there is no proposal 7"):
        review(ws, 7)


def test_a_merged_proposal_still_shows_what_it_changed(repo: Scratch, ws: Workspace) -> None:
    proposed(repo, ws)
    shown = review(ws, 1).diff
    merge_proposal(ws, 1)
    seen = review(ws, 1)
    assert (seen.proposal.state, seen.diff) == ("merged", shown)


def test_lists(repo: Scratch, ws: Workspace) -> None:
    assert proposals(ws) == []
    proposed(repo, ws)
    repo.git("switch", "--quiet", "main")
    repo.write("notebooks/greet.py", GREET)
    commit(ws, ["notebooks/greet.py"], "Add greet")
    propose(ws)
    assert [p.number for p in proposals(ws)] == [2, 1]
    merge_proposal(ws, 1)
    assert [p.number for p in proposals(ws)] == [2]
    assert [p.number for p in proposals(ws, "merged")] == [1]
    assert [p.number for p in proposals(ws, None)] == [2, 1]


# Merging.


def test_merging_makes_notebooks_again(repo: Scratch, ws: Workspace) -> None:
    """Two proposals change different cells: git alone would not put the notebooks together."""
    commit(ws, ["notebooks/sum.py"], "Its notebook", branch="main")
    edited(repo)
    commit(ws, ["notebooks/sum.py"], "Include n")
    run(repo)
    propose(ws)
    repo.git("switch", "--quiet", "main")
    edited(repo, "Adds the", "Adds up the")
    commit(ws, ["notebooks/sum.py"], "Words")
    run(repo)
    propose(ws)
    repo.git("switch", "--quiet", "main")
    assert merge_proposal(ws, 1).regenerated == ()
    done = merge_proposal(ws, 2)
    assert done.regenerated == ("notebooks/sum.ipynb",)
    nb = json.loads((repo.root / "notebooks/sum.ipynb").read_text())
    text = "".join("".join(cell["source"]) for cell in nb["cells"])
    assert "range(n + 1)" in text
    assert "Adds up the" in text
    assert repo.git("status", "--porcelain") == ""
    assert repo.quire("sync", "notebooks", "--check").returncode == 0
    assert repo.git("rev-parse", "include-n", "words")  # both branches are still there


def test_a_task_without_a_notebook_gets_one(repo: Scratch, ws: Workspace) -> None:
    repo.git("switch", "--quiet", "-c", "work")
    repo.write("notebooks/greet.py", GREET)
    repo.write("notebooks/secret.py", GREET)
    repo.write(".gitignore", "secret.ipynb\n.quire\n")
    by_hand(repo)
    run(repo, "notebooks/greet.py")
    run(repo, "notebooks/secret.py")
    propose(ws)
    assert merge_proposal(ws, 1).regenerated == ("notebooks/greet.ipynb",)


def test_a_notebook_of_somebodys_own_is_left_alone(repo: Scratch, ws: Workspace) -> None:
    own = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'
    repo.write("notebooks/sum.ipynb", own)
    by_hand(repo)
    repo.git("switch", "--quiet", "-c", "work")
    edited(repo)
    by_hand(repo)
    run(repo)
    propose(ws)
    assert merge_proposal(ws, 1, force=True).regenerated == ()
    assert repo.git("show", "main:notebooks/sum.ipynb") + "\n" == own


def test_a_conflict_is_said_and_nothing_moves(repo: Scratch, ws: Workspace) -> None:
    edited(repo)
    commit(ws, ["notebooks/sum.py"], "One way")
    run(repo)
    propose(ws)
    repo.git("switch", "--quiet", "main")
    edited(repo, "range(n)", "range(2 * n)")
    commit(ws, ["notebooks/sum.py"], "On main", branch="main")
    before = repo.git("for-each-ref")
    with pytest.raises(ForgeError, match=r"conflicts with main in notebooks/sum\.py") as caught:
        merge_proposal(ws, 1)
    assert "git switch one-way && git merge main" in caught.value.hint
    assert repo.git("for-each-ref") == before
    assert repo.git("status", "--porcelain") == ""


def test_a_failing_check_is_in_the_way(repo: Scratch, ws: Workspace) -> None:
    proposed(repo, ws)
    head = repo.git("rev-parse", "include-n")
    ws.forge.set_check(head, Check("quire/ci", "pending"))
    ws.forge.set_check(head, Check("other", "failure", "broken"))
    with pytest.raises(ForgeError, match="the check other says failure"):
        merge_proposal(ws, 1)
    ws.forge.set_check(head, Check("other", "success"))
    assert merge_proposal(ws, 1).warnings == ("the check quire/ci has not ended",)


def test_files_in_the_way_stop_it(repo: Scratch, ws: Workspace) -> None:
    proposed(repo, ws)
    repo.git("switch", "--quiet", "main")
    edited(repo, "Adds the", "Mine: adds the")
    before = repo.git("for-each-ref")
    with pytest.raises((ForgeError, GitError), match=r"sum\.py"):
        merge_proposal(ws, 1)
    assert repo.git("for-each-ref") == before
    assert "Mine: adds the" in (repo.root / "notebooks/sum.py").read_text()


def test_a_proposal_is_withdrawn(repo: Scratch, ws: Workspace) -> None:
    proposed(repo, ws)
    done = repo.quire("close-proposal", "1")
    assert done.stdout == "closed: proposal 1; its branch include-n stays\n", done.stderr
    assert [p.number for p in proposals(ws, "closed")] == [1]
    assert repo.git("rev-parse", "include-n")
    with pytest.raises(ForgeError, match="closed"):
        merge_proposal(ws, 1)
    assert repo.quire("close-proposal", "1").returncode == 2
    told = propose(ws, title="Again")
    assert (told.created, told.proposal.number) == (True, 2)


# A remote without a server: whoever merges there is to know what was said here.


def test_verdicts_travel(repo: Scratch, ws: Workspace, tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    repo.git("init", "--quiet", "--bare", str(hub))
    repo.git("remote", "add", "origin", str(hub))
    repo.git("push", "--quiet", "-u", "origin", "main")
    proposed(repo, ws)
    repo.git("push", "--quiet", "origin", "reports")
    repo.git("clone", "--quiet", "--branch", "main", str(hub), "../clone")
    clone = Scratch(tmp_path / "clone")
    clone.git("config", "user.name", "Rita")
    clone.git("config", "user.email", "rita@example.org")
    assert clone.quire("push").returncode == 0
    theirs = workspace(clone)
    _, warnings = say(theirs, 1, "request_changes", "Off by one.")
    assert warnings == ()
    with pytest.raises(ForgeError, match="Rita asked for changes"):
        merge_proposal(ws, 1)
    say(theirs, 1, "approve", "")
    done = merge_proposal(ws, 1)
    assert repo.git("ls-remote", str(hub), "refs/heads/main").split()[0] == done.commit
    hub.rename(tmp_path / "gone.git")
    _, warnings = say(ws, 1, "comment", "Thanks.")
    assert len(warnings) == 1
    assert warnings[0].startswith("not sent yet: ")
    assert warnings[0].endswith("; then: quire push")


# A forge with a server.


def test_a_reviewers_clone_fetches_what_it_needs(
    repo: Scratch, ws: Workspace, tmp_path: Path
) -> None:
    forge = server(repo, ws, tmp_path / "server.git")
    proposed(repo, ws)
    repo.git("push", "--quiet", "origin", "reports")
    repo.git("clone", "--quiet", "--branch", "main", str(tmp_path / "server.git"), "../clone")
    clone = Scratch(tmp_path / "clone")
    clone.git("remote", "set-branches", "origin", "main")
    clone.git("branch", "reports", "origin/reports")
    clone.git("update-ref", "-d", "refs/remotes/origin/include-n")
    theirs = workspace(clone)
    theirs.__dict__["forge"] = forge
    seen = review(theirs, 1)
    assert seen.tasks[0].proof is not None
    assert seen.tasks[0].comparison is not None
    assert "+total = sum(range(n + 1))" in seen.diff
    assert clone.git("status", "--porcelain") == ""


def test_a_server_merges_and_notebooks_follow(repo: Scratch, ws: Workspace, tmp_path: Path) -> None:
    forge = server(repo, ws, tmp_path / "server.git")
    repo.git("switch", "--quiet", "-c", "work")
    repo.write("notebooks/greet.py", GREET)
    by_hand(repo)
    run(repo, "notebooks/greet.py")
    propose(ws)
    done = merge_proposal(ws, 1)
    assert (done.regenerated, done.warnings) == (("notebooks/greet.ipynb",), ())
    tip = forge.repository.resolve("refs/heads/main")
    assert tip is not None
    assert forge.repository.is_ancestor(done.commit, tip)
    data = forge.repository.blob(tip, "notebooks/greet.ipynb")
    assert data is not None
    assert "hello" in data.decode()
    assert repo.git("rev-parse", "refs/remotes/origin/main") == tip


# The commands.


def test_the_commands(repo: Scratch, ws: Workspace) -> None:
    before, after = proposed(repo, ws)

    def said(*args: str, code: int = 0) -> str:
        done = repo.quire(*args)
        assert done.returncode == code, done.stderr
        return done.stdout

    told = json.loads(said("proposals", "--json"))
    assert [(one["number"], one["branch"]) for one in told] == [(1, "include-n")]
    assert said("proposals") == "   1  open    include-n  Include n\n"
    text = said("review", "1")
    for line in (
        "1: Include n",
        "-total = sum(range(n))",
        f"against {before}, the last run on the base:",
        "      total: 6 -> 10",
    ):
        assert line in text.split("\n")
    assert f"verified {after}" in text
    shown = json.loads(said("review", "1", "--json"))
    assert shown["tasks"][0]["proof"]["verified"] is True
    assert shown["tasks"][0]["comparison"]["results"] == [
        {"name": "total", "kind": "json", "old": 6, "new": 10}
    ]
    said("review", "1", "--approve", "--comment", "x", code=2)
    said("review", "1", "-m", "x", code=2)
    said("review", "0", code=2)
    assert said("review", "1", "--request-changes", "Why?") == "requested changes of proposal 1\n"
    said("merge-proposal", "1", code=2)
    assert said("review", "1", "--approve", "-m", "Ah.") == "approved proposal 1\n"
    merged = json.loads(said("merge-proposal", "1", "--json"))
    assert merged["commit"] == repo.git("rev-parse", "main")
    assert said("proposals", "--state", "merged").split()[:2] == ["1", "merged"]
