"""The archive in a folder: its chain, what a killed writer leaves, and what a forger changes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from made_archive import add, is_good, problems, run_files, run_id, seal
from quire.archive import folder_archive
from quire.archive.folder_archive import FolderArchive
from quire.errors import StorageError


@pytest.fixture
def archive(tmp_path: Path) -> FolderArchive:
    archive = FolderArchive(tmp_path / "archive", seal)
    for number in range(4):
        add(archive, number)
    assert problems(archive) == []
    return archive


def chain(archive: FolderArchive) -> Path:
    return archive.folder / "chain.jsonl"


def folder(archive: FolderArchive, number: int) -> Path:
    return archive.folder / archive.path(run_id(number))


def test_layout(archive: FolderArchive) -> None:
    names = {str(p.relative_to(archive.folder)) for p in archive.folder.rglob("*") if p.is_file()}
    runs = {f"runs/2026/11/16/{run_id(n)}/{name}" for n in range(4) for name in run_files("x")}
    assert names == runs | {"chain.jsonl"}
    assert [json.loads(line)["run"] for line in chain(archive).read_text().splitlines()] == [
        run_id(n) for n in range(4)
    ]


def test_a_changed_file_breaks_the_seal_of_its_run_only(archive: FolderArchive) -> None:
    path = folder(archive, 1) / "notebook.ipynb"
    path.write_bytes(path.read_bytes().replace(b"c", b"d", 1))
    assert [is_good(link) for link in archive.history()] == [True, False, True, True]


def test_a_removed_run_shows(archive: FolderArchive) -> None:
    shutil.rmtree(folder(archive, 1))
    links = list(archive.history())
    assert "cannot read" in links[1].problems[0]
    assert run_id(1) in archive.ids()
    with pytest.raises(StorageError, match=run_id(1)):
        archive.files(run_id(1))
    assert dict(archive.each([run_id(1)])) == {run_id(1): {}}


def edit(archive: FolderArchive, lines: list[bytes]) -> None:
    chain(archive).write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    "order", [[1, 2, 3], [0, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [0, 1, 1, 2, 3], [0, 1, 2], [], [0]]
)
def test_lines_that_were_removed_moved_or_doubled_show(
    archive: FolderArchive, order: list[int]
) -> None:
    lines = chain(archive).read_bytes().splitlines(keepends=True)
    edit(archive, [lines[n] for n in order])
    assert problems(archive) != []
    # A new run on top does not make it forgotten.
    add(archive, 9)
    assert problems(archive) != []


def test_adding_to_a_chain_that_was_cut_warns(archive: FolderArchive) -> None:
    lines = chain(archive).read_bytes().splitlines(keepends=True)
    edit(archive, lines[:2])
    add(archive, 9)
    assert "runs were removed" in archive.warning
    assert f"folders without a line: {run_id(2)}, {run_id(3)}" in archive.warning
    assert archive.warning.endswith("quire verify --all says what to do")
    add(archive, 10)
    assert run_id(3) in archive.warning
    assert "4 lines" in str(archive.witness_problem())
    # What came on top is remembered as well.
    edit(archive, chain(archive).read_bytes().splitlines(keepends=True)[:2])
    assert f"{run_id(2)}, {run_id(3)}, {run_id(9)} and 1 more" in str(archive.witness_problem())
    edit(archive, lines)
    add(archive, 11)
    assert run_id(10) in archive.warning


def test_a_chain_that_is_whole_warns_of_nothing(archive: FolderArchive) -> None:
    add(archive, 9)
    assert archive.warning == ""
    add(FolderArchive(archive.folder, seal), 10)
    add(archive, 11)
    assert archive.warning == ""


def test_a_chain_that_is_gone_shows(archive: FolderArchive) -> None:
    shutil.rmtree(archive.folder)
    assert archive.ids() == []
    told = archive.witness_problem()
    assert told is not None
    assert "4 lines" in told


@pytest.mark.parametrize(
    "line",
    [b"{}\n", b"[1]\n", b"\xff\n", b"\n", b'{"run": "../../x", "after": "start", "seal": "a:b"}\n',
     b'{"run": 1, "after": null}\n', b"[" * 100_000 + b"\n"],
)  # fmt: skip
def test_lines_of_strangers(archive: FolderArchive, line: bytes) -> None:
    with open(chain(archive), "ab") as file:
        file.write(line)
    assert len(archive.ids()) == 4
    assert any("is not a line of Quire's" in one for one in problems(archive))
    add(archive, 9)
    assert archive.files(run_id(9)) == run_files(run_id(9))
    assert any("is not a line of Quire's" in one for one in problems(archive))


def test_links_pipes_and_folders_are_not_followed(archive: FolderArchive, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a password")
    record = folder(archive, 1) / "record.json"
    record.unlink()
    record.symlink_to(secret)
    os.mkfifo(folder(archive, 2) / "source.R")
    (folder(archive, 3) / "source").mkdir()
    links = list(archive.history())
    assert [bool(link.problems) for link in links] == [False, True, True, True]
    assert b"password" not in b"".join(links[1].files.values())
    for number in (1, 2, 3):
        with pytest.raises(StorageError):
            archive.files(run_id(number))


def test_extra_files_show(archive: FolderArchive) -> None:
    (folder(archive, 1) / "evil.sh").write_text("x")
    (folder(archive, 2) / "source.R").write_text("x")
    links = list(archive.history())
    assert "evil.sh" in links[1].problems[0]
    assert not is_good(links[2])


def test_a_torn_line_was_never_acknowledged(archive: FolderArchive) -> None:
    with open(chain(archive), "ab") as file:
        file.write(b'{"run": "2026-')
    assert problems(archive) == []
    add(archive, 9)
    assert len(archive.ids()) == 5
    assert problems(archive) == []


class Killed(BaseException):
    pass


def killed(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize("moment", ["_append", "sync_folder", "write_atomic", "_last_line"])
def test_killed_at_any_moment(
    archive: FolderArchive, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(folder_archive, moment, killed)
        with pytest.raises(Killed):
            add(archive, 9)
    assert problems(archive) == []
    assert archive.ids() in (
        [run_id(n) for n in (9, 3, 2, 1, 0)],
        [run_id(n) for n in (3, 2, 1, 0)],
    )
    add(archive, 9)
    assert archive.files(run_id(9)) == run_files(run_id(9))
    assert problems(archive) == []


def test_what_a_killed_writer_left_is_replaced_and_swept(archive: FolderArchive) -> None:
    left = folder(archive, 9)
    left.mkdir()
    (left / "record.json").write_text("half")
    (archive.folder / ".new-abc").mkdir()
    assert run_id(9) not in archive.ids()
    assert problems(archive) == []
    add(archive, 9)
    assert archive.files(run_id(9)) == run_files(run_id(9))
    archive.tidy()
    assert not (archive.folder / ".new-abc").exists()
    assert problems(archive) == []


def test_adding_reads_only_the_end_of_the_chain(
    archive: FolderArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = folder_archive._read_line

    def counted(number: int, line: bytes) -> folder_archive.Line:
        read.append(number)
        return real(number, line)

    monkeypatch.setattr(folder_archive, "_read_line", counted)
    for number in range(10, 20):
        add(archive, number)
    assert read == []
    assert len(archive.ids()) == 14


def test_long_lines_are_read_whole(tmp_path: Path) -> None:
    archive = FolderArchive(tmp_path / "archive", lambda data: f"{'k' * 20_000}:{'x' * 20_000}")
    for number in range(3):
        add(archive, number)
    assert [link.problems for link in archive.history()] == [(), (), ()]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file in its place")
    with pytest.raises(StorageError, match="cannot write") as caught:
        add(FolderArchive(tmp_path / "archive", seal), 1)
    assert caught.value.hint
