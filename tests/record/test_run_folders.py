from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest

from quire.errors import RunNotFound, StorageError
from quire.record import journal
from quire.record.events import (
    CellFinished,
    CellStarted,
    Event,
    OutputAdded,
    RunFinished,
    RunStarted,
)
from quire.record.journal import Journal
from quire.record.run_folders import RunFolder, RunStore

SPECS = tuple({"id": c, "kind": "code", "source": c} for c in "ab")


def at(second: float) -> str:
    return f"2026-11-16T15:55:{second:09.6f}+00:00"


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / ".quire" / "runs", "1.2.3")


def some_id(name: str = "t", second: int = 1, ending: str = "0000") -> str:
    return f"2026-11-16-1555{second:02d}-{name}-{ending}"


def begun(store: RunStore, run_id: str, *events: Event, started: float = 1.0) -> RunFolder:
    """A run whose process went away after these events."""
    folder = store.create(run_id)
    book = Journal(folder.events)
    book.append(RunStarted(folder.run_id, "u", at(started), "t.py", "T", SPECS, {}))
    for event in events:
        book.append(event)
    book.close()
    return folder


CUT_OFF: tuple[Event, ...] = (
    CellStarted("a", at(2)),
    CellFinished("a", "ok", at(3), 1.0),
    CellStarted("b", at(4)),
    OutputAdded("b", {"output_type": "stream", "name": "stdout", "text": "shown\n"}),
)


def left(folder: RunFolder, torn: bytes) -> None:
    """As the killed process left its journal, which it last wrote to while `b` ran."""
    with open(folder.events, "ab") as file:
        file.write(torn)
    last = datetime.fromisoformat(at(6.5)).timestamp()
    os.utime(folder.events, (last, last))


def check_recovered(store: RunStore, folder: RunFolder) -> None:
    ends = [e for e in journal.read(folder.events) if isinstance(e, RunFinished)]
    assert len(ends) == 1
    record = store.read(folder)
    assert (record.outcome, record.finished, record.duration) == ("died", at(6.5), 5.5)
    assert [c.status for c in record.cells] == ["ok", "died"]
    assert record.cells[1].outputs[0]["text"] == "shown\n"
    nb = nbformat.read(folder.notebook, as_version=4)
    nbformat.validate(nb)
    assert nb.metadata.papermill.version == "1.2.3"
    summary = json.loads(folder.summary.read_text())
    assert summary["outcome"] == "died"
    assert "ended before the run did" in summary["error"]


def test_a_run_has_a_folder_that_git_ignores(store: RunStore) -> None:
    folder = store.create(some_id())
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert (store.root.parent / ".gitignore").read_text() == "*\n"


def test_a_taken_id_gives_way_to_the_next(store: RunStore) -> None:
    made = [store.create(some_id(ending="ffff")).run_id for _ in range(3)]
    assert made == [some_id(ending="ffff"), some_id(ending="0000"), some_id(ending="0001")]


def test_a_folder_that_cannot_be_made_is_told(store: RunStore) -> None:
    store.root.parent.mkdir()
    store.root.write_text("a file is in the way")
    with pytest.raises(StorageError):
        store.create(some_id())


@pytest.mark.parametrize("torn", [b"", b'{"event":"OutputAdd'], ids=["whole", "torn"])
def test_a_killed_run_is_brought_to_order(store: RunStore, torn: bytes) -> None:
    folder = begun(store, some_id(), *CUT_OFF)
    left(folder, torn)
    store.recover(folder)
    check_recovered(store, folder)
    before = folder.events.read_bytes()
    store.recover(folder)
    assert folder.events.read_bytes() == before


def test_a_live_run_is_left_alone(store: RunStore) -> None:
    folder = store.create(some_id())
    book = Journal(folder.events)
    book.append(RunStarted(folder.run_id, "u", at(1), "t.py", "T", SPECS, {}))
    store.recover(folder)
    assert not folder.summary.exists()
    assert store.read(folder).outcome == "running"
    assert [s["outcome"] for s in store.summaries()] == ["running"]
    book.close()


def test_a_run_killed_while_it_saved_its_notebook(store: RunStore) -> None:
    folder = begun(store, some_id(), RunFinished("ok", at(5), 4.0))
    folder.notebook.write_text('{"cells": [')
    for _ in range(2):
        store.recover(folder)
    record = store.read(folder)
    # Whoever wrote that it is ok is not there any more to sign it.
    assert (record.outcome, record.recovered) == ("died", True)
    nbformat.validate(nbformat.read(folder.notebook, as_version=4))
    assert len([e for e in journal.read(folder.events) if isinstance(e, RunFinished)]) == 2


def test_a_run_that_is_archived_is_not_taken_for_one_that_died(store: RunStore) -> None:
    folder = begun(store, some_id(), RunFinished("ok", at(5), 4.0))
    store.paid(folder, {"archive": "somewhere", "place": "there"})
    store.recover(folder)
    assert (store.read(folder).outcome, store.read(folder).recovered) == ("ok", False)


def test_a_run_killed_before_its_first_event(store: RunStore) -> None:
    folder = store.create(some_id())
    Journal(folder.events).close()
    store.recover(folder)
    record = store.read(folder)
    assert (record.run_id, record.outcome) == (folder.run_id, "died")
    (summary,) = store.summaries()
    assert (summary["run_id"], summary["outcome"]) == (folder.run_id, "died")


def test_a_run_killed_before_its_journal(store: RunStore) -> None:
    folder = store.create(some_id())
    store.recover(folder)
    with pytest.raises(RunNotFound, match="no journal"):
        store.read(folder)
    (summary,) = store.summaries()
    assert (summary["run_id"], summary["outcome"]) == (folder.run_id, "died")


RECOVER = """
import sys
from pathlib import Path
from quire.record.run_folders import RunStore
store = RunStore(Path(sys.argv[1]), "1.2.3")
folders = [store.find(run_id) for run_id in store.ids()]
print("ready", flush=True)
sys.stdin.readline()
for folder in folders:
    store.recover(folder)
"""


def test_several_processes_may_recover_the_same_runs(store: RunStore) -> None:
    folders = [begun(store, some_id(ending=f"{n:04x}"), *CUT_OFF) for n in range(30)]
    for folder in folders:
        left(folder, b'{"event":"torn')
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RECOVER, str(store.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
    for folder in folders:
        check_recovered(store, folder)


def test_a_disk_that_cannot_be_written_is_no_reason_not_to_read(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = begun(store, some_id(), *CUT_OFF)

    def refuse(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(journal, "mend", refuse)
    store.recover(folder)
    assert store.read(folder).outcome == "died"
    assert [s["outcome"] for s in store.summaries()] == ["died"]


def test_found_by_id_by_a_beginning_and_as_the_last(store: RunStore) -> None:
    one = begun(store, some_id("one", 1))
    two = begun(store, some_id("two", 2))
    assert store.find(one.run_id) == one
    assert store.find("2026-11-16-155501") == one
    assert store.find("last") == two
    assert store.ids() == [two.run_id, one.run_id]


def test_an_id_that_begins_another_one_is_found(store: RunStore) -> None:
    short = begun(store, some_id("t", ending="aaaa"))
    begun(store, some_id("t", ending="aaaa-2"))
    assert store.find(short.run_id) == short


@pytest.mark.parametrize("name", ["", "2027", "nothing", "../runs", "LAST", "."])
def test_what_is_not_there(store: RunStore, name: str) -> None:
    begun(store, some_id())
    with pytest.raises(RunNotFound, match="there is no run") as caught:
        store.find(name)
    assert "quire runs" in caught.value.hint


def test_a_beginning_that_fits_several(store: RunStore) -> None:
    for n in range(6):
        begun(store, some_id(ending=f"000{n}"))
    with pytest.raises(RunNotFound, match="fits 6 runs: 2026-11-16-155501-t-0005") as caught:
        store.find("2026")
    assert "more of the id" in caught.value.hint


def test_nothing_has_run_yet(store: RunStore) -> None:
    assert (store.ids(), list(store.summaries())) == ([], [])
    with pytest.raises(RunNotFound, match="no task has run here yet"):
        store.find("last")


@pytest.mark.parametrize("recovered", [True, False])
def test_the_last_of_one_second_is_the_one_that_started_last(
    store: RunStore, recovered: bool
) -> None:
    times = {"ffff": 1.1, "0000": 1.9, "8888": 1.5}
    folders = {
        ending: begun(store, some_id(ending=ending), started=started)
        for ending, started in times.items()
    }
    if recovered:
        for folder in folders.values():
            store.recover(folder)
    assert store.find("last") == folders["0000"]


DAMAGED = ["", "{", "[]", "{}", "null", '{"run_id": "x"}', "\x00", "[" * 5_000]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_summary_or_notebook_is_no_problem(store: RunStore, text: str) -> None:
    folder = begun(store, some_id(), RunFinished("failed", at(5), 4.0, "it failed"))
    store.recover(folder)
    expected = list(store.summaries())
    folder.summary.write_text(text)
    folder.notebook.write_text(text)
    assert list(store.summaries()) == expected
    assert store.find("last") == folder
    assert store.read(folder).outcome == "failed"


def test_other_things_in_the_folder_are_not_runs(store: RunStore) -> None:
    begun(store, some_id())
    (store.root / "notes").mkdir()
    (store.root / "x.txt").write_text("")
    assert store.ids() == [some_id()]


def test_the_newest_come_first_and_only_as_many_as_wanted(store: RunStore) -> None:
    for second in range(1, 6):
        begun(store, some_id(second=second))
    found: Iterator[Any] = store.summaries(2)
    assert [s["run_id"] for s in found] == [some_id(second=5), some_id(second=4)]


def test_spill_appends_and_holds_any_text(store: RunStore) -> None:
    folder = store.create(some_id())
    path = folder.write("a", "stdout", "one\n")
    assert folder.write("a", "stdout", "two \ud800\n", path) == path
    assert Path(path).read_text() == "one\ntwo ?\n"
    assert Path(folder.write("a", "display", "{}\n")).name == "a.displays.jsonl"


def test_the_source_is_kept_to_the_byte(store: RunStore) -> None:
    folder = store.create(some_id())
    folder.save_source("# %%\r\nx = 'é'\n", ".py")
    assert (folder.path / "source.py").read_bytes() == "# %%\r\nx = 'é'\n".encode()
