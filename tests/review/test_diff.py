"""`quire diff`: two runs, and two versions of a notebook."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

from quire.errors import UsageError
from quire.git import nbdime_process
from quire.review.diff import Version, diff_versions
from quire.workspace import Workspace
from scratch import QUIRE, Scratch

TASK = """# %% tags=["parameters"]
n: int = 4

# %% add
from quire.runtime import glue
total = sum(range(n))
print("total", total)
glue("total", total)

# %% clock{tags}
import time
print(time.time_ns())
"""


def notebook(*cells: dict[str, Any], **metadata: Any) -> str:
    nb = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(nb)


def code(source: str, *outputs: dict[str, Any], count: int | None = None, **rest: Any) -> Any:
    cell = {"cell_type": "code", "id": "c", "metadata": {}, "source": source}
    return cell | {"outputs": list(outputs), "execution_count": count} | rest


def printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def without_nbdime(scratch: Scratch) -> dict[str, str]:
    """As for somebody who has not installed it."""
    return {"QUIRE_NBDIME_PYTHON": "", "XDG_DATA_HOME": str(scratch.root / "nothing")}


# Runs.


def test_two_runs_with_other_parameters(scratch: Scratch) -> None:
    scratch.write("a.py", TASK.format(tags=' tags=["volatile"]'))
    _, one = scratch.run("a.py")
    _, two = scratch.run("a.py", "-p", "n", "5")
    done = scratch.quire("diff", one["run_id"], two["run_id"])
    assert done.returncode == 1, done.stderr
    assert "n: 4 -> 5" in done.stdout
    assert "total: 6 -> 10" in done.stdout
    assert "-total 6" in done.stdout
    assert "+total 10" in done.stdout
    assert "(volatile" in done.stdout
    assert "duration" not in done.stdout
    assert done.stdout.endswith("different\n")
    assert "duration" in scratch.quire("diff", one["run_id"], two["run_id"], "--all").stdout


def test_equal_up_to_volatile_cells_is_no_difference(scratch: Scratch) -> None:
    scratch.write("a.py", TASK.format(tags=' tags=["volatile"]'))
    scratch.run("a.py")
    scratch.run("a.py")
    done = scratch.quire("diff", "last", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["verdict"]) == (0, "volatile")
    assert [cell["volatile"] for cell in told["cells"]] == [True]


def test_a_clock_without_the_tag_is_a_difference(scratch: Scratch) -> None:
    scratch.write("a.py", TASK.format(tags=""))
    scratch.run("a.py")
    scratch.run("a.py")
    done = scratch.quire("diff", "last", "--json")
    assert done.returncode == 1
    assert [cell["new"]["title"] for cell in json.loads(done.stdout)["cells"]] == ["clock"]


def test_one_run_is_compared_with_the_one_of_its_task_before_it(scratch: Scratch) -> None:
    scratch.write("a.py", "# %%\nprint(1)\n")
    scratch.write("b.py", "# %%\nprint(2)\n")
    _, first = scratch.run("a.py")
    scratch.run("b.py")
    scratch.write("a.py", "# %%\nprint(1)\nprint(3)\n")
    _, last = scratch.run("a.py")
    told = json.loads(scratch.quire("diff", "last", "--json").stdout)
    assert (told["old"], told["new"]) == (first["run_id"], last["run_id"])
    change = told["cells"][0]["about"][0]
    assert (change["name"], change["new"]) == ("source", "print(1)\nprint(3)")
    done = scratch.quire("diff", first["run_id"])
    assert done.returncode == 2
    assert "no run of a.py before" in done.stderr


def test_archived_runs_whose_folders_are_gone(repo: Scratch) -> None:
    _, one = repo.run("notebooks/sum.py")
    _, two = repo.run("notebooks/sum.py", "-p", "n", "9")
    local = repo.quire("diff", one["run_id"], two["run_id"], "--json")
    assert local.returncode == 1
    for told in (one, two):
        folder = Path(told["notebook"]).parent
        folder.rename(repo.root / folder.name)
    archived = repo.quire("diff", one["run_id"], two["run_id"], "--json")
    assert archived.stdout == local.stdout
    assert repo.quire("diff", two["run_id"], "--json").stdout == local.stdout


def test_a_run_that_is_not_there(scratch: Scratch) -> None:
    done = scratch.quire("diff", "2020-01-01", "last", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "run_not_found"


@pytest.mark.parametrize("args", [(), ("a.ipynb",), ("a.ipynb", "last"), ("last", "a.py")])
def test_what_cannot_be_compared(scratch: Scratch, args: tuple[str, ...]) -> None:
    done = scratch.quire("diff", *args)
    assert done.returncode == 2
    assert "hint:" in done.stderr


# Notebooks.


def test_notebooks_that_differ_only_in_noise(scratch: Scratch) -> None:
    one = code("x = 1", printed("1\n"), count=3, metadata={"collapsed": True})
    two = code("x = 1", printed("1\n"), count=9, id="d", metadata={"papermill": {"duration": 1}})
    scratch.write("a.ipynb", notebook(one, language_info={"version": "3.11"}))
    scratch.write("b.ipynb", notebook(two, language_info={"version": "3.12"}))
    done = scratch.quire("diff", "a.ipynb", "b.ipynb", env=without_nbdime(scratch))
    assert (done.returncode, done.stdout) == (0, "equal\n")


def test_noise_is_shown_when_asked_for(scratch: Scratch, nbdime: Path) -> None:
    scratch.write("a.ipynb", notebook(code("x = 1", count=3)))
    scratch.write("b.ipynb", notebook(code("x = 1", count=9)))
    done = scratch.quire("diff", "a.ipynb", "b.ipynb", "--all")
    assert done.returncode == 1, done.stderr
    assert "execution_count" in done.stdout


def test_notebooks_cell_by_cell(scratch: Scratch, nbdime: Path) -> None:
    scratch.write("a.ipynb", notebook(code("x = 1\ny = 2\nprint(x)", printed("1\n"))))
    changed = code("x = 1\ny = 3\nprint(x)", printed("2\n"), metadata={"tags": ["volatile"]})
    scratch.write("b.ipynb", notebook(changed))
    done = scratch.quire("diff", "a.ipynb", "b.ipynb")
    assert done.returncode == 1, done.stderr
    rows = done.stdout.splitlines()
    assert rows[:2] == ["--- a.ipynb", "+++ b.ipynb"]
    assert "## modified /cells/0/source:" in rows
    assert "-  y = 2" in rows
    assert "+  y = 3" in rows
    assert "volatile" in done.stdout
    assert "\x1b" not in done.stdout
    assert "/tmp" not in done.stdout


def test_notebooks_as_data(scratch: Scratch, nbdime: Path) -> None:
    scratch.write("a.ipynb", notebook(code("x = 1")))
    scratch.write("b.ipynb", notebook(code("x = 2")))
    told = json.loads(scratch.quire("diff", "a.ipynb", "b.ipynb", "--json").stdout)
    assert told["verdict"] == "different"
    assert told["operations"][0]["key"] == "cells"


def test_a_text_and_the_notebook_made_from_it(scratch: Scratch, nbdime: Path) -> None:
    scratch.write("a.py", '# %% tags=["parameters"]\nn = 1\n\n# %% [markdown]\n# Hello\n')
    assert scratch.quire("sync", "a.py").returncode == 0
    nb = json.loads((scratch.root / "a.ipynb").read_text())
    nb["cells"][0] |= {"outputs": [printed("out\n")], "execution_count": 1}
    scratch.write("a.ipynb", json.dumps(nb))
    done = scratch.quire("diff", "a.py", "a.ipynb", env=without_nbdime(scratch))
    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr
    scratch.write("a.py", '# %% tags=["parameters"]\nn = 2\n\n# %% [markdown]\n# Hello\n')
    done = scratch.quire("diff", "a.py", "a.ipynb")
    assert done.returncode == 1
    assert "-  n = 2" in done.stdout


def test_two_texts_need_no_nbdime(scratch: Scratch) -> None:
    scratch.write("a.py", "# %%\nx = 1\n")
    scratch.write("b.py", "# %%\nx = 2\n")
    done = scratch.quire("diff", "a.py", "b.py", env=without_nbdime(scratch))
    assert done.returncode == 1
    assert "-x = 1\n+x = 2\n" in done.stdout


def test_versions_in_git(repo: Scratch, nbdime: Path) -> None:
    repo.write("notebooks/x.ipynb", notebook(code("x = 1")))
    repo.git("add", "-f", ".")
    repo.git("commit", "--quiet", "-m", "Two")
    repo.write("notebooks/x.ipynb", notebook(code("x = 2")))
    done = repo.quire("diff", "main:notebooks/x.ipynb", "notebooks/x.ipynb")
    assert done.returncode == 1, done.stderr
    assert "+  x = 2" in done.stdout
    assert repo.quire("diff", "HEAD:notebooks/sum.py", "HEAD~1:notebooks/sum.py").returncode == 0
    from_below = subprocess.run(
        [*QUIRE, "diff", "HEAD:./x.ipynb", "x.ipynb"],
        cwd=repo.root / "notebooks",
        env=repo.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert from_below.returncode == 1, from_below.stderr


@pytest.mark.parametrize(
    "name",
    [
        "--upload-pack=x:notebooks/sum.py",
        "-x:notebooks/sum.py",
        "main:../../etc/x.py",
        "main:/etc/x.py",
        "main:nothing.py",
        "nowhere:notebooks/sum.py",
        "main\n:notebooks/sum.py",
        ":notebooks/sum.py",
        "main:",
        "$(touch owned):x.py",
        "nothing.py",
        "a\0b.py",
    ],
)
def test_names_that_are_none(repo: Scratch, name: str) -> None:
    workspace = Workspace(repo.root, cwd=repo.root)
    from quire.errors import QuireError
    from quire.review.diff import version

    with pytest.raises(QuireError) as caught:
        version(workspace, name)
    assert caught.value.hint
    assert not (repo.root / "owned").exists()


def test_broken_notebooks(scratch: Scratch, nbdime: Path) -> None:
    scratch.write("a.ipynb", notebook(code("x = 1")))
    scratch.write("b.ipynb", "<<<<<<< not JSON")
    done = scratch.quire("diff", "a.ipynb", "b.ipynb")
    assert done.returncode == 2
    assert "b.ipynb: the notebook is not valid JSON" in done.stderr


def test_a_notebook_cannot_speak_to_the_terminal(scratch: Scratch, nbdime: Path) -> None:
    scratch.write("a.ipynb", notebook(code("x = 1")))
    scratch.write("b.ipynb", notebook(code("x = 1\n# \x1b]0;owned\x07\x1b[2J\x9b31m")))
    done = scratch.quire("diff", "a.ipynb", "b.ipynb")
    assert done.returncode == 1
    assert not [char for char in done.stdout if ord(char) < 32 and char != "\n"]
    assert "\x9b" not in done.stdout


def on_a_terminal(scratch: Scratch, *args: str, **env: str) -> str:
    main, side = pty.openpty()
    world = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | env
    with subprocess.Popen([*QUIRE, *args], cwd=scratch.root, env=world, stdout=side) as process:
        os.close(side)
        said = b""
        while True:
            try:
                piece = os.read(main, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            said += piece
        process.wait(60)
    os.close(main)
    return said.decode()


def test_colours_only_for_people_who_want_them(scratch: Scratch) -> None:
    scratch.write("a.py", "# %%\nx = 1\n")
    scratch.write("b.py", "# %%\nx = 2\n")
    assert "\x1b[31m-x = 1" in on_a_terminal(scratch, "diff", "a.py", "b.py")
    assert "\x1b" not in on_a_terminal(scratch, "diff", "a.py", "b.py", NO_COLOR="1")


# nbdime.


def test_nbdime_that_is_not_there(scratch: Scratch) -> None:
    scratch.write("a.ipynb", notebook(code("x = 1")))
    scratch.write("b.ipynb", notebook(code("x = 2")))
    done = scratch.quire("diff", "a.ipynb", "b.ipynb", env=without_nbdime(scratch))
    assert done.returncode == 2
    assert "needs nbdime" in done.stderr
    assert "quire diff --install-nbdime" in done.stderr


def test_an_interpreter_without_nbdime(scratch: Scratch) -> None:
    scratch.write("a.ipynb", notebook(code("x = 1")))
    scratch.write("b.ipynb", notebook(code("x = 2")))
    for python, said in ((QUIRE[0], "has no nbdime"), ("/no/such/python", "names no interpreter")):
        done = scratch.quire("diff", "a.ipynb", "b.ipynb", env={"QUIRE_NBDIME_PYTHON": python})
        assert done.returncode == 2
        assert said in done.stderr


def test_what_cannot_be_installed_leaves_nothing_behind(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "PIP_NO_INDEX": "1",
    }
    with pytest.raises(Exception, match="cannot install nbdime") as caught:
        nbdime_process.install(Workspace(tmp_path, cwd=tmp_path, env=env))
    assert getattr(caught.value, "hint", "")
    assert not list((tmp_path / "data" / "quire").iterdir())


def test_settings_of_a_person_change_nothing(
    scratch: Scratch, nbdime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = scratch.root / "home" / ".jupyter"
    home.mkdir(parents=True)
    ignore = {"NbDiff": {"Ignore": {"/cells/*/source": True}}}
    (home / "nbdime_config.json").write_text(json.dumps(ignore))
    (scratch.root / "nbdime_config.json").write_text(json.dumps(ignore))
    monkeypatch.setenv("HOME", str(scratch.root / "home"))
    scratch.write("a.ipynb", notebook(code("x = 1")))
    scratch.write("b.ipynb", notebook(code("x = 2")))
    assert "+  x = 2" in scratch.quire("diff", "a.ipynb", "b.ipynb").stdout


def test_a_new_file_has_nothing_before_it(scratch: Scratch, nbdime: Path) -> None:
    """As git shows it to a diff driver."""
    workspace = Workspace(scratch.root, cwd=scratch.root)
    new = Version("x.ipynb", ".ipynb", notebook(code("x = 1")).encode())
    found = diff_versions(workspace, Version("/dev/null", ".ipynb", b""), new)
    assert "x = 1" in found.text
    with pytest.raises(UsageError, match=r"x\.ipynb"):
        diff_versions(workspace, Version("x.ipynb", ".ipynb", b"[]"), new)
