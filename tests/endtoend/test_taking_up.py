"""A run that waits for a person is taken up once: what is approved does not run twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from scratch import Scratch

# Each step leaves a line in a file: what ran twice is there twice.
SEND = """# Send

```python
import pathlib, time
with open("log.txt", "a") as log:
    print("gather", file=log)
while pathlib.Path("hold1").exists():
    time.sleep(0.01)
```

```python approve: true
with open("log.txt", "a") as log:
    print("sent", file=log)
```

```python
while pathlib.Path("hold").exists():
    time.sleep(0.01)
```
"""


def until(holds: Callable[[], bool], timeout: float = 60.0) -> None:
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)  # to look again; nothing depends on how long


def paused(scratch: Scratch, *options: str) -> str:
    scratch.write("send.md", SEND)
    code, told = scratch.run("send.md", *options)
    assert (code, told["outcome"]) == (3, "paused")
    return str(told["run_id"])


def take_up(scratch: Scratch, run: str, *options: str) -> tuple[int, dict[str, Any]]:
    done = scratch.quire("resume", run, "--json", "-q", *options)
    return done.returncode, json.loads(done.stdout)


def log(scratch: Scratch) -> list[str]:
    path = scratch.root / "log.txt"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("options", [(), ("--no-host",)], ids=["snapshot", "replay"])
def test_it_is_taken_up_once(scratch: Scratch, options: tuple[str, ...]) -> None:
    run = paused(scratch, *options)
    code, told = take_up(scratch, run, "--approve", *options)
    assert (code, told["outcome"]) == (0, "ok")
    code, refused = take_up(scratch, run, "--approve", *options)
    assert (code, refused["error"]["code"]) == (2, "usage")
    assert f"taken up by {told['run_id']}, which ended ok" in refused["error"]["message"]
    assert f"quire resume {run} --again" in refused["error"]["hint"]
    assert log(scratch).count("sent") == 1
    code, again = take_up(scratch, run, "--approve", "--again", *options)
    assert (code, again["outcome"]) == (0, "ok")
    assert log(scratch).count("sent") == 2
    shown = scratch.quire("show", run).stdout
    assert f"taken up by {again['run_id']}, which is ok" in shown
    assert json.loads(scratch.quire("show", run, "--json").stdout)["taken_up_by"] == again["run_id"]
    listed = {one["run_id"]: one for one in json.loads(scratch.quire("runs", "--json").stdout)}
    assert listed[run]["taken_up_by"] == again["run_id"]
    assert listed[again["run_id"]]["taken_up_by"] is None
    assert f"(taken up by {again['run_id']})" in scratch.quire("runs").stdout


def test_by_its_name_through_quire_run_it_is_taken_up_once_too(scratch: Scratch) -> None:
    run = paused(scratch)
    assert take_up(scratch, run, "--approve")[0] == 0
    code, told = scratch.run("send.md", "--resume", run)
    assert (code, told["outcome"]) == (2, "error")
    assert "taken up by" in told["error"]["message"]


@pytest.mark.parametrize("options", [(), ("--no-host",)], ids=["snapshot", "replay"])
def test_of_several_commands_at_the_same_moment_one_does_it(
    scratch: Scratch, options: tuple[str, ...]
) -> None:
    run = paused(scratch, *options)
    at_once = [
        scratch.start("resume", run, "--approve", "--json", "-q", *options) for _ in range(4)
    ]
    told = [json.loads(one.communicate(timeout=120)[0]) for one in at_once]
    assert sorted(one.returncode for one in at_once) == [0, 2, 2, 2]
    assert log(scratch).count("sent") == 1
    (done,) = (one for one in told if one["outcome"] == "ok")
    for one in told:
        if one is not done:
            assert f"taken up by {done['run_id']}" in one["error"]["message"]
    runs = json.loads(scratch.quire("runs", "--json").stdout)
    assert len(runs) == 2, "who was refused leaves no run"
    assert not list((scratch.root / ".quire" / "unarchived").iterdir())


def test_while_it_runs_and_where_it_waits_again(scratch: Scratch) -> None:
    run = paused(scratch)
    code, second = take_up(scratch, run)  # nobody is asked, nobody decides: it waits again
    assert (code, second["outcome"]) == (3, "paused")
    code, refused = take_up(scratch, run, "--approve")
    assert code == 2
    assert "waits for a person in its turn" in refused["error"]["message"]
    assert refused["error"]["hint"].startswith(f"quire resume {second['run_id']}")
    (scratch.root / "hold").touch()
    running = scratch.start("resume", second["run_id"], "--approve", "--json", "-q")
    until(lambda: "sent" in log(scratch))
    code, refused = take_up(scratch, second["run_id"], "--approve")
    assert code == 2
    assert "is still running" in refused["error"]["message"]
    (scratch.root / "hold").unlink()
    assert running.wait(60) == 0
    running.communicate()
    assert log(scratch).count("sent") == 1


def test_what_died_before_it_ran_anything_more_has_not_taken_it_up(scratch: Scratch) -> None:
    """By replay `gather` runs again: the first is killed there, the second after it sent."""
    run = paused(scratch, "--no-host")
    for hold, reached, sent in (("hold1", "gather", 0), ("hold", "sent", 1)):
        (scratch.root / "log.txt").unlink()
        (scratch.root / hold).touch()
        taker = scratch.start("resume", run, "--approve", "--no-host", "-q")
        until(lambda reached=reached: reached in log(scratch))  # type: ignore[misc]
        os.kill(taker.pid, signal.SIGKILL)
        taker.communicate()
        (scratch.root / hold).unlink()
        assert log(scratch).count("sent") == sent
        shown = json.loads(scratch.quire("show", run, "--json").stdout)
        assert (shown["taken_up_by"] is not None) == bool(sent)
    code, refused = take_up(scratch, run, "--approve", "--no-host")
    assert code == 2
    assert "ended died" in refused["error"]["message"]


def test_what_is_only_in_the_archive_is_taken_up_once_too(scratch: Scratch) -> None:
    run = paused(scratch)
    scratch.quire("host", "stop")
    shutil.rmtree(scratch.root / ".quire" / "runs" / run)
    assert take_up(scratch, run, "--approve")[0] == 0
    assert take_up(scratch, run, "--approve")[0] == 2
    assert log(scratch).count("sent") == 1


def test_what_a_shell_did_is_not_done_again(scratch: Scratch) -> None:
    """A step in bash leaves nothing behind that would keep the state from being set aside."""
    scratch.write(
        "send.md",
        "```bash\necho gather >> log.txt\n```\n\n"
        "```bash approve: true\necho sent >> log.txt\n```\n",
    )
    code, told = scratch.run("send.md")
    assert (code, told["outcome"]) == (3, "paused")
    code, told = take_up(scratch, told["run_id"], "--approve")
    assert (code, told["outcome"]) == (0, "ok")
    assert log(scratch) == ["gather", "sent"]


def test_what_sql_did_is_not_done_again(scratch: Scratch) -> None:
    scratch.write("quire.toml", 'sql = "sqlite:///data.db"\n')
    scratch.write(
        "sql.md",
        "```sql\ncreate table if not exists t (a); insert into t values (1)\n```\n\n"
        "```python approve: true\nx = 1\n```\n\n```sql into=rows\nselect * from t\n```\n\n"
        "```python\nfrom quire.runtime import glue\nglue('rows', len(rows))\n```\n",
    )
    code, told = scratch.run("sql.md")
    assert (code, told["outcome"]) == (3, "paused")
    code, told = take_up(scratch, told["run_id"], "--approve")
    assert (code, told["results"]) == (0, {"rows": 1})


def test_what_sets_the_parameters_is_no_step_in_what_goes_on_either(scratch: Scratch) -> None:
    scratch.write("p.md", "---\nparameters: {n: 1}\n---\n```python approve: true\nprint(n)\n```\n")
    assert scratch.quire("run", "p.md").returncode == 3
    done = scratch.quire("resume", "last", "--approve")
    lines = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert [line.split()[0] for line in lines] == ["[1/1]"], done.stderr
