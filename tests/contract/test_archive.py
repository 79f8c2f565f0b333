"""What every archive promises, shown on the branch and on the folder."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from made_archive import add, git_archive, is_good, problems, repository, run_files, run_id, seal
from quire.archive.folder_archive import FolderArchive
from quire.archive.layout import Archive, run_folder
from quire.errors import QuireError, RunNotFound, UsageError

Open = Callable[[], Archive]
KINDS = ("git", "folder")


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same archive again and again, as one process after the other does."""
    if request.param == "folder":
        return lambda: FolderArchive(tmp_path / "state" / "archive", seal)
    repository(tmp_path / "repo")
    return lambda: git_archive(tmp_path / "repo")


@pytest.fixture
def archive(opened: Open) -> Archive:
    return opened()


def test_an_empty_archive(archive: Archive) -> None:
    assert archive.ids() == []
    assert list(archive.history()) == []
    assert list(archive.each([])) == []
    assert archive.witness_problem() is None
    with pytest.raises(RunNotFound, match="empty"):
        archive.find("last")
    with pytest.raises(RunNotFound, match="no run"):
        archive.files(run_id(1))
    archive.tidy()
    assert archive.ids() == []


def test_what_was_added_is_there_byte_for_byte(opened: Open) -> None:
    run, files = run_id(1), run_files(run_id(1), bytes(range(256)) * 50)
    place = opened().add(run, files)
    archive = opened()
    assert place == archive.path(run) == f"runs/2026/11/16/{run}"
    assert archive.ids() == [run]
    assert archive.files(run) == files
    assert dict(archive.each([run])) == {run: files}
    assert archive.where
    assert archive.kind in KINDS


@pytest.mark.parametrize("name", ["source.py", "source.ipynb", "source.R", "source"])
def test_sources_of_every_language(archive: Archive, name: str) -> None:
    archive.add(run_id(1), {"record.json": b"{}", name: b""})
    assert archive.files(run_id(1)) == {"record.json": b"{}", name: b""}
    assert problems(archive) == []


def test_newest_first_and_history_oldest_first(archive: Archive) -> None:
    order = [5, 3, 9, 1]
    for number in order:
        add(archive, number)
    assert archive.ids() == [run_id(n) for n in sorted(order, reverse=True)]
    assert [link.run_id for link in archive.history()] == [run_id(n) for n in order]


def test_each_step_is_sealed_with_what_came_before(archive: Archive) -> None:
    for number in range(4):
        add(archive, number)
    links = list(archive.history())
    assert all(is_good(link) for link in links)
    assert [link.files for link in links] == [run_files(run_id(n)) for n in range(4)]
    assert len({link.place for link in links}) == 4
    # The same run after another step, or with one other byte, is something else to sign.
    assert len({link.sealed for link in links}) == 4
    for link in links:
        assert f"run {link.run_id}\n".encode() in link.sealed
    assert problems(archive) == []


def test_the_same_again_changes_nothing(opened: Open) -> None:
    archive = opened()
    for number in (1, 2):
        add(archive, number)
    before = [(link.place, link.sealed) for link in archive.history()]
    assert opened().add(run_id(1), run_files(run_id(1))) == archive.path(run_id(1))
    assert [(link.place, link.sealed) for link in archive.history()] == before


@pytest.mark.parametrize(
    "other",
    [
        {"record.json": b"other"},
        {**run_files(run_id(1)), "notebook.ipynb": b"{}"},
        {name: data for name, data in run_files(run_id(1)).items() if name != "source.py"},
        {**run_files(run_id(1)), "source.R": b"more"},
    ],
)
def test_an_archived_run_is_never_changed(archive: Archive, other: dict[str, bytes]) -> None:
    add(archive, 1)
    add(archive, 2)
    with pytest.raises(UsageError, match="already has another run") as caught:
        archive.add(run_id(1), other)
    assert caught.value.hint
    assert archive.files(run_id(1)) == run_files(run_id(1))
    assert len(list(archive.history())) == 2


@pytest.mark.parametrize(
    "name",
    ["", "last", "../x", "2026-11-16-163516-../../x-0001", "2026-11-16-163516-sum-0001/x",
     "2026-11-16-163516-sum-0001\n", "-f", "2026-11-16-163516-SUM-0001", "2026-11-16-163516-",
     "2026-11-16-163516-\u2603-0001", "2026-11-16-163516-" + "x" * 300, "2026-11-16-163516-a b"],
)  # fmt: skip
def test_ids_that_are_none(archive: Archive, name: str) -> None:
    with pytest.raises(UsageError, match="not the id of a run"):
        archive.add(name, run_files(run_id(1)))
    assert archive.ids() == []


@pytest.mark.parametrize(
    "name",
    ["../record.json", "a/b", "", ".git", "record.json\n", "x.txt", "-x", "source.p/y", ".."],
)
def test_files_that_no_run_has(archive: Archive, name: str) -> None:
    with pytest.raises(UsageError, match="no file"):
        archive.add(run_id(1), {"record.json": b"{}", name: b"x"})
    with pytest.raises(UsageError, match="without files"):
        archive.add(run_id(1), {})
    assert archive.ids() == []
    assert list(archive.history()) == []


def test_finding_by_the_beginning_of_an_id(archive: Archive) -> None:
    one = "2026-11-15-160000-alpha-0001"
    archive.add(one, run_files(one))
    for number in (1, 2):
        add(archive, number)
    assert archive.find(one) == archive.find("2026-11-15") == one
    assert archive.find("last") == run_id(2)
    with pytest.raises(RunNotFound, match="fits 2 runs"):
        archive.find("2026-11-16")
    for name in ("2027", "", "*", "-x", "LAST", "\n"):
        with pytest.raises(RunNotFound, match="no run"):
            archive.find(name)


def test_the_last_run_is_the_last_that_somebody_asked_for(archive: Archive) -> None:
    """Not one that a task ran; and within a second it is the clock of the records that counts."""

    def put(run: str, started: str, parent: str | None = None) -> None:
        told = json.dumps({"started": started, "parent": parent}).encode()
        archive.add(run, {"record.json": told})

    put("2026-11-16-163516-b-ffff", "2026-11-16T16:35:16.100Z")
    put("2026-11-16-163516-a-0001", "2026-11-16T16:35:16.900Z")
    put("2026-11-16-163517-child-0001", "2026-11-16T16:35:17.000Z", "2026-11-16-163516-a-0001")
    assert archive.find("last") == "2026-11-16-163516-a-0001"


def test_a_record_that_is_none_is_still_found(archive: Archive) -> None:
    archive.add(run_id(1), {"record.json": b"\xff not json"})
    assert archive.find("last") == run_id(1)


def test_a_signer_that_fails_leaves_nothing(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = opened()
    add(archive, 1)

    def no_key(_: bytes) -> str:
        raise UsageError("the key cannot be read", hint="mend it")

    monkeypatch.setattr(archive, "_sign", no_key)
    with pytest.raises(UsageError, match="the key cannot be read"):
        add(archive, 2)
    monkeypatch.setattr(archive, "_sign", lambda _: "no seal\nQuire-Run: x")
    with pytest.raises(UsageError, match="no seal"):
        add(archive, 2)
    again = opened()
    assert again.ids() == [run_id(1)]
    assert problems(again) == []
    add(again, 2)
    assert problems(again) == []


def test_a_step_without_a_seal_shows(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = opened()
    monkeypatch.setattr(archive, "_sign", None)
    add(archive, 1)
    assert archive.files(run_id(1)) == run_files(run_id(1))
    assert [link.problems for link in archive.history()] == [("has no seal",)]


def _write(kind: str, folder: Path, writer: int, count: int) -> None:
    archive: Archive = (
        FolderArchive(folder, seal) if kind == "folder" else git_archive(folder.parent)
    )
    for number in range(count):
        add(archive, writer * 100 + number)


def test_several_processes_all_land(tmp_path: Path, opened: Open) -> None:
    """The first one of them makes the archive."""
    archive = opened()
    folder = tmp_path / ("state" if archive.kind == "folder" else "repo") / "archive"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(archive.kind, folder, n, 5)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert len(archive.ids()) == 20
    assert len(list(archive.history())) == 20
    assert problems(archive) == []


def test_layout() -> None:
    assert run_folder("2026-01-02-030405-x-0a0b") == "runs/2026/01/02/2026-01-02-030405-x-0a0b"


def test_errors_are_ours(archive: Archive) -> None:
    for call in (archive.files, archive.find, archive.path):
        with pytest.raises(QuireError):
            call("no such run")
