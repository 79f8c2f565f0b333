"""SIGKILL at random moments: nothing that was seen is lost, nothing that ran is left."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import re
import signal
import time
import uuid
from pathlib import Path

import nbformat
import pytest
from processes import wait_until_none

from scratch import Scratch

CELLS = 40
TASK = "# %%\nimport subprocess, time\n" + "".join(
    f"""# %% step {n}
print('step {n}')
if {n} % 10 == 3:
    subprocess.Popen(['setsid', 'sleep', '300'])
time.sleep(0.01)
"""
    for n in range(CELLS)
)


def kill_once(scratch: Scratch, rng: random.Random, victim: str) -> str:
    mark = uuid.uuid4().hex
    options = ["--no-host"] if victim == "in-process" else []
    process = scratch.start("run", "t.py", *options, env={"QUIRE_TEST_MARK": mark})
    target = process.pid
    # A moment, not a wait: anywhere from the start of the interpreter to after the run's end.
    time.sleep(rng.uniform(0.0, 1.4))
    if victim == "host":
        told = json.loads(scratch.quire("host", "status", "--json").stdout)
        target = told["pid"] or process.pid
    with contextlib.suppress(ProcessLookupError):
        os.kill(target, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    if victim != "in-process":
        stop_host(scratch)
    assert wait_until_none(mark, root=scratch.root) == []
    return check(scratch, err)


def stop_host(scratch: Scratch) -> None:
    """The client may have been killed while its host was still starting: stop that one too."""
    locks = list((scratch.root / ".quire").glob("host-*.sock.lock"))
    for _ in range(100):
        scratch.quire("host", "stop")
        if not any(is_held(lock) for lock in locks):
            return
        locks = list((scratch.root / ".quire").glob("host-*.sock.lock"))


def is_held(lock: Path) -> bool:
    with open(lock) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def check(scratch: Scratch, err: str) -> str:
    """The newest run, if there is one, holds at least what was shown. Returns its outcome."""
    named = re.search(r"^(\d{4}-\d\d-\d\d-\d{6}-t-[0-9a-f]{4})  t\.py$", err, re.MULTILINE)
    if named is None:
        return "none"
    done = scratch.quire("show", named[1], "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    steps = [cell for cell in shown["cells"] if cell["title"].startswith("step")]
    finished = [cell for cell in steps if cell["status"] == "ok"]
    seen = len(re.findall(r"\] ok .*step", err))
    assert len(finished) >= seen
    # Cells ran in order, each with its own output; what did not run says so.
    assert [cell["title"] for cell in finished] == [f"step {n}" for n in range(len(finished))]
    for n, cell in enumerate(finished):
        assert cell["outputs"] == [
            {"output_type": "stream", "name": "stdout", "text": f"step {n}\n"}
        ]
    rest = {cell["status"] for cell in steps[len(finished) + 1 :]}
    assert rest <= {"not run"}
    assert shown["outcome"] in ("ok", "died", "cancelled")
    # A kill may fall between the end of the last cell and that of the run.
    assert shown["outcome"] != "ok" or len(finished) == CELLS
    nb = nbformat.read(Path(shown["notebook"]), as_version=4)
    nbformat.validate(nb)
    return str(shown["outcome"])


def kill_often(scratch: Scratch, times: int) -> None:
    scratch.write("t.py", TASK)
    rng = random.Random(20261116)
    outcomes = [
        kill_once(scratch, rng, rng.choice(["in-process", "host", "client"])) for _ in range(times)
    ]
    # The moments were spread: some runs were cut in the middle.
    assert {"died", "cancelled"} & set(outcomes)


def test_a_dozen_kills(scratch: Scratch) -> None:
    kill_often(scratch, 12)


@pytest.mark.torture
def test_over_a_hundred_kills(scratch: Scratch) -> None:
    kill_often(scratch, 120)
