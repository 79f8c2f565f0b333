"""Filter and drivers, through git itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from gitworld import TASK, changes, commit, execute, is_in_step, ready, set_up, told, world

from scratch import Scratch

__all__ = ["ready", "world"]  # fixtures

NOTEBOOK = "notebooks/count.ipynb"


def staged(repo: Scratch, name: str = NOTEBOOK, at: str = "") -> str:
    return repo.git("cat-file", "blob", f"{at}:{name}")


# The filter


def test_outputs_stay_in_the_folder_and_out_of_git(ready: Scratch) -> None:
    before = staged(ready)
    execute(ready.root / NOTEBOOK, "hunter2\n")
    ready.git("add", "-A")
    assert staged(ready) == before
    assert changes(ready) == ""
    assert "hunter2" in (ready.root / NOTEBOOK).read_text()
    assert "hunter2" not in told(ready, "log", "-p", "--all")


def test_a_notebook_with_outputs_is_committed_without_them(ready: Scratch) -> None:
    nb = json.loads((ready.root / NOTEBOOK).read_text())
    nb["cells"].append({"cell_type": "code", "id": "new", "source": ["d = 4"], "metadata": {}})
    (ready.root / NOTEBOOK).write_text(json.dumps(nb, indent=2))
    execute(ready.root / NOTEBOOK)
    commit(ready, "More")
    kept = json.loads(staged(ready, at="HEAD"))
    assert kept["cells"][-1]["source"] == ["d = 4"]
    assert all(not c.get("outputs") and not c.get("execution_count") for c in kept["cells"])
    assert changes(ready) == ""
    # And it comes back as it is in git, byte for byte.
    (ready.root / NOTEBOOK).unlink()
    ready.git("checkout", "-q", "--", NOTEBOOK)
    assert (ready.root / NOTEBOOK).read_text().rstrip("\n") == staged(ready)
    assert changes(ready) == ""


def test_many_notebooks_cost_one_process(ready: Scratch) -> None:
    nb = (ready.root / NOTEBOOK).read_text()
    for n in range(40):
        ready.write(f"notebooks/more/n{n}.ipynb", nb)
        execute(ready.root / f"notebooks/more/n{n}.ipynb")
    said = told(ready, "add", "notebooks", GIT_TRACE="1")
    assert said.count("run_command: 'q()") == 1
    assert all('"output_type"' not in staged(ready, f"notebooks/more/n{n}.ipynb") for n in (0, 39))


def test_what_is_no_notebook_is_added_as_it_is(ready: Scratch) -> None:
    broken = '<<<<<<< ours\n{"cells": [\n'
    ready.write("notebooks/broken.ipynb", broken)
    said = told(ready, "add", "notebooks/broken.ipynb")
    assert "quire: notebooks/broken.ipynb: not a notebook" in said
    assert staged(ready, "notebooks/broken.ipynb") == broken.rstrip("\n")


@pytest.mark.parametrize("name", ["with space", 'it\'s "x"', "-dash", "ünï 笔记", "a%f%P$(id)`id`"])
def test_names_are_only_names(ready: Scratch, name: str) -> None:
    path = f"notebooks/{name}.ipynb"
    ready.write(path, (ready.root / NOTEBOOK).read_text())
    execute(ready.root / path)
    ready.git("add", "--", path)
    assert '"output_type"' not in staged(ready, path)
    ready.git("commit", "-q", "-m", "Odd")
    assert "# %% one" in told(ready, "show", "--format=", "--no-color", "HEAD")


def test_a_stash_and_back(ready: Scratch) -> None:
    nb = ready.root / NOTEBOOK
    execute(nb)
    ready.write("notebooks/count.py", TASK.replace("a = 1", "a = 11"))
    assert ready.quire("sync", "notebooks").returncode == 0
    edited = json.loads(nb.read_text())
    told(ready, "stash")
    assert changes(ready) == ""
    assert is_in_step(ready)
    told(ready, "stash", "pop")
    back = json.loads(nb.read_text())
    assert [c["source"] for c in back["cells"]] == [c["source"] for c in edited["cells"]]
    assert is_in_step(ready)


def use(repo: Scratch, program: Path) -> None:
    """Let git call this program in the place of Quire."""
    for key in ("filter.quire.clean", "filter.quire.process", "diff.quire.textconv",
                "diff.quire.command", "merge.quire.driver"):  # fmt: skip
        was = repo.git("config", key, check=False)
        if was:
            old = was.split("test -x ")[1].split(" ")[0]
            repo.git("config", key, was.replace(old, str(program)))


def test_a_clone_that_was_set_up_earlier_is_mended_by_init(ready: Scratch) -> None:
    """As it was told once: to insist on a filter that git cannot do without."""
    old = (
        'q() { test -x /old/quire && exec /old/quire git process "$@"; exec quire git process; }; q'
    )
    ready.git("config", "filter.quire.process", old)
    ready.git("config", "filter.quire.required", "true")
    done = ready.quire("doctor")
    assert "filter.quire.process, filter.quire.required" in done.stdout
    assert "quire init" in done.stdout
    assert ready.quire("init").returncode == 0
    assert ready.git("config", "filter.quire.required") == "false"
    assert "filter.quire" not in ready.quire("doctor").stdout


def test_the_program_on_the_path_is_used_when_the_one_of_init_is_gone(
    ready: Scratch, tmp_path: Path
) -> None:
    program = ready.git("config", "filter.quire.process").split("test -x ")[1].split(" ")[0]
    use(ready, Path("/nowhere/quire"))
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "quire").symlink_to(program)
    nb = ready.root / NOTEBOOK
    nb.write_text(nb.read_text().replace("a = 1", "a = 5"))
    execute(nb)
    told(ready, "add", NOTEBOOK, PATH=f"{bin_}:{os.environ['PATH']}")
    assert "a = 5" in staged(ready)
    assert '"output_type"' not in staged(ready)


def test_a_module_of_the_repository_is_not_run_by_git(ready: Scratch, tmp_path: Path) -> None:
    for name in ("json", "quire", "re", "click"):
        ready.write(f"{name}.py", f"open({str(tmp_path / 'run')!r}, 'x')\nraise SystemExit(9)\n")
    nb = ready.root / NOTEBOOK
    nb.write_text(nb.read_text().replace("a = 1", "a = 6"))
    told(ready, "add", NOTEBOOK)
    assert "a = 6" in staged(ready)
    assert not (tmp_path / "run").exists()


def test_one_notebook_can_keep_its_outputs(ready: Scratch) -> None:
    with (ready.root / ".gitattributes").open("a") as file:
        file.write("notebooks/kept.ipynb -filter\n")
    ready.write("notebooks/kept.ipynb", (ready.root / NOTEBOOK).read_text())
    execute(ready.root / "notebooks/kept.ipynb")
    ready.git("add", "-A")
    assert '"output_type"' in staged(ready, "notebooks/kept.ipynb")


# Diffs


def test_diffs_show_cells_and_no_json(ready: Scratch) -> None:
    ready.write("notebooks/count.py", TASK.replace("b = 2", "b = 22"))
    assert ready.quire("sync", "notebooks").returncode == 0
    execute(ready.root / NOTEBOOK)
    shown = told(ready, "diff", "--no-color", NOTEBOOK)
    assert "-b = 2\n" in shown
    assert "+b = 22\n" in shown
    commit(ready, "Change")
    for words in (("log", "-p", "-1"), ("show",), ("diff", "HEAD~1"), ("diff", "HEAD~1", "HEAD")):
        shown = told(ready, *words, "--no-color", "--", NOTEBOOK)
        assert "+b = 22\n" in shown, words
        assert '"' not in "".join(line for line in shown.splitlines() if line[:1] in "+-")
        assert "sha256" not in shown


def test_where_nobody_has_set_up_anything_there_is_no_json_either(
    ready: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a forge, or in a colleague's new clone."""
    ready.write("notebooks/count.py", TASK.replace("b = 2", "b = 22"))
    assert ready.quire("sync", "notebooks").returncode == 0
    commit(ready, "Change")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    ready.git("clone", "-q", str(ready.root), str(tmp_path / "clone"))
    shown = told(Scratch(tmp_path / "clone"), "log", "-p", "-1")
    assert "+b = 22" in shown  # of the .py
    assert "Binary files a/notebooks/count.ipynb and b/notebooks/count.ipynb differ" in shown
    assert "cell_type" not in shown


def test_outputs_that_got_into_git_all_the_same_are_not_hidden(ready: Scratch) -> None:
    execute(ready.root / NOTEBOOK, "made up\n")
    blob = ready.git("hash-object", "-w", "--no-filters", NOTEBOOK)
    ready.git("update-index", "--cacheinfo", f"100644,{blob},{NOTEBOOK}")
    ready.git("commit", "-q", "-m", "By hand")
    shown = told(ready, "show", "--no-color", "--format=")
    assert "+# cell 1: 1 (" in shown


def test_a_broken_notebook_is_shown_as_it_is(ready: Scratch) -> None:
    ready.write(NOTEBOOK, "{ broken\n")
    assert "+{ broken\n" in told(ready, "diff", "--no-color", NOTEBOOK)


# Merges


def edited(repo: Scratch, old: str, new: str, message: str, *, notebook: bool = True) -> str:
    path = repo.root / "notebooks/count.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    if notebook:
        assert repo.quire("sync", "notebooks").returncode == 0
    return commit(repo, message)


def two_branches(repo: Scratch, here: str = "c = 33", there: str = "a = 11") -> None:
    told(repo, "checkout", "-q", "-b", "other")
    edited(repo, "a = 1\n", f"{there}\n", "There")
    told(repo, "checkout", "-q", "main")
    edited(repo, "c = 3\n", f"{here}\n", "Here")


def sources(repo: Scratch, at: str = "HEAD") -> str:
    nb = json.loads(staged(repo, at=at))
    return "\n".join("".join(cell["source"]) for cell in nb["cells"])


def test_a_merge_makes_the_notebook_from_the_merged_text(ready: Scratch) -> None:
    two_branches(ready)
    told(ready, "merge", "--no-edit", "other")
    assert changes(ready) == ""
    assert is_in_step(ready)
    assert "a = 11" in sources(ready)
    assert "c = 33" in sources(ready)


def test_a_rebase_does_too(ready: Scratch) -> None:
    two_branches(ready)
    edited(ready, "b = 2\n", "b = 22\n", "Here again")
    told(ready, "rebase", "other")
    assert changes(ready) == ""
    assert is_in_step(ready)
    for at, wanted in (("HEAD", "b = 22"), ("HEAD~1", "c = 33"), ("HEAD~1", "a = 11")):
        assert wanted in sources(ready, at)


def test_a_picked_commit_merges_its_notebook(ready: Scratch) -> None:
    two_branches(ready)
    told(ready, "cherry-pick", "other")
    assert "a = 11" in sources(ready)
    assert "c = 33" in sources(ready)
    assert ready.quire("sync", "notebooks").returncode == 0  # whose text it is now
    assert is_in_step(ready)


def test_a_conflict_is_in_the_text_alone(ready: Scratch) -> None:
    told(ready, "checkout", "-q", "-b", "other")
    edited(ready, "b = 2\n", "b = 22\n", "There")
    told(ready, "checkout", "-q", "main")
    edited(ready, "b = 2\n", "b = 222\n", "Here")
    told(ready, "merge", "--no-edit", "other", code=1)
    assert ready.git("diff", "--name-only", "--diff-filter=U") == "notebooks/count.py"
    json.loads((ready.root / NOTEBOOK).read_text())
    ready.write("notebooks/count.py", TASK.replace("b = 2\n", "b = 2222\n"))
    assert ready.quire("sync", "notebooks").returncode == 0
    commit(ready, "Resolved")
    assert "b = 2222" in sources(ready)
    assert is_in_step(ready)


@pytest.fixture(params=["cells", "lines"])
def way(request: pytest.FixtureRequest) -> str:
    """Notebooks are merged by cells where nbdime is at hand, and by lines where it is not."""
    if request.param == "cells":
        request.getfixturevalue("nbdime")
    return str(request.param)


def test_a_notebook_of_its_own_is_merged(ready: Scratch, way: str) -> None:
    """Without a .py there is nothing to make it from."""
    nb = json.loads((ready.root / NOTEBOOK).read_text())
    del nb["metadata"]["quire"]
    ready.write("own.ipynb", json.dumps(nb, indent=1) + "\n")
    commit(ready, "A notebook")

    def change(old: str, new: str) -> None:
        path = ready.root / "own.ipynb"
        path.write_text(path.read_text().replace(old, new))
        commit(ready, new)

    told(ready, "checkout", "-q", "-b", "other")
    change("a = 1", "a = 11")
    told(ready, "checkout", "-q", "main")
    change("c = 3", "c = 33")
    told(ready, "merge", "--no-edit", "other")
    merged = json.loads(staged(ready, "own.ipynb", "HEAD"))
    text = "\n".join("".join(cell["source"]) for cell in merged["cells"])
    assert "a = 11" in text
    assert "c = 33" in text


def test_a_conflict_in_a_notebook_of_its_own_is_one(ready: Scratch, way: str) -> None:
    nb = json.loads((ready.root / NOTEBOOK).read_text())
    del nb["metadata"]["quire"]
    ready.write("own.ipynb", json.dumps(nb, indent=1) + "\n")
    commit(ready, "A notebook")
    path = ready.root / "own.ipynb"
    text = path.read_text()
    told(ready, "checkout", "-q", "-b", "other")
    path.write_text(text.replace("b = 2", "b = 22"))
    commit(ready, "There")
    told(ready, "checkout", "-q", "main")
    path.write_text(text.replace("b = 2", "b = 222"))
    commit(ready, "Here")
    told(ready, "merge", "--no-edit", "other", code=1)
    assert ready.git("diff", "--name-only", "--diff-filter=U") == "own.ipynb"
    both = path.read_text()
    if way == "cells":
        json.loads(both)
    assert "b = 22" in both
    assert "b = 222" in both


# Other places


def test_a_second_init_changes_nothing_and_the_doctor_is_content(ready: Scratch) -> None:
    watched = [ready.root / name for name in (".git/config", ".git/info/attributes")]
    before = [path.read_bytes() for path in watched]
    done = ready.quire("init", "--json")
    assert json.loads(done.stdout)["changed"] is False
    assert [path.read_bytes() for path in watched] == before
    done = ready.quire("doctor")
    assert done.returncode == 0, done.stdout
    assert "warning" not in done.stdout
    assert changes(ready) == ""


def test_a_clone_is_set_up_by_init(ready: Scratch, tmp_path: Path) -> None:
    ready.git("clone", "-q", str(ready.root), str(tmp_path / "clone"))
    clone = Scratch(tmp_path / "clone")
    clone.git("config", "user.email", "b@example.org")
    clone.git("config", "user.name", "B")
    done = clone.quire("init")
    assert done.returncode == 0, done.stderr
    assert changes(clone) == ""  # nothing that is in git already
    execute(clone.root / NOTEBOOK)
    clone.git("add", "-A")
    assert changes(clone) == ""


def test_a_worktree_shares_it(ready: Scratch, tmp_path: Path) -> None:
    ready.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Scratch(tmp_path / "side")
    nb = side.root / NOTEBOOK
    nb.write_text(nb.read_text().replace("a = 1", "a = 9"))
    execute(nb)
    side.git("add", "-A")
    assert '"output_type"' not in staged(side)
    assert "+a = 9\n" in told(side, "diff", "--cached", "--no-color", NOTEBOOK)
    assert side.quire("init", "--json").returncode == 0
    assert json.loads(side.quire("init", "--json").stdout)["changed"] is False


def test_git_finds_the_filter_from_a_subfolder_and_with_git_dir_set(ready: Scratch) -> None:
    nb = ready.root / NOTEBOOK
    nb.write_text(nb.read_text().replace("a = 1", "a = 9"))
    execute(nb)
    env = {**os.environ, "GIT_DIR": str(ready.root / ".git"), "GIT_WORK_TREE": str(ready.root)}
    subprocess.run(["git", "add", "count.ipynb"], cwd=nb.parent, env=env, check=True, timeout=60)
    assert "a = 9" in staged(ready)
    assert '"output_type"' not in staged(ready)


def test_a_path_with_a_percent_sign_and_quotes(tmp_path: Path) -> None:
    root = tmp_path / 'it\'s 100%f "x"'
    root.mkdir()
    repo = Scratch(root)
    repo.git("init", "-q", "-b", "main")
    repo.git("config", "user.email", "a@example.org")
    repo.git("config", "user.name", "A")
    set_up(repo)
    two_branches(repo)
    told(repo, "merge", "--no-edit", "other")
    assert is_in_step(repo)
