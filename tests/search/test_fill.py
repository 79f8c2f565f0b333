"""The index is filled from the archive: the same comes of it, whichever process reads."""

from __future__ import annotations

import errno
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from kept_runs import ids, run_id

from made_archive import git
from made_runs import ADA, TASK, files_of, ran, signed
from quire.archive.layout import run_folder
from quire.search import fill
from quire.search.digest import digest
from quire.search.fill import catch_up, index_of, read_here, rebuild, status
from quire.search.find import find
from quire.workspace import Workspace

COUNT = 5


def keep(ws: Workspace, number: int, **more: bytes) -> str:
    """A run; its own words are `number1` and so on."""
    record = ran(TASK, run_id=run_id(number), results=[("word", f"number{number}")])
    ws.archive.add(record.run_id, {**signed(files_of(record, TASK), ADA), **more})
    return record.run_id


@pytest.fixture
def many(ws: Workspace) -> Workspace:
    for number in range(COUNT):
        keep(ws, number, **({"record.json": b"{}"} if number == 3 else {}))
    return ws


def all_but(*left_out: int) -> list[str]:
    return [run_id(n) for n in reversed(range(COUNT)) if n not in left_out]


@pytest.mark.parametrize("python", [sys.executable, "/bin/false"])
def test_many_are_read_by_other_processes_else_here(
    many: Workspace, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("another process has not answered")

    alone = rebuild(many)
    monkeypatch.setattr(fill, "PART", 2)
    monkeypatch.setattr(sys, "executable", python)
    if python != "/bin/false":
        monkeypatch.setattr(fill, "read_here", refused)
    seen: list[tuple[int, int]] = []
    done = rebuild(many, lambda at, total: seen.append((at, total)))
    assert (done.added, done.damaged) == (alone.added, alone.damaged)
    assert list(done.damaged) == [run_id(3)]
    assert seen == [(2, 5), (4, 5), (5, 5)]
    assert ids(many) == all_but(3)
    assert ids(many, "number4") == [run_id(4)]
    assert ids(many, "code:total")


def test_the_source_of_a_task_is_told_once(many: Workspace) -> None:
    found = read_here(many, many.archive.news("").added, ())
    assert [row is not None and row.source is not None for _, row, _ in found] == [
        True, False, False, False, False,
    ]  # fmt: skip


def test_the_index_follows_the_archive(many: Workspace) -> None:
    assert catch_up(many).added == COUNT - 1
    assert catch_up(many).added == 0
    new = keep(many, 7)
    assert status(many)["behind"] == 1
    assert ids(many, "number7") == [new]
    told = status(many)
    assert (told["runs"], told["behind"], told["problem"]) == (COUNT, 0, "")
    git(many.root, "update-ref", "refs/heads/reports", "refs/heads/reports~4")
    assert ids(many) == all_but(2, 3, 4)
    keep(many, 2)
    assert ids(many) == all_but(3, 4)


def test_while_another_adds_the_few_that_are_missing_it_waits(
    many: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    catch_up(many)
    new = keep(many, 9)
    monkeypatch.setattr(fill, "PATIENCE", 60.0)
    with ExitStack() as held, ThreadPoolExecutor() as pool:
        held.enter_context(index_of(many).writing())
        asked = pool.submit(find, many, "number9")
        with pytest.raises(TimeoutError):
            asked.result(0.3)
        held.close()
        assert [hit.run_id for hit in asked.result(60).hits] == [new]


def test_deleted_or_damaged_it_is_made_anew(many: Workspace) -> None:
    path = index_of(many).path
    first = ids(many, "total")
    path.unlink()
    assert ids(many, "total") == first
    path.write_bytes(b"x" * 5000)
    found = find(many, "total")
    assert [hit.run_id for hit in found.hits] == first
    assert "was made anew" in found.warnings[0]
    assert path.with_name("index.sqlite.broken").exists()
    data = path.read_bytes()  # behind the head
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    assert ids(many, "total") == first


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_where_nothing_can_be_written_the_index_as_it_is_is_searched(
    many: Workspace, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    before = ids(many, "total")
    keep(many, 8)
    real = os.open

    def refused(path: Any, flags: int, mode: int = 0o777) -> int:
        if "index." in str(path) and flags & os.O_CREAT:
            raise OSError(code, os.strerror(code), path)
        return real(path, flags, mode)

    monkeypatch.setattr("os.open", refused)
    found = find(many, "total")
    assert [hit.run_id for hit in found.hits] == before
    assert os.strerror(code) in found.warnings[0]
    assert "1 runs may be missing here" in found.warnings[0]
    assert status(many)["behind"] == 1
    assert digest(many, since="2026-11-01").runs == COUNT - 1
    monkeypatch.undo()
    assert ids(many, "number8") == [run_id(8)]


def test_a_damaged_run_is_named_and_the_rest_is_searched(many: Workspace) -> None:
    bad, empty = run_id(7), run_id(8)
    stream = b"commit refs/heads/reports\ncommitter E <e@x> 1 +0000\ndata 1\nx\n"
    stream += b"from refs/heads/reports^0\n"
    for run, data in ((bad, b"{"), (empty, b'{"format": 1}')):
        stream += b"M 100644 inline %b/record.json\ndata %d\n%b\n" % (
            run_folder(run).encode(), len(data), data)  # fmt: skip
    git(many.root, "fast-import", "--quiet", given=stream)
    other = run_id(9)
    many.archive.add(other, signed(files_of(ran(run_id=run_id(6))), ADA))
    found = find(many, "number1")
    assert [hit.run_id for hit in found.hits] == [run_id(1)]
    assert f"{run_id(3)}, {bad}, {empty} and 1 more" in found.warnings[0]
    assert set(status(many)["damaged"]) == {run_id(3), bad, empty, other}
