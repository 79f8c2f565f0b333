"""A run killed at any step leaves a record file that parses and shows what was done."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from quire.logbooks.read_back import loads
from scratch import Scratch

STEP = """## Step {n}

```python
print("done {n}")
```
"""
WAIT = """## Wait

```python
import os, time
open("here", "w").close()
time.sleep(600)
```
"""


@pytest.mark.parametrize("before", [0, 1, 3])
def test_killed_in_the_middle(scratch: Scratch, before: int) -> None:
    steps = [STEP.replace("{n}", str(n)) for n in range(before)]
    scratch.write("x.md", "\n".join(["# T", "", *steps, WAIT, STEP.replace("{n}", "last")]))
    os.mkfifo(scratch.root / "here")
    process = scratch.start("run", "x.md", "--no-host", "-q")
    with open(scratch.root / "here"):  # opens when the step does
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (path,) = scratch.root.glob("logbooks/runs/*/*.md")
    record = _read(path)
    done = [c for c in record.cells if c.kind == "code"]
    assert [c.outputs[0]["text"] for c in done] == [f"done {n}\n" for n in range(before)]
    assert record.outcome == "died"
    # The next command finishes the books from the journal.
    assert "died" in scratch.quire("runs").stdout
    record = _read(path)
    done = [c for c in record.cells if c.kind == "code"]
    assert [c.status for c in done] == ["ok"] * before + ["died", "not run"]
    assert "outcome: died" in path.read_text()


@pytest.mark.parametrize("begun", [True, False])
def test_killed_while_the_record_is_written(scratch: Scratch, begun: bool) -> None:
    scratch.write("x.md", f"# T\n\n{WAIT}")
    os.mkfifo(scratch.root / "here")
    process = scratch.start("run", "x.md", "--no-host", "-q")
    with open(scratch.root / "here"):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (path,) = scratch.root.glob("logbooks/runs/*/*.md")
    # What a kill between writing and renaming leaves, the first time and later.
    half = path.with_name(f".{path.name}.abc.tmp")
    half.write_text("---\nuuid:")
    if not begun:
        path.unlink()
    assert "died" in scratch.quire("runs").stdout
    assert _read(path).outcome == "died"
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def _read(path: Path):  # type: ignore[no-untyped-def]
    return loads(path.read_text())
