"""Sessions as a user has them: kernels that are still there at the next command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from live import Live, shown, statuses, submitted
from processes import marked

from quire.cli.main import App, dispatch
from quire.cli.terminal import Terminal
from quire.record.events import KernelReplaced
from quire.sessions import session
from scratch import Scratch

TASK = """# %% load
data = [1, 2, 3]

# %% [markdown]
# words

# %% total
total = sum(data)

# %% show
print("total", total)
"""


def answer(scratch: Scratch, *args: str, code: int = 0, **options: Any) -> Any:
    done = scratch.quire(*args, "--json", **options)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def told(exec_answer: Any) -> list[tuple[int | None, str]]:
    return [(cell["index"], cell["status"]) for cell in exec_answer["cells"]]


def text(exec_answer: Any) -> str:
    return "".join(
        output.get("text", "") for cell in exec_answer["cells"] for output in cell["outputs"]
    )


def until(holds: Callable[[], bool], what: str, timeout: float = 20.0) -> None:
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


# Which session


def test_the_state_is_there_at_the_next_call(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    done = scratch.quire("session", "open", "t.py")
    assert (done.returncode, done.stdout) == (0, "t\n")
    assert scratch.quire("exec", "t", "0").returncode == 0
    assert text(answer(scratch, "exec", "t", "--code", "data.append(4)\nprint(data)")) == (
        "[1, 2, 3, 4]\n"
    )
    done = scratch.quire("exec", "t", "2-3")
    assert done.stdout == "total 10\n"
    variables = answer(scratch, "session", "vars", "t")["variables"]
    assert [(v["name"], v["type"], v["size"], v["value"]) for v in variables] == [
        ("data", "list", "4", "[1, 2, 3, 4]"),
        ("total", "int", None, "10"),
    ]
    states = answer(scratch, "session", "show", "t")["cells"]
    assert [(s["index"], s["state"], s["order"]) for s in states] == [
        (0, "ran", 1),
        (1, "text", None),
        (2, "ran", 3),
        (3, "ran", 4),
    ]
    assert scratch.quire("session", "close", "t").returncode == 0
    assert answer(scratch, "session", "list") == []


def test_two_sessions_on_one_notebook_are_two_kernels(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    names = [answer(scratch, "session", "open", "t.py")["session"] for _ in range(2)]
    assert names == ["t", "t-2"]
    answer(scratch, "exec", "t", "--code", "data = 'mine'")
    variables = answer(scratch, "session", "vars", "t-2")["variables"]
    assert variables == []
    pids = {one["kernel"]["pid"] for one in answer(scratch, "session", "list")}
    assert len(pids) == 2
    # By its notebook a session can be named as long as there is only one.
    error = answer(scratch, "exec", "t.py", "0", code=2)["error"]
    assert error["message"] == "t.py has 2 sessions: t, t-2"
    assert error["hint"] == "name one of them"
    assert scratch.quire("session", "close", "t-2").returncode == 0
    assert told(answer(scratch, "exec", "./t.py", "0")) == [(0, "ok")]
    assert answer(scratch, "exec", "t.py", "2")["session"] == "t"
    assert scratch.quire("session", "close", "t.py").returncode == 0


def test_an_unknown_session_is_answered_with_those_there_are(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    for command in (("exec", "x", "0"), ("rewind", "x", "0"), ("session", "vars", "x")):
        done = scratch.quire(*command)
        assert done.returncode == 2
        assert "there is no session 'x'" in done.stderr
        assert "open: none" in done.stderr
    for name in ("one", "two"):
        scratch.quire("session", "open", "t.py", "--name", name)
    for command in (("interrupt",), ("restart",), ("restore",), ("close",), ("show",), ("tree",)):
        done = scratch.quire("session", *command, "x")
        assert done.returncode == 2
        assert "open: one, two" in done.stderr
    assert scratch.quire("exec").returncode == 2
    done = scratch.quire("session", "open", "t.py", "--name", "one")
    assert (done.returncode, "there is already a session one" in done.stderr) == (2, True)
    done = scratch.quire("session", "open", "t.py", "--name", "../x")
    assert (done.returncode, "cannot be the name of a session" in done.stderr) == (2, True)


def test_without_a_host_there_is_no_session(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    done = scratch.quire("session", "open", "t.py", env={"QUIRE_NO_HOST": "1"})
    assert done.returncode == 2
    assert "a session needs a host that outlives this call" in done.stderr


def test_sessions_opened_at_the_same_time_get_names_of_their_own(live: Live) -> None:
    live.write("n = 1")
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: session.open_session(live.workspace, "t.py"), range(8)))
    live.opened += [one.name for one in opened]
    assert len({one.name for one in opened}) == 8
    assert len({one.kernel["pid"] for one in opened}) == 8


# What to run


@pytest.mark.parametrize(
    ("what", "ran"),
    [
        ("0", [0]),
        ("2", [2]),
        ("-1", [3]),
        ("total", [2]),
        ("0-2", [0, 2]),
        ("0-", [0, 2, 3]),
        ("-2", [0, 2]),
        ("2-2", [2]),
        ("all", [0, 2, 3]),
        ("stale", [0, 2, 3]),
    ],
)
def test_cells_by_index_title_range_and_word(live: Live, what: str, ran: list[int]) -> None:
    (live.root / "t.py").write_text(TASK)
    name = live.open()
    live.exec(name, code="data, total = [], 0")
    events = live.exec(name, what)
    if what == "-1":  # a range up to cell 1, not the last cell
        ran = [0]
    assert submitted(events) == ran
    assert set(statuses(events)) == {"ok"}


def test_a_cell_by_its_id(live: Live) -> None:
    (live.root / "t.py").write_text(TASK)
    name = live.open()
    ids = [state.cell.id for state in session.cells(live.workspace, name)]
    assert submitted(live.exec(name, ids[0])) == [0]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("7",), "there is no cell 7: the task has 4 cells"),
        (("2-9",), "there are no cells 2-9: the task has 4"),
        (("3-1",), "there are no cells 3-1"),
        (("nothing",), "no cell has the id or title 'nothing'"),
        ((), "say which cells to run"),
        (("0", "--code", "1"), "say which cells to run"),
        (("0", "--cell-timeout", "0"), "--cell-timeout must be above 0"),
    ],
)
def test_what_cannot_be_run(scratch: Scratch, args: tuple[str, ...], said: str) -> None:
    scratch.write("t.py", TASK)
    scratch.quire("session", "open", "t.py")
    done = scratch.quire("exec", "t", *args)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_failing_cell_ends_the_call_with_its_error(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nn = 1\n# %%\nn = 2\n1 / 0\n# %%\nn = 3\n")
    scratch.quire("session", "open", "t.py")
    gave = answer(scratch, "exec", "t", "all", code=1)
    assert told(gave) == [(0, "ok"), (1, "failed")]
    assert gave["cells"][1]["error"] == {"name": "ZeroDivisionError", "value": "division by zero"}
    assert gave["epoch"] == 1
    done = scratch.quire("exec", "t", "1")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout
    # The state is that in the middle of the cell.
    assert text(answer(scratch, "exec", "t", "--code", "print(n)")) == "2\n"


def test_a_cell_that_may_raise_does_not_end_the_call(live: Live) -> None:
    (live.root / "t.py").write_text(
        '# %% tags=["raises-exception"]\n1 / 0\n# %% tags=["skip-execution"]\nn = 0\n# %%\nn = 1\n'
    )
    name = live.open()
    events = live.exec(name, "all")
    assert submitted(events) == [0, 2]
    assert statuses(events) == ["ok", "ok"]


def test_parameters_follow_the_cell_that_declares_them(scratch: Scratch) -> None:
    scratch.write(
        "t.py", '# %% tags=["parameters"]\nregion = "us"\ncount = 1\n# %%\nprint(region, count)\n'
    )
    scratch.quire("session", "open", "t.py", "-p", "region", "eu")
    gave = answer(scratch, "exec", "t", "all")
    assert told(gave) == [(0, "ok"), (None, "ok"), (1, "ok")]
    assert text(gave) == "eu 1\n"
    assert gave["stale"] == []
    answer(scratch, "exec", "t", "--code", "region = 'x'")
    assert text(answer(scratch, "exec", "t", "0-")) == "eu 1\n"
    done = scratch.quire("session", "open", "t.py", "-p", "count", "many")
    assert done.returncode == 2


# What became stale


def test_an_edit_on_disk_is_seen_at_the_next_call(scratch: Scratch) -> None:
    """As JupyterLab does it through jupytext: the whole file is written anew."""
    import jupytext

    scratch.write("t.py", TASK)
    scratch.quire("session", "open", "t.py")
    answer(scratch, "exec", "t", "all")
    path = scratch.root / "t.py"
    notebook = jupytext.read(path)
    notebook.cells[0].source = "data = [10]"
    jupytext.write(notebook, path, fmt="py:percent")
    states = answer(scratch, "session", "show", "t")["cells"]
    assert [s["state"] for s in states] == ["stale", "text", "stale", "stale"]
    assert states[0]["reason"] == "its text changed since it ran"
    assert "uses data" in states[2]["reason"]
    gave = answer(scratch, "exec", "t", "stale")
    assert told(gave) == [(0, "ok"), (2, "ok"), (3, "ok")]
    assert text(gave) == "total 10\n"
    assert gave["stale"] == []
    assert told(answer(scratch, "exec", "t", "stale")) == []


def test_what_ran_again_makes_those_below_stale(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    scratch.quire("session", "open", "t.py")
    answer(scratch, "exec", "t", "all")
    gave = answer(scratch, "exec", "t", "0")
    assert [s["index"] for s in gave["stale"]] == [2, 3]
    assert "stale: [2] uses data" in scratch.quire("exec", "t", "0").stderr
    assert [s["index"] for s in answer(scratch, "rewind", "t", "0")["stale"]] == [2, 3]


# Stopping


def started(scratch: Scratch, *args: str, **options: Any) -> subprocess.Popen[str]:
    """`quire exec` of a cell that says when it runs."""
    process = scratch.start("exec", *args, **options)
    until((scratch.root / "running").exists, "the cell runs")
    (scratch.root / "running").unlink()
    return process


SLOW = """# %%
n = 1
# %%
import pathlib, time
n = 2
pathlib.Path('running').touch()
time.sleep(60)
n = 3
"""


@pytest.fixture
def slow(scratch: Scratch) -> Scratch:
    scratch.write("t.py", SLOW)
    assert scratch.quire("session", "open", "t.py").returncode == 0
    assert scratch.quire("exec", "t", "0").returncode == 0
    return scratch


def test_a_busy_session_refuses_a_second_call(slow: Scratch) -> None:
    process = started(slow, "t", "1")
    assert answer(slow, "session", "list")[0]["state"] == "busy"
    for command in (
        ("exec", "t", "0"),
        ("exec", "t", "--code", "1"),
        ("rewind", "t", "0"),
        ("session", "vars", "t"),
        ("session", "restart", "t"),
        ("session", "restore", "t"),
    ):
        done = slow.quire(*command)
        assert done.returncode == 2, done.stdout
        assert "the session t is running a cell" in done.stderr
        assert "quire session interrupt t" in done.stderr
    # What only looks is answered.
    assert slow.quire("session", "show", "t").returncode == 0
    assert slow.quire("session", "tree", "t").returncode == 0
    assert slow.quire("session", "interrupt", "t").returncode == 0
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "KeyboardInterrupt" in out
    assert text(answer(slow, "exec", "t", "--code", "print(n)")) == "2\n"
    slow.quire("rewind", "t", "1")
    assert text(answer(slow, "exec", "t", "--code", "print(n)")) == "1\n"


@pytest.mark.parametrize("how", ["Ctrl-C", "killed"])
def test_who_runs_a_cell_leaves_in_the_middle(slow: Scratch, how: str) -> None:
    process = started(slow, "t", "1")
    os.kill(process.pid, signal.SIGINT if how == "Ctrl-C" else signal.SIGKILL)
    process.communicate(timeout=20)
    assert process.returncode == (130 if how == "Ctrl-C" else -signal.SIGKILL)
    until(lambda: answer(slow, "session", "list")[0]["state"] == "idle", "the cell is interrupted")
    gave = answer(slow, "exec", "t", "--code", "print(n)")
    assert (text(gave), gave["epoch"], gave["replaced"]) == ("2\n", 1, None)
    assert answer(slow, "rewind", "t", "1")["epoch"] == 1
    assert text(answer(slow, "exec", "t", "--code", "print(n)")) == "1\n"


def test_a_range_that_is_called_off_runs_no_further_cell(live: Live) -> None:
    name = live.open("n = 0", *["n += 1"] * 5)

    class Later(threading.Event):
        def is_set(self) -> bool:
            return len(live.inner(name).executions) >= 3

    events = live.exec(name, "all", cancel=Later())
    assert submitted(events) == [0, 1, 2]


def test_a_cell_over_its_time(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nn = 1\n# %%\nn = 2\nwhile True: pass\n")
    scratch.quire("session", "open", "t.py")
    gave = answer(scratch, "exec", "t", "all", "--cell-timeout", "0.3", code=1)
    assert told(gave) == [(0, "ok"), (1, "timed_out")]
    gave = answer(scratch, "exec", "t", "--code", "print(n)")
    assert (text(gave), gave["epoch"]) == ("2\n", 1)


def test_closing_a_busy_session_ends_its_cell(slow: Scratch) -> None:
    process = started(slow, "t", "1")
    assert slow.quire("session", "close", "t").returncode == 0
    _, err = process.communicate(timeout=20)
    assert process.returncode != 0
    assert "Traceback" not in err
    assert answer(slow, "session", "list") == []
    assert slow.quire("session", "open", "t.py").stdout == "t\n"


def test_whoever_stops_listening_loses_the_kernel_not_the_session(live: Live) -> None:
    name = live.open("n = 1", "import time\nprint('x', flush=True)\ntime.sleep(60)", "print(n)")
    live.ran(name, "0")
    events = session.execute(live.workspace, name, "1", threading.Event())
    while not shown([next(events)]):
        pass
    events.close()
    assert not live.inner(name).busy
    live.rewind(name, "1")
    assert shown(live.exec(name, "2")) == "1\n"


# The epoch, and what is gone


def test_every_answer_carries_the_epoch(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    assert answer(scratch, "session", "open", "t.py")["epoch"] == 1
    for epoch in (1, 2):
        assert answer(scratch, "exec", "t", "all")["epoch"] == epoch
        for command in (
            ("session", "show", "t"),
            ("session", "vars", "t"),
            ("session", "tree", "t"),
            ("exec", "t", "--code", "1"),
            ("rewind", "t", "2"),
            ("session", "promote", "t", f"new{epoch}.py"),
        ):
            gave = answer(scratch, *command)
            assert (gave["session"], gave["epoch"]) == ("t", epoch), command
        assert answer(scratch, "session", "list")[0]["epoch"] == epoch
        if epoch == 1:
            done = scratch.quire("session", "restart", "t")
            assert done.stdout == "a fresh kernel (epoch 2); nothing has run in it\n"
    gave = answer(scratch, "session", "restore", "t")
    assert (gave["epoch"], gave["replaced"]["epoch"]) == (3, 3)


def test_a_kernel_that_died_is_said_before_anything_else(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nn = 1\n# %%\nimport os\nos._exit(3)\n# %%\nprint('here')\n")
    scratch.quire("session", "open", "t.py")
    gave = answer(scratch, "exec", "t", "all", code=1)
    assert told(gave) == [(0, "ok"), (1, "died")]
    assert gave["epoch"] == 2
    # Until somebody decides what to do, everything that asks for the state is told.
    done = scratch.quire("session", "vars", "t")
    assert done.returncode == 2
    assert "the kernel's state is gone: the kernel exited with status 3" in done.stderr
    assert "quire session restore t" in done.stderr
    first, *_ = scratch.quire("session", "show", "t").stdout.splitlines()
    assert first.startswith("the kernel's state is gone: the kernel exited with status 3")
    assert "status 3" in answer(scratch, "session", "list")[0]["lost"]
    done = scratch.quire("exec", "t", "2")
    first, *_ = done.stderr.splitlines()
    assert first.startswith("the kernel's state is gone: the kernel exited with status 3")
    assert first.endswith("(epoch 2)")
    assert done.stdout == "here\n"
    # Once is enough.
    assert scratch.quire("exec", "t", "2").stdout == "here\n"
    assert answer(scratch, "exec", "t", "2")["replaced"] is None


def test_a_kernel_that_is_killed_while_idle(live: Live) -> None:
    name = live.open("n = 1", "print('here')")
    live.ran(name, "0")
    kernel = live.inner(name).kernel
    os.kill(kernel.pid, signal.SIGKILL)
    until(lambda: not kernel.alive, "the death is noticed")
    (info,) = [one for one in session.sessions(live.workspace) if one.name == name]
    assert (info.state, info.lost) == ("gone", "its kernel had ended")
    events = live.exec(name, "1")
    assert isinstance(events[0], KernelReplaced)
    assert (events[0].epoch, events[0].reason) == (2, "its kernel had ended")
    assert shown(events) == "here\n"


def test_restore_runs_again_what_ran_as_it_was(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nn = [1]\n# %%\nn.append(2)\n1 / 0\n# %%\nn.append(3)\n")
    scratch.quire("session", "open", "t.py")
    scratch.quire("exec", "t", "0")
    scratch.quire("exec", "t", "1")  # fails half way, and that counts too
    scratch.quire("exec", "t", "2")
    scratch.quire("exec", "t", "--code", "n.append(4)")
    scratch.write("t.py", "# %%\nn = ['edited']\n")
    assert scratch.quire("exec", "t", "--code", "import os; os._exit(1)").returncode == 1
    gave = answer(scratch, "session", "restore", "t", code=1)
    assert told(gave) == [(0, "ok"), (1, "failed"), (2, "ok"), (None, "ok")]
    assert "exited with status 1" in gave["replaced"]["reason"]
    assert gave["epoch"] == 3
    assert text(answer(scratch, "exec", "t", "--code", "print(n)")) == "[1, 2, 3, 4]\n"
    # And restart can be taken back.
    scratch.quire("session", "restart", "t")
    answer(scratch, "session", "restore", "t", code=1)
    assert text(answer(scratch, "exec", "t", "--code", "print(n)")) == "[1, 2, 3, 4]\n"


def test_a_call_that_fails_for_want_of_the_state_does_not_hide_it(live: Live) -> None:
    name = live.open("n = 1", "import os\nos._exit(1)", "print(n)")
    live.exec(name, "all")
    assert statuses(live.exec(name, "2")) == ["failed"]
    from quire.sessions.restore import restore

    events = list(restore(live.workspace, name, threading.Event()))
    assert submitted(events) == [0]
    assert shown(live.exec(name, "2")) == "1\n"


def test_nothing_to_restore(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    scratch.quire("session", "open", "t.py")
    done = scratch.quire("session", "restore", "t")
    assert (done.returncode, "has run nothing that could be restored" in done.stderr) == (2, True)


def test_an_idle_kernel_is_warned_about(live: Live, capfd: pytest.CaptureFixture[str]) -> None:
    (live.root / "quire.toml").write_text("session_idle = 3600\n")
    name = live.open("n = 1")

    def listed(*options: str) -> str:
        app = App(Terminal(), live.root, live.env, live.engine)
        assert dispatch(["session", "list", *options], app) == 0
        return capfd.readouterr().out

    def warning() -> str:
        (mine,) = [one for one in json.loads(listed("--json")) if one["session"] == name]
        return str(mine["warning"])

    live.ran(name, "0")
    assert warning() == ""
    live.inner(name).used -= 0.9 * 3600
    told = re.fullmatch(r"its kernel ends in (\d+) s unless it is used", warning())
    assert told is not None
    assert 300 < int(told[1]) <= 360
    assert "unless it is used" in listed()
    assert name not in session.cull(live.workspace)
    live.ran(name, "0")
    assert warning() == ""


def test_an_idle_kernel_is_ended(scratch: Scratch) -> None:
    scratch.write("quire.toml", "session_idle = 3\n")
    scratch.write("t.py", "# %%\nimport os\nn = 1\nprint(os.getpid())\n")
    scratch.quire("session", "open", "t.py")
    mark = int(text(answer(scratch, "exec", "t", "0")))

    def listed() -> Any:
        return answer(scratch, "session", "list")[0]

    until(lambda: listed()["state"] == "gone", "it is ended")
    deadline = time.monotonic() + 5
    while Path(f"/proc/{mark}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)  # it says goodbye before it is gone
    assert not Path(f"/proc/{mark}").exists()
    gone = "its kernel was ended after 3 s without use"
    assert (listed()["lost"], listed()["epoch"]) == (gone, 2)
    done = scratch.quire("rewind", "t", "0")
    assert done.returncode == 2
    assert gone in done.stderr
    gave = answer(scratch, "exec", "t", "--code", "print('n' in globals())")
    assert gave["replaced"] == {"epoch": 2, "reason": gone}
    assert text(gave) == "False\n"


def test_use_keeps_a_kernel(live: Live) -> None:
    (live.root / "quire.toml").write_text("session_idle = 3600\n")
    name = live.open("n = 1", "import os, time\nwhile not os.path.exists('on'): time.sleep(0.01)")
    live.exec(name, "0")
    inner = live.inner(name)
    worker = threading.Thread(target=lambda: live.exec(name, "1"))
    worker.start()
    until(lambda: inner.busy, "it runs")
    inner.used -= 3 * 3600  # the cell takes hours
    assert name not in session.cull(live.workspace)
    (live.root / "on").touch()
    worker.join()
    # From its end on it counts anew.
    assert name not in session.cull(live.workspace)
    assert inner.epoch == 1
    inner.used -= 2 * 3600
    assert name in session.cull(live.workspace)
    assert inner.epoch == 2


# Secrets


def test_secrets_stay_out_of_journals_and_answers(scratch: Scratch) -> None:
    secret = "s3cr3t-" + "0123456789abcdef"
    env = {"SERVICE_TOKEN": secret}
    scratch.write(
        "t.py",
        f"# %% the {secret}\nimport os\ntoken = os.environ['SERVICE_TOKEN']\nplain = '{secret}'\n"
        "# %%\nprint(token)\n# %%\ntoken\n# %%\nraise ValueError(token)\n",
    )
    answers = [scratch.quire("session", "open", "t.py", env=env)]
    for args in (
        ("exec", "t", "all"),
        ("exec", "t", "3", "--json"),
        ("exec", "t", "--code", f"'{secret}' + token", "--json"),
        ("session", "vars", "t"),
        ("session", "vars", "t", "--json"),
        ("session", "tree", "t"),
    ):
        answers.append(scratch.quire(*args, env=env))
    assert not [done.args for done in answers if secret in done.stdout + done.stderr]
    assert "[masked:SERVICE_TOKEN]" in answers[1].stdout
    files = [path for path in (scratch.root / ".quire").rglob("*") if path.is_file()]
    assert any(path.name == "events.jsonl" for path in files)
    assert not [path for path in files if secret.encode() in path.read_bytes()]
    # What is not kept cannot be run again, and says so; what the task still holds can.
    done = scratch.quire("session", "restore", "t", env=env)
    assert done.returncode == 2
    assert "held a secret, which is not kept" in done.stderr
    scratch.quire("rewind", "t", "#6", env=env)
    gave = answer(scratch, "session", "restore", "t", env=env, code=1)
    assert [cell["status"] for cell in gave["cells"]] == ["ok", "ok", "ok", "failed", "failed"]
    check = "print(token == plain == os.environ['SERVICE_TOKEN'])"
    assert text(answer(scratch, "exec", "t", "--code", check, env=env)) == "True\n"


def test_no_part_of_a_long_secret_is_a_value_of_a_variable(scratch: Scratch) -> None:
    secret = "-".join(f"part{n}" for n in range(40))
    env = {"SERVICE_TOKEN": secret}
    scratch.write("t.py", "# %%\nimport os\nheld = [os.environ['SERVICE_TOKEN']]\nheld[1]\n")
    scratch.quire("session", "open", "t.py", env=env)
    exec_ = scratch.quire("exec", "t", "all", "--json", env=env)
    vars_ = scratch.quire("session", "vars", "t", env=env)
    assert "held  list  1             ['[masked:SERVICE_TOKEN]']" in vars_.stdout
    journal = (scratch.root / ".quire/sessions/t/events.jsonl").read_text()
    assert '"name":"held"' in journal
    assert not [text for text in (exec_.stdout, vars_.stdout, journal) if "part3" in text]


# Other kernels


def test_jupyter_console_attaches(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nsecret_number = 6 * 7\n")
    opened = answer(scratch, "session", "open", "t.py", "--kernel", "python3")
    connection = opened["kernel"]["connection_file"]
    assert Path(connection).is_file()
    scratch.quire("exec", "t", "0")
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_console", "--existing", connection, "--simple-prompt"],
        input="print('seen', secret_number)\nfrom_console = secret_number + 1\n",
        cwd=scratch.root,
        env=scratch.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "seen 42" in done.stdout, done.stderr
    # Both look at one kernel, and it is still there when the console has gone.
    assert text(answer(scratch, "exec", "t", "--code", "print(from_console)")) == "43\n"
    done = scratch.quire("session", "open", "t.py", "--kernel", "python3", "--name", "b")
    name, file, attach = done.stdout.splitlines()
    assert name == "b"
    assert file.removeprefix("connection file: ") in attach
    assert attach.startswith("attach with: jupyter console --existing ")


def test_a_kernel_that_is_not_python(scratch: Scratch) -> None:
    mark = f"bash-{os.getpid()}"
    scratch.write("t.py", "# %%\nx=41\n# %%\necho $((x + 1))\n")
    spec = {
        "argv": [sys.executable, "-m", "bash_kernel", "-f", "{connection_file}"],
        "display_name": "Bash",
        "language": "bash",
    }
    scratch.write("jupyter/kernels/bash/kernel.json", json.dumps(spec))
    env = {"QUIRE_TEST_MARK": mark, "JUPYTER_PATH": str(scratch.root / "jupyter")}
    opened = answer(scratch, "session", "open", "t.py", "--kernel", "bash", env=env)
    assert opened["kernel"]["language"] == "bash"
    answer(scratch, "exec", "t", "0")
    assert text(answer(scratch, "exec", "t", "1")) == "42\n"
    assert text(answer(scratch, "exec", "t", "--code", "x=1; echo $x")) == "1\n"
    done = scratch.quire("rewind", "t", "1")
    assert done.returncode == 2
    assert "this kind of kernel cannot set its state aside" in done.stderr
    done = scratch.quire("session", "vars", "t")
    assert done.returncode != 0
    assert "this kernel cannot list its variables" in done.stderr
    assert "Traceback" not in done.stderr
    states = answer(scratch, "session", "tree", "t")["states"]
    assert {s["rewindable"] for s in states} == {False}
    gave = answer(scratch, "exec", "t", "--code", "kill -9 $PPID", code=1)
    assert told(gave) == [(None, "died")]
    gave = answer(scratch, "exec", "t", "--code", "echo new")
    assert (gave["replaced"]["epoch"], text(gave)) == (2, "new\n")
    assert marked(mark, scratch.root)
    scratch.quire("session", "close", "t")
    until(
        lambda: len(marked(mark, scratch.root)) <= 2, "only the host and its fork server are left"
    )
