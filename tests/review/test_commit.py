"""`quire commit`: exactly these files, on a branch, and nothing else of the user's moved."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from quire.errors import DocumentError, GitError, QuireError, UsageError
from quire.review.commit import Committed, commit
from quire.task.sync import sync
from quire.workspace import Workspace
from scratch import Scratch

TASK = "# %% [markdown]\n# # Greet\n\n# %%\nprint('hello')\n"


@pytest.fixture
def ws(repo: Scratch) -> Workspace:
    return workspace(repo)


def workspace(repo: Scratch, **env: str) -> Workspace:
    return Workspace(repo.root, cwd=repo.root, env={**os.environ, **env})


def hook(repo: Scratch, name: str, script: str) -> None:
    path = repo.write(f".git/hooks/{name}", f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def state(repo: Scratch) -> tuple[str, str, str, list[str]]:
    """Everything that must not move when a commit is refused."""
    return (
        repo.git("rev-parse", "HEAD"),
        repo.git("symbolic-ref", "-q", "HEAD", check=False),
        repo.git("for-each-ref"),
        sorted(str(p) for p in (repo.root / ".git").glob("quire-*")),
    )


def committed(repo: Scratch, path: str, rev: str = "HEAD") -> str:
    return repo.git("show", f"{rev}:{path}")


def test_a_task_and_its_notebook_land_on_a_new_branch(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/greet.py", TASK)
    main = repo.git("rev-parse", "main")
    done = commit(ws, ["notebooks/greet.py"], "Add greet!")
    assert done == Committed(
        repo.git("rev-parse", "HEAD"),
        "add-greet",
        created=True,
        paths=("notebooks/greet.ipynb", "notebooks/greet.py"),
    )
    assert repo.git("branch", "--show-current") == "add-greet"
    assert repo.git("rev-parse", "main", "HEAD~1").split() == [main, main]
    assert committed(repo, "notebooks/greet.py") + "\n" == TASK
    assert json.loads(committed(repo, "notebooks/greet.ipynb"))["cells"][1]["outputs"] == []
    assert repo.git("log", "-1", "--format=%an <%ae>: %B").strip() == (
        "Ada Tester <ada@example.org>: Add greet!"
    )
    assert repo.git("status", "--porcelain") == ""
    assert repo.git("fsck", "--strict") == ""


def test_the_way_back_is_known(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/greet.py", TASK)
    commit(ws, ["notebooks/greet.py"], "Add greet")
    repo.git("switch", "-")
    assert repo.git("branch", "--show-current") == "main"
    assert not (repo.root / "notebooks/greet.py").exists()


def test_on_a_branch_of_work_it_is_that_one(repo: Scratch, ws: Workspace) -> None:
    repo.git("switch", "--quiet", "-c", "work")
    repo.write("notebooks/greet.py", TASK)
    done = commit(ws, ["notebooks/greet.py"], "Add greet")
    assert (done.branch, done.created) == ("work", False)
    repo.write("notebooks/greet.py", TASK + "1\n")
    done = commit(ws, ["notebooks/greet.py"], "More")
    assert repo.git("log", "--format=%s").split("\n") == ["More", "Add greet", "Begin"]
    assert repo.git("reflog", "-1", "--format=%gs") == "commit: More"


def test_what_else_is_staged_or_changed_stays_as_it_is(repo: Scratch, ws: Workspace) -> None:
    repo.write("other.txt", "one\n")
    repo.git("add", "other.txt")
    repo.git("commit", "--quiet", "-m", "Other")
    repo.write("other.txt", "two\n")
    repo.git("add", "other.txt")
    repo.write("other.txt", "three\n")
    repo.write("staged.txt", "new\n")
    repo.git("add", "staged.txt")
    repo.write("loose.txt", "?\n")
    repo.git("rm", "--quiet", "--cached", "notebooks/sum.py")
    before = repo.git("status", "--porcelain", "-uall").split("\n")
    repo.write("notebooks/greet.py", TASK)
    done = commit(ws, ["notebooks/greet.py"], "Add greet")
    assert done.paths == ("notebooks/greet.ipynb", "notebooks/greet.py")
    assert repo.git("show", "--name-only", "--format=").split() == list(done.paths)
    assert repo.git("status", "--porcelain", "-uall").split("\n") == before
    assert repo.git("show", ":other.txt") == "two"
    assert (repo.root / "other.txt").read_text() == "three\n"


def test_several_paths_and_folders(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/a b.py", TASK)
    repo.write("notebooks/-q\"uo'te\nline.py", TASK)
    repo.write("notebooks/größe.py", TASK)
    repo.write("notebooks/helper.py", "def help():\n    return 1\n")
    done = commit(ws, ["notebooks"], "Add all")
    assert set(done.paths) == {
        *("notebooks/a b.py", "notebooks/a b.ipynb", "notebooks/größe.py", "notebooks/größe.ipynb"),
        *("notebooks/-q\"uo'te\nline.py", "notebooks/-q\"uo'te\nline.ipynb"),
        "notebooks/sum.ipynb",
    }
    assert repo.git("status", "--porcelain") == "?? notebooks/helper.py"


def test_nothing_to_commit_makes_no_branch(repo: Scratch, ws: Workspace) -> None:
    commit(ws, ["notebooks/sum.py"], "Its notebook")
    repo.git("switch", "--quiet", "main")
    repo.git("merge", "--quiet", "its-notebook")
    before = state(repo)
    assert commit(ws, ["notebooks/sum.py"], "Again").commit is None
    assert state(repo) == before


def test_outputs_and_counts_are_not_committed(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/greet.py", TASK)
    commit(ws, ["notebooks/greet.py"], "Add greet")
    path = repo.root / "notebooks/greet.ipynb"
    data = json.loads(path.read_text())
    output = {"output_type": "stream", "name": "stdout", "text": ["hello\n"]}
    data["cells"][1] |= {"outputs": [output], "execution_count": 7}
    path.write_text(json.dumps(data, indent=1) + "\n")
    assert commit(ws, ["notebooks/greet.ipynb"], "Ran it").commit is None
    assert json.loads(path.read_text())["cells"][1]["outputs"] == [output]
    data["cells"][1]["source"] = ["print('bye')"]
    path.write_text(json.dumps(data, indent=1) + "\n")
    sync(ws, ["notebooks/greet.ipynb"], side="ipynb")
    done = commit(ws, ["notebooks/greet.ipynb"], "Say bye")
    assert done.paths == ("notebooks/greet.ipynb", "notebooks/greet.py")
    assert "print('bye')" in committed(repo, "notebooks/greet.py")
    cell = json.loads(committed(repo, "notebooks/greet.ipynb"))["cells"][1]
    assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("pulled", [False, True])
def test_code_of_a_notebook_is_not_committed_unasked(
    repo: Scratch, ws: Workspace, pulled: bool
) -> None:
    commit(ws, ["notebooks/sum.py"], "Its notebook")
    py, nb = repo.root / "notebooks/sum.py", repo.root / "notebooks/sum.ipynb"
    nb.write_text(nb.read_text().replace("sum(range(n))", "steal()"))
    if pulled:  # a colleague has committed it, with git's own commit
        repo.git("commit", "--quiet", "-a", "-m", "Nothing to see")
    text, before = py.read_text(), state(repo)
    for name in ("notebooks/sum.py", "notebooks/sum.ipynb", "notebooks"):
        with pytest.raises(UsageError, match="say different things") as caught:
            commit(ws, [name], "Mine")
        assert "quire sync --take ipynb notebooks/sum.ipynb" in caught.value.hint
    assert (py.read_text(), state(repo)) == (text, before)
    sync(ws, ["notebooks/sum.py"], side="py")
    assert "steal()" not in nb.read_text()


def test_a_text_that_is_gone_does_not_come_back_as_something_else(
    repo: Scratch, ws: Workspace
) -> None:
    commit(ws, ["notebooks/sum.py"], "Its notebook")
    py, nb = repo.root / "notebooks/sum.py", repo.root / "notebooks/sum.ipynb"
    py.unlink()
    assert [found.action for found in sync(ws, ["notebooks/sum.ipynb"])] == ["written"]
    assert "sum(range(n))" in py.read_text()
    py.unlink()
    nb.write_text(nb.read_text().replace("sum(range(n))", "steal()"))
    for name in ("notebooks/sum.ipynb", "notebooks"):
        assert [found.action for found in sync(ws, [name])] == ["conflict"]
    assert not py.exists()
    sync(ws, ["notebooks/sum.ipynb"], side="ipynb")
    assert "steal()" in py.read_text()


def test_a_task_that_python_cannot_read_is_refused_with_its_line(
    repo: Scratch, ws: Workspace
) -> None:
    repo.write("notebooks/bad.py", "# %% [markdown]\n# # Bad\n\n# %% one\n\nx = 1\n\n# %%\ny = (\n")
    before = state(repo)
    with pytest.raises(DocumentError, match=r"notebooks/bad\.py, line 9: '\(' was never closed"):
        commit(ws, ["notebooks/bad.py"], "Add bad")
    assert state(repo) == before
    assert not (repo.root / "notebooks/bad.ipynb").exists()


def test_names_that_nothing_defines_are_told(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/odd.py", "# %%\nprint(nowhere)\n")
    done = commit(ws, ["notebooks/odd.py"], "Add odd")
    assert done.commit
    ((path, finding),) = done.findings
    assert (path, finding.message) == ("notebooks/odd.py", "nowhere is not defined above")


def test_a_task_that_went_is_committed_as_gone(repo: Scratch, ws: Workspace) -> None:
    commit(ws, ["notebooks/sum.py"], "Its notebook")
    (repo.root / "notebooks/sum.py").unlink()
    done = commit(ws, ["notebooks/sum.py"], "Remove sum")
    assert done.paths == ("notebooks/sum.ipynb", "notebooks/sum.py")
    assert repo.git("ls-files") == ""
    assert repo.git("status", "--porcelain") == ""
    assert not (repo.root / "notebooks/sum.ipynb").exists()  # it would bring the task back
    with pytest.raises(DocumentError, match=r"there is no file notebooks/sum\.py"):
        commit(ws, ["notebooks/sum.py"], "Again")


def test_a_notebook_that_was_edited_does_not_go_with_its_task(repo: Scratch, ws: Workspace) -> None:
    commit(ws, ["notebooks/sum.py"], "Its notebook")
    py, nb = repo.root / "notebooks/sum.py", repo.root / "notebooks/sum.ipynb"
    py.unlink()
    nb.write_text(nb.read_text().replace("range(n)", "range(2)"))
    before = state(repo)
    for name in ("notebooks/sum.py", "notebooks/sum.ipynb", "notebooks"):
        with pytest.raises(UsageError, match=r"sum\.ipynb is there, and was edited"):
            commit(ws, [name], "Remove sum")
    assert state(repo) == before
    assert nb.exists()
    nb.unlink()
    assert len(commit(ws, ["notebooks/sum.ipynb"], "Remove sum").paths) == 2


def test_a_notebook_alone_is_not_taken_for_the_removal(repo: Scratch, ws: Workspace) -> None:
    commit(ws, ["notebooks/sum.py"], "Its notebook")
    (repo.root / "notebooks/sum.ipynb").unlink()
    with pytest.raises(UsageError, match=r"sum\.ipynb is gone but sum\.py is there") as caught:
        commit(ws, ["notebooks/sum.ipynb"], "Remove it?")
    assert "quire sync notebooks/sum.py" in caught.value.hint
    (repo.root / "notebooks/sum.py").unlink()
    repo.git("checkout", "--quiet", "--", "notebooks/sum.ipynb")
    with pytest.raises(UsageError, match=r"sum\.ipynb is there but its sum\.py is gone") as caught:
        commit(ws, ["notebooks/sum.ipynb"], "Which?")
    assert "quire commit notebooks/sum.py" in caught.value.hint


def test_a_folder_says_also_what_went_from_it(repo: Scratch, ws: Workspace) -> None:
    """A task that was renamed is one removed and one added."""
    repo.write("notebooks/old/greet.py", TASK)
    repo.write("notebooks/old/plain.py", "x = 1\n")
    repo.git("add", "notebooks/old/plain.py")
    commit(ws, ["notebooks"], "Both")
    (repo.root / "notebooks/sum.py").rename(repo.root / "notebooks/total.py")
    for path in (repo.root / "notebooks/old").iterdir():
        path.unlink()
    (repo.root / "notebooks/old").rmdir()
    done = commit(ws, ["notebooks"], "Rename it")
    names = ("old/greet.ipynb", "old/greet.py", "sum.ipynb", "sum.py", "total.ipynb", "total.py")
    assert done.paths == tuple(f"notebooks/{name}" for name in names)
    assert not (repo.root / "notebooks/sum.ipynb").exists()
    assert repo.git("status", "--porcelain") == "AD notebooks/old/plain.py"  # no task


def test_what_was_written_for_a_commit_that_is_refused_is_taken_back(
    repo: Scratch, ws: Workspace
) -> None:
    hook(repo, "pre-commit", "test -e notebooks/greet.ipynb || exit 7\nexit 1")
    repo.write("notebooks/greet.py", TASK)
    before = state(repo)
    with pytest.raises(QuireError):
        commit(ws, ["notebooks/greet.py"], "Add greet")
    assert not (repo.root / "notebooks/greet.ipynb").exists()
    assert state(repo) == before
    commit(ws, ["notebooks/greet.py"], "Add greet", hooks=False)
    nb = repo.root / "notebooks/greet.ipynb"
    old = nb.read_bytes()
    (repo.root / "notebooks/greet.py").write_text(TASK.replace("hello", "bye"))
    with pytest.raises(QuireError):
        commit(ws, ["notebooks/greet.py"], "Say bye")
    assert nb.read_bytes() == old


def test_an_empty_path_is_not_the_folder(repo: Scratch, ws: Workspace) -> None:
    with pytest.raises(UsageError, match="a path is empty"):
        commit(ws, [""], "Everything?")


def test_a_twin_that_git_ignores_is_left_out(repo: Scratch, ws: Workspace) -> None:
    repo.write(".git/info/exclude", "*.ipynb\n")
    repo.write("notebooks/greet.py", TASK)
    assert commit(ws, ["notebooks/greet.py"], "Add").paths == ("notebooks/greet.py",)
    repo.write(".git/info/exclude", "*.ipynb\nsecret.py\n")
    repo.write("notebooks/secret.py", TASK)
    with pytest.raises(UsageError, match=r"git ignores notebooks/secret\.py"):
        commit(ws, ["notebooks/secret.py"], "Add")


def test_the_filters_and_modes_of_the_repository_apply(repo: Scratch, ws: Workspace) -> None:
    repo.write(".gitattributes", "*.py text eol=lf\n")
    path = repo.root / "notebooks/greet.py"
    path.write_bytes(TASK.replace("\n", "\r\n").encode())
    path.chmod(0o755)
    commit(ws, ["notebooks/greet.py"], "Add greet")
    assert committed(repo, "notebooks/greet.py") + "\n" == TASK
    assert repo.git("ls-tree", "HEAD", "notebooks/greet.py").startswith("100755")
    assert repo.git("status", "--porcelain") == "?? .gitattributes"


# Branches.


@pytest.mark.parametrize("name", ["reports", "reports/x"])
def test_the_archives_branch_is_not_taken(repo: Scratch, ws: Workspace, name: str) -> None:
    repo.write("notebooks/greet.py", TASK)
    before = state(repo)
    with pytest.raises(UsageError, match="the archive of runs is on reports"):
        commit(ws, ["notebooks/greet.py"], "Add", branch=name)
    assert state(repo) == before
    assert commit(ws, ["notebooks/greet.py"], "Reports").branch == "reports-2"


@pytest.mark.parametrize(
    "name",
    ["", "-x", "--force", "a..b", "a b", "a\nb", "@", "HEAD", "refs/heads/x", "x.lock", "a~1"],
)
def test_names_that_cannot_be_branches(repo: Scratch, ws: Workspace, name: str) -> None:
    repo.write("notebooks/greet.py", TASK)
    before = state(repo)
    with pytest.raises(UsageError, match="cannot be the name of a branch"):
        commit(ws, ["notebooks/greet.py"], "Add", branch=name)
    assert state(repo) == before
    assert not (repo.root / "notebooks/greet.ipynb").exists()


@pytest.mark.parametrize(
    ("message", "branch"),
    [
        ("--force it", "force-it"),
        ("Größe: über 'alles'\n\nmore", "größe-über-alles"),
        ("!!!", "change"),
        ("x" * 300, "x" * 50),
        ("Ein " + "langes " * 30, "ein-" + "langes-" * 5 + "langes"),
        ("fix .. @{1} ~^: [a]", "fix-1-a"),
    ],
)
def test_names_from_messages(repo: Scratch, ws: Workspace, message: str, branch: str) -> None:
    repo.write("notebooks/greet.py", TASK)
    assert commit(ws, ["notebooks/greet.py"], message).branch == branch
    assert repo.git("branch", "--show-current") == branch
    assert repo.git("log", "-1", "--format=%B").strip() == message.strip()


def test_a_name_that_is_taken_gets_a_number(repo: Scratch, ws: Workspace) -> None:
    repo.git("branch", "add")
    repo.git("branch", "add-2/deep")
    repo.write("notebooks/greet.py", TASK)
    assert commit(ws, ["notebooks/greet.py"], "Add").branch == "add-3"
    with pytest.raises(UsageError, match="the branch add exists"):
        commit(ws, ["notebooks/greet.py"], "Add", branch="add")


def test_a_name_that_collides_with_a_folder_of_branches(repo: Scratch, ws: Workspace) -> None:
    repo.git("branch", "work")
    repo.write("notebooks/greet.py", TASK)
    before = state(repo)
    with pytest.raises(GitError, match="work"):
        commit(ws, ["notebooks/greet.py"], "Add", branch="work/x")
    assert state(repo) == before
    assert not (repo.root / ".git/index.lock").exists()


def test_main_is_committed_to_only_when_named(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/greet.py", TASK)
    assert commit(ws, ["notebooks/greet.py"], "Add", branch="main").branch == "main"


def test_the_configuration_says_what_is_main(repo: Scratch) -> None:
    repo.write("quire.toml", '[forge]\nbase = "develop"\n')
    repo.write("notebooks/greet.py", TASK)
    assert commit(workspace(repo), ["notebooks/greet.py"], "Add").branch == "main"
    repo.git("switch", "--quiet", "-c", "develop")
    repo.write("notebooks/greet.py", TASK + "1\n")
    assert commit(workspace(repo), ["notebooks/greet.py"], "Change").branch == "change"


def test_a_detached_head_gets_a_branch(repo: Scratch, ws: Workspace) -> None:
    repo.git("checkout", "--quiet", "--detach")
    repo.write("notebooks/greet.py", TASK)
    assert commit(ws, ["notebooks/greet.py"], "Add").branch == "add"
    assert repo.git("branch", "--show-current") == "add"


def test_the_archive_is_no_place_to_commit_to(repo: Scratch, ws: Workspace) -> None:
    repo.git("switch", "--quiet", "-c", "reports")
    with pytest.raises(UsageError, match="holds the archive of runs") as caught:
        commit(ws, ["notebooks/sum.py"], "Add")
    assert caught.value.hint == "git switch main"


def test_in_a_worktree(repo: Scratch, tmp_path: Path) -> None:
    repo.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = Scratch(tmp_path / "side")
    side.write("notebooks/greet.py", TASK)
    done = commit(workspace(side), ["notebooks/greet.py"], "Add greet")
    assert done.branch == "side"
    assert side.git("status", "--porcelain") == repo.git("status", "--porcelain") == ""


# What cannot be.


def test_outside_a_repository(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TASK)
    with pytest.raises(UsageError, match="is not in a git repository") as caught:
        commit(Workspace(tmp_path, cwd=tmp_path), ["a.py"], "Add")
    assert "git init" in caught.value.hint


def test_no_commits_bare_and_empty_messages(repo: Scratch, tmp_path: Path) -> None:
    empty = Scratch(tmp_path / "empty")
    empty.root.mkdir()
    empty.git("init", "--quiet")
    with pytest.raises(UsageError, match="has no commits yet"):
        commit(workspace(empty), ["a.py"], "Add")
    repo.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    with pytest.raises(UsageError, match="has no working tree"):
        commit(workspace(Scratch(tmp_path / "bare.git")), ["a.py"], "Add")
    with pytest.raises(UsageError, match="message is empty"):
        commit(workspace(repo), ["notebooks/sum.py"], " \n ")


def test_a_merge_under_way_is_finished_first(repo: Scratch, ws: Workspace) -> None:
    repo.write(".git/MERGE_HEAD", repo.git("rev-parse", "HEAD") + "\n")
    with pytest.raises(UsageError, match="a merge is under way"):
        commit(ws, ["notebooks/sum.py"], "Add")


def test_links_and_files_elsewhere(repo: Scratch, ws: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(TASK)
    (repo.root / "notebooks/link.py").symlink_to(outside)
    before = state(repo)
    with pytest.raises(UsageError, match=r"link\.py is a symbolic link"):
        commit(ws, ["notebooks/link.py"], "Add")
    with pytest.raises(UsageError, match="is not in the repository"):
        commit(ws, [outside], "Add")
    with pytest.raises(QuireError, match=r"there is no file notebooks/nope\.py"):
        commit(ws, ["notebooks/nope.py"], "Add")
    with pytest.raises(UsageError, match=r"neither a \.py nor an \.ipynb"):
        commit(ws, ["notebooks/../-x.txt"], "Add")
    assert state(repo) == before


def test_a_submodule_is_committed_where_it_belongs(repo: Scratch, ws: Workspace) -> None:
    inner = Scratch(repo.root / "inner")
    inner.root.mkdir()
    inner.git("init", "--quiet")
    inner.write("a.py", TASK)
    with pytest.raises(UsageError, match="in a repository of its own"):
        commit(ws, ["inner/a.py"], "Add")


def test_nobody_knows_who_commits(repo: Scratch) -> None:
    repo.git("config", "--unset", "user.email")
    before = state(repo)
    with pytest.raises(UsageError, match="git does not know who you are") as caught:
        commit(workspace(repo), ["notebooks/sum.py"], "Add")
    assert "git config user.name" in caught.value.hint
    assert state(repo) == before
    known = {"GIT_AUTHOR_EMAIL": "e@x.org", "GIT_COMMITTER_EMAIL": "e@x.org"}
    assert commit(workspace(repo, **known), ["notebooks/sum.py"], "Add").commit
    assert repo.git("log", "-1", "--format=%ae") == "e@x.org"


def test_a_locked_index_is_waited_for_by_the_user(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/greet.py", TASK)
    repo.write(".git/index.lock", "")
    before = state(repo)
    with pytest.raises(GitError, match="another git is at work"):
        commit(ws, ["notebooks/greet.py"], "Add")
    assert state(repo) == before
    assert (repo.root / ".git/index.lock").exists()


def test_a_locked_branch_is_left_alone(repo: Scratch, ws: Workspace) -> None:
    repo.write("notebooks/greet.py", TASK)
    repo.write(".git/refs/heads/add.lock", "")
    before = state(repo)
    with pytest.raises(GitError, match=r"add\.lock") as caught:
        commit(ws, ["notebooks/greet.py"], "Add")
    assert "another git is at work" in caught.value.hint
    assert state(repo) == before
    assert not (repo.root / ".git/index.lock").exists()


def test_a_repository_that_cannot_be_written(repo: Scratch, ws: Workspace) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    repo.write("notebooks/greet.py", TASK)
    folder = repo.root / ".git"
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(QuireError):
            commit(ws, ["notebooks/greet.py"], "Add")
    finally:
        folder.chmod(0o755)
    assert repo.git("branch", "--show-current") == "main"


# Hooks and signatures.


def test_a_hook_may_refuse(repo: Scratch, ws: Workspace) -> None:
    hook(repo, "pre-commit", "git diff --cached --name-only >&2; echo no good >&2; exit 1")
    repo.write("notebooks/greet.py", TASK)
    before = state(repo)
    with pytest.raises(GitError, match=r"pre-commit hook said no: .*greet\.py; no good") as caught:
        commit(ws, ["notebooks/greet.py"], "Add")
    assert "--no-verify" in caught.value.hint
    assert state(repo) == before
    assert commit(ws, ["notebooks/greet.py"], "Add", hooks=False).commit


def test_a_hook_may_change_message_and_files(repo: Scratch, ws: Workspace) -> None:
    hook(repo, "pre-commit", "echo made > made.txt && git add made.txt")
    hook(repo, "commit-msg", 'echo "Signed-off-by: A" >> "$1"')
    hook(repo, "post-commit", "echo done > .git/after")
    repo.write("notebooks/greet.py", TASK)
    done = commit(ws, ["notebooks/greet.py"], "Add\n\n# kept")
    assert done.paths == ("made.txt", "notebooks/greet.ipynb", "notebooks/greet.py")
    assert repo.git("log", "-1", "--format=%B").strip() == "Add\n\n# kept\nSigned-off-by: A"
    assert repo.git("status", "--porcelain") == ""
    assert (repo.root / ".git/after").read_text() == "done\n"


@pytest.mark.parametrize("branch", ["main", None])
def test_a_branch_that_moved_meanwhile(repo: Scratch, ws: Workspace, branch: str | None) -> None:
    """Somebody else commits between the first look and the last step."""
    hook(repo, "pre-commit", "git update-ref HEAD $(git commit-tree -p HEAD -m other HEAD^{tree})")
    repo.write("notebooks/greet.py", TASK)
    with pytest.raises(GitError, match="the current commit changed meanwhile"):
        commit(ws, ["notebooks/greet.py"], "Add", branch=branch)
    assert repo.git("log", "--format=%s", "--all").split("\n") == ["other", "Begin"]
    assert repo.git("branch", "--show-current") == "main"
    assert repo.git("status", "--porcelain", "-uall").split("\n") == [
        "?? notebooks/greet.ipynb",
        "?? notebooks/greet.py",
    ]
    assert list((repo.root / ".git").glob("*.lock")) == []


def test_a_commit_that_should_be_signed_is(repo: Scratch, tmp_path: Path) -> None:
    own = tmp_path / "gitconfig"
    ws = workspace(repo, GIT_CONFIG_GLOBAL=str(own))
    gpg = repo.write(
        ".git/gpg", "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho SIGNED\n"
    )
    gpg.chmod(0o755)
    repo.git("config", "commit.gpgSign", "true")
    own.write_text(f"[gpg]\n\tprogram = {gpg}\n")
    repo.write("notebooks/greet.py", TASK)
    commit(ws, ["notebooks/greet.py"], "Add")
    assert "gpgsig SIGNED" in repo.git("cat-file", "commit", "HEAD")
    own.write_text("[gpg]\n\tprogram = false\n")
    repo.write("notebooks/greet.py", TASK + "1\n")
    before = state(repo)
    with pytest.raises(GitError, match="sign"):
        commit(ws, ["notebooks/greet.py"], "More")
    assert state(repo) == before


# Pushing.


@pytest.fixture
def remote(repo: Scratch, tmp_path: Path) -> Path:
    path = tmp_path / "remote.git"
    repo.git("init", "--quiet", "--bare", "--initial-branch=main", str(path))
    repo.git("remote", "add", "origin", str(path))
    repo.git("push", "--quiet", "origin", "main")
    return path


def test_the_branch_is_pushed_where_there_is_a_remote(repo: Scratch, remote: Path) -> None:
    repo.write("notebooks/greet.py", TASK)
    done = commit(workspace(repo), ["notebooks/greet.py"], "Add greet")
    assert (done.pushed, done.warnings) == ("origin", ())
    assert Scratch(remote).git("rev-parse", "add-greet") == done.commit
    assert repo.git("rev-parse", "--abbrev-ref", "@{upstream}") == "origin/add-greet"
    repo.write("notebooks/greet.py", TASK + "1\n")
    assert commit(workspace(repo), ["notebooks/greet.py"], "More", push=False).pushed is None
    repo.write("quire.toml", "[forge]\npush = false\n")
    repo.write("notebooks/greet.py", TASK + "2\n")
    assert commit(workspace(repo), ["notebooks/greet.py"], "More").pushed is None
    repo.write("notebooks/greet.py", TASK + "3\n")
    done = commit(workspace(repo), ["notebooks/greet.py"], "More", push=True)
    assert Scratch(remote).git("rev-parse", "add-greet") == done.commit


def test_names_that_the_remote_has_are_taken(repo: Scratch, remote: Path) -> None:
    repo.git("push", "--quiet", "origin", "main:add-greet")
    repo.git("fetch", "--quiet", "origin")
    repo.write("notebooks/greet.py", TASK)
    with pytest.raises(UsageError, match="origin has a branch add-greet already"):
        commit(workspace(repo), ["notebooks/greet.py"], "Add greet", branch="add-greet")
    assert commit(workspace(repo), ["notebooks/greet.py"], "Add greet").branch == "add-greet-2"


def test_a_dead_remote_or_a_race_is_a_warning(repo: Scratch, remote: Path) -> None:
    repo.git("remote", "set-url", "origin", str(remote) + ".gone")
    repo.write("notebooks/greet.py", TASK)
    done = commit(workspace(repo), ["notebooks/greet.py"], "Add greet")
    assert done.commit == repo.git("rev-parse", "add-greet")
    (warning,) = done.warnings
    assert warning.startswith("not pushed: git push: ")
    assert warning.endswith("later: git push --set-upstream origin add-greet")
    repo.git("remote", "set-url", "origin", str(remote))
    other = repo.git("commit-tree", "-m", "theirs", "HEAD^{tree}")
    repo.git("push", "--quiet", "origin", f"{other}:refs/heads/add-greet")
    repo.write("notebooks/greet.py", TASK + "1\n")
    (warning,) = commit(workspace(repo), ["notebooks/greet.py"], "More").warnings
    assert "not pushed" in warning
    assert Scratch(remote).git("rev-parse", "add-greet") == other


# The command.


def test_the_command(repo: Scratch) -> None:
    repo.write("notebooks/greet.py", TASK + "nowhere\n")
    done = repo.quire("commit", "notebooks/greet.py", "-m", "Add greet")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0].endswith(" on add-greet (new)")
    assert "nowhere is not defined above" in done.stderr
    done = repo.quire("commit", "notebooks/greet.py", "-m", "Again")
    assert (done.returncode, done.stdout[:15]) == (0, "nothing changed")
    done = repo.quire("commit", "notebooks/greet.py", "-m", "Again", "--json")
    told = json.loads(done.stdout)
    assert (told["commit"], told["branch"]) == (None, "add-greet")
    done = repo.quire("commit", "notebooks/greet.py", "-m", "Again", "--branch", "a..b")
    assert done.returncode == 2
    assert "'a..b' cannot be the name of a branch" in done.stderr
