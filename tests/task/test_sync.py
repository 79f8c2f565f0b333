"""`.py` and `.ipynb` in step: who edited decides, not the clock."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

from quire.errors import DocumentError, UsageError
from quire.task import notebook_twin
from quire.task.sync import Synced, Take, sync
from quire.workspace import Workspace

TEXT = """\
# %% [markdown]
# # Title

# %% load tags=["a"]
x = 1

# %%
print(x)
"""


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, cwd=tmp_path, env={})


@pytest.fixture
def pair(ws: Workspace, tmp_path: Path) -> tuple[Path, Path]:
    """Two files in step."""
    py, nb = tmp_path / "task.py", tmp_path / "task.ipynb"
    py.write_text(TEXT)
    sync(ws, ["task.py"])
    return py, nb


def actions(found: list[Synced]) -> list[tuple[str, str, str]]:
    return [(item.source.name, item.target.name, item.action) for item in found]


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def edit(nb: Path, cell: int, **changes: Any) -> None:
    """As a front end saves: everything else stays, and it adds what it always adds."""
    data = load(nb)
    data["cells"][cell].update(changes)
    data["metadata"]["language_info"] = {"name": "python", "version": "3.11.2"}
    data["metadata"]["kernelspec"]["display_name"] = "Python 3 (ipykernel)"
    nb.write_text(json.dumps(data))


def snapshot(folder: Path) -> dict[Path, tuple[bytes, int, int]]:
    return {
        p: (p.read_bytes(), p.stat().st_mtime_ns, p.stat().st_ino)
        for p in folder.rglob("*")
        if p.is_file()
    }


def test_a_new_notebook(pair: tuple[Path, Path]) -> None:
    nb = nbformat.read(pair[1], as_version=4)
    nbformat.validate(nb)
    assert [cell.source for cell in nb.cells] == ["# Title", "x = 1", "print(x)"]
    assert nb.cells[1].metadata == {"title": "load", "tags": ["a"]}
    assert all(cell.outputs == [] for cell in nb.cells if cell.cell_type == "code")
    assert pair[0].read_text() == TEXT


def test_in_step_means_not_touched(ws: Workspace, pair: tuple[Path, Path], tmp_path: Path) -> None:
    before = snapshot(tmp_path)
    for path in ("task.py", "task.ipynb", "."):
        assert actions(sync(ws, [path])) == [("task.py", "task.ipynb", "unchanged")]
    assert snapshot(tmp_path) == before


def test_the_clock_has_no_say(ws: Workspace, pair: tuple[Path, Path]) -> None:
    py, nb = pair
    py.write_text(TEXT.replace("x = 1", "x = 2"))
    os.utime(py, (1, 1))
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "written")]
    assert "x = 2" in nb.read_text()
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "unchanged")]


def test_other_line_ends_are_no_edit(ws: Workspace, pair: tuple[Path, Path]) -> None:
    pair[0].write_bytes(TEXT.replace("\n", "\r\n").encode())
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "unchanged")]
    edit(pair[1], 2, source="print(3)")
    sync(ws, ["task.py"], side="ipynb")
    assert (
        pair[0].read_bytes() == TEXT.replace("print(x)", "print(3)").replace("\n", "\r\n").encode()
    )


@pytest.mark.parametrize("name", ["task.py", "task.ipynb"])
def test_an_edited_notebook_is_written_back_when_somebody_says_so(
    ws: Workspace, pair: tuple[Path, Path], name: str, tmp_path: Path
) -> None:
    py, nb = pair
    edit(nb, 1, source=["x = 5\n", "y = 6"])
    before = snapshot(tmp_path)
    (found,) = sync(ws, [name])
    assert found.action == "conflict"
    assert "the notebook was edited; quire sync --take ipynb task.ipynb" in found.hint
    assert snapshot(tmp_path) == before
    assert actions(sync(ws, [name], side="ipynb")) == [("task.ipynb", "task.py", "written")]
    assert py.read_text() == TEXT.replace("x = 1", "x = 5\ny = 6")
    assert actions(sync(ws, ["task.py"])) == [("task.py", "task.ipynb", "unchanged")]
    py.write_text(py.read_text().replace("y = 6", "y = 7"))
    assert actions(sync(ws, ["task.py"])) == [("task.py", "task.ipynb", "written")]
    assert load(nb)["metadata"]["language_info"]["version"] == "3.11.2"


def test_writing_back_keeps_the_hand_of_the_author(ws: Workspace, tmp_path: Path) -> None:
    text = (
        '#!/usr/bin/env python\n#%% [markdown]\n"""\nWords\n"""\n#%%   one\na = 1\n#%% two\nb = 2\n'
    )
    py, nb = tmp_path / "t.py", tmp_path / "t.ipynb"
    py.write_text(text)
    py.chmod(0o755)
    sync(ws, ["t.py"])
    edit(nb, 2, source="b = 3")
    sync(ws, ["t.py"], side="ipynb")
    assert py.read_text() == text.replace("#%% two\nb = 2", "\n# %% two\nb = 3")
    assert py.stat().st_mode & 0o777 == 0o755


def test_outputs_are_no_edit_and_stay(ws: Workspace, pair: tuple[Path, Path]) -> None:
    py, nb = pair
    output = {"output_type": "stream", "name": "stdout", "text": ["1\n"]}
    edit(nb, 2, outputs=[output], execution_count=4)
    before = nb.read_bytes()
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "unchanged")]
    assert nb.read_bytes() == before
    py.write_text(TEXT.replace("x = 1", "x = 2"))
    sync(ws, ["."])
    assert load(nb)["cells"][2]["outputs"] == [output]
    assert load(nb)["cells"][1]["source"] == ["x = 2"]
    edit(nb, 0, source="# Other")
    sync(ws, ["task.ipynb"], side="ipynb")
    assert load(nb)["cells"][2]["outputs"] == [output]


def test_both_edited_is_a_conflict(ws: Workspace, pair: tuple[Path, Path], tmp_path: Path) -> None:
    py, nb = pair
    py.write_text(TEXT.replace("x = 1", "x = 2"))
    edit(nb, 1, source="x = 3")
    before = snapshot(tmp_path)
    (found,) = sync(ws, ["."])
    assert found.action == "conflict"
    assert "task.py and task.ipynb were both edited" in found.hint
    assert snapshot(tmp_path) == before
    nb.unlink()
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "written")]


@pytest.mark.parametrize(("side", "wins"), [("py", "x = 2"), ("ipynb", "x = 3")])
def test_somebody_says_which_counts(
    ws: Workspace, pair: tuple[Path, Path], side: Take, wins: str
) -> None:
    py, nb = pair
    py.write_text(TEXT.replace("x = 1", "x = 2"))
    edit(nb, 1, source="x = 3")
    assert [found.action for found in sync(ws, ["task.py"], side=side)] == ["written"]
    assert py.read_text() == TEXT.replace("x = 1", wins)
    assert load(nb)["cells"][1]["source"] in (wins, [wins])
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "unchanged")]


def test_it_is_said_of_single_notebooks(ws: Workspace, pair: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        sync(ws, ["."], side="py")
    pair[1].unlink()
    with pytest.raises(DocumentError, match=r"no file task\.ipynb to take"):
        sync(ws, ["task.py"], side="ipynb")


def test_a_conflict_keeps_the_others_from_being_written(
    ws: Workspace, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "new.py").write_text(TEXT)
    edit(pair[1], 1, source="x = 3")
    before = snapshot(tmp_path)
    assert [found.action for found in sync(ws, ["."])] == ["stale", "conflict"]
    assert snapshot(tmp_path) == before


def restamp(nb: Path, *, source: str | None, cells: bool) -> None:
    """As somebody writes it who wants the notebook to be believed."""
    data = load(nb)
    stamp = data["metadata"]["quire"]
    if cells:
        stamp["cells_sha256"] = notebook_twin.loads(nb.read_text(), ".ipynb").digest
    if source is not None:
        stamp["source_sha256"] = source
    nb.write_text(json.dumps(data))


@pytest.mark.parametrize("source", [None, "0" * 64, notebook_twin.text_digest(TEXT)])
@pytest.mark.parametrize("cells", [True, False])
def test_no_stamp_gets_code_into_the_text(
    ws: Workspace, pair: tuple[Path, Path], source: str | None, cells: bool
) -> None:
    py, nb = pair
    edit(nb, 1, source="steal()")
    restamp(nb, source=source, cells=cells)
    for name in (".", "task.py", "task.ipynb"):
        (found,) = sync(ws, [name])
        assert found.action != "unchanged" or "steal" not in nb.read_text()
        assert py.read_text() == TEXT


@pytest.mark.parametrize(
    "metadata", [{"quire": {"ci": False}}, {"jupytext": {"comment_magics": True}}]
)
def test_nor_does_metadata(
    ws: Workspace, pair: tuple[Path, Path], metadata: dict[str, Any]
) -> None:
    """A header decides how the whole text is read."""
    py, nb = pair
    data = load(nb)
    data["metadata"]["quire"] |= metadata.pop("quire", {})
    data["metadata"] |= metadata
    nb.write_text(json.dumps(data))
    sync(ws, ["."])
    assert py.read_text() == TEXT


def test_how_a_front_end_shows_a_cell_is_no_edit(ws: Workspace, pair: tuple[Path, Path]) -> None:
    py, nb = pair
    edit(nb, 1, metadata={**load(nb)["cells"][1]["metadata"], "collapsed": True})
    sync(ws, ["."])
    assert py.read_text() == TEXT
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "unchanged")]
    py.write_text(TEXT.replace("x = 1", "x = 2"))
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "written")]
    assert load(nb)["cells"][1]["source"] == ["x = 2"]


def test_the_same_edit_on_both_sides_is_none(ws: Workspace, pair: tuple[Path, Path]) -> None:
    py, nb = pair
    py.write_text(TEXT.replace("x = 1", "x = 2"))
    edit(nb, 1, source="x = 2")
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "written")]
    assert py.read_text() == TEXT.replace("x = 1", "x = 2")
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "unchanged")]


def test_a_notebook_alone(ws: Workspace, tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("a = 1", metadata={"tags": ["t"], "papermill": {"x": 1}})
    cell.outputs = [nbformat.v4.new_output("stream", text="hi\n")]
    made = nbformat.v4.new_notebook(cells=[cell], metadata={"quire": {"run_id": "r"}})
    nb = tmp_path / "alone.ipynb"
    nbformat.write(made, nb)
    assert actions(sync(ws, ["alone.ipynb"])) == [("alone.ipynb", "alone.py", "written")]
    assert (tmp_path / "alone.py").read_text() == '# %% tags=["t"]\na = 1\n'
    after = nbformat.read(nb, as_version=4)
    assert after.cells == made.cells
    assert after.metadata.quire.run_id == "r"
    assert actions(sync(ws, ["."])) == [("alone.py", "alone.ipynb", "unchanged")]


def test_what_a_run_left_is_no_task(ws: Workspace, tmp_path: Path) -> None:
    made = nbformat.v4.new_notebook(metadata={"quire": {"run_id": "r"}})
    nbformat.write(made, tmp_path / "out.ipynb")
    assert sync(ws, ["."]) == []
    assert actions(sync(ws, ["out.ipynb"])) == [("out.ipynb", "out.py", "written")]
    assert actions(sync(ws, ["."])) == [("out.py", "out.ipynb", "unchanged")]


def test_a_stranger_is_never_overwritten(ws: Workspace, pair: tuple[Path, Path]) -> None:
    py, nb = pair
    data = load(nb)
    del data["metadata"]["quire"]
    data["cells"][2]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    nb.write_text(json.dumps(data))
    before = nb.read_bytes()
    assert actions(sync(ws, ["."])) == [("task.py", "task.ipynb", "unchanged")]
    py.write_text(TEXT + "\n# %%\nmore = 1\n")
    (found,) = sync(ws, ["."])
    assert found.action == "conflict"
    assert "nothing says which was edited" in found.hint
    assert nb.read_bytes() == before


def test_check_writes_nothing(ws: Workspace, pair: tuple[Path, Path], tmp_path: Path) -> None:
    pair[0].write_text(TEXT.replace("x = 1", "x = 2"))
    (tmp_path / "new.py").write_text(TEXT)
    before = snapshot(tmp_path)
    found = actions(sync(ws, ["."], check=True))
    assert found == [("new.py", "new.ipynb", "stale"), ("task.py", "task.ipynb", "stale")]
    assert snapshot(tmp_path) == before


def test_a_folder_is_walked_with_sense(ws: Workspace, tmp_path: Path) -> None:
    tasks = ["a.py", "deep/er/b.py"]
    skipped = [".hidden/c.py", ".venv/d.py", "node_modules/e.py", "__pycache__/f.py"]
    skipped += [".ipynb_checkpoints/g.py", "env/lib/h.py", ".i.py"]
    for name in tasks + skipped:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TEXT)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "module.py").write_text("x = 1\n")
    (tmp_path / "writer.py").write_text('TASK = """\n# %%\nx = 1\n"""\n')
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'\n")
    found = sync(ws, [".", "a.py"])
    assert [str(item.source.relative_to(tmp_path)) for item in found] == tasks
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.ipynb")) == [
        "a.ipynb",
        "deep/er/b.ipynb",
    ]


def test_a_module_beside_a_notebook_is_left_alone(ws: Workspace, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = 1\n")
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("y")]), tmp_path / "m.ipynb"
    )
    assert sync(ws, ["."]) == []
    assert actions(sync(ws, ["m.ipynb"])) == [("m.py", "m.ipynb", "conflict")]
    assert (tmp_path / "m.py").read_text() == "x = 1\n"


def test_a_broken_file_stops_before_anything_is_written(ws: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    (tmp_path / "b.ipynb").write_text("{")
    with pytest.raises(DocumentError, match=r"b\.ipynb: .*JSON"):
        sync(ws, ["."])
    assert not (tmp_path / "a.ipynb").exists()


def test_what_cannot_be_synced(ws: Workspace, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"no file none\.py"):
        sync(ws, ["none.py"])
    (tmp_path / "a.txt").touch()
    with pytest.raises(UsageError, match="neither"):
        sync(ws, ["a.txt"])


def test_another_language_and_odd_text(ws: Workspace, tmp_path: Path) -> None:
    nb = tmp_path / "r.ipynb"
    spec = {"name": "ir", "display_name": "R", "language": "R"}
    cells = [nbformat.v4.new_code_cell("x <- 1 # é"), nbformat.v4.new_markdown_cell("\ud800")]
    data = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec})
    nb.write_text(json.dumps(data))
    assert actions(sync(ws, ["."])) == [("r.ipynb", "r.py", "written")]
    assert actions(sync(ws, ["."])) == [("r.py", "r.ipynb", "unchanged")]
    nb.unlink()
    sync(ws, ["."])
    again = load(nb)
    assert [cell["source"] for cell in again["cells"]] == [["x <- 1 # é"], ["\ud800"]]
    assert again["metadata"]["kernelspec"]["name"] == "ir"
