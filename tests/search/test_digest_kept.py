"""The page in the archive that a host keeps up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from made_archive import git, repository
from quire.archive import put
from quire.engine.run import NotebookExecutor, drained
from quire.workspace import Engine, Workspace


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("QUIRE_CONFIG_HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    repository(folder)
    (folder / "quire.toml").write_text("")
    (folder / "t.py").write_text("# %%\nprint(1)\n")
    engine = Engine(outlives=True)
    yield Workspace(folder, cwd=folder, engine=engine)
    engine.close()


def ran(ws: Workspace) -> str:
    return drained(NotebookExecutor("t.py", workspace=ws)).run_id


def do_chores(ws: Workspace) -> None:
    engine = ws.engine
    if engine.do_chores() and engine._at_chores is not None:
        engine._at_chores.join(60)
        assert not engine._at_chores.is_alive()


def page(ws: Workspace) -> str:
    return git(ws.root, "show", "reports:DIGEST.md")


def digests(ws: Workspace) -> int:
    return git(ws.root, "log", "--format=%s%n%b", "reports").count("Quire-Digest:")


def test_it_comes_by_itself_and_once_for_many_runs(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put, "DIGEST_EVERY", 0.0)
    runs = [ran(ws), ran(ws)]
    do_chores(ws)
    assert all(run in page(ws) or "2 ok" in page(ws) for run in runs)
    assert digests(ws) == 1
    do_chores(ws)
    assert digests(ws) == 1
    ran(ws)
    do_chores(ws)
    assert digests(ws) == 2
    assert "3 ok" in page(ws)
    links = list(ws.archive.history())
    assert [problem for link in links for problem in link.problems] == []


def test_it_waits_and_can_be_turned_off(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(ws)
    do_chores(ws)
    assert digests(ws) == 0  # it is due in minutes
    assert f"digest of {ws.root}" in ws.engine._chores
    (ws.root / "quire.toml").write_text("[archive]\ndigest = false\n")
    monkeypatch.setattr(put, "DIGEST_EVERY", 0.0)
    engine = Engine(outlives=True)
    off = Workspace(ws.root, cwd=ws.root, engine=engine)
    ran(off)
    do_chores(off)
    engine.close()
    assert digests(ws) == 0


def test_one_that_cannot_be_written_fails_nothing(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(put, "DIGEST_EVERY", 0.0)
    ran(ws)
    git(ws.root, "checkout", "-q", "-f", "reports")
    do_chores(ws)
    assert digests(ws) == 0
    git(ws.root, "checkout", "-q", "-f", "--detach")
    ran(ws)
    do_chores(ws)
    assert digests(ws) == 1
