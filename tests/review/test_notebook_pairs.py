"""Pairs in git: nothing passes the gate or a review that stands in the `.ipynb` alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.ci.gate import gate
from quire.errors import ForgeError
from quire.proof.executed_notebooks_in_git import disagreeing_pairs
from quire.review.commit import commit
from quire.review.look import review
from quire.review.merge_proposal import merge_proposal
from quire.review.propose import propose
from quire.task import notebook_twin
from quire.workspace import Engine, Workspace
from scratch import Scratch

PY, NB = "notebooks/sum.py", "notebooks/sum.ipynb"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture
def paired(repo: Scratch) -> Scratch:
    """A task and its notebook on main, and a branch of work."""
    commit(workspace(repo), [PY], "Its notebook", branch="main")
    repo.git("switch", "--quiet", "-c", "work")
    return repo


def workspace(repo: Scratch, engine: Engine | None = None) -> Workspace:
    return Workspace(
        repo.root, cwd=repo.root, env={**os.environ, **repo.environment()}, engine=engine
    )


def by_hand(repo: Scratch) -> None:
    repo.git("add", "--all", "--force", "notebooks")
    repo.git("commit", "--quiet", "-m", "By hand")


def changed(repo: Scratch, change: Callable[[Any], object], name: str = NB) -> None:
    path = repo.root / name
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def code(data: Any) -> Any:
    return next(cell for cell in data["cells"] if "range(n)" in "".join(cell["source"]))


def steal(data: Any) -> None:
    code(data)["source"] = ["steal()"]


def believed(data: Any) -> None:
    """With stamps of its own making."""
    steal(data)
    there = notebook_twin.loads(json.dumps(data), ".ipynb")
    data["metadata"]["quire"]["cells_sha256"] = there.digest


def unstamped(data: Any) -> None:
    steal(data)
    del data["metadata"]["quire"]


def excused(data: Any) -> None:
    data["metadata"]["quire"]["ci"] = False


SLY: dict[str, Callable[[Any], object]] = {
    "code": steal,
    "code, with a new stamp": believed,
    "code, without a stamp": unstamped,
    "text": lambda data: data["cells"][0].update(source="# Subtract"),
    "order": lambda data: data["cells"].reverse(),
    "kind": lambda data: code(data).update(cell_type="raw"),
    "one more": lambda data: data["cells"].append({**code(data), "id": "more"}),
    "one less": lambda data: data["cells"].pop(),
    "tags": lambda data: code(data)["metadata"].update(tags=["parameters"]),
    "another kernel": lambda data: data["metadata"]["kernelspec"].update(name="bash"),
    "what it says of ci": excused,
}


@pytest.mark.parametrize("how", SLY)
def test_what_stands_in_the_notebook_alone_is_found(paired: Scratch, how: str) -> None:
    changed(paired, SLY[how])
    by_hand(paired)
    (told,) = disagreeing_pairs(workspace(paired))
    assert (told.task, told.outcome) == (NB, "differs")
    assert f"does not say what {PY} says" in told.error
    assert f"quire sync --take ipynb {NB}" in told.hint


def ran(data: Any) -> None:
    code(data).update(execution_count=3, outputs=[])
    data["metadata"]["language_info"] = {"name": "python", "version": "3.99"}
    data["metadata"]["kernelspec"]["display_name"] = "Python 3 (ipykernel)"


ALIKE: dict[str, Callable[[Any], object]] = {
    "nothing": lambda data: None,
    "a run": ran,
    "ids": lambda data: code(data).update(id="other"),
    "how it is shown": lambda data: code(data)["metadata"].update(collapsed=True, scrolled=True),
    "another tool's notes": lambda data: data["metadata"].update(toc={"nav_menu": {}}),
    "no stamp": lambda data: data["metadata"].pop("quire"),
    "an old stamp": lambda data: data["metadata"]["quire"].update(source_sha256="0"),
    "line ends": lambda data: code(data).update(
        source="".join(code(data)["source"]).replace("\n", "\r\n")
    ),
}


@pytest.mark.parametrize("how", ALIKE)
def test_the_same_said_otherwise_is_the_same(paired: Scratch, how: str) -> None:
    changed(paired, ALIKE[how])
    by_hand(paired)
    assert list(disagreeing_pairs(workspace(paired))) == []


def test_a_text_without_its_notebook_is_found_too(paired: Scratch) -> None:
    path = paired.root / PY
    path.write_text(path.read_text().replace("range(n)", "range(n + 1)"))
    assert list(disagreeing_pairs(workspace(paired))) == [], "nothing is committed or staged yet"
    paired.git("add", PY)
    (told,) = disagreeing_pairs(workspace(paired))
    assert told.task == NB
    commit(workspace(paired), [PY], "Both")
    assert list(disagreeing_pairs(workspace(paired))) == []


@pytest.mark.parametrize("data", [b"", b"{", b"<html>", "{}".encode("utf-16"), b"[" * 100_000])
def test_what_cannot_be_read_says_nothing_else(paired: Scratch, data: bytes) -> None:
    (paired.root / NB).write_bytes(data)
    by_hand(paired)
    (told,) = disagreeing_pairs(workspace(paired))
    assert told.task == NB


@pytest.mark.parametrize("name", [PY, NB])
def test_a_link_is_no_half_of_a_pair(paired: Scratch, name: str) -> None:
    path = paired.root / name
    path.rename(paired.root / f"elsewhere{path.suffix}")
    path.symlink_to(f"../elsewhere{path.suffix}")
    by_hand(paired)
    (told,) = disagreeing_pairs(workspace(paired))
    assert f"{name} is a link" in told.error


def test_a_name_in_capitals_hides_nothing(paired: Scratch) -> None:
    (paired.root / NB).rename(paired.root / "notebooks/sum.IPYNB")
    changed(paired, steal, "notebooks/sum.IPYNB")
    by_hand(paired)
    (told,) = disagreeing_pairs(workspace(paired))
    assert told.task == "notebooks/sum.IPYNB"


def test_a_module_beside_a_notebook_is_no_pair(paired: Scratch) -> None:
    paired.write("notebooks/m.py", "x = 1\n")
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "y"}
    own = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    paired.write("notebooks/m.ipynb", json.dumps(own))
    by_hand(paired)
    assert list(disagreeing_pairs(workspace(paired))) == []
    propose(workspace(paired), title="Beside")
    seen = review(workspace(paired), 1)
    assert "+# y\n" in seen.diff, "it is a task by itself, and shown as text"


def test_the_gate_fails(paired: Scratch, engine: Engine) -> None:
    changed(paired, steal)
    by_hand(paired)
    result = gate(workspace(paired, engine))
    assert {run.task: run.outcome for run in result.tasks} == {PY: "ok", NB: "differs"}
    assert not result.ok
    assert f'<testcase name="{NB}"' in (paired.root / ".quire/ci/junit.xml").read_text()
    summary = (paired.root / ".quire/ci/summary.md").read_text()
    assert f"### `{NB}`: not what its .py says" in summary


def test_a_review_says_it_first(paired: Scratch) -> None:
    changed(paired, unstamped)
    by_hand(paired)
    proposed = propose(workspace(paired), title="Sly")
    assert any(f"does not say what {PY} says" in warning for warning in proposed.warnings)
    (problem,) = review(workspace(paired), 1).problems
    assert problem == f"{NB}: it does not say what {PY} says"
    done = paired.quire("review", "1")
    assert done.returncode == 1
    assert done.stdout.index(problem) < done.stdout.index("== source")
    with pytest.raises(ForgeError, match="does not say what") as caught:
        merge_proposal(workspace(paired), 1)
    assert "quire sync --take" in caught.value.hint


def test_a_review_says_it_of_a_text_alone(paired: Scratch) -> None:
    path = paired.root / PY
    path.write_text(path.read_text().replace("range(n)", "range(n + 1)"))
    by_hand(paired)
    propose(workspace(paired), title="The text only")
    assert [nb.path for nb in review(workspace(paired), 1).notebooks if not nb.in_step] == [NB]


def test_a_review_shows_a_notebook_that_takes_the_place_of_its_text(paired: Scratch) -> None:
    (paired.root / PY).unlink()
    changed(paired, steal)
    by_hand(paired)
    propose(workspace(paired), title="Only the notebook")
    seen = review(workspace(paired), 1)
    assert "+steal()" in seen.diff
    assert {task.file.path for task in seen.tasks} == {PY, NB}


def test_the_way_of_a_person_who_uses_jupyter(paired: Scratch) -> None:
    """One step, and the refusal says which."""
    changed(paired, lambda data: code(data).update(source=["total = 4"]))
    refused = paired.quire("sync", NB)
    assert (refused.returncode, f"quire sync --take ipynb {NB}" in refused.stderr) == (2, True)
    assert paired.quire("sync", "--take", "ipynb", NB).returncode == 0
    assert "total = 4" in (paired.root / PY).read_text()
    commit(workspace(paired), [NB], "Four")
    assert list(disagreeing_pairs(workspace(paired))) == []


def test_nothing_is_committed_where_there_is_no_repository(tmp_path: Path) -> None:
    ws = Workspace(tmp_path, cwd=tmp_path, env=dict(os.environ))
    assert list(disagreeing_pairs(ws)) == []
