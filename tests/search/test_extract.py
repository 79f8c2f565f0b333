"""Many archived runs read by processes of their own: the same comes of it, whatever ends them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from made_archive import repository
from made_runs import ADA, TASK, files_of, ran, signed
from quire.archive.layout import Place
from quire.search import extract
from quire.search.extract import Read, extracted
from quire.search.fill import rebuild
from quire.search.find import find
from quire.workspace import Workspace

COUNT = 7


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    repository(tmp_path)
    (tmp_path / "quire.toml").write_text("")
    ws = Workspace(tmp_path, cwd=tmp_path)
    for number in range(COUNT):
        run_id = f"2026-11-16-1555{number:02d}-report-{number:04x}"
        record = ran(TASK, run_id=run_id, results=[("score", number / 10)])
        files = signed(files_of(record, TASK), ADA)
        if number == 3:
            files["record.json"] = b"{}"
        ws.archive.add(run_id, files)
    return ws


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MANY", 1)
    monkeypatch.setattr(extract, "BATCH", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes there have been."""
    found: list[Any] = []
    real = extract.subprocess.Popen

    def start(*args: Any, **how: Any) -> Any:
        process = real(*args, **how)
        if "quire.search.extract" in args[0]:
            found.append(process)
        return process

    monkeypatch.setattr(extract.subprocess, "Popen", start)
    return found


def here(ws: Workspace, places: tuple[Place, ...]) -> list[Read]:
    """Without other processes; the source of a task is told with its first run."""
    return list(extract.read_all(ws, places, ()))


def without_source(found: list[Read]) -> list[Any]:
    return [(run_id, row and row._replace(source=None), why) for run_id, row, why in found]


def test_the_same_in_the_same_order_without_reading_here(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    places = ws.archive.news("").added
    alone = here(ws, places)

    def refused(*_: Any) -> Iterator[Read]:
        raise AssertionError("a process has not answered")

    monkeypatch.setattr(extract, "read_all", refused)
    batches = list(extracted(ws, places, ()))
    assert [len(batch) for batch in batches] == [2, 2, 2, 1]
    found = [one for batch in batches for one in batch]
    assert without_source(found) == without_source(alone)
    assert [run_id for run_id, row, _ in found if row is None] == [places[3].run_id]
    assert found[0][1] is not None
    assert found[0][1].source == alone[0][1].source  # type: ignore[union-attr]
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


def test_an_index_is_made_and_searched_through_them(ws: Workspace, started: list[Any]) -> None:
    done = rebuild(ws)
    assert (done.added, len(done.damaged)) == (COUNT - 1, 1)
    assert len(started) == 2
    hits = find(ws, results=["score>0.45"]).hits
    assert [hit.run_id[-4:] for hit in hits] == ["0006", "0005"]


def test_what_a_process_does_not_answer_is_read_here(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    places = ws.archive.news("").added
    monkeypatch.setattr(sys, "executable", "/bin/false")
    found = [one for batch in extracted(ws, places, ()) for one in batch]
    assert found == here(ws, places)
    assert len(started) == 2


def test_none_is_left_when_nobody_listens_any_more(ws: Workspace, started: list[Any]) -> None:
    batches = extracted(ws, ws.archive.news("").added, ())
    assert len(next(batches)) == 2
    batches.close()
    assert [process.returncode is not None for process in started] == [True, True]
