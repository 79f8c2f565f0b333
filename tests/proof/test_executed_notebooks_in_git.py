"""Executed notebooks in git: those whose outputs no run has produced are found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.ci.gate import gate
from quire.ci.gate_report import TaskRun
from quire.engine.run import run
from quire.proof.executed_notebooks_in_git import uncovered_notebooks
from quire.workspace import Engine, Workspace
from scratch import Scratch


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture
def ws(repo: Scratch, engine: Engine) -> Workspace:
    return Workspace(repo.root, cwd=repo.root, env=repo.environment(), engine=engine)


@pytest.fixture
def executed(repo: Scratch, ws: Workspace) -> Path:
    """What a run left, committed by hand."""
    path = repo.root / "docs" / "result.ipynb"
    path.parent.mkdir()
    assert run("notebooks/sum.py", workspace=ws, output=path).ok
    add(repo)
    return path


def add(repo: Scratch) -> None:
    repo.git("add", "--all", "--force", "docs")


def forged(path: Path) -> None:
    nb = json.loads(path.read_text())
    cell = next(cell for cell in nb["cells"] if cell.get("outputs"))
    cell["outputs"][0]["text"] = ["total 7\n"]
    path.write_text(json.dumps(nb))


def found(ws: Workspace, base: str = "") -> list[TaskRun]:
    fresh = Workspace(ws.root, cwd=ws.cwd, env=ws.env, engine=ws.engine)
    return list(uncovered_notebooks(fresh, base))


def test_what_a_run_produced_is_covered(ws: Workspace, executed: Path) -> None:
    assert found(ws) == []


def test_a_forged_output_is_named(repo: Scratch, ws: Workspace, executed: Path) -> None:
    forged(executed)
    add(repo)
    (told,) = found(ws)
    assert (told.task, told.outcome) == ("docs/result.ipynb", "uncovered")
    cell = next(c for c in json.loads(executed.read_text())["cells"] if c.get("outputs"))
    assert cell["id"] in told.error
    assert cell["id"] in told.traceback
    assert "docs/result.ipynb quire=unproven" in told.hint


def test_it_fails_the_gate_with_a_case_of_its_own(
    repo: Scratch, ws: Workspace, executed: Path
) -> None:
    forged(executed)
    add(repo)
    repo.git("commit", "--quiet", "-m", "Forge")
    repo.git("switch", "--quiet", "-c", "work")
    result = gate(ws)
    assert not result.ok, "it is found although no task is affected"
    assert [run.task for run in result.tasks] == ["docs/result.ipynb"]
    assert '<testcase name="docs/result.ipynb"' in (repo.root / ".quire/ci/junit.xml").read_text()
    summary = (repo.root / ".quire/ci/summary.md").read_text()
    assert "### `docs/result.ipynb`: not covered by a run" in summary


def notebook(**cell: Any) -> str:
    base = {"cell_type": "code", "id": "a1", "metadata": {}, "source": "1", "outputs": []}
    nb = {
        "cells": [{**base, "execution_count": None, **cell}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(nb)


PRINTED = [{"output_type": "stream", "name": "stdout", "text": ["no kernel said this\n"]}]


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (notebook(), False),
        (notebook(outputs=PRINTED), True),
        (notebook(execution_count=3), True),
        (notebook(outputs=PRINTED, execution_count=3), True),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", True),
        (notebook(outputs=PRINTED).replace("outputs", "outp\\u0075ts"), True),
        (notebook()[:-1] + ', "worksheets": [{"cells": [{"outputs": [1]}]}]}', True),
        (notebook()[:-1] + ', "cells": []}', True),
        ("<html>", True),
        ("", False),
        ('{"outputs": ', True),
        ('{"worksheets": [{"cells": [{"outputs": [1]}]}]}', True),
    ],
)
def test_what_shows_outputs(repo: Scratch, ws: Workspace, text: str, is_found: bool) -> None:
    repo.write("docs/x.ipynb", text)
    add(repo)
    assert [run.task for run in found(ws)] == ["docs/x.ipynb"] * is_found


def test_the_hint_says_when_there_is_no_archive(repo: Scratch, ws: Workspace) -> None:
    repo.write("docs/x.ipynb", notebook(outputs=PRINTED))
    add(repo)
    assert "is the branch reports fetched?" in found(ws)[0].hint


def test_marked_as_unproven(repo: Scratch, ws: Workspace) -> None:
    repo.write("docs/x.ipynb", notebook(outputs=PRINTED))
    repo.write("docs/y.ipynb", notebook(outputs=PRINTED))
    repo.write(".gitattributes", "docs/x.ipynb quire=unproven\n")
    add(repo)
    assert len(found(ws)) == 2, "it counts when it is committed"
    repo.git("add", ".gitattributes")
    repo.git("commit", "--quiet", "-m", "Excuse one")
    assert [run.task for run in found(ws)] == ["docs/y.ipynb"]


@pytest.mark.parametrize("everything", [False, True])
def test_a_change_cannot_excuse_itself(repo: Scratch, ws: Workspace, everything: bool) -> None:
    """The main branch's word counts, as in a review; also where all tasks are run."""
    repo.write(".gitattributes", "docs/old.ipynb quire=unproven\n")
    repo.git("add", ".gitattributes")
    repo.git("commit", "--quiet", "-m", "Excuse one")
    repo.git("switch", "--quiet", "-c", "work")
    (repo.root / "notebooks/sum.py").unlink()
    repo.write(".gitattributes", "*.ipynb quire=unproven\n")
    repo.write("docs/old.ipynb", notebook(outputs=PRINTED))
    repo.write("docs/new.ipynb", notebook(outputs=PRINTED))
    repo.git("add", "--all", "--force", ".gitattributes", "docs")
    repo.git("commit", "--quiet", "-m", "Excuse them all")
    assert [run.task for run in gate(ws, everything=everything).tasks] == ["docs/new.ipynb"]


def test_before_the_first_commit(scratch: Scratch, engine: Engine) -> None:
    scratch.git("init", "--quiet")
    scratch.write("docs/x.ipynb", notebook(outputs=PRINTED))
    add(scratch)
    ws = Workspace(scratch.root, cwd=scratch.root, env=scratch.environment(), engine=engine)
    assert [run.task for run in found(ws)] == ["docs/x.ipynb"]


def test_what_is_not_in_git_is_nobodys(repo: Scratch, ws: Workspace) -> None:
    repo.write("docs/x.ipynb", notebook(outputs=PRINTED))
    assert found(ws) == []


def test_the_working_tree_counts_where_no_filter_strips_it(repo: Scratch, ws: Workspace) -> None:
    repo.write("docs/x.ipynb", notebook())
    add(repo)
    repo.git("commit", "--quiet", "-m", "Clean")
    repo.write("docs/x.ipynb", notebook(outputs=PRINTED))
    assert len(found(ws)) == 1
    repo.write(".gitattributes", "*.ipynb filter=quire\n")
    assert found(ws) == []
    repo.git("rm", "--quiet", "--cached", "docs/x.ipynb")
    repo.write(".gitattributes", "")
    assert found(ws) == []


def test_a_removed_file_is_not_looked_for(repo: Scratch, ws: Workspace, executed: Path) -> None:
    forged(executed)
    add(repo)
    executed.unlink()
    assert found(ws) == [], "it is not there any more, and will not be committed"


def test_a_name_in_capitals_hides_nothing(repo: Scratch, ws: Workspace) -> None:
    repo.write("docs/UP.IPYNB", notebook(outputs=PRINTED))
    add(repo)
    (told,) = found(ws)
    assert told.task == "docs/UP.IPYNB"


def test_names_and_links(repo: Scratch, ws: Workspace) -> None:
    odd = 'docs/ä "b"\n\t.ipynb'
    repo.write(odd, notebook(outputs=PRINTED))
    (repo.root / "docs" / "link.ipynb").symlink_to("/etc/hostname")
    add(repo)
    link, told = found(ws)
    assert (link.task, told.task) == ("docs/link.ipynb", odd)
    assert "leads out" in link.error + link.traceback
    assert "\n" not in told.error


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("outputs", [PRINTED, []])
def test_an_encoding_hides_nothing(
    repo: Scratch, ws: Workspace, encoding: str, outputs: list[Any]
) -> None:
    (repo.root / "docs").mkdir()
    (repo.root / "docs/x.ipynb").write_bytes(notebook(outputs=outputs).encode(encoding))
    add(repo)
    assert [run.task for run in found(ws)] == ["docs/x.ipynb"]


def test_a_link_hides_nothing(repo: Scratch, ws: Workspace) -> None:
    repo.write("docs/data.json", notebook(outputs=PRINTED))
    repo.write("docs/clean.ipynb", notebook())
    for name, target in (("a", "data.json"), ("b", "clean.ipynb"), ("c", "none.ipynb"), ("d", "d")):
        (repo.root / f"docs/{name}.ipynb").symlink_to(target)
    (repo.root / "docs/e.ipynb").symlink_to("d.ipynb")
    add(repo)
    assert [run.task for run in found(ws)] == [f"docs/{name}.ipynb" for name in "acde"]


def test_the_content_of_a_large_file_counts(repo: Scratch, ws: Workspace) -> None:
    """As git takes it in: the index has a pointer, the working tree the notebook."""
    repo.write(".gitattributes", "docs/*.ipynb filter=lfs\n")
    repo.git("config", "filter.lfs.clean", "cat > /dev/null; echo version https://git-lfs/1")
    repo.write("docs/x.ipynb", notebook())
    add(repo)
    assert repo.git("show", ":docs/x.ipynb").startswith("version")
    assert found(ws) == []
    repo.write("docs/x.ipynb", notebook(outputs=PRINTED))
    assert len(found(ws)) == 1


def test_without_the_base_nobody_is_excused(repo: Scratch, ws: Workspace, executed: Path) -> None:
    """Where the base is not in the clone, the word of the change does not stand for it."""
    repo.write(".gitattributes", "docs/x.ipynb quire=unproven\n")
    repo.write("docs/x.ipynb", notebook(outputs=PRINTED))
    repo.git("add", "--all", "--force", ".gitattributes", "docs")
    repo.git("commit", "--quiet", "-m", "Excuse it")
    assert found(ws) == []
    env = {**ws.env, "GITHUB_BASE_REF": "elsewhere"}
    result = gate(Workspace(ws.root, cwd=ws.cwd, env=env, engine=ws.engine))
    assert [run.task for run in result.failures] == ["docs/x.ipynb"]


def test_another_workspace_of_the_repository(repo: Scratch, engine: Engine) -> None:
    repo.write("docs/x.ipynb", notebook(outputs=PRINTED))
    repo.write("docs/team/quire.toml", "")
    repo.write("docs/team/y.ipynb", notebook(outputs=PRINTED))
    add(repo)
    root = repo.root / "docs" / "team"
    ws = Workspace(root, cwd=root, env=repo.environment(), engine=engine)
    assert [run.task for run in found(ws)] == ["y.ipynb"]


def test_a_change_cannot_bring_its_own_key(repo: Scratch, ws: Workspace, executed: Path) -> None:
    """The keys that count are those of the base."""
    repo.write(".quire-keys", "")
    repo.git("add", "--all", "--force", ".quire-keys", "docs")
    repo.git("commit", "--quiet", "-m", "Trust nobody")
    base = repo.git("rev-parse", "HEAD")
    (repo.root / ".quire-keys").unlink()
    assert found(ws) == []
    (told,) = found(ws, base)
    assert told.task == "docs/result.ipynb"


def test_no_repository(scratch: Scratch, engine: Engine) -> None:
    ws = Workspace(scratch.root, cwd=scratch.root, env=scratch.environment(), engine=engine)
    scratch.write("x.ipynb", notebook(outputs=PRINTED))
    assert found(ws) == []
