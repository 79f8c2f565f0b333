from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from quire.errors import StorageError
from quire.files import disk, locked, write_atomic


def test_it_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_atomic(path, b"one")
    write_atomic(path, b"two", mode=0o600)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["x.json"]


@pytest.mark.parametrize("step", ["fsync", "replace", "fchmod"])
@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "existing"])
def test_a_failure_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, old: bytes | None
) -> None:
    path = tmp_path / "x.json"
    if old is not None:
        path.write_bytes(old)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StorageError, match=r"cannot write .*No space left") as caught:
        write_atomic(path, b"new")
    assert "free some space" in caught.value.hint
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if old is None else [old])


def test_an_interrupt_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "x", b"new")
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        write_atomic(tmp_path / "nowhere" / "x", b"")
    assert str(tmp_path / "nowhere" / "x") in caught.value.message
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "space"), (errno.EDQUOT, "space"), (errno.EROFS, "read-only"), (1, "folder")],
)
def test_the_hint_fits_the_reason(number: int, said: str) -> None:
    with pytest.raises(StorageError) as caught, disk("it"):
        raise OSError(number, os.strerror(number))
    assert said in caught.value.hint


def test_a_locked_folder_is_one_processes_at_a_time(tmp_path: Path) -> None:
    seen: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def first() -> None:
        with locked(tmp_path):
            inside.set()
            go_on.wait(10)
            seen.append("first")

    def second() -> None:
        inside.wait(10)
        with locked(tmp_path):
            seen.append("second")

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert seen == ["first", "second"]
    assert os.listdir(tmp_path) == []
