"""A run as an agent reads it, from the disk."""

from __future__ import annotations

import re

import pytest

from quire.agent.describe_run import tell
from quire.errors import DocumentError, UsageError
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
    with pytest.raises(UsageError, match="of a stream of a cell, or of a result"):
        tell(ws, run, lines="1-2")


LARGE = """# %%
from quire.runtime import glue
glue("big", list(range(20_000)))
glue("long", "ab" * 50_000)
glue("few", [1, 2])
glue("other", "x" * 400)
"""


def test_a_large_result_is_read_in_parts_by_the_calls_that_are_named(scratch: Scratch) -> None:
    scratch.write("t.py", LARGE)
    _, ran = scratch.run("t.py")
    ws, run = workspace(scratch), ran["run_id"]
    short = f'in full: run_show(run="{run}", result="big"); so with "long", "other"'
    assert short in tell(ws, run).text.split("\n")
    alone = tell(ws, run, result="big").text
    found = re.search(r'omitted; read them: run_show\(.*, result="big", lines="(\d+)-\d+"\)', alone)
    assert found is not None
    # Read on from there to the end: no number is missing, and none comes twice.
    numbers = re.findall(r"^\|   (\d+),?$", alone.partition("\n… ")[0], re.MULTILINE)
    lines = f"{found[1]}-"
    while lines:
        part = tell(ws, run, result="big", lines=lines).text
        assert len(part) <= 24_000
        assert part.startswith(
            f'result "big" of run {run}, lines {int(lines[:-1].split("-")[0]):,} '
        )
        numbers += re.findall(r"^\|   (\d+),?$", part, re.MULTILINE)
        more = re.search(r'read on: run_show\(.*, result="big", lines="(.*)"\)$', part)
        lines = more[1] if more is not None else ""
    assert [int(one) for one in numbers] == list(range(20_000))


def test_a_long_line_of_a_result_is_read_by_its_characters(scratch: Scratch) -> None:
    scratch.write("t.py", LARGE)
    _, ran = scratch.run("t.py")
    ws, run = workspace(scratch), ran["run_id"]
    assert 'result="long", lines="1:1")' in tell(ws, run, result="long").text
    part = tell(ws, run, result="long", lines="1:100001").text
    assert part.endswith(
        "characters 100,001 to 100,002 of 100,002\n" + part.split("\n")[1] + '\n| b"'
    )
    assert tell(ws, run, result="few", lines="2-3").text.endswith("|   1,\n|   2")
    with pytest.raises(UsageError, match="a result has no cell"):
        tell(ws, run, result="few", cell="0", lines="1")
    with pytest.raises(UsageError, match="no range of lines"):
        tell(ws, run, result="few", lines="a")
