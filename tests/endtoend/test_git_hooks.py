"""Hooks, through git itself: notebooks follow their text, and nothing of anybody's is lost."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from gitworld import (
    TASK,
    changes,
    commit,
    execute,
    is_in_step,
    own_configuration,
    ready,
    script,
    set_up,
    told,
    world,
)

from scratch import Scratch

__all__ = ["ready", "world"]  # fixtures

NOTEBOOK = "notebooks/count.ipynb"


def text_on_other(repo: Scratch) -> Scratch:
    """On `other` somebody committed the text of the task without its notebook."""
    told(repo, "checkout", "-q", "-b", "other")
    repo.write("notebooks/count.py", TASK.replace("a = 1", "a = 11"))
    repo.git("add", "notebooks/count.py")
    repo.git("commit", "-q", "-m", "Text only")
    told(repo, "checkout", "-q", "main")
    assert is_in_step(repo)
    return repo


def ignoring(repo: Scratch) -> Scratch:
    """A repository that keeps only the text."""
    repo.git("rm", "-q", "--cached", "notebooks/*.ipynb")
    with (repo.root / ".gitignore").open("a") as file:
        file.write("*.ipynb\n")
    commit(repo, "Text only")
    return repo


@pytest.fixture
def text_only(ready: Scratch) -> Scratch:
    return text_on_other(ignoring(ready))


@pytest.fixture
def kept(ready: Scratch) -> Scratch:
    """The notebook is in git, and on `other` it is behind its text."""
    return text_on_other(ready)


def test_a_checkout_brings_the_notebook_up_to_date(text_only: Scratch) -> None:
    said = told(text_only, "checkout", "other")
    assert f"quire: regenerated {NOTEBOOK}\n" in said
    assert "a = 11" in (text_only.root / NOTEBOOK).read_text()
    assert is_in_step(text_only)
    # And back: what was made is made again, and nothing is left over.
    told(text_only, "checkout", "main")
    assert is_in_step(text_only)
    assert changes(text_only) == ""


def test_a_merge_does(text_only: Scratch) -> None:
    said = told(text_only, "merge", "--no-edit", "other")
    assert f"quire: regenerated {NOTEBOOK}\n" in said
    assert is_in_step(text_only)
    assert changes(text_only) == ""


def test_a_squashed_merge_does(text_only: Scratch) -> None:
    told(text_only, "merge", "--squash", "--ff", "other")
    assert is_in_step(text_only)


def test_a_rebase_does_at_its_end(text_only: Scratch) -> None:
    text_only.write("readme.txt", "x\n")
    commit(text_only, "Something else")
    told(text_only, "rebase", "other")
    assert is_in_step(text_only)


# Notebooks that git keeps: what is written there is in the way of the next command


def test_a_kept_notebook_that_is_behind_is_told_and_left(kept: Scratch) -> None:
    for words in (("checkout", "other"), ("checkout", "main"), ("merge", "--no-edit", "other")):
        said = told(kept, *words)
        assert (NOTEBOOK in said) == ("other" in words)
        assert "regenerated" not in said
        assert changes(kept) == ""
    assert not is_in_step(kept)


def test_nobody_is_locked_on_a_branch(kept: Scratch) -> None:
    """The notebook of `other` differs from that of main, and is behind its text as well."""
    told(kept, "checkout", "-q", "other")
    assert kept.quire("sync", "notebooks").returncode == 0
    kept.write("notebooks/count.py", TASK.replace("a = 1", "a = 12"))
    commit(kept, "Half of it")
    told(kept, "checkout", "-q", "main")
    told(kept, "checkout", "-q", "other")
    told(kept, "checkout", "-q", "main")
    told(kept, "checkout", "-q", "other")
    # What somebody made anew can be put back: no hook makes it again.
    assert kept.quire("sync", "notebooks").returncode == 0
    assert changes(kept) == f" M {NOTEBOOK}"
    told(kept, "checkout", "--", NOTEBOOK)
    assert changes(kept) == ""
    told(kept, "checkout", "-q", "main")


def test_a_kept_notebook_that_was_deleted_stays_so(kept: Scratch) -> None:
    (kept.root / NOTEBOOK).unlink()
    told(kept, "checkout", "-q", "other")
    assert changes(kept) == f" D {NOTEBOOK}"


def test_a_rebase_of_many_commits_is_not_stopped(kept: Scratch) -> None:
    for n in range(4):
        text = TASK.replace("c = 3", f"c = {n + 30}")
        kept.write("notebooks/count.py", text)
        if n % 2:
            assert kept.quire("sync", "notebooks").returncode == 0
        commit(kept, f"Step {n}")
    told(kept, "rebase", "other")
    assert changes(kept) == ""
    assert "a = 11" in (kept.root / "notebooks/count.py").read_text()
    assert "c = 33" in (kept.root / "notebooks/count.py").read_text()
    assert "c = 33" in (kept.root / NOTEBOOK).read_text()


def test_what_a_rebase_puts_aside_comes_back(kept: Scratch) -> None:
    kept.write("readme.txt", "x\n")
    commit(kept, "Something else")
    execute(kept.root / NOTEBOOK)
    text = (kept.root / NOTEBOOK).read_text().replace("b = 2", "b = 22")
    (kept.root / NOTEBOOK).write_text(text)
    said = told(kept, "rebase", "--autostash", "other")
    assert "Applied autostash" in said
    assert "b = 22" in (kept.root / NOTEBOOK).read_text()


def test_single_files_are_followed_too(ready: Scratch) -> None:
    ready.write("notebooks/count.py", TASK.replace("a = 1", "a = 11"))
    assert ready.quire("sync", "notebooks").returncode == 0
    told(ready, "checkout", "--", "notebooks/count.py")
    assert is_in_step(ready)
    assert changes(ready) == ""


def test_ignored_notebooks_are_made_when_a_branch_brings_their_text(ready: Scratch) -> None:
    ignoring(ready)
    told(ready, "checkout", "-q", "-b", "other")
    ready.write("notebooks/new.py", TASK.replace("Count", "New"))
    commit(ready, "A new task")
    told(ready, "checkout", "-q", "main")
    assert not (ready.root / "notebooks/new.ipynb").exists()
    told(ready, "checkout", "-q", "other")
    assert "New" in (ready.root / "notebooks/new.ipynb").read_text()
    assert changes(ready) == ""


def test_a_notebook_that_nobody_keeps_is_not_made(kept: Scratch) -> None:
    """It would be an untracked file, and stop the next checkout that brings one."""
    told(kept, "checkout", "-q", "-b", "third")
    kept.write("notebooks/third.py", TASK)
    commit(kept, "A task without a notebook")
    told(kept, "checkout", "-q", "main")
    told(kept, "checkout", "-q", "third")
    assert not (kept.root / "notebooks/third.ipynb").exists()


def test_edits_of_a_notebook_are_never_overwritten(kept: Scratch) -> None:
    nb = kept.root / NOTEBOOK
    nb.write_text(nb.read_text().replace("c = 3", "c = 'by hand'"))
    said = told(kept, "checkout", "other")
    assert f"quire: left {NOTEBOOK} as it is" in said
    assert "by hand" in nb.read_text()
    assert "by hand" not in (kept.root / "notebooks/count.py").read_text()


def test_a_hook_never_writes_a_text(ready: Scratch) -> None:
    nb = ready.root / NOTEBOOK
    nb.write_text(nb.read_text().replace("c = 3", "c = 'by hand'"))
    told(ready, "checkout", "-b", "new")
    assert "by hand" in nb.read_text()
    assert (ready.root / "notebooks/count.py").read_text() == TASK


def test_outputs_of_cells_that_did_not_change_stay(text_only: Scratch) -> None:
    execute(text_only.root / NOTEBOOK, "kept\n")
    told(text_only, "checkout", "other")
    cells = json.loads((text_only.root / NOTEBOOK).read_text())["cells"]
    by_source = {"".join(cell["source"]): cell for cell in cells}
    assert by_source["b = 2"]["outputs"]
    assert not by_source["a = 11"]["outputs"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("quire.toml", "notebooks = 7\n"),
        ("quire.toml", "["),
        ("notebooks/count.py", "# %%\nbroken (\n"),
        ("notebooks/count.py", "\udcff".encode("utf-8", "surrogateescape").decode("latin-1")),
    ],
)
def test_a_checkout_never_fails_because_of_us(ready: Scratch, name: str, text: str) -> None:
    told(ready, "checkout", "-q", "-b", "other")
    (ready.root / name).write_bytes(text.encode("latin-1"))
    ready.git("add", "-A")
    ready.git("commit", "-q", "-m", "Bad")
    told(ready, "checkout", "main")
    told(ready, "checkout", "other")
    assert ready.git("symbolic-ref", "--short", "HEAD") == "other"


def test_in_a_worktree_the_notebooks_there_are_made(text_only: Scratch, tmp_path: Path) -> None:
    before = (text_only.root / NOTEBOOK).read_text()
    side = Scratch(tmp_path / "side")
    told(text_only, "worktree", "add", "-q", str(side.root), "other")
    assert is_in_step(side)
    assert "a = 11" in (side.root / NOTEBOOK).read_text()
    assert (text_only.root / NOTEBOOK).read_text() == before


def test_from_a_subfolder_and_with_git_dir_set(text_only: Scratch) -> None:
    env = {**os.environ, "GIT_DIR": str(text_only.root / ".git")}
    env["GIT_WORK_TREE"] = str(text_only.root)
    subprocess.run(
        ["git", "checkout", "-q", "other"], cwd=text_only.root / "notebooks", env=env, check=True
    )
    assert is_in_step(text_only)


def test_a_git_folder_that_lies_elsewhere(text_only: Scratch, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.git"
    (text_only.root / ".git").rename(elsewhere)
    words = (f"--git-dir={elsewhere}", f"--work-tree={text_only.root}")
    told(text_only, *words, "config", "core.worktree", str(text_only.root))
    hooks = elsewhere / "quire" / "hooks"
    if hooks.exists():
        told(text_only, *words, "config", "core.hooksPath", str(hooks))
    told(text_only, *words, "checkout", "other")
    assert "a = 11" in (text_only.root / NOTEBOOK).read_text()


def test_nothing_is_loaded_when_nothing_changed(ready: Scratch) -> None:
    """What a checkout of the same files costs is the start of an interpreter."""
    done = subprocess.run(
        [
            *(os.path.dirname(os.sys.executable) + "/python", "-X", "importtime"),  # type: ignore[attr-defined]
            *("-m", "quire", "git", "hook", "post-checkout"),
            *(ready.git("rev-parse", "HEAD"),) * 2,
            "1",
        ],
        cwd=ready.root,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for name in ("quire.workspace", "quire.task.sync", "click", "IPython"):
        assert f" {name}\n" not in done.stderr


# Hooks of the user's own


def test_global_hooks_are_still_called(
    repo: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own_configuration(folder)))
    set_up(repo)
    (folder / "hooks.log").unlink()
    head = repo.git("rev-parse", "HEAD")
    told(repo, "checkout", "-q", "-b", "other")
    repo.write("x.txt", "x\n")
    commit(repo, "More")
    assert (folder / "hooks.log").read_text().splitlines() == [
        f"post-checkout {head} {head} 1",
        "pre-commit ",
    ]


def test_a_hook_that_was_added_later_is_called_too(ready: Scratch, tmp_path: Path) -> None:
    place = ready.git("config", "core.hooksPath", check=False)
    folder = tmp_path / "home" / "hooks" if place else ready.root / ".git" / "hooks"
    script(folder / "commit-msg", 'grep -q please "$1"\n')
    ready.write("x.txt", "x\n")
    ready.git("add", "x.txt")
    told(ready, "commit", "-q", "-m", "No", code=1)
    told(ready, "commit", "-q", "-m", "Yes, please")


def test_own_hooks_get_arguments_input_and_the_last_word(repo: Scratch, tmp_path: Path) -> None:
    log = tmp_path / "log"
    hooks = repo.root / ".git" / "hooks"
    script(hooks / "post-checkout", f'echo "checkout $*" >> "{log}"\nexit 7\n')
    script(hooks / "post-rewrite", f'echo "rewrite $*" >> "{log}"\ncat >> "{log}"\n')
    script(hooks / "pre-push", f'echo "push $*" >> "{log}"\ncat >> "{log}"\n')
    before = {path.name: path.read_text() for path in hooks.iterdir()}
    set_up(repo)
    assert {path.name: path.read_text() for path in hooks.iterdir()} == before
    head = repo.git("rev-parse", "HEAD")
    told(repo, "checkout", "-q", "-b", "other", code=1)  # as the hook's says
    repo.git("commit", "-q", "--amend", "-m", "Amended")
    new = repo.git("rev-parse", "HEAD")
    repo.git("init", "-q", "--bare", str(tmp_path / "far.git"))
    repo.git("push", "-q", str(tmp_path / "far.git"), "other")
    zeros = "0" * 40
    assert log.read_text().splitlines() == [
        f"checkout {head} {head} 1",
        "rewrite amend",
        f"{head} {new}",
        f"push {tmp_path}/far.git {tmp_path}/far.git",
        f"refs/heads/other {new} refs/heads/other {zeros}",
    ]


def test_a_local_folder_of_hooks_as_husky_has_it(repo: Scratch) -> None:
    script(repo.root / ".husky" / "post-merge", "echo husky says $1\n")
    repo.git("config", "core.hooksPath", ".husky")
    text_on_other(ignoring(set_up(repo)))
    said = told(repo, "merge", "other")
    assert "husky says 0" in said
    assert f"quire: regenerated {NOTEBOOK}" in said
    # A reinstalled husky takes its place back; init and doctor see it.
    repo.git("config", "core.hooksPath", ".husky")
    assert "not called" in repo.quire("doctor").stdout
    assert repo.quire("init").returncode == 0
    assert repo.git("config", "core.hooksPath").endswith("/.git/quire/hooks")
    assert repo.git("config", "quire.hooksPath") == ".husky"


def test_the_presence_of_a_forwarding_hook_changes_nothing(ready: Scratch, tmp_path: Path) -> None:
    """`push-to-checkout` and the like decide things by being there."""
    ready.git("config", "receive.denyCurrentBranch", "updateInstead")
    ready.git("clone", "-q", str(ready.root), str(tmp_path / "clone"))
    clone = Scratch(tmp_path / "clone")
    clone.git("config", "user.email", "b@example.org")
    clone.git("config", "user.name", "B")
    clone.write("x.txt", "x\n")
    commit(clone, "Pushed")
    told(clone, "push", "-q", "origin", "main")
    assert (ready.root / "x.txt").read_text() == "x\n"


def test_a_hook_that_is_no_longer_ours_to_run_is_quiet_elsewhere(repo: Scratch) -> None:
    """In a repository that is bare, or in the git folder itself, there is nothing to do."""
    set_up(repo)
    done = subprocess.run(
        [*("git", "-C", str(repo.root / ".git"), "rev-parse", "--is-inside-work-tree")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "false"
    inside = Scratch(repo.root / ".git")
    done2 = inside.quire("git", "hook", "post-merge", "0")
    assert (done2.returncode, done2.stdout, done2.stderr) == (0, "", "")
