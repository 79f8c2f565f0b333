"""`quire.run` and `NotebookExecutor`, as a program uses them."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest
from desk import Desk, shown

import quire
from quire.errors import StorageError, UsageError
from quire.record.events import (
    CellFinished,
    CellStarted,
    Event,
    OriginNoted,
    OutputAdded,
    RunFinished,
    RunStarted,
)
from quire.record.journal import Journal


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pid: int, timeout: float = 5.0) -> bool:
    deadline = time.monotonic() + timeout
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_what_is_public() -> None:
    for name in quire.__all__:
        assert getattr(quire, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = quire.nothing  # type: ignore[attr-defined]


def test_a_record_comes_back(desk: Desk) -> None:
    record = desk.ran("print('hi')", "from quire.runtime import glue; glue('x', [1])")
    assert isinstance(record, quire.Record)
    assert (record.outcome, record.ok, record.values) == ("ok", True, {"x": [1]})
    assert shown(record) == "hi\n"


def test_a_failing_task_has_a_record_too(desk: Desk) -> None:
    record = desk.ran("print('before')", "1 / 0", "print('after')")
    assert (record.outcome, record.ok) == ("failed", False)
    assert [c.status for c in record.cells] == ["ok", "failed", "not run"]
    assert record.error is not None
    assert record.error.name == "ZeroDivisionError"


def test_what_cannot_be_asked_raises(desk: Desk) -> None:
    for arguments in (
        {"path": "missing.py"},
        {"path": "t.py", "cwd": "nowhere"},
        {"path": "t.py", "python": "no-such-python"},
        {"path": "t.py", "output": "nowhere/out.ipynb"},
        {"path": "t.py", "parameters": {"x": 1}},
    ):
        desk.cells("t.py", "1")
        with pytest.raises(quire.QuireError) as caught:
            quire.run(**arguments, workspace=desk.workspace())  # type: ignore[arg-type]
        assert caught.value.hint
    assert not (desk.root / ".quire").exists()


def test_cwd_and_environment_are_arguments(desk: Desk) -> None:
    (desk.root / "sub").mkdir()
    desk.cells("t.py", "import os; print(os.getcwd(), os.environ.get('COLOUR'), len(os.environ))")
    env = {"PATH": os.environ["PATH"], "COLOUR": "green"}
    record = desk.run("t.py", cwd="sub", env=env)
    where, colour, count = shown(record).split()
    assert (where, colour) == (str(desk.root / "sub"), "green")
    assert int(count) < 12


TALKS = """
import os, random, sys, time
for n in range(20):
    assert os.getcwd() == where and os.environ['WHO'] == who, (os.getcwd(), os.environ['WHO'])
    with open('mine.txt', 'a') as file:
        file.write(who)
    print(who, n, flush=True)
    time.sleep(0.002)
sys.modules['mark_' + who] = sys
print([name for name in sys.modules if name.startswith('mark_')], os.getpid())
"""


def test_several_threads_each_in_a_world_of_its_own(desk: Desk) -> None:
    desk.write(
        "t.py", f'# %% tags=["parameters"]\nwho: str\nwhere: str\n# %%\n{TALKS}\n# %%\n{TALKS}\n'
    )
    before = Path.cwd()

    def one(who: str) -> quire.Record:
        folder = desk.root / f"folder-{who}"
        folder.mkdir()
        env = {**desk.env, "WHO": who}
        parameters = {"who": who, "where": str(folder)}
        return quire.run("t.py", parameters, workspace=desk.workspace(), cwd=folder, env=env)

    with ThreadPoolExecutor(4) as pool:
        records = list(pool.map(one, "abcd"))
    for who, record in zip("abcd", records, strict=True):
        assert record.ok, record.error
        assert (desk.root / f"folder-{who}" / "mine.txt").read_text() == who * 40
        lines = [line for line in shown(record).splitlines() if not line.startswith("[")]
        assert lines == [f"{who} {n}" for n in (*range(20), *range(20))]
        assert f"['mark_{who}']" in shown(record)
    assert len({r.run_id for r in records}) == 4
    assert len({r.plan["kernel"]["pid"] for r in records}) == 4
    assert Path.cwd() == before
    assert "WHO" not in os.environ


def test_many_threads_start_runs_of_one_second(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that would be equal are not, and no run is lost."""
    desk.cells("t.py", "x = 1")
    monkeypatch.setattr("secrets.token_hex", lambda _: "abcd")
    with ThreadPoolExecutor(4) as pool:
        records = list(pool.map(lambda _: desk.run("t.py"), range(8)))
    assert all(record.ok for record in records)
    assert len({record.run_id for record in records}) == 8
    assert sorted(desk.workspace().runs.ids()) == sorted(r.run_id for r in records)
    for record in records:
        folder = desk.workspace().runs.find(record.run_id)
        nb = json.loads(folder.notebook.read_text())
        assert nb["metadata"]["quire"]["run_id"] == record.run_id


def test_events_come_typed_in_order_and_are_journaled_first(desk: Desk) -> None:
    desk.cells("t.py", "print('one')", "print('two')\n2")
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace())
    with pytest.raises(UsageError):
        _ = execution.folder
    kinds: list[type[Event]] = []
    for n, event in enumerate(execution, 1):
        kinds.append(type(event))
        assert execution.folder.events.read_bytes().count(b"\n") >= n
    # Where the run comes from is told when it is known, at the latest before the end.
    assert kinds.count(OriginNoted) == 1
    kinds.remove(OriginNoted)
    assert kinds == [
        RunStarted,
        CellStarted,
        OutputAdded,
        CellFinished,
        CellStarted,
        OutputAdded,
        OutputAdded,
        CellFinished,
        RunFinished,
    ]
    assert execution.record.ok


def test_a_long_run_says_where_it_comes_from_before_its_cell_is_over(desk: Desk) -> None:
    """Should it be killed there, its record has who asked for it."""
    desk.cells("t.py", "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)")
    kinds: list[type[Event]] = []
    for event in quire.NotebookExecutor("t.py", workspace=desk.workspace(), timeout=60):
        kinds.append(type(event))
        if isinstance(event, OriginNoted):
            (desk.root / "go").touch()
            assert event.asked["by"]
    assert kinds == [RunStarted, CellStarted, OriginNoted, CellFinished, RunFinished]


def test_what_there_is_so_far(desk: Desk) -> None:
    desk.cells("t.py", "print('one')", "print('two')")
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace())
    assert execution.record.cells == ()
    seen: list[tuple[str, list[str]]] = []
    for event in execution:
        if isinstance(event, CellFinished):
            record = execution.record
            seen.append((record.outcome, [c.status for c in record.cells]))
            listed = desk.workspace().runs.read(execution.folder)
            assert listed.outcome == "running"
    assert seen == [("running", ["ok", "not run"]), ("running", ["ok", "ok"])]
    assert execution.record.outcome == "ok"


def test_the_books_are_done_when_the_last_event_is_seen(desk: Desk) -> None:
    desk.cells("t.py", "print('one')")
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace(), output="out.ipynb")
    for event in execution:
        if isinstance(event, RunFinished):
            break
    assert execution.record.outcome == "ok"
    for path in (execution.folder.notebook, desk.root / "out.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))
    assert json.loads(execution.folder.summary.read_text())["outcome"] == "ok"
    ends = execution.folder.events.read_text().count('"event":"RunFinished"')
    assert ends == 1


def test_called_off_from_another_thread(desk: Desk) -> None:
    desk.cells("t.py", "print('on', flush=True)\nimport time; time.sleep(100)", "print('never')")
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace())
    began = time.monotonic()
    for event in execution:
        if isinstance(event, OutputAdded):
            threading.Thread(target=execution.cancel).start()
    assert time.monotonic() - began < 10
    record = execution.record
    assert (record.outcome, [c.status for c in record.cells]) == (
        "cancelled",
        ["cancelled", "not run"],
    )
    assert shown(record).startswith("on\n")


def test_stopping_to_look_ends_the_run(desk: Desk) -> None:
    desk.cells(
        "t.py",
        "print('first')",
        "import subprocess, os, time\nchild = subprocess.Popen(['setsid', 'sleep', '300'])\n"
        "print(os.getpid(), child.pid, flush=True)\ntime.sleep(100)",
        "print('never')",
    )
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace())
    pids: list[int] = []
    for event in execution:
        if isinstance(event, OutputAdded) and "first" not in event.output["text"]:
            pids = [int(pid) for pid in event.output["text"].split()]
            break
    assert len(pids) == 2
    assert all(wait_until_gone(pid) for pid in pids)
    record = execution.record
    assert (record.outcome, [c.status for c in record.cells]) == (
        "cancelled",
        ["ok", "cancelled", "not run"],
    )
    store = desk.workspace().runs
    kept = store.read(store.find(execution.run_id))
    assert (kept.outcome, kept.reason) == ("cancelled", record.reason)
    assert shown(kept).startswith("first\n")
    nbformat.validate(nbformat.read(execution.folder.notebook, as_version=4))


def test_leaving_the_block_calls_it_off(desk: Desk) -> None:
    desk.cells("t.py", "print('on', flush=True)\nimport time; time.sleep(100)")
    with quire.NotebookExecutor("t.py", workspace=desk.workspace()) as execution:
        for event in execution:
            if isinstance(event, OutputAdded):
                break
    assert execution.record.outcome == "cancelled"


def test_a_run_is_run_once(desk: Desk) -> None:
    desk.cells("t.py", "1")
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace())
    list(execution)
    with pytest.raises(UsageError, match="has been started"):
        list(execution)
    assert len(desk.workspace().runs.ids()) == 1


def test_a_disk_that_fails_midway_ends_the_kernel_at_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.cells("t.py", "print('on', flush=True)\nimport time; time.sleep(100)")
    real = Journal.append

    def fill_up(self: Journal, event: Event) -> None:
        if isinstance(event, OutputAdded):
            raise StorageError("cannot write: No space left", hint="free some")
        real(self, event)

    monkeypatch.setattr(Journal, "append", fill_up)
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace())
    events: list[Event] = []
    began = time.monotonic()
    with pytest.raises(StorageError):
        events.extend(execution)
    assert time.monotonic() - began < 1.5
    assert isinstance(events[0], RunStarted)
    assert wait_until_gone(events[0].plan["kernel"]["pid"])


def test_time_and_the_clock_are_arguments(desk: Desk) -> None:
    from datetime import UTC, datetime

    desk.cells("t.py", "1")
    moment = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace(), now=lambda: moment)
    list(execution)
    assert execution.run_id.startswith("2030-01-02-030405-t-")
    assert execution.record.started == moment.isoformat()


def test_bounds_of_the_configuration_hold(desk: Desk) -> None:
    (desk.root / "quire.toml").write_text("stream_limit = 1000\ndisplay_limit = 5\n")
    record = desk.ran("print('x' * 5000)\nfor n in range(20): display(n)")
    assert len(shown(record)) < 1_500
    assert "characters of stdout were cut here" in shown(record)
    displays = [o for o in record.cells[0].outputs if o["output_type"] != "stream"]
    assert len(displays) == 6
    assert "15 more outputs were cut" in displays[-1]["data"]["text/plain"]


def test_a_progress_display_that_is_updated_very_often_ends_right(desk: Desk) -> None:
    record = desk.ran(
        "handle = display('0', display_id=True)\nfor n in range(5001): handle.update(str(n))"
    )
    assert [o["data"]["text/plain"] for o in record.cells[0].outputs] == ["'5000'"]


def test_a_huge_error_is_bounded(desk: Desk) -> None:
    record = desk.ran("raise ValueError('x' * 20_000_000)")
    assert record.outcome == "failed"
    store = desk.workspace().runs
    folder = store.find(record.run_id)
    sizes: dict[str, Any] = {p.name: p.stat().st_size for p in folder.path.iterdir()}
    assert max(sizes.values()) < 2_000_000, sizes
