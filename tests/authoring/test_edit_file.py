"""Edits on disk, and the command."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quire.authoring import edit_file as module
from quire.authoring.edit_file import edit
from quire.cli.main import App, dispatch
from quire.cli.terminal import Terminal
from quire.errors import DocumentError, UsageError
from quire.task.edit import Edited
from quire.workspace import Workspace

TEXT = "# %% load\nx = 1\n\n# %% [markdown]\n# words\n\n# %%\nprint(x)\n"


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    (tmp_path / "t.py").write_text(TEXT)
    return Workspace(tmp_path, cwd=tmp_path, env={})


@pytest.fixture
def task(ws: Workspace) -> Path:
    return ws.root / "t.py"


def test_each_edit_is_written(ws: Workspace, task: Path) -> None:
    done = edit(ws, "t.py", "load", new_source="x = 2\n")
    assert task.read_text() == TEXT.replace("x = 1", "x = 2")
    assert done.edited.diff.startswith("--- a/t.py\n+++ b/t.py\n")
    edit(ws, "t.py", 0, new_source="y = x", insert="after", title="more", tags=["a"])
    edit(ws, "t.py", 0, find="2", replace="3")
    edit(ws, "t.py", 2, kind="code")
    edit(ws, "t.py", 3, move_before=0)
    edit(ws, "t.py", 3, delete=True)
    assert task.read_text() == (
        '# %%\nprint(x)\n\n# %% load\nx = 3\n\n# %% more tags=["a"]\ny = x\n'
    )
    edit(ws, "t.py", "more", tags=["b"])
    edit(ws, "t.py", "more", move_after="load")
    assert edit(ws, "t.py", "load", title="first").edited.document.cells[1].title == "first"


def test_what_the_linter_says(ws: Workspace) -> None:
    done = edit(ws, "t.py", 0, new_source="x = missing")
    assert [(f.index, f.line, f.message) for f in done.findings] == [
        (0, 1, "missing is not defined above")
    ]


def test_mode_links_and_an_unchanged_file(ws: Workspace, task: Path) -> None:
    task.chmod(0o750)
    link = ws.root / "link.py"
    link.symlink_to("t.py")
    edit(ws, "link.py", 0, new_source="x = 5")
    assert link.is_symlink()
    assert "x = 5" in task.read_text()
    assert task.stat().st_mode & 0o777 == 0o750
    before = task.stat()
    edit(ws, "t.py", 0, new_source="x = 5")
    assert (task.stat().st_mtime_ns, task.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_encoding_and_byte_order_mark_stay(ws: Workspace, task: Path) -> None:
    task.write_bytes(b"\xef\xbb\xbf# %%\r\nx = '\xc3\xa9'\r\n")
    edit(ws, "t.py", 0, insert="after", new_source="y")
    assert task.read_bytes() == b"\xef\xbb\xbf# %%\r\nx = '\xc3\xa9'\r\n\r\n# %%\r\ny\r\n"
    task.write_bytes(b"# coding: latin-1\n# %%\nx = '\xe9'\n")
    edit(ws, "t.py", 0, find="é", replace="éà")
    assert task.read_bytes() == b"# coding: latin-1\n# %%\nx = '\xe9\xe0'\n"
    before = task.read_bytes()
    with pytest.raises(DocumentError, match="iso-8859-1 text, which cannot hold"):
        edit(ws, "t.py", 0, new_source="x = '→'")
    assert task.read_bytes() == before
    task.write_text("# %%\nx = 'é'\n")
    with pytest.raises(DocumentError, match="encoding of the file"):
        edit(ws, "t.py", 0, title="coding: latin-1")
    assert task.read_text() == "# %%\nx = 'é'\n"


def test_a_notebook(ws: Workspace) -> None:
    cell = {"cell_type": "code", "metadata": {}, "source": "x = 1", "outputs": [], "id": "a"}
    data = {"cells": [cell | {"execution_count": None}], "metadata": {}, "nbformat": 4}
    text = json.dumps(data | {"nbformat_minor": 5}, indent=2)
    (ws.root / "n.ipynb").write_text(text)
    edit(ws, "n.ipynb", 0, new_source="x = 'é'")
    after = (ws.root / "n.ipynb").read_text("utf-8")
    assert after == text.replace('"x = 1"', "\"x = 'é'\"")


def test_a_stale_edit_changes_nothing(ws: Workspace, task: Path) -> None:
    old = edit(ws, "t.py", 0, new_source="x = 2").edited.cell_id
    edit(ws, "t.py", 0, new_source="x = 3")
    before = task.read_bytes()
    for address, expect in ((old, None), (0, old), ("load", old)):
        with pytest.raises(DocumentError, match=r"^t\.py: .*since it was read") as caught:
            edit(ws, "t.py", address, new_source="x = 4", expect=expect)
        assert "x = 3" in caught.value.message
    assert task.read_bytes() == before


def test_a_file_that_changes_meanwhile_is_not_overwritten(
    ws: Workspace, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = module.editing.change

    def slow(*args: Any, **options: Any) -> Edited:
        task.write_text("# %%\nsomebody_else = 1\n")
        return change(*args, **options)

    monkeypatch.setattr(module.editing, "change", slow)
    with pytest.raises(DocumentError, match="another program"):
        edit(ws, "t.py", 0, new_source="x = 2")
    assert task.read_text() == "# %%\nsomebody_else = 1\n"


def test_many_at_once_are_all_made(ws: Workspace, task: Path) -> None:
    """As an agent that sends several edits of one notebook in one breath expects."""

    def add(number: int) -> None:
        for step in range(5):
            edit(ws, "t.py", 0, insert="after", new_source=f"n = {number * 5 + step}")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(add, number) for number in range(4)]:
            done.result()
    found = [int(line[4:]) for line in task.read_text().split("\n") if line.startswith("n = ")]
    assert sorted(found) == list(range(20))


def test_of_two_edits_of_one_cell_at_once_one_is_refused(ws: Workspace, task: Path) -> None:
    expect = edit(ws, "t.py", 0, new_source="x = 0").edited.cell_id

    def change(number: int) -> str:
        try:
            edit(ws, "t.py", 0, new_source=f"x = {number}", expect=expect)
        except DocumentError as error:
            return error.message
        return ""

    with ThreadPoolExecutor(8) as pool:
        refused = [said for said in pool.map(change, range(1, 9)) if said]
    assert len(refused) == 7
    assert all("since it was read" in said for said in refused)


def test_one_edit_at_a_time(ws: Workspace) -> None:
    wrong: list[dict[str, object]] = [
        {},
        {"delete": True, "new_source": "x"},
        {"move_before": 1, "move_after": 2},
        {"insert": "after"},
        {"insert": "after", "kind": "code"},
        {"find": "x"},
        {"replace": "x"},
        {"find": "x", "replace": "y", "title": "z"},
    ]
    for options in wrong:
        with pytest.raises(UsageError):
            edit(ws, "t.py", 0, **options)  # type: ignore[arg-type]
    assert (ws.root / "t.py").read_text() == TEXT


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_file(ws: Workspace, task: Path) -> None:
    task.chmod(0o444)
    with pytest.raises(Exception, match="read-only"):
        edit(ws, "t.py", 0, new_source="y")


class Shell:
    """The command, with what it writes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        out, err = self.root / ".out", self.root / ".err"
        with out.open("wb") as one, err.open("wb") as two:
            term = Terminal(one.fileno(), two.fileno(), {"NO_COLOR": "1"})
            code = dispatch(["edit", *argv], App(term, self.root, {}))
        return code, out.read_text(), err.read_text()


def test_the_command(ws: Workspace, task: Path) -> None:
    quire = Shell(ws.root)
    (ws.root / "fixed.txt").write_text("x = 2\nprint(lost)\n")
    code, out, err = quire("t.py", "load", "--file", "fixed.txt")
    assert (code, err) == (0, "")
    assert "-x = 1\n+x = 2\n+print(lost)\n" in out
    assert "\ncell 0 is now " in out
    assert "line 2: lost is not defined above" in out
    code, out, _ = quire("t.py", "0", "--find", "print(lost)", "--replace", "y = x", "--json")
    told = json.loads(out)
    assert (code, told["index"], told["replaced"], told["findings"]) == (0, 0, 1, [])
    assert quire("t.py", "0", "--after", "--source", "z = 1", "--kind", "code")[0] == 0
    assert quire("t.py", "1", "--move-before", "0")[0] == 0
    assert quire("t.py", "0", "--delete")[0] == 0
    assert task.read_text() == TEXT.replace("x = 1", "x = 2\ny = x")
    assert quire("t.py", "1", "--title", "note", "--tag", "a", "--tag", "b")[0] == 0
    assert '# %% note [markdown] tags=["a", "b"]\n# words' in task.read_text()
    assert quire("t.py", "load", "--title", "load")[1].startswith("unchanged: t.py\n")


def test_the_command_refuses(ws: Workspace, task: Path) -> None:
    quire = Shell(ws.root)
    for argv in (
        ("t.py", "0"),
        ("t.py", "0", "--source", "a", "--file", "b"),
        ("t.py", "0", "--file", "none.txt"),
        ("t.py", "0", "--kind", "other"),
        ("none.py", "0", "--delete"),
    ):
        code, _, err = quire(*argv)
        assert code == 2
        assert "error:" in err
    code, out, err = quire("t.py", "0", "--source", "a", "--expect", "0123456789", "--json")
    assert code == 2
    assert "cell 0 is now:\nx = 1" in err
    assert json.loads(out)["error"]["code"] == "document"
    assert task.read_text() == TEXT
