"""Runs that go on by themselves: --detach, wait, cancel."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from scratch import Scratch

SLOW = """# %% one
import pathlib, time
pathlib.Path("begun").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.01)

# %% two
from quire.runtime import glue
glue("answer", 42)
"""


@pytest.fixture
def slow(scratch: Scratch) -> str:
    """The id of a run that has begun, and goes on until there is a file `go`."""
    scratch.write("slow.py", SLOW)
    done = scratch.quire("run", "slow.py", "--detach")
    assert done.returncode == 0, done.stderr
    begun(scratch)
    return done.stdout.strip()


def begun(scratch: Scratch) -> None:
    deadline = time.monotonic() + 60
    while not (scratch.root / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def told(scratch: Scratch, *args: str, code: int) -> Any:
    done = scratch.quire(*args, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_detached_run_is_waited_for(scratch: Scratch, slow: str) -> None:
    running = told(scratch, "wait", slow, "--timeout", "0", code=124)
    assert (running["run_id"], running["outcome"]) == (slow, "running")
    status = told(scratch, "host", "status", code=0)
    assert status["runs"] == [slow]
    (scratch.root / "go").touch()
    over = told(scratch, "wait", slow, code=0)
    assert (over["outcome"], over["results"]) == ("ok", {"answer": 42})
    assert over["archived"]
    assert told(scratch, "wait", slow, code=0) == over
    assert told(scratch, "host", "status", code=0)["runs"] == []


def test_a_detached_run_is_called_off(scratch: Scratch, slow: str) -> None:
    over = told(scratch, "cancel", slow, code=0)
    assert (over["outcome"], over["results"]) == ("cancelled", {})
    assert [cell["status"] for cell in over["cells"]] == ["cancelled", "not run"]
    again = scratch.quire("cancel", slow)
    assert again.returncode == 2
    assert f"{slow} is over: it ended cancelled" in again.stderr


def test_who_leaves_off_waiting_leaves_the_run_alone(scratch: Scratch, slow: str) -> None:
    waiting = scratch.start("wait", slow)
    assert waiting.stderr is not None
    assert "cell 1 of 2" in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=30)
    assert waiting.returncode == 130
    (scratch.root / "go").touch()
    assert told(scratch, "wait", slow, code=0)["outcome"] == "ok"


IN_BETWEEN = """
import os, signal, sys
from quire.host import host_socket as hostline
from quire.cli import client as thin

send = hostline.send

def sent(*given):
    send(*given)
    os.kill(os.getpid(), signal.SIGINT)

hostline.send = sent
sys.argv = ["quire", "wait", sys.argv[1]]
thin.main()
"""


def test_who_leaves_off_before_anything_is_heard_leaves_without_a_word(
    scratch: Scratch, slow: str
) -> None:
    command = [sys.executable, "-c", IN_BETWEEN, slow]
    left = subprocess.run(command, cwd=scratch.root, capture_output=True, text=True, timeout=60)
    assert (left.returncode, left.stdout) == (130, "")
    assert "Traceback" not in left.stderr
    (scratch.root / "go").touch()
    assert told(scratch, "wait", slow, code=0)["outcome"] == "ok"


def test_a_run_somebody_follows_can_be_called_off_by_another(scratch: Scratch) -> None:
    scratch.write("slow.py", SLOW)
    running = scratch.start("run", "slow.py", "--json")
    begun(scratch)
    assert told(scratch, "cancel", "last", code=0)["outcome"] == "cancelled"
    out, _ = running.communicate(timeout=30)
    assert running.returncode == 130
    assert json.loads(out)["outcome"] == "cancelled"


def test_a_run_of_another_process_is_waited_for_but_not_called_off(scratch: Scratch) -> None:
    scratch.write("slow.py", SLOW)
    running = scratch.start("run", "slow.py", "--no-host", "--json")
    begun(scratch)
    refused = scratch.quire("cancel", "last")
    assert refused.returncode == 2
    assert "another process" in refused.stderr
    waiting = scratch.start("wait", "last", "--json")
    (scratch.root / "go").touch()
    out, _ = waiting.communicate(timeout=30)
    assert json.loads(out)["outcome"] == "ok"
    running.communicate(timeout=30)


def test_stopping_the_host_calls_off_what_it_runs(scratch: Scratch, slow: str) -> None:
    assert scratch.quire("host", "stop").returncode == 0
    over = told(scratch, "wait", slow, code=130)
    assert over["outcome"] == "cancelled"


def test_what_is_wrong_with_the_request_is_said_before_anything_runs(scratch: Scratch) -> None:
    scratch.write("slow.py", SLOW)
    for args in (
        ("run", "nowhere.py", "--detach"),
        ("run", "slow.py", "-p", "n", "1", "--detach"),
        ("run", "slow.py", "--detach", "--no-host"),
        ("wait", "2020"),
        ("wait", "last", "--timeout", "-1"),
        ("cancel", "last"),
    ):
        done = scratch.quire(*args)
        assert done.returncode == 2, args
        assert "hint: " in done.stderr
    assert scratch.quire("runs").stdout == ""
