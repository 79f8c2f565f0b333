from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from quire.errors import StorageError
from quire.record import journal
from quire.record.events import (
    CellFinished,
    CellStarted,
    Event,
    OutputAdded,
    RunFinished,
    Warned,
    dumps,
)
from quire.record.journal import BLOCK, Journal

A, B, END = CellStarted("a", "now"), CellFinished("a", "ok"), RunFinished("ok", "now", 1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def written(path: Path, *events: Event) -> None:
    book = Journal(path)
    for event in events:
        book.append(event)
    book.close()


def test_what_is_appended_is_read_back(path: Path) -> None:
    book = Journal(path)
    book.append(A)
    assert list(journal.read(path)) == [A]
    book.append(Warned("a", "\ud800\n"))
    book.append(B)
    book.close()
    book.close()
    assert list(journal.read(path)) == [A, Warned("a", "\ud800\n"), B]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_journal_is_begun_once(path: Path) -> None:
    written(path, A)
    with pytest.raises(StorageError):
        Journal(path)
    assert list(journal.read(path)) == [A]


def test_who_writes_it_is_alive(path: Path) -> None:
    assert not journal.is_live(path)
    book = Journal(path)
    assert journal.is_live(path)
    book.close()
    assert not journal.is_live(path)


def test_a_killed_writer_is_not_alive(path: Path) -> None:
    code = f"""
from pathlib import Path
from quire.record.journal import Journal
book = Journal(Path({str(path)!r}))
print("up", flush=True)
input()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert journal.is_live(path)
        process.kill()
    assert not journal.is_live(path)


def test_a_reader_that_looks_at_the_first_moment_does_not_stop_the_writer(path: Path) -> None:
    """Readers hold the lock for an instant; the writer waits for it instead of failing."""
    import fcntl

    path.parent.mkdir(exist_ok=True)
    looking, made = threading.Event(), []
    real = os.open

    def open_and_be_looked_at(*args: object, **kwargs: object) -> int:
        fd = real(*args, **kwargs)  # type: ignore[arg-type]
        reader = real(path, os.O_RDONLY)
        fcntl.flock(reader, fcntl.LOCK_SH)
        threading.Timer(0.05, lambda: (looking.set(), os.close(reader))).start()
        return fd

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", open_and_be_looked_at)
        made.append(Journal(path))
    assert looking.is_set()
    made[0].append(A)
    made[0].close()
    assert list(journal.read(path)) == [A]


@pytest.mark.parametrize("torn", [b"{", b'{"event":"CellSt', dumps(B).encode(), b"\xff\xfe"])
def test_a_torn_last_line_is_not_read_and_can_be_mended(path: Path, torn: bytes) -> None:
    written(path, A)
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert list(journal.read(path)) == [A]
    assert not journal.finished(path)
    journal.mend(path)
    assert path.read_bytes() == whole
    journal.mend(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_a_torn_line_may_be_long(path: Path, size: int) -> None:
    written(path, A)
    whole = path.read_bytes()
    path.write_bytes(whole + b"x" * size)
    journal.mend(path)
    assert path.read_bytes() == whole
    path.write_bytes(b"x" * size)
    journal.mend(path)
    assert path.read_bytes() == b""


def test_reading_stops_at_the_first_line_that_is_no_event(path: Path) -> None:
    written(path, A, B)
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b"[]\n" + second)
    assert list(journal.read(path)) == [A]


def test_kinds_that_are_not_asked_for_are_not_even_parsed(path: Path) -> None:
    written(path, A, B)
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + b'{"event":"OutputAdded","cell":no JSON}\n' + second)
    assert list(journal.read(path, without=(OutputAdded,))) == [A, B]
    assert list(journal.read(path)) == [A]


def test_an_end_is_seen_at_the_end_only(path: Path) -> None:
    written(path, A)
    assert not journal.finished(path)
    journal.amend(path, END)
    assert journal.finished(path)
    assert list(journal.read(path)) == [A, END]
    path.write_bytes(path.read_bytes() + dumps(B).encode() + b"\n")
    assert not journal.finished(path)


def test_an_end_behind_a_very_long_line_is_seen(path: Path) -> None:
    written(path, Warned("a", "x" * 3 * BLOCK), END)
    assert journal.finished(path)
    path.unlink()
    written(path, END, Warned("a", "x" * 3 * BLOCK))
    assert not journal.finished(path)


def test_an_empty_journal(path: Path) -> None:
    path.write_bytes(b"")
    assert list(journal.read(path)) == []
    assert not journal.finished(path)
    journal.mend(path)


def test_a_full_disk_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Journal(path)
    real = os.write

    def full(fd: int, data: bytes) -> int:
        if fd == book._fd:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="No space left"):
        book.append(A)
    monkeypatch.undo()
    book.close()


def test_a_disk_that_takes_only_a_part_at_a_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    book = Journal(path)
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
    book.append(A)
    monkeypatch.undo()
    book.close()
    assert list(journal.read(path)) == [A]


def test_an_old_journal_can_be_gone_on_with_by_one(path: Path) -> None:
    written(path, A)
    book = Journal(path, reopen=True)
    with pytest.raises(StorageError):
        Journal(path, reopen=True)
    book.append(B)
    book.close()
    assert list(journal.read(path)) == [A, B]
    with pytest.raises(StorageError):
        Journal(path.with_name("other"), reopen=True)
