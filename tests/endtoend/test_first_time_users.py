"""What people met who tried it for the first time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from pathlib import Path

import pytest
from processes import wait_until_none
from test_when_things_go_wrong import CHILDREN, wait_for_line

from scratch import QUIRE, Scratch, stdout_of


@pytest.mark.parametrize("name", ["t.py", "link.ipynb", "hard.ipynb", "out.txt"])
def test_the_output_never_goes_over_the_source(scratch: Scratch, name: str) -> None:
    nb = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    task = scratch.write("t.py" if name in ("t.py", "out.txt") else "task.ipynb", nb)
    if name == "t.py":
        task.write_text("# %%\n1\n")
    elif name == "link.ipynb":
        (scratch.root / name).symlink_to(task)
    elif name == "hard.ipynb":
        os.link(task, scratch.root / name)
    before = task.read_bytes()
    done = scratch.quire("run", task.name, "--no-host", "-o", name)
    assert done.returncode == 2
    assert "hint:" in done.stderr
    assert task.read_bytes() == before


def test_the_output_never_goes_over_a_synced_notebook(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nprint(1)\n")
    scratch.write("other.py", "# %%\n2\n")
    done = scratch.quire("run", "t.py", "--no-host", "-o", "t.ipynb")
    assert done.returncode == 0, "nothing was there"
    assert scratch.quire("run", "t.py", "--no-host", "-o", "t.ipynb").returncode == 0
    (scratch.root / "t.ipynb").unlink()
    assert scratch.quire("sync", "t.py", "other.py").returncode == 0
    scratch.write("mine.py", "# %%\n3\n")
    scratch.write("mine.ipynb", '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    for task, name in (("t.py", "t.ipynb"), ("t.py", "other.ipynb"), ("mine.py", "mine.ipynb")):
        before = (scratch.root / name).read_bytes()
        done = scratch.quire("run", task, "--no-host", "-o", name)
        assert done.returncode == 2
        assert f"{name} is a notebook that quire sync keeps in step" in done.stderr
        assert "hint: give -o another name" in done.stderr
        assert (scratch.root / name).read_bytes() == before


def test_a_pipe_is_no_task(scratch: Scratch) -> None:
    os.mkfifo(scratch.root / "f.py")
    done = scratch.quire("run", "f.py", "--no-host", timeout=30)
    assert done.returncode == 2
    assert "pipe" in done.stderr


@pytest.mark.parametrize("host", [(), ("--no-host",)], ids=["host", "in-process"])
def test_standard_output_is_full(scratch: Scratch, host: tuple[str, ...]) -> None:
    scratch.write("t.py", "# %%\n1\n")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*QUIRE, "run", "t.py", "--json", *host],
            cwd=scratch.root,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert "cannot write to standard output" in done.stderr


def test_the_kernel_has_the_umask_and_limits_of_its_caller(scratch: Scratch) -> None:
    code = "import os, resource; open('made', 'w').close()\n"
    code += "print(oct(os.stat('made').st_mode & 0o777), os.getpriority(0, 0),"
    code += " resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    scratch.write("t.py", f"# %%\n{code}\n")
    scratch.run("t.py")  # the host has the umask of this process
    (scratch.root / "made").unlink()
    shell = f"umask 077; ulimit -n 321; nice -n 3 {' '.join(QUIRE)} run t.py --json -q"
    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=scratch.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    nice = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    assert stdout_of(scratch.notebook(json.loads(done.stdout))) == f"0o600 {nice} 321\n"


def test_what_libraries_expect_of_main_and_tables(scratch: Scratch) -> None:
    scratch.write(
        "t.py",
        """# %%
import multiprocessing
with multiprocessing.get_context("spawn").Pool(1) as pool:
    print(pool.map(abs, [-3]))
# %%
import pandas
from quire.runtime import glue
glue("by", pandas.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]}).groupby("k").sum())
""",
    )
    code, told = scratch.run("t.py", "--no-host")
    assert code == 0, told["error"]
    assert stdout_of(scratch.notebook(told)) == "[3]\n"
    table = told["results"]["by"]
    assert table["columns"] == ["k", "v"]
    assert table["rows"] == [["a", 4], ["b", 2]]


def test_colours_do_not_uncover_a_secret(scratch: Scratch) -> None:
    secret = "hunter2-and-some-more"
    code = "import os; t = os.environ['MY_TOKEN']\nprint('\\x1b[31m' + t[:6] + '\\x1b[0m' + t[6:])"
    scratch.write(
        "t.py", f"# %%\n{code}\n# %%\nraise ValueError('\\x1b[1m' + t[:4] + '\\x1b[0m' + t[4:])\n"
    )
    scratch.run("t.py", "--no-host", env={"MY_TOKEN": secret})
    shown = scratch.quire("show", "last", "--all").stdout
    assert "[masked:MY_TOKEN]" in shown
    assert secret not in shown
    scratch.quire("export", "last", "out.md")
    assert secret not in (scratch.root / "out.md").read_text()


@pytest.mark.parametrize("victim", ["host", "zygote"])
def test_the_engine_is_killed_and_json_was_asked_for(scratch: Scratch, victim: str) -> None:
    mark = uuid.uuid4().hex
    scratch.write("t.py", CHILDREN)
    process = scratch.start("run", "t.py", "--json", env={"QUIRE_TEST_MARK": mark})
    wait_for_line(scratch.root / "under_way", process)
    status = json.loads(scratch.quire("host", "status", "--json").stdout)
    pid = status["pid"] if victim == "host" else status["zygotes"][0]["pid"]
    os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    told = json.loads(out)
    assert told["outcome"] == "died"
    assert Path(told["notebook"]).exists()
    scratch.quire("host", "stop")
    assert wait_until_none(mark, root=scratch.root) == []


def test_an_output_widget_leaves_the_rest_of_the_cell(scratch: Scratch) -> None:
    scratch.write(
        "t.py",
        """# %%
import ipywidgets
from IPython.display import clear_output
print("kept")
area = ipywidgets.Output()
with area:
    print("first")
    clear_output()
    print("second")
print("end")
""",
    )
    code, told = scratch.run("t.py", "--no-host")
    assert code == 0
    assert stdout_of(scratch.notebook(told)) == "kept\nsecond\nend\n"


def test_a_step_of_a_shell_is_called_by_what_it_does(scratch: Scratch) -> None:
    steps = ("bash\n# look\necho one", "bash\necho two", "python\n%%time\nx = 1", "python\n%%time")
    scratch.write("t.md", "\n\n".join(f"```{step}\n```" for step in steps))
    done = scratch.quire("run", "t.md")
    said = [line for line in done.stderr.splitlines() if line.startswith("[")]
    names = ["echo one", "echo two", "x = 1", "%%time"]
    assert [line.split("s  ")[1] for line in said] == names
