"""Writing a run as a file."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from quire.archive.export import export
from quire.errors import RunNotFound, UsageError
from quire.record.events import (
    CellFinished,
    CellStarted,
    Event,
    OutputAdded,
    RunFinished,
    RunStarted,
)
from quire.record.journal import Journal
from quire.workspace import Workspace

RUN = "2026-11-16-155501-health-3fa2"
AT = "2026-11-16T15:55:01+00:00"


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    """A workspace with one run, whose journal is all there is of it."""
    workspace = Workspace(tmp_path, cwd=tmp_path, env={})
    cell = {"id": "c0", "kind": "code", "source": "print('hello')", "title": "", "metadata": {}}
    events: list[Event] = [
        RunStarted(RUN, "u", AT, "health.py", "Health", (cell,), {"parameters": {"a": 1}}),
        CellStarted("c0", AT),
        OutputAdded("c0", {"output_type": "stream", "name": "stdout", "text": "hello \ud800\n"}),
        CellFinished("c0", "ok", AT, 0.1, 1),
        RunFinished("ok", AT, 0.2),
    ]
    journal = Journal(workspace.runs.create(RUN).events)
    for event in events:
        journal.append(event)
    journal.close()
    return workspace


def test_a_notebook(ws: Workspace, tmp_path: Path) -> None:
    path = export(ws, "last", "out.ipynb")
    assert path == tmp_path / "out.ipynb"
    nb = nbformat.read(path, as_version=4)
    nbformat.validate(nb)
    assert nb.metadata.papermill.output_path == str(path)
    assert nb.metadata.quire.run_id == RUN
    assert nb.cells[0].outputs[0].text.startswith("hello")


def test_a_page_and_markdown(ws: Workspace) -> None:
    page = export(ws, RUN, "out.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "hello" in page
    text = export(ws, RUN[:12], Path("out.MD")).read_text("utf-8")
    assert text.startswith("# Health\n")


@pytest.mark.parametrize("target", ["out.pdf", "out", ".html"])
def test_another_suffix_is_refused(ws: Workspace, tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError) as caught:
        export(ws, "last", target)
    assert all(suffix in caught.value.hint for suffix in (".ipynb", ".html", ".md"))
    assert not (tmp_path / target).exists()


def test_an_existing_file_needs_force(ws: Workspace, tmp_path: Path) -> None:
    target = tmp_path / "out.md"
    target.write_text("mine")
    with pytest.raises(UsageError, match="already there"):
        export(ws, "last", "out.md")
    assert target.read_text() == "mine"
    export(ws, "last", "out.md", force=True)
    assert target.read_text().startswith("# Health")


def test_a_link_keeps_pointing(ws: Workspace, tmp_path: Path) -> None:
    real, link = tmp_path / "real.ipynb", tmp_path / "link.ipynb"
    real.write_text("{}")
    link.symlink_to(real)
    export(ws, "last", "link.ipynb", force=True)
    assert link.is_symlink()
    assert json.loads(real.read_text())["nbformat"] == 4


def test_missing_folders_and_folders_are_refused(ws: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        export(ws, "last", "none/out.md")
    (tmp_path / "dir.md").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        export(ws, "last", "dir.md", force=True)


def test_no_such_run_leaves_no_file(ws: Workspace, tmp_path: Path) -> None:
    with pytest.raises(RunNotFound):
        export(ws, "2020", "out.html")
    assert not list(tmp_path.glob("*out*"))
