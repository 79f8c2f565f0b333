"""Which files are tasks, and what they say of CI."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.ci.tasks import Settings, find, said_by, settings
from quire.errors import DocumentError, UsageError
from quire.task import formats
from quire.task.read_task import read
from quire.workspace import Workspace
from scratch import Scratch

TASK = "# %%\nprint(1)\n"
NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
OF_A_RUN = NOTEBOOK.replace('"metadata": {}', '"metadata": {"quire": {"run_id": "x"}}')


def found(scratch: Scratch) -> list[str]:
    root = scratch.root
    return [str(path.relative_to(root)) for path in find(Workspace(root, cwd=root)).tasks]


def test_tasks_and_what_is_none(scratch: Scratch) -> None:
    for name, text in {
        "notebooks/b.py": TASK,
        "notebooks/a/deep.py": TASK,
        "notebooks/only.ipynb": NOTEBOOK,
        "notebooks/b.ipynb": NOTEBOOK,
        "notebooks/library.py": "def f():\n    return '# %% not a cell'\n",
        "notebooks/writer.py": 'TEXT = """\n# %%\nx\n"""\n',
        "notebooks/beside.py": "x = 1\n",
        "notebooks/beside.ipynb": NOTEBOOK,
        "notebooks/exported.ipynb": OF_A_RUN,
        "notebooks/.hidden.py": TASK,
        "notebooks/.ipynb_checkpoints/b-checkpoint.py": TASK,
        "notebooks/_draft.py": TASK,
        "notebooks/_parts/x.py": TASK,
        "notebooks/templates/x.py": TASK,
        "notebooks/venv/x.py": TASK,
        "notebooks/env/pyvenv.cfg": "",
        "notebooks/env/x.py": TASK,
        "notebooks/notes.md": "# Notes",
        "elsewhere/x.py": TASK,
    }.items():
        scratch.write(name, text)
    assert found(scratch) == [
        "notebooks/a/deep.py",
        "notebooks/b.py",
        "notebooks/beside.ipynb",
        "notebooks/only.ipynb",
    ]


def test_what_cannot_be_read_is_a_task_so_that_somebody_says_so(scratch: Scratch) -> None:
    scratch.write("notebooks/broken.ipynb", "{'run_id': ")
    scratch.write("notebooks/utf16.py", "").write_bytes("# %%\n".encode("utf-16"))
    (scratch.root / "notebooks/nul.py").write_bytes(b"# %%\n\0")
    assert found(scratch) == ["notebooks/broken.ipynb", "notebooks/nul.py"]


def test_links(scratch: Scratch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Those that lead out are not followed and named; the others count once."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.py").write_text(TASK)
    scratch.write("notebooks/a.py", TASK)
    scratch.write("lib/task.py", TASK)
    notebooks = scratch.root / "notebooks"
    (notebooks / "out.py").symlink_to(outside / "x.py")
    (notebooks / "folder").symlink_to(outside)
    (notebooks / "lib").symlink_to(scratch.root / "lib")
    (notebooks / "deep").mkdir()
    (notebooks / "deep" / "up").symlink_to(notebooks)  # walked already
    (notebooks / "_draft").symlink_to(outside)  # whose name says that it is none
    (notebooks / "again.py").symlink_to(notebooks / "a.py")
    (notebooks / "in.py").symlink_to(scratch.root / "lib" / "task.py")
    (notebooks / "gone.py").symlink_to(outside / "nowhere.py")
    (notebooks / "loop.py").symlink_to(notebooks / "loop.py")
    there = find(Workspace(scratch.root, cwd=scratch.root))
    assert [p.name for p in there.tasks] == ["task.py", "a.py"]
    assert {p.name: why for p, why in there.links.items()} == {
        "folder": "a link that leads out",
        "out.py": "a link that leads out",
        "lib": "a link to a folder, which is not followed",
    }


@pytest.mark.parametrize("text", ["\ufeff# %%\n1\n", "x = 1\r# %%\r1\r", "\f# %%\n1\n"])
def test_whatever_can_be_run_is_found(scratch: Scratch, text: str) -> None:
    (scratch.root / "notebooks").mkdir()
    (scratch.root / "notebooks/a.py").write_bytes(text.encode())
    assert found(scratch) == ["notebooks/a.py"]


HEADERS = {
    "below": "# ---\n# jupyter:\n#   quire:\n#     ci: false\n# ---\n",
    "front matter": "# ---\n# title: Sales\n# jupyter: python3\n# ---\n",
    "none": "# Sales\n# ---\n# by region\n",
    "beside": "# ---\n# jupyter:\n# quire:\n#   ci: false\n# ---\n",
    "alone": "# ---\n# quire:\n#   ci: false\n# ---\n\n",
    "on one line": "# ---\n# jupyter: {quire: {ci: false}}\n# ---\n",
    "broken": "# ---\n# jupyter: {quire: {ci: false\n# ---\n",
    "broken front": "# ---\n# title: [\n# jupyter:\n#   quire: {ci: false}\n# ---\n",
    "no end": "# ---\n# jupyter:\n#   quire:\n#     ci: false\n\n",
    "torn": "# ---\n# jupyter:\n#   quire:\n     ci: false\n# ---\n",
    "not at the top": "# By Ada\n# ---\n# jupyter:\n#   quire: {ci: false}\n# ---\n",
    "behind a blank line": "\n# ---\n# jupyter:\n#   quire: {ci: false}\n# ---\n",
    "a word": "# ---\n# jupyter:\n#   quire: ci\n# ---\n",
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_nobody_reads_is_an_error(scratch: Scratch, name: str) -> None:
    scratch.write("notebooks/a.py", HEADERS[name] + TASK)
    source = read(Workspace(scratch.root, cwd=scratch.root), "notebooks/a.py")
    if name in ("below", "front matter", "none"):
        assert said_by(source).wanted is (name != "below")
        return
    with pytest.raises(DocumentError, match="header") as refused:
        said_by(source)
    assert refused.value.hint


@pytest.mark.parametrize("name", ["nowhere", "../other", "/", "a\0b", "quire.toml"])
def test_a_folder_that_cannot_be(scratch: Scratch, name: str) -> None:
    import json

    scratch.write("quire.toml", f"notebooks = {json.dumps(name)}\n")
    with pytest.raises(UsageError, match="folder"):
        found(scratch)


def test_the_whole_repository_can_be_the_folder(scratch: Scratch) -> None:
    scratch.write("quire.toml", 'notebooks = "."\n')
    scratch.write("a.py", TASK)
    scratch.write(".quire/ci/b.py", TASK)
    assert found(scratch) == ["a.py"]


def said(ci: str) -> Settings:
    lines = "".join(f"#     {line}\n" for line in ci.splitlines())
    text = f"# ---\n# jupyter:\n#   quire:\n{lines}# ---\n{TASK}"
    return settings(formats.loads(text, ".py"))


def test_what_a_task_says_of_ci() -> None:
    assert settings(formats.loads(TASK, ".py")) == Settings()
    assert said("ci: false") == Settings(wanted=False)
    assert said("ci: true") == Settings()
    full = said("ci:\n  parameters: {region: eu, n: 3}\n  timeout: 60\n  cell_timeout: 1.5")
    assert full == Settings(True, {"region": "eu", "n": 3}, 60.0, 1.5)
    assert said("ci: {run: false}") == Settings(wanted=False)


def test_a_notebook_says_it_in_its_metadata() -> None:
    text = NOTEBOOK.replace('"metadata": {}', '"metadata": {"quire": {"ci": false}}')
    assert settings(formats.loads(text, ".ipynb")) == Settings(wanted=False)


@pytest.mark.parametrize(
    "ci",
    [
        "ci: no way",
        "ci: [1]",
        "ci: {timout: 3}",
        "ci: {timeout: 0}",
        "ci: {timeout: soon}",
        "ci: {timeout: true}",
        "ci: {timeout: .nan}",
        "ci: {run: 3}",
        "ci: {parameters: [a]}",
    ],
)
def test_what_does_not_fit_is_said(ci: str) -> None:
    with pytest.raises(DocumentError, match="`ci` in the task's header") as refused:
        said(ci)
    assert refused.value.hint


def test_folders_are_not_tasks(scratch: Scratch) -> None:
    Path(scratch.root / "notebooks" / "x.py").mkdir(parents=True)
    assert found(scratch) == []
