"""What a repository's own configuration names is not started by any git of Quire's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quire.agent.call_tool import call as tool
from quire.agent.caller import Caller
from quire.archive.put import catch_up
from quire.cli.main import App, dispatch
from quire.cli.terminal import Terminal
from quire.engine.run import run
from quire.errors import GitError
from quire.git import hooks
from quire.git.repository import Repository
from quire.workspace import Engine, Workspace
from scratch import Scratch
from traps import OF_A_COMMIT, Traps, plant, touch_all

Do = Callable[..., int]


@pytest.fixture
def hub(repo: Scratch, tmp_path: Path) -> Path:
    hub = tmp_path / "hub.git"
    repo.git("init", "--quiet", "--bare", str(hub))
    repo.git("remote", "add", "origin", str(hub))
    repo.git("push", "--quiet", "origin", "main")
    return hub


@pytest.fixture
def do(repo: Scratch) -> Iterator[Do]:
    """A command in this process, as a host does it."""
    engine = Engine(outlives=True)

    def act(*words: str) -> int:
        env = {**os.environ, "QUIRE_NO_HOST": "1"}
        return dispatch([*words], App(Terminal(), repo.root, env, engine=engine))

    yield act
    engine.close()


@pytest.fixture
def traps(repo: Scratch, hub: Path, do: Do) -> Traps:
    """Set up by Quire, then all of it changed to what leaves a mark."""
    assert do("init") == 0
    assert do("sync", "notebooks") == 0
    repo.git("add", "-A")
    repo.git("commit", "--quiet", "-m", "Set up")
    repo.git("push", "--quiet", "origin", "main")
    traps = plant(repo)
    touch_all(repo)
    return traps


def test_git_itself_falls_into_them(repo: Scratch, traps: Traps) -> None:
    """So that the others say something."""
    repo.git("status", check=False)
    repo.git("fetch", check=False)
    assert {"fsmonitor", "quire-process", "upload-pack"} <= traps.sprung()
    (repo.root / ".git/info/attributes").write_text("*.ipynb filter\n*.py filter=trap\n")
    repo.git("commit", "-q", "--allow-empty", "-m", "x", check=False)
    assert {"pre-commit", "clean", "post-index-change"} <= traps.sprung()


def test_no_command_falls_into_them(repo: Scratch, traps: Traps, do: Do) -> None:
    fell: dict[str, set[str]] = {}

    def go(*words: str, code: int | None = 0) -> None:
        touch_all(repo)
        said = do(*words)
        assert said == code or code is None, words
        if sprung := traps.sprung():
            fell[" ".join(words)] = sprung

    task = "notebooks/sum.py"
    go("run", task, "-q")
    go("run", task, "-q", "-p", "n", "5")
    go("runs")
    go("show", "last")
    go("log")
    go("verify", "last")
    go("verify", "--all")
    go("diff", "HEAD:notebooks/sum.ipynb", "notebooks/sum.ipynb")
    go("index", "rebuild")
    go("find", "total")
    go("digest", "--write")
    go("replay", "last")
    go("doctor", code=None)
    go("sync", "notebooks", "--check")
    go("session", "open", task, "--name", "try")
    go("exec", "try", "all")
    go("session", "promote", "try", "notebooks/other.py")
    go("session", "close", "try")
    go("push")
    go("ci", "--base", "main")
    repo.write(task, (repo.root / task).read_text() + "\n# %% more\nx = 1\n")
    assert do("sync", "notebooks") == 0
    go(
        "commit", task, "-m", "Add more", "--branch", "more", code=2
    )  # the filter of *.py is left out
    (repo.root / ".git/info/attributes").write_text("*.ipynb filter=trap\n*.csv filter=trap\n")
    touch_all(repo)
    assert do("commit", task, "-m", "Add more", "--branch", "more") == 0
    assert traps.sprung() <= OF_A_COMMIT
    go("run", task, "-q")
    assert do("propose", "--title", "More", "--body", "x") == 0
    assert traps.sprung() <= OF_A_COMMIT
    go("proposals")
    go("review", "1")
    go("review", "1", "--comment", "good")
    go("merge-proposal", "1")
    go("init")
    assert fell == {}


def test_nor_does_a_tool_of_agents(repo: Scratch, traps: Traps) -> None:
    ws = Workspace(repo.root, cwd=repo.root, engine=Engine())
    caller = Caller("test")
    try:
        for name, given in (
            ("notebook_execute", {"path": "notebooks/sum.py"}),
            ("run_show", {"run": "last"}),
            ("run_find", {"query": "total"}),
            ("notebook_pr", {"action": "list"}),
        ):
            tool(ws, name, given, caller)
        assert traps.sprung() == set()
    finally:
        ws.engine.close()


def test_nor_do_quires_own_hooks(repo: Scratch, traps: Traps) -> None:
    for name in hooks.HOOKS:
        old, new = repo.git("rev-parse", "HEAD~1", "HEAD").split()
        traps.sprung()
        hooks.hook(name, [old, new, "1"], repo.root, {**os.environ, "GIT_DIR": ".git"})
        assert traps.sprung() == set()


def test_quires_own_filter_still_works(repo: Scratch, traps: Traps) -> None:
    """Also where somebody else's program stands in its place."""
    (repo.root / ".git/info/attributes").write_text("")
    found = Repository.find(repo.root)
    assert found is not None
    (repo.root / "notebooks/sum.ipynb").write_text(
        (repo.root / "notebooks/sum.ipynb").read_text().replace('"outputs": []', '"outputs": [ ]')
    )
    found.git("status", "--porcelain")
    assert traps.sprung() == set()
    assert found.git("check-attr", "filter", "notebooks/sum.ipynb").endswith("quire")


def test_notebooks_are_made_again_after_a_merge_all_the_same(repo: Scratch, do: Do) -> None:
    repo.write(".gitignore", "*.ipynb\n")
    task, notebook = repo.root / "notebooks/sum.py", repo.root / "notebooks/sum.ipynb"
    assert do("init") == 0
    assert do("sync", "notebooks") == 0
    repo.git("add", "-A")
    repo.git("commit", "--quiet", "-m", "Set up")
    repo.git("switch", "--quiet", "--create", "more")
    task.write_text(task.read_text() + "\n# %% more\nmarked = 1\n")
    assert do("commit", "notebooks/sum.py", "-m", "Add more") == 0
    assert do("run", "notebooks/sum.py", "-q") == 0
    assert do("propose", "--title", "More", "--body", "x") == 0
    repo.git("switch", "--quiet", "main")
    assert "marked" not in notebook.read_text()
    assert do("merge-proposal", "1") == 0
    assert "marked" in task.read_text()
    assert "marked" in notebook.read_text()


# What a person has set for themselves.


def test_a_persons_own_settings_still_count(repo: Scratch, traps: Traps, tmp_path: Path) -> None:
    own = tmp_path / "gitconfig"
    mark = tmp_path / "mark"
    helper = f"!f() {{ touch {mark}; echo username=a; echo password=b; }}; f"
    own.write_text(
        f'[credential]\n\thelper = "{helper}"\n[filter "trap"]\n\tclean = tr a-z A-Z\n'
        "\tsmudge = cat\n"
    )
    found = Repository.find(repo.root, {**os.environ, "GIT_CONFIG_GLOBAL": str(own)})
    assert found is not None
    asked = b"protocol=http\nhost=127.0.0.1\n\n"
    assert "password=b" in found.git("credential", "fill", input=asked)
    assert mark.exists()
    blob = found.git("hash-object", "-w", "--stdin", "--path=x.py", input=b"abc")
    assert found.raw("cat-file", "blob", blob) == b"ABC"
    assert traps.sprung() == set()


def test_a_filter_that_is_needed_is_not_left_out(repo: Scratch, traps: Traps) -> None:
    found = Repository.find(repo.root)
    assert found is not None
    with pytest.raises(GitError) as caught:
        found.git("hash-object", "-w", "--stdin", "--path=x.py", input=b"abc")
    assert "git config --global" in caught.value.hint
    assert traps.sprung() == set()


# Which git.


@pytest.mark.parametrize("place", ["", ".", "bin", "{root}/.venv/bin"])
def test_a_git_of_the_working_tree_is_not_taken(repo: Scratch, place: str) -> None:
    place = place.format(root=repo.root)
    fake = repo.root / place / "git"
    fake.parent.mkdir(parents=True, exist_ok=True)
    fake.write_text(f"#!/bin/sh\ntouch '{repo.root}/taken'\n")
    fake.chmod(0o755)
    env = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
    found = Repository.find(repo.root, env)
    assert found is not None
    assert found.head() == repo.git("rev-parse", "HEAD")
    assert not (repo.root / "taken").exists()


# Which repository.

SWAP = """# %% swap
import os, shutil, subprocess
{code}
"""


def other(tmp_path: Path) -> Scratch:
    other = Scratch(tmp_path / "other")
    other.root.mkdir()
    other.git("init", "--quiet", "--initial-branch=main")
    other.git(
        "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"
    )
    return other


@pytest.mark.parametrize(
    "code",
    [
        "os.rename('../.git', '../.git.old'); shutil.copytree('{other}/.git', '../.git')",
        "os.rename('../.git', '../.git.old'); open('../.git', 'w').write('gitdir: {other}/.git')",
        "os.rename('../.git', '../.git.old'); os.symlink('{other}/.git', '../.git')",
        "open('../.git/commondir', 'w').write('{other}/.git')",
        "shutil.rmtree('../.git'); shutil.copytree('{other}/.git', '../.git')",
    ],
)
def test_a_repository_put_in_its_place_gets_no_run(
    repo: Scratch, tmp_path: Path, code: str
) -> None:
    there = other(tmp_path)
    text = SWAP.format(code=f"os.chdir({str(repo.root / 'notebooks')!r})\n" + code)
    repo.write("notebooks/swap.py", text.replace("{other}", str(there.root)))
    ws = Workspace(repo.root, cwd=repo.root)
    record = run("notebooks/swap.py", workspace=ws)
    assert record.outcome == "ok", record.error
    assert len(ws.runs.owed()) == 1
    # Nor at the next opportunity, by whoever finds the other one there.
    later = Workspace(repo.root, cwd=repo.root)
    (owed,) = catch_up(later)
    assert "begun in" in owed.error.message
    for place in (there.root, repo.root):
        assert "reports" not in Scratch(place).git("branch", "--list", check=False)
    if (repo.root / ".git.old").exists():  # put back: the run goes where it belongs
        git = repo.root / ".git"
        shutil.rmtree(git) if git.is_dir() and not git.is_symlink() else git.unlink()
        (repo.root / ".git.old").rename(git)
        assert catch_up(Workspace(repo.root, cwd=repo.root)) == []
        assert "reports" in repo.git("branch", "--list")


@pytest.mark.parametrize(
    "code",
    [
        "subprocess.run(['git', 'config', 'core.worktree', '{other}'], check=True)",
        "shutil.copytree('{other}/.git', '.git')",
        "shutil.copytree('{other}/.git', '.', dirs_exist_ok=True)",
        "os.environ['GIT_DIR'] = '{other}/.git'",
    ],
)
def test_a_repository_that_leads_elsewhere_gets_its_runs_all_the_same(
    repo: Scratch, tmp_path: Path, code: str
) -> None:
    there = other(tmp_path)
    text = SWAP.format(code=f"os.chdir({str(repo.root / 'notebooks')!r})\n" + code)
    repo.write("notebooks/swap.py", text.replace("{other}", str(there.root)))
    repo.write("notebooks/quire.toml", "")
    ws = Workspace(repo.root / "notebooks", cwd=repo.root / "notebooks")
    record = run("swap.py", workspace=ws)
    assert record.outcome == "ok", record.error
    assert ws.runs.owed() == []
    (repo.root / ".git/commondir").unlink(missing_ok=True)
    assert "reports" in repo.git("branch", "--list")
    assert "reports" not in there.git("branch", "--list")


def test_what_looks_like_a_bare_repository_inside_another_is_none(
    repo: Scratch, tmp_path: Path
) -> None:
    place = repo.root / "data"
    shutil.copytree(other(tmp_path).root / ".git", place)
    found = Repository.find(place)
    assert found is not None
    assert found.top == repo.root.resolve()
    inside = Repository.find(repo.root / ".git" / "refs")
    assert inside is not None
    assert inside.top is None
