"""The folder a gate writes to: it clears what is its own, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.ci.gate_folder import LIST, GateFolder, check_place, is_free
from quire.ci.gate_report import MARK, GateResult
from quire.ci.junit import junit
from quire.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> GateFolder:
    return GateFolder(tmp_path / "out")


def write(folder: GateFolder, *names: str) -> None:
    with folder.claimed(names):
        for name in names:
            (folder.path / name).write_text("ours")


def files(folder: GateFolder) -> set[str]:
    found = (path for path in folder.path.rglob("*") if not path.is_dir())
    return {str(path.relative_to(folder.path)) for path in found} - {LIST}


def test_what_an_earlier_gate_wrote_is_gone(folder: GateFolder) -> None:
    write(folder, "a.ipynb", "sub/deep/b.ipynb", "junit.xml")
    write(folder, "c.ipynb")
    assert files(folder) == {"c.ipynb"}
    assert not (folder.path / "sub").exists()


def test_what_somebody_else_put_there_stays(folder: GateFolder) -> None:
    write(folder, "a.ipynb", "sub/b.ipynb")
    (folder.path / "mine.ipynb").write_text("mine")
    (folder.path / "sub" / "notes.md").write_text("mine")
    write(folder, "c.ipynb")
    assert files(folder) == {"c.ipynb", "mine.ipynb", "sub/notes.md"}


def test_a_file_that_no_gate_wrote_is_not_written_over(folder: GateFolder) -> None:
    folder.path.mkdir()
    (folder.path / "a.ipynb").write_text("mine")
    for attempt in (lambda: folder.check(["a.ipynb"]), lambda: write(folder, "a.ipynb")):
        with pytest.raises(UsageError, match=r"a\.ipynb is there, and no gate has written it"):
            attempt()
    assert (folder.path / "a.ipynb").read_text() == "mine"
    assert not (folder.path / LIST).exists()


def test_a_killed_gate_leaves_nothing_that_is_not_known(folder: GateFolder) -> None:
    with folder.claimed(["a.ipynb", "b.ipynb"]):
        (folder.path / "a.ipynb").write_text("half")
    write(folder, "a.ipynb")
    assert files(folder) == {"a.ipynb"}


def test_a_strangers_list_deletes_nothing_outside(folder: GateFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside.ipynb"
    outside.write_text("mine")
    folder.path.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.ipynb").write_text("mine")
    (folder.path / "link").symlink_to(tmp_path / "elsewhere")
    (folder.path / "one.ipynb").symlink_to(outside)
    (folder.path / "code.py").write_text("mine")
    names = ["../outside.ipynb", str(outside), "link/x.ipynb", "one.ipynb", "code.py", 3, "a\0b.md"]
    (folder.path / LIST).write_text(json.dumps({"files": names}))
    write(folder, "c.ipynb")
    assert outside.read_text() == "mine"
    assert (tmp_path / "elsewhere" / "x.ipynb").read_text() == "mine"
    assert {"one.ipynb", "code.py", "c.ipynb"} <= files(folder)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"files": 3}', "{" * 100_000, "\xff"])
def test_a_broken_list_claims_nothing(folder: GateFolder, text: str) -> None:
    folder.path.mkdir()
    (folder.path / LIST).write_text(text, encoding="latin-1")
    (folder.path / "a.ipynb").write_text("mine")
    with pytest.raises(UsageError):
        folder.check(["a.ipynb"])


def test_one_gate_at_a_time(folder: GateFolder) -> None:
    with folder.claimed(["a.ipynb"]):
        (folder.path / "a.ipynb").write_text("ours")
        with pytest.raises(UsageError, match="another gate is at work"), folder.claimed([]):
            pass
        assert files(folder) == {"a.ipynb"}
    write(folder, "b.ipynb")
    assert files(folder) == {"b.ipynb"}


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match="is a file, not a folder"):
        GateFolder(tmp_path / "out").check([])


def test_only_a_gates_report_is_replaced(tmp_path: Path) -> None:
    report, mine = tmp_path / "report.xml", tmp_path / "mine.xml"
    assert is_free(report)
    report.write_bytes(junit(GateResult()))
    assert is_free(report)
    mine.write_text("<suite>" + " " * 300 + MARK)
    assert not is_free(mine), "it speaks of a gate, and is none's"
    (tmp_path / "link.xml").symlink_to(report)
    assert not is_free(tmp_path / "link.xml")
    assert is_free(report / "x.xml")


def test_a_repository_elsewhere(tmp_path: Path) -> None:
    """A worktree's git folders lie outside; so may the gate's folder."""
    root, git = tmp_path / "tree", tmp_path / "bare"
    own = root / ".quire" / "ci"
    for folder in (root / "out", own, tmp_path / "out", root / "git"):
        check_place(folder, root, own, [git])
    for folder in (git, git / "worktrees" / "tree", tmp_path / "x" / ".GIT" / "y"):
        with pytest.raises(UsageError, match="where git keeps"):
            check_place(folder, root, own, [git])
