"""A task with cells that wait is no work done, whichever way somebody takes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quire.ci.gate import gate
from quire.engine.resume import prepare
from quire.engine.run import NotebookExecutor, drained
from quire.errors import ForgeError, UsageError
from quire.review.commit import commit
from quire.review.look import review
from quire.review.merge_proposal import merge_proposal
from quire.review.propose import propose
from quire.workspace import Workspace
from scratch import Scratch

WAITS = 'raise NotImplementedError("the rule")'
TASK = f"""# %% [markdown]
# # Count

# %% parameters tags=["parameters"]
n: int = 3  # how many

# %% gather
items = list(range(n))

# %% decide
{WAITS}

# %% report
from quire.runtime import glue

glue("status", "ok")

# %% check
raise NotImplementedError
"""
SAID = "cells wait: decide, check"


@pytest.fixture
def ws(scratch: Scratch) -> Workspace:
    return Workspace(scratch.root, cwd=scratch.root, env=dict(os.environ))


def ran(ws: Workspace, text: str = TASK, name: str = "count.py") -> tuple[str, str, list[str]]:
    (ws.root / name).write_text(text)
    record = drained(NotebookExecutor(name, workspace=ws))
    assert "status" not in record.results
    ok = [cell.title for cell in record.cells if cell.status == "ok"]
    return record.outcome, record.reason, ok


def test_a_run_fails_at_the_first_cell_that_waits(ws: Workspace) -> None:
    assert ran(ws) == ("failed", SAID, ["parameters", "gather"])


@pytest.mark.parametrize("tag", ["skip-execution", "raises-exception", "approve"])
def test_no_tag_makes_it_work_done(ws: Workspace, tag: str) -> None:
    text = TASK.replace("# %% decide", f'# %% decide tags=["{tag}"]')
    assert ran(ws, text)[:2] == ("failed", SAID)


def test_a_notebook_and_a_logbook_are_no_other_case(ws: Workspace) -> None:
    cells = [
        {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None,
         "source": WAITS},
    ]  # fmt: skip
    nb = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    assert ran(ws, json.dumps(nb), "nb.ipynb")[0] == "failed"
    book = f"# Greet\n\n```python\nx = 1\n```\n\n## Decide\n\n```python\n{WAITS}\n```\n"
    outcome, reason, _ = ran(ws, book, "greet.md")
    assert (outcome, reason[:11]) == ("failed", "cells wait:")


def test_a_task_that_runs_it_hears_of_it(ws: Workspace) -> None:
    (ws.root / "count.py").write_text(TASK)
    outer = "# %%\nfrom quire.runtime import run\nrun('count.py')\n"
    outcome, reason, _ = ran(ws, outer, "outer.py")
    assert outcome == "failed"
    assert SAID in reason


def test_the_gate_fails(ws: Workspace) -> None:
    (ws.root / "notebooks").mkdir()
    (ws.root / "notebooks/count.py").write_text(TASK)
    result = gate(ws, everything=True, jobs=1)
    assert not result.ok
    assert SAID in result.tasks[0].error


def test_a_run_goes_on_when_the_cells_are_written(repo: Scratch) -> None:
    repo.write("count.py", TASK)
    code, told = repo.run("count.py")
    assert (code, told["error"]["value"]) == (1, SAID)
    for cell, left in (("decide", "cells wait: check"), ("check", "")):
        assert repo.quire("edit", "count.py", cell, "--source", "done = True").returncode == 0
        code, told = repo.run("count.py", "--resume", told["run_id"])
        assert (told["error"] or {"value": ""})["value"] == left
    assert (code, told["outcome"], told["results"]) == (0, "ok", {"status": "ok"})


def test_agents_and_sessions(repo: Scratch) -> None:
    repo.write("count.py", TASK)
    done = repo.quire("tools", "call", "notebook_execute", '{"path": "count.py"}')
    assert done.returncode == 1
    assert SAID in done.stdout
    assert repo.quire("session", "open", "count.py", "--name", "s").returncode == 0
    assert repo.quire("exec", "s", "all").returncode == 1
    # A cell that never ran there is not taken for one that did.
    skipped = TASK.replace("# %% decide", '# %% decide tags=["skip-execution"]')
    repo.write("skipped.py", skipped)
    assert repo.quire("session", "open", "skipped.py", "--name", "t").returncode == 0
    repo.quire("exec", "t", "gather")
    done = repo.quire("session", "promote", "t", "kept.py")
    assert done.returncode == 1
    assert not (repo.root / "kept.py").exists()


def test_nobody_can_skip_it(ws: Workspace) -> None:
    """Not even who may skip a step."""
    text = TASK.replace("# %% gather", '# %% gather tags=["approve"]').replace(
        "# %% decide", '# %% decide tags=["approve"]'
    )
    outcome, _, _ = ran(ws, text)
    assert outcome == "paused"
    record = drained(prepare(ws, "last", decision="skip")[0])
    assert (record.outcome, record.reason) == ("failed", SAID)


# Up for review


@pytest.fixture
def drafted(repo: Scratch) -> Workspace:
    """A branch with a draft, committed and run."""
    ws = Workspace(repo.root, cwd=repo.root, env=dict(os.environ))
    repo.write("notebooks/count.py", TASK)
    done = commit(ws, ["notebooks/count.py"], "Count")
    assert done.commit is not None
    assert done.warnings == (f"notebooks/count.py is a draft: {SAID}",)
    drained(NotebookExecutor("notebooks/count.py", workspace=ws))
    return ws


def test_a_draft_is_not_proposed_unless_it_is_said(drafted: Workspace, repo: Scratch) -> None:
    before = repo.git("for-each-ref")
    with pytest.raises(UsageError) as refused:
        propose(drafted, title="Count")
    assert refused.value.message == f"notebooks/count.py: {SAID}"
    assert "--draft" in str(refused.value.hint)
    asked = {"branch": "count", "title": "Count", "description": "It counts."}
    done = repo.quire("tools", "call", "notebook_pr", json.dumps(asked))
    assert done.returncode == 1
    assert "notebook_pr(draft=true" in done.stdout
    assert repo.git("for-each-ref") == before


def test_a_proposal_says_that_it_is_a_draft_until_it_is_none(
    drafted: Workspace, repo: Scratch
) -> None:
    found = propose(drafted, title="Count", draft=True).proposal
    assert found.title == "Draft: Count"
    assert "This is a draft. Cells wait to be written:** `decide`, `check`" in found.body
    assert propose(drafted, draft=True).proposal.title == "Draft: Count"
    seen = review(drafted, found.number)
    assert seen.problems[0] == f"notebooks/count.py is a draft: {SAID}"
    assert seen.as_dict()["tasks"][0]["waiting"] == ["decide", "check"]
    with pytest.raises(ForgeError, match="is a draft"):
        merge_proposal(drafted, found.number)

    written = TASK.replace(WAITS, "rule = 1").replace("raise NotImplementedError", "assert items")
    Path(repo.root / "notebooks/count.py").write_text(written)
    assert commit(drafted, ["notebooks/count.py"], "Write the cells").warnings == ()
    drained(NotebookExecutor("notebooks/count.py", workspace=drafted))
    with pytest.raises(UsageError, match="no draft"):
        propose(drafted, draft=True)
    found = propose(drafted).proposal
    assert found.title == "Count"
    assert "draft" not in found.body
    assert review(drafted, found.number).problems == ()


def test_a_title_that_somebody_gave_stays_as_it_is(repo: Scratch) -> None:
    ws = Workspace(repo.root, cwd=repo.root, env=dict(os.environ))
    repo.write("notebooks/fine.py", "# %%\n1 + 1\n")
    commit(ws, ["notebooks/fine.py"], "Add it")
    assert propose(ws, title="Draft: of a law").proposal.title == "Draft: of a law"
    assert propose(ws).proposal.title == "Draft: of a law"
