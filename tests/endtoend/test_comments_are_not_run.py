"""Commands in comments of a plain `.py` run nowhere: the file they would delete stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gitworld import ready, told, world

from quire.task import notebook_twin
from scratch import Scratch

__all__ = ["ready", "world"]  # fixtures

COMMENTS = """\
# ! rm data/keep.csv
# !rm data/keep.csv
# y = !rm data/keep.csv
# ? text
# %time __import__("os").remove("data/keep.csv")
# %sx rm data/keep.csv
# rm data/keep.csv
"""
TASK = f"""\
# %% tags=["parameters"]
{COMMENTS}n: int = 1  # how many

# %% work
{COMMENTS}print("n", n)

# %%
# %%bash
# rm data/keep.csv

# %% language="bash"
# rm data/keep.csv

# %% tags=["active-ipynb"]
# __import__("os").remove("data/keep.csv")

# %% quire={{"source": "!rm data/keep.csv"}}
"""
HEADER = """\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

"""


@pytest.fixture
def place(scratch: Scratch) -> Scratch:
    scratch.write("data/keep.csv", "1,2\n")
    scratch.write("t.py", TASK)
    return scratch


def kept(place: Scratch) -> bool:
    return (place.root / "data/keep.csv").exists()


def sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def ok(place: Scratch, *args: str) -> str:
    done = place.quire(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kernel", [[], ["--kernel", "python3"]], ids=["native", "jupyter"])
def test_a_run_leaves_them_alone(place: Scratch, kernel: list[str]) -> None:
    assert "n" in ok(place, "params", "t.py")
    code, told = place.run("t.py", "-p", "n", "2", *kernel)
    assert (code, told["outcome"]) == (0, "ok")
    assert kept(place)


def test_under_the_header_they_are_the_commands_they_were(place: Scratch) -> None:
    place.write("t.py", HEADER + "# %%\n# !rm data/keep.csv\n# # !rm data/other.csv\n")
    place.write("data/other.csv", "")
    assert place.run("t.py")[0] == 0
    assert [path.name for path in (place.root / "data").iterdir()] == ["other.csv"]


def test_a_session_and_what_is_promoted_leave_them_alone(place: Scratch) -> None:
    ok(place, "session", "open", "t.py", "--name", "s")
    ok(place, "exec", "s", "all")
    ok(place, "exec", "s", "--code", COMMENTS)
    ok(place, "edit", "t.py", "work", "--find", "print(", "--replace", "print( ")
    ok(place, "exec", "s", "stale")
    ok(place, "session", "promote", "s", "clean.py")
    assert place.run("clean.py")[0] == 0
    assert kept(place)


def test_the_way_through_a_notebook_and_back_makes_no_command(place: Scratch) -> None:
    py, nb = place.root / "t.py", place.root / "t.ipynb"
    ok(place, "sync", "t.py")
    before = sources(nb)
    assert before[1] == COMMENTS + 'print("n", n)'
    assert place.run("t.ipynb")[0] == 0
    # The text is made again from the notebook: it says how comments are written there.
    py.unlink()
    ok(place, "sync", "t.ipynb")
    assert place.run("t.py")[0] == 0
    nb.unlink()
    ok(place, "sync", "t.py")
    assert sources(nb) == before
    assert kept(place)


def test_a_command_from_the_notebook_leaves_the_comments_beside_it(place: Scratch) -> None:
    place.write("t.py", "# %% one\n# !rm data/keep.csv\na  =  1\n\n# %% two\nb = 2\n")
    py, nb = place.root / "t.py", place.root / "t.ipynb"
    ok(place, "sync", "t.py")
    data = json.loads(nb.read_text())
    data["cells"][1]["source"] = "!touch data/made.csv\n# !rm data/keep.csv"
    here = notebook_twin.loads(py.read_text(), ".py")
    py.write_text(notebook_twin.python_text(here, notebook_twin.loads(json.dumps(data), ".ipynb")))
    assert py.read_text().startswith("# ---\n# jupyter:\n")
    assert place.run("t.py")[0] == 0
    assert kept(place)
    assert (place.root / "data/made.csv").exists()
    nb.unlink()
    ok(place, "sync", "t.py")
    assert sources(nb)[1] == "!touch data/made.csv\n# !rm data/keep.csv"


def test_a_logbook_leaves_them_alone(place: Scratch) -> None:
    place.write("book.md", f"# A book\n\n```python\n{COMMENTS}x = 1\n```\n")
    assert place.run("book.md")[0] == 0
    assert kept(place)


def test_commits_checkouts_and_merges_make_no_command(ready: Scratch) -> None:
    ready.write("data/keep.csv", "1,2\n")
    path, nb = ready.write("notebooks/t.py", TASK), ready.root / "notebooks/t.ipynb"
    ok(ready, "commit", "notebooks/t.py", "-m", "Add a task")
    before = sources(nb)
    assert before[1] == COMMENTS + 'print("n", n)'
    told(ready, "checkout", "-q", "-b", "other")
    path.write_text(TASK.replace('"n", n', '"N", n'))
    told(ready, "add", "notebooks/t.py")
    told(ready, "commit", "-q", "-m", "Text only")
    told(ready, "checkout", "-q", "-")
    told(ready, "merge", "-q", "--no-edit", "other")
    assert path.read_text() == TASK.replace('"n", n', '"N", n')
    ok(ready, "sync", "notebooks")  # git keeps the notebook, so no hook writes it
    assert sources(nb) == [source.replace('"n", n', '"N", n') for source in before]
    assert ready.run("notebooks/t.ipynb")[0] == 0
    assert kept(ready)
