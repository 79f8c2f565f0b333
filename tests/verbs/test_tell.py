"""A run as an agent reads it, from the disk."""

from __future__ import annotations

import re

import pytest

from quire.errors import DocumentError, UsageError
from quire.verbs.tell import tell
from quire.workspace import Workspace
from scratch import Scratch

LOUD = """# %% quiet
x = 1
# %% loud
for n in range(600_000): print("line", n)
"""


def workspace(scratch: Scratch) -> Workspace:
    return Workspace(scratch.root, cwd=scratch.root)


def test_a_failed_run_says_what_the_cell_worked_with(scratch: Scratch) -> None:
    scratch.write(
        "t.py",
        "# %%\nrows = {'a': 1}\nsecret = 'hunter2hunter2' * 20\n"
        "# %% look\nprint(rows['b'], secret)\n",
    )
    code, ran = scratch.run("t.py", env={"DB_PASSWORD": "hunter2hunter2"})
    assert code == 1
    told = tell(workspace(scratch), ran["run_id"])
    assert told.failed
    assert "| > 1  print(rows['b'], secret)" in told.text
    assert "| rows: dict [1] = {'a': 1}" in told.text
    assert "| secret: str [280] = " in told.text
    assert "hunter2" not in told.text
    assert "run it again from the top: " in told.text  # no host keeps its states


def test_lines_of_a_stream_that_was_cut(scratch: Scratch) -> None:
    scratch.write("loud.py", LOUD)
    _, ran = scratch.run("loud.py")
    ws, run = workspace(scratch), ran["run_id"]
    text = tell(ws, run).text
    found = re.search(r"… ([\d,]+) lines \(([\d,]+) characters\) omitted; read them: (.*)", text)
    assert found is not None
    shown = re.findall(r"^\| line \d+$", text, re.MULTILINE)
    assert len(shown) + int(found[1].replace(",", "")) == 600_000
    whole = sum(len(f"line {n}\n") for n in range(600_000))
    assert int(found[2].replace(",", "")) == whole - sum(len(row) - 1 for row in shown)
    middle = tell(ws, run, cell="loud", stream="stdout", lines="300001-300003").text
    assert "| line 300000\n| line 300001\n| line 300002" in middle
    assert "of 600,000" in middle
    assert tell(ws, run, cell="loud", lines="600000-").text.endswith("| line 599999")
    assert tell(ws, run, cell="quiet", stream="stderr").text.endswith("it is empty")


def test_what_cannot_be_told(scratch: Scratch) -> None:
    scratch.write("t.py", "# %% a\nprint(1)\n")
    _, ran = scratch.run("t.py")
    ws, run = workspace(scratch), ran["run_id"]
    with pytest.raises(DocumentError, match="no cell 'b'"):
        tell(ws, run, cell="b")
    with pytest.raises(UsageError, match="no stream"):
        tell(ws, run, cell="a", stream="../../etc/passwd")
    with pytest.raises(UsageError, match="no result 'r'"):
        tell(ws, run, result="r")
    with pytest.raises(UsageError, match="of a stream of a cell"):
        tell(ws, run, lines="1-2")
