"""What a change affects, in real repositories."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.ci.affected import Change, affected, change, configuration
from quire.ci.tasks import find
from quire.errors import UsageError
from quire.workspace import Workspace
from scratch import Scratch

ON_MAIN = "this is main"


def workspace(repo: Scratch, **env: str) -> Workspace:
    return Workspace(repo.root, cwd=repo.root, env={**repo.environment(), **env})


def reasons(repo: Scratch, base: str | None = None, **env: str) -> dict[str, str]:
    ws = workspace(repo, **env)
    hit = affected(ws, find(ws).tasks, change(ws, base))
    return {str(path.relative_to(repo.root.resolve())): reason for path, reason in hit.items()}


def commit(repo: Scratch, message: str = "Change") -> None:
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "-m", message)


@pytest.fixture
def branch(tmp_path: Path, made: Path) -> Scratch:
    """Tasks with all kinds of needs, on a branch that has changed nothing yet."""
    return Scratch(shutil.copytree(made, tmp_path / "repo"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repo = Scratch(tmp_path_factory.mktemp("made") / "repo")
    repo.root.mkdir()
    repo.git("init", "--quiet", "--initial-branch=main")
    repo.git("config", "user.name", "Ada Tester")
    repo.git("config", "user.email", "ada@example.org")
    repo.write("notebooks/alone.py", "# %%\nprint('hello')\n")
    repo.write("notebooks/imports.py", "# %%\nimport lib.inner\n")
    repo.write("notebooks/beside.py", "# %%\nfrom near import x\n")
    repo.write("notebooks/sub/package.py", "# %%\nfrom pkg import tool\n")
    repo.write(
        "notebooks/runs.py", "# %%\nfrom quire.runtime import run\nrun('notebooks/alone.py')\n"
    )
    repo.write("notebooks/runs_near.py", "# %%\n%run imports.py\n")
    repo.write("notebooks/data.py", "# %%\nopen('data/a.csv')\n")
    repo.write("notebooks/pieces.py", "# %%\nfrom pathlib import Path\np = Path('data') / name\n")
    repo.write("notebooks/globs.py", "# %%\nglob.glob('tables/*.csv')\n")
    repo.write("notebooks/near.py", "x = 1\n")
    repo.write("lib/__init__.py", "")
    repo.write("lib/inner.py", "from .deep import y\n")
    repo.write("lib/deep.py", "y = 'settings/y.json'\n")
    repo.write("settings/y.json", "{}\n")
    repo.write("src/pkg/__init__.py", "")
    repo.write("src/pkg/tool.py", "import near_nothing\n")
    repo.write("data/a.csv", "1\n")
    repo.write("data/b.csv", "1\n")
    repo.write("tables/t.csv", "1\n")
    repo.write("README.md", "hello\n")
    commit(repo)
    repo.git("switch", "--quiet", "-c", "work")
    for sample in (repo.root / ".git" / "hooks").iterdir():
        sample.unlink()
    return repo.root


def edit(repo: Scratch, name: str) -> None:
    path = repo.root / name
    comment = "#" if name.endswith(".py") else ""
    path.write_text(path.read_text() + f"{comment} more\n")


CASES = {
    "README.md": {},
    "notebooks/alone.py": {"alone": "it changed", "runs": "notebooks/alone.py changed"},
    "lib/inner.py": {
        "imports": "lib/inner.py changed",
        "runs_near": "lib/inner.py changed",
    },
    "lib/deep.py": {"imports": "lib/deep.py changed", "runs_near": "lib/deep.py changed"},
    "lib/__init__.py": {
        "imports": "lib/__init__.py changed",
        "runs_near": "lib/__init__.py changed",
    },
    "settings/y.json": {
        "imports": "settings/y.json changed",
        "runs_near": "settings/y.json changed",
    },
    "notebooks/near.py": {"beside": "notebooks/near.py changed"},
    "src/pkg/tool.py": {"sub/package": "src/pkg/tool.py changed"},
    "data/a.csv": {"data": "data/a.csv changed", "pieces": "data/a.csv changed"},
    "data/b.csv": {"pieces": "data/b.csv changed"},
    "tables/t.csv": {"globs": "tables/t.csv changed"},
}


@pytest.mark.parametrize("name", CASES)
def test_one_file_changed(branch: Scratch, name: str) -> None:
    wanted = {f"notebooks/{task}.py": reason for task, reason in CASES[name].items()}
    edit(branch, name)
    assert reasons(branch) == wanted, "edited"
    branch.git("add", "--all")
    assert reasons(branch) == wanted, "staged"
    branch.git("commit", "--quiet", "-m", "Change")
    assert reasons(branch) == wanted, "committed"
    (branch.root / name).unlink()
    wanted.pop(name, None)  # it is no task any more
    assert reasons(branch) == wanted, "removed"


def test_nothing_changed(branch: Scratch) -> None:
    assert reasons(branch) == {}
    assert change(workspace(branch)).base == branch.git("rev-parse", "main")


def test_a_new_task_and_a_new_module(branch: Scratch) -> None:
    branch.write("notebooks/new.py", "# %%\nimport lib.fresh\n")
    branch.write("near_nothing.py", "x = 1\n")
    assert reasons(branch) == {
        "notebooks/new.py": "it changed",
        "notebooks/sub/package.py": "near_nothing.py changed",
    }


def test_the_twin_counts(branch: Scratch) -> None:
    nb = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    branch.write("notebooks/alone.ipynb", json.dumps(nb))
    assert reasons(branch)["notebooks/alone.py"] == "it changed"


def test_what_main_did_meanwhile_does_not_count(branch: Scratch) -> None:
    edit(branch, "data/a.csv")
    commit(branch)
    branch.git("switch", "--quiet", "main")
    edit(branch, "lib/deep.py")
    commit(branch)
    branch.git("switch", "--quiet", "work")
    assert set(reasons(branch)) == {"notebooks/data.py", "notebooks/pieces.py"}


def test_a_file_that_was_renamed_counts_under_both_names(branch: Scratch) -> None:
    branch.git("mv", "data/a.csv", "data/c.csv")
    commit(branch)
    assert reasons(branch)["notebooks/data.py"] == "data/a.csv changed"


def test_names_that_need_quoting(branch: Scratch) -> None:
    name = 'data/ä "b"\n\t.csv'
    branch.write("notebooks/odd.py", f"# %%\nopen({'data/ä'!r} + rest)\nopen('data')\n")
    branch.write(name, "1\n")
    commit(branch)
    (branch.root / name).write_text("2\n")
    assert "notebooks/odd.py" in reasons(branch)


@pytest.mark.parametrize(
    "name",
    [
        "quire.toml",
        "pyproject.toml",
        "uv.lock",
        "poetry.lock",
        "Pipfile",
        "Pipfile.lock",
        "requirements.txt",
        "requirements-dev.txt",
        "requirements/ci.txt",
        "libs/a/pyproject.toml",
        "constraints.txt",
        "environment.yml",
        ".python-version",
        ".quire-keys",
        ".github/workflows/ci.yml",
        ".gitea/workflows/notebook-ci.yml",
    ],
)
def test_the_configuration_affects_all(branch: Scratch, name: str) -> None:
    branch.write(name, "")
    assert everything(branch) == f"the configuration changed: {name}"
    found = reasons(branch)
    assert set(found.values()) == {f"the configuration changed: {name}"}
    assert len(found) == len(find(workspace(branch)).tasks)


@pytest.mark.parametrize(
    "name", ["myquire.toml", "notes/lock.txt", ".github/CODEOWNERS", "a.lock.py", "pipfile.md"]
)
def test_what_only_looks_like_configuration(name: str) -> None:
    assert not configuration(Path("/r") / name)


def test_preloaded_modules_are_every_tasks(branch: Scratch) -> None:
    branch.write("quire.toml", 'preload = ["lib.deep"]\n')
    commit(branch)
    branch.git("switch", "--quiet", "main")
    branch.git("merge", "--quiet", "work")
    branch.git("switch", "--quiet", "-c", "next")
    edit(branch, "lib/deep.py")
    assert len(reasons(branch)) == len(find(workspace(branch)).tasks)


def test_modules_that_import_each_other(branch: Scratch) -> None:
    branch.write("lib/a.py", "import lib.b\n")
    branch.write("lib/b.py", "import lib.a\nfrom ..... import too_far\n")
    branch.write("notebooks/circle.py", "# %%\nimport lib.a\nopen('notebooks/circle.py')\n")
    commit(branch)
    edit(branch, "lib/b.py")
    assert "notebooks/circle.py" in reasons(branch, "HEAD")


def test_a_workspace_below_the_top(branch: Scratch) -> None:
    branch.write("team/quire.toml", "")
    branch.write("team/notebooks/t.py", "# %%\nimport helper\nopen('../data/a.csv')\n")
    branch.write("team/helper.py", "")
    commit(branch)
    team = Scratch(branch.root / "team")
    edit(branch, "team/helper.py")
    assert reasons(team, "HEAD") == {"notebooks/t.py": "helper.py changed"}
    branch.git("checkout", "--quiet", "--", ".")
    edit(branch, "data/a.csv")
    assert reasons(team, "HEAD") == {"notebooks/t.py": "data/a.csv changed"}


def everything(repo: Scratch, base: str | None = None, **env: str) -> str:
    found = change(workspace(repo, **env), base)
    assert isinstance(found, Change)
    return found.everything


def test_whose_rules_count(branch: Scratch) -> None:
    """Those of the branch that the change goes onto, as it is now, whatever is run."""
    edit(branch, "README.md")
    commit(branch)
    since = branch.git("rev-parse", "main")
    branch.git("switch", "--quiet", "main")
    assert change(workspace(branch)).onto == ""
    edit(branch, "data/a.csv")
    commit(branch)
    onto = branch.git("rev-parse", "main")
    branch.git("switch", "--quiet", "work")
    found = change(workspace(branch))
    assert (found.base, found.onto) == (since, onto)
    every = change(workspace(branch), everything="--all was given")
    assert (every.base, every.onto, every.everything) == ("", onto, "--all was given")
    branch.git("switch", "--quiet", "--orphan", "other")
    branch.git("commit", "--quiet", "--allow-empty", "-m", "Apart")
    assert change(workspace(branch)).onto == onto


def test_on_main_itself(repo: Scratch) -> None:
    assert everything(repo) == ON_MAIN
    assert reasons(repo) == {"notebooks/sum.py": ON_MAIN}


def test_no_repository(scratch: Scratch) -> None:
    assert everything(scratch) == "there is no git repository to compare with"
    with pytest.raises(UsageError, match="in no working tree of git"):
        change(workspace(scratch), "main")


def test_no_commit(scratch: Scratch) -> None:
    scratch.git("init", "--quiet")
    assert everything(scratch) == "the repository has no commit yet"


def test_a_bare_repository(scratch: Scratch) -> None:
    scratch.git("init", "--quiet", "--bare")
    assert everything(scratch) == "there is no git repository to compare with"


def test_no_main_branch(repo: Scratch) -> None:
    repo.git("branch", "--move", "trunk")
    assert everything(repo).startswith("there is no main branch to compare with")
    assert reasons(repo, "trunk") == {}


def test_the_forges_base_is_main(repo: Scratch) -> None:
    repo.git("branch", "--move", "trunk")
    repo.write("quire.toml", '[forge]\nbase = "trunk"\n')
    assert everything(repo) == "this is trunk"


def test_a_detached_head(branch: Scratch) -> None:
    branch.git("switch", "--quiet", "--detach", "main")
    assert everything(branch) == ON_MAIN
    branch.git("switch", "--quiet", "--detach", "work")
    edit(branch, "data/b.csv")
    commit(branch)
    assert reasons(branch) == {"notebooks/pieces.py": "data/b.csv changed"}


def cloned(branch: Scratch, tmp_path: Path, *options: str) -> Scratch:
    """As a workflow checks it out."""
    there = Scratch(tmp_path / "clone")
    there.root.mkdir()
    branch.git("switch", "--quiet", "main")  # a clone takes the current branch for the main one
    source = f"file://{branch.root}"
    there.git("clone", "--quiet", *options, "--branch", "work", source, ".")
    return there


@pytest.mark.parametrize("variable", ["GITHUB_BASE_REF", "GITEA_BASE_REF"])
def test_the_base_of_a_pull_request(branch: Scratch, tmp_path: Path, variable: str) -> None:
    branch.git("branch", "release/1", "main")
    edit(branch, "data/b.csv")
    commit(branch)
    clone = cloned(branch, tmp_path)
    assert reasons(clone, **{variable: "release/1"}) == {
        "notebooks/pieces.py": "data/b.csv changed"
    }
    assert everything(clone, **{variable: "nowhere"}) == (
        "the base branch nowhere is not in this clone"
    )
    assert "cannot be the name of a branch" in everything(clone, **{variable: "--upload-pack=x"})
    # Without the variable, the remote's main.
    assert set(reasons(clone)) == {"notebooks/pieces.py"}


def test_a_shallow_clone(branch: Scratch, tmp_path: Path) -> None:
    edit(branch, "data/b.csv")
    commit(branch)
    clone = cloned(branch, tmp_path, "--depth", "1")
    shallow = "this is a shallow clone (in a workflow: fetch-depth: 0)"
    assert everything(clone, GITHUB_BASE_REF="main") == (
        f"the base branch main is not in this clone: {shallow}"
    )
    assert everything(clone, "origin/main") == f"origin/main is not in this clone: {shallow}"
    clone.git("fetch", "--quiet", "--depth", "1", "origin", "main:refs/remotes/origin/main")
    assert everything(clone).endswith(f"is not known: {shallow}")


def test_histories_with_nothing_in_common(branch: Scratch) -> None:
    branch.git("switch", "--quiet", "--orphan", "other")
    branch.write("notebooks/x.py", "# %%\n1\n")
    commit(branch)
    assert everything(branch).endswith("their histories have nothing in common")


@pytest.mark.parametrize(
    "name", ["nix", "--help", "-h", "", "a b", "HEAD:README.md", "a\0b", "..."]
)
def test_a_base_that_is_none(branch: Scratch, name: str) -> None:
    with pytest.raises(UsageError, match="git knows no commit"):
        change(workspace(branch), name)


@pytest.mark.parametrize(
    "spell", [lambda head: head, lambda head: head[:10], lambda _: "main", lambda _: "HEAD~0"]
)
def test_ways_to_name_a_base(branch: Scratch, spell: Callable[[str], str]) -> None:
    edit(branch, "data/b.csv")
    base = spell(branch.git("rev-parse", "main"))
    assert reasons(branch, base) == {"notebooks/pieces.py": "data/b.csv changed"}


def test_a_task_that_runs_a_logbook_template_is_affected_by_it(branch: Scratch) -> None:
    place = "logbooks/templates/GREET.md"
    branch.write(place, '---\nparameters:\n  name: ...\n---\n```python\nprint("{name}")\n```\n')
    branch.write(
        "notebooks/greeting.py",
        f'# %%\nfrom quire.runtime import run\n\nrun("{place}", {{"name": "CI"}})\n',
    )
    commit(branch)
    branch.git("switch", "--quiet", "--create", "next")
    branch.write(place, '---\nparameters:\n  name: ...\n---\n```python\nprint("Hi {name}")\n```\n')
    base = branch.git("rev-parse", "HEAD")
    assert reasons(branch, base) == {"notebooks/greeting.py": f"{place} changed"}


def test_the_versions_that_are_fixed_for_a_task_belong_to_it(branch: Scratch) -> None:
    branch.write("notebooks/alone.lock.txt", "six==1.0\n")
    assert set(reasons(branch)) == {"notebooks/alone.py", "notebooks/runs.py"}
    branch.write("quire.lock.txt", "six==1.0\n")
    assert len(reasons(branch)) > 2
