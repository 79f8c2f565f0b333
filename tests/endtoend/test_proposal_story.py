"""A change from the first line to main, as an agent and a reviewer live it: only commands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scratch import Scratch

TASK = """# %% [markdown]
# # Report the squares
#
# Lists the squares below a number.

# %% tags=["parameters"]
limit: int = 5  # how many

# %% work
from quire.runtime import glue

squares = [x * x for x in range(1, limit)]
glue("count", len(squares))
glue("largest", max(squares))
"""


class Story:
    def __init__(self, repo: Scratch) -> None:
        self.repo = repo

    def tell(self, *args: str, code: int = 0, **env: str) -> str:
        done = self.repo.quire(*args, env=env)
        assert done.returncode == code, f"{args}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def ask(self, *args: str, code: int = 0) -> Any:
        done = self.repo.quire(*args, "--json")
        assert done.returncode == code, f"{args}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)


@pytest.fixture
def story(repo: Scratch) -> Story:
    return Story(repo)


def test_from_the_first_line_to_main(repo: Scratch, story: Story) -> None:
    reviewer = {"GIT_AUTHOR_NAME": "Rita", "GIT_AUTHOR_EMAIL": "rita@example.org"}
    # An agent writes a task on main and commits it; somebody's notes are not its business.
    repo.write("notes.txt", "not for git\n")
    repo.write("notebooks/squares.py", TASK)
    done = story.ask("commit", "notebooks/squares.py", "-m", "Report the squares")
    assert (done["branch"], done["created"]) == ("report-the-squares", True)
    assert done["paths"] == ["notebooks/squares.ipynb", "notebooks/squares.py"]
    first = story.ask("run", "notebooks/squares.py", "-p", "limit", "6")
    opened = story.ask("propose", "--title", "Report the squares", "--body", "For the report.")
    assert (opened["number"], opened["created"], opened["state"]) == (1, True, "open")
    assert opened["tasks"][0]["run_id"] == first["run_id"]
    assert opened["tasks"][0]["verified"] is True

    # A reviewer sees all that there is to see, and asks for something.
    text = story.tell("review", "1")
    assert "+squares = [x * x for x in range(1, limit)]" in text
    assert f"verified {first['run_id']}" in text
    assert "| `largest` | `25` |" in text
    assert "For the report." in text
    story.tell("review", "1", "--request-changes", "Below, so with 0.", **reviewer)
    refused = story.tell("merge-proposal", "1", code=2)
    assert "Rita asked for changes" in refused

    # The agent mends it. Until it has run, the proposal has nothing to show for it.
    repo.write("notebooks/squares.py", TASK.replace("range(1, limit)", "range(limit)"))
    done = story.ask("commit", "notebooks/squares.py", "-m", "Begin with 0")
    assert (done["branch"], done["created"]) == ("report-the-squares", False)
    seen = story.ask("review", "1", code=1)
    assert seen["tasks"][0]["run_id"] is None
    missing = "there is no archived run of this version of notebooks/squares.py"
    assert seen["problems"] == [missing]
    second = story.ask("run", "notebooks/squares.py", "-p", "limit", "6")
    updated = story.ask("propose")
    assert (updated["number"], updated["created"]) == (1, False)
    assert updated["tasks"][0]["run_id"] == second["run_id"]

    # The reviewer looks again, approves and merges.
    seen = story.ask("review", "1")
    assert "range(limit)" in seen["diff"]
    assert [check["state"] for check in seen["checks"]] == ["success"]
    assert [(c["author"], c["verdict"]) for c in seen["comments"]] == [("Rita", "request_changes")]
    assert seen["tasks"][0]["proof"]["verified"] is True
    assert seen["problems"] == []
    assert "For the report." in seen["body"]
    story.tell("review", "1", "--approve", "-m", "Good.", **reviewer)
    merged = story.ask("merge-proposal", "1")

    # Main has both files, in step, and nothing else moved.
    repo.git("switch", "--quiet", "main")
    assert repo.git("rev-parse", "HEAD") == merged["commit"]
    assert "range(limit)" in (repo.root / "notebooks/squares.py").read_text()
    nb = json.loads((repo.root / "notebooks/squares.ipynb").read_text())
    assert any("range(limit)" in "".join(cell["source"]) for cell in nb["cells"])
    assert not any(cell.get("outputs") for cell in nb["cells"])
    story.tell("sync", "notebooks/squares.py", "--check")
    assert repo.git("status", "--porcelain") == "?? notes.txt"
    assert repo.git("rev-parse", "--verify", "report-the-squares")
    assert [p["number"] for p in story.ask("proposals", "--state", "merged")] == [1]
    story.tell("verify", "--all")
    assert repo.git("fsck", "--strict", "--no-dangling") == ""

    # A later change is measured against what main did.
    repo.write("notebooks/squares.py", TASK.replace("range(1, limit)", "range(limit + 1)"))
    story.tell("commit", "notebooks/squares.py", "-m", "One more", "--branch", "one-more")
    story.tell("run", "notebooks/squares.py", "-p", "limit", "6")
    story.tell("propose")
    (task,) = story.ask("review", "2")["tasks"]
    assert task["before"] == second["run_id"]
    assert {c["name"]: (c["old"], c["new"]) for c in task["comparison"]["results"]} == {
        "count": (6, 7),
        "largest": (25, 36),
    }


def test_a_forged_output_does_not_get_to_main(repo: Scratch, story: Story) -> None:
    repo.write("notebooks/squares.py", TASK)
    story.tell("commit", "notebooks/squares.py", "-m", "Report the squares")
    told = story.ask("run", "notebooks/squares.py")
    executed = json.loads(repo.git("show", f"reports:{_place(told['run_id'])}/notebook.ipynb"))
    # An agent pastes an output that no kernel ever gave.
    for cell in executed["cells"]:
        for output in cell.get("outputs", ()):
            text = json.dumps(output).replace(": 16", ": 999")
            output.clear()
            output.update(json.loads(text))
    assert "999" in json.dumps(executed)
    repo.write("reports/squares.ipynb", json.dumps(executed, indent=1))
    repo.git("add", "reports")
    repo.git("commit", "--quiet", "-m", "Show what it says")
    story.tell("propose", "--title", "Report the squares")
    text = story.tell("review", "1", code=1)
    assert "problem: reports/squares.ipynb shows what no archived run covers" in text
    refused = story.tell("merge-proposal", "1", code=2)
    assert "--force" in refused
    assert repo.git("log", "--format=%s", "main") == "Begin"


def _place(run_id: str) -> str:
    return f"runs/{run_id[:4]}/{run_id[5:7]}/{run_id[8:10]}/{run_id}"
