"""What both kernels do alike when a cell fails, ends the task, is interrupted or kills it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_cells import Ran, Sheet, failed, ok, run

from quire.kernel.protocol import Kernel
from quire.record.events import CellFinished, KernelDied, OutputAdded

Start = Callable[..., Kernel]


def alive(pid: int) -> bool:
    """A zombie is dead: only its parent has not noticed yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def gone(pid: int, within: float = 5.0) -> bool:
    deadline = time.monotonic() + within
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def run_and(kernel: Kernel, code: str, act: Callable[[], None]) -> Ran:
    """Run a cell and act, in another thread, as soon as it has printed `ready`."""
    sheet, events = Sheet(), []
    actor = threading.Thread(target=act)
    for event in kernel.execute(code, "c"):
        if event is not None:
            events.append(event)
            sheet.take(event)
            if isinstance(event, OutputAdded) and "ready" in event.output.get("text", ""):
                actor.start()
    actor.join()
    end = events[-1]
    assert isinstance(end, CellFinished | KernelDied)
    return Ran(sheet.cells["c"], events, end)


# Errors


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("1 / 0", "ZeroDivisionError", "division by zero"),
        ("raise KeyError('k')", "KeyError", "'k'"),
        ("def f(:", "SyntaxError", ""),
        ("  x = 1\n y = 2", "IndentationError", ""),
        ("def f(): f()\nf()", "RecursionError", "maximum recursion depth exceeded"),
        (
            "raise ExceptionGroup('many', [ValueError(1)])",
            "ExceptionGroup",
            "many (1 sub-exception)",
        ),
        ("await undefined_name", "NameError", "name 'undefined_name' is not defined"),
        ("%no_such_magic", "UsageError", ""),
        ("raise BaseException('base')", "BaseException", "base"),
    ],
)
def test_an_error_is_data(kernel: Kernel, code: str, name: str, value: str) -> None:
    ran = failed(kernel, code)
    assert isinstance(ran.end, CellFinished)
    assert ran.end.error is not None
    assert ran.end.error.name == name
    assert value in ran.end.error.value
    assert ok(kernel, "print('alive')").stdout == "alive\n"


def test_what_was_printed_before_an_error_is_there(kernel: Kernel) -> None:
    ran = failed(kernel, "print('before')\nraise ValueError('after')")
    assert ran.stdout == "before\n"
    assert [o["output_type"] for o in ran.outputs] == ["stream", "error"]


def test_tracebacks_name_the_line_and_the_cause(kernel: Kernel) -> None:
    ran = failed(
        kernel,
        "def inner():\n    raise KeyError('deep')\n"
        "try:\n    inner()\nexcept KeyError as e:\n    raise ValueError('outer') from e",
    )
    assert isinstance(ran.end, CellFinished)
    assert ran.end.error is not None
    text = "\n".join(ran.end.error.traceback)
    assert "KeyError" in text
    assert "direct cause" in text
    assert "inner" in text
    said, count = ran.end.error.frames, ran.end.execution_count
    lines = [(one["line"], one["count"]) for one in said if "line" in one]
    assert lines == [(4, count), (2, count), (6, count)]
    assert [one["how"] for one in said if "how" in one] == ["cause", "chain", "error"]


def test_an_exception_that_cannot_be_shown(kernel: Kernel) -> None:
    code = (
        "class Odd(Exception):\n    def __str__(self): raise RuntimeError('no text')\nraise Odd()"
    )
    ran = run(kernel, code)
    assert isinstance(ran.end, CellFinished)
    assert ran.end.status == "failed"
    # ipykernel names the second of the two.
    assert ran.error in ("Odd", "RuntimeError")
    assert ok(kernel, "print('alive')").stdout == "alive\n"


def test_input_is_an_error_not_a_hang(kernel: Kernel) -> None:
    assert failed(kernel, "input('name? ')").error == "StdinNotImplementedError"


# Endings


@pytest.mark.parametrize("code", ["import sys; sys.exit(0)", "import sys; sys.exit()", "exit()"])
def test_leaving_well_ends_the_task(own: Kernel, code: str) -> None:
    ran = ok(own, "print('work done')\n" + code)
    assert isinstance(ran.end, CellFinished)
    assert ran.end.stop is True
    assert ran.stdout == "work done\n"
    assert ran.stderr == ""
    assert [o["output_type"] for o in ran.outputs] == ["stream"]


@pytest.mark.parametrize(("code", "value"), [("3", "3"), ("'went wrong'", "went wrong")])
def test_leaving_with_a_status_is_a_failure(kernel: Kernel, code: str, value: str) -> None:
    ran = failed(kernel, f"import sys; sys.exit({code})")
    assert isinstance(ran.end, CellFinished)
    assert ran.end.stop is False
    assert ran.end.error is not None
    assert (ran.end.error.name, ran.end.error.value) == ("SystemExit", value)


def test_an_ordinary_cell_does_not_stop(kernel: Kernel) -> None:
    end = ok(kernel, "1").end
    assert isinstance(end, CellFinished)
    assert end.stop is False


# Interruption


def test_interrupt(own: Kernel) -> None:
    code = "import time\nprint('ready', flush=True)\ntime.sleep(60)"
    began = time.monotonic()
    ran = run_and(own, code, own.interrupt)
    assert ran.error == "KeyboardInterrupt"
    assert time.monotonic() - began < 10
    assert ok(own, "print('alive')").stdout == "alive\n"


def test_interrupt_of_a_busy_loop(own: Kernel) -> None:
    ran = run_and(own, "print('ready', flush=True)\nwhile True: pass", own.interrupt)
    assert ran.error == "KeyboardInterrupt"


def test_interrupt_of_an_await(own: Kernel) -> None:
    code = "import asyncio\nprint('ready', flush=True)\nawait asyncio.sleep(60)"
    began = time.monotonic()
    ran = run_and(own, code, own.interrupt)
    assert isinstance(ran.end, CellFinished)
    assert ran.end.status == "failed"
    assert time.monotonic() - began < 10
    assert ran.error in ("KeyboardInterrupt", "CancelledError")
    if own.kind == "native":  # what is kept of it says what stopped it, and only where in the cell
        assert ran.end.error is not None
        assert ran.end.error.name == "KeyboardInterrupt"
        assert not any("selectors" in line for line in ran.end.error.traceback)


def test_interrupt_at_rest_does_nothing(own: Kernel) -> None:
    ok(own, "x = 1")
    own.interrupt()
    assert ok(own, "print(x)").stdout == "1\n"


# Death


def test_exit_status(own: Kernel) -> None:
    ran = run(own, "import os; os._exit(7)")
    assert isinstance(ran.end, KernelDied)
    assert (ran.end.status, ran.end.signal) == (7, None)
    assert "7" in ran.end.reason
    assert ran.end.memory["max_rss"] > 10_000_000


def test_segmentation_fault(own: Kernel) -> None:
    ran = run(
        own, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)\nimport time; time.sleep(60)"
    )
    assert isinstance(ran.end, KernelDied)
    assert (ran.end.status, ran.end.signal) == (None, signal.SIGSEGV)
    assert "SIGSEGV" in ran.end.reason


def test_a_dead_kernel_says_so_again(own: Kernel) -> None:
    run(own, "import os; os._exit(1)")
    assert isinstance(run(own, "1").end, KernelDied)
    own.interrupt()
    own.kill()
    own.close()


def test_output_before_death_is_kept(own: Kernel) -> None:
    # Long enough before for a kernel that publishes in the background.
    code = "import os, time\nprint('last words', flush=True)\ntime.sleep(0.5)\nos._exit(1)"
    assert run(own, code).stdout == "last words\n"


def test_kill_takes_what_ignores_signals(own: Kernel) -> None:
    code = (
        "import os, signal, subprocess, time\n"
        "for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print('ready', os.getpid(), child.pid, flush=True)\n"
        "while True: time.sleep(1)"
    )
    ran = run_and(own, code, own.kill)
    assert isinstance(ran.end, KernelDied)
    assert ran.end.signal == signal.SIGKILL
    _, *pids = ran.stdout.split()
    assert len(pids) == 2
    assert all(gone(int(pid)) for pid in pids)


@pytest.mark.parametrize("how", ["close", "death"])
def test_no_process_is_left(own: Kernel, how: str) -> None:
    """Neither a child in a session of its own, nor one whose parent has gone."""
    code = (
        "import os, subprocess\n"
        "direct = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "orphan = subprocess.run(\n"
        "    'setsid sleep 600 > /dev/null 2>&1 & echo $!',\n"
        "    shell=True, capture_output=True, text=True)\n"
        "print(os.getpid(), direct.pid, orphan.stdout)"
    )
    pids = [int(word) for word in ok(own, code).stdout.split()]
    assert len(pids) == 3
    assert all(alive(pid) for pid in pids)
    if how == "death":
        assert isinstance(run(own, "os._exit(1)").end, KernelDied)
    own.close()
    own.close()
    assert [pid for pid in pids if not gone(pid)] == []


def test_close_while_a_cell_runs(own: Kernel) -> None:
    code = "import os, time\nprint('ready', os.getpid(), flush=True)\ntime.sleep(60)"
    ran = run_and(own, code, own.close)
    assert isinstance(ran.end, KernelDied)
    assert gone(int(ran.stdout.split()[1]))


def test_describe(own: Kernel) -> None:
    said = own.describe()
    assert said["kind"] == own.kind
    assert said["language"] == own.language == "python"
    assert said["version"].count(".") == 2
    assert int(ok(own, "import os; print(os.getpid())").stdout) == said["pid"]
    assert said["pid"] != os.getpid()


def test_ticks_come_while_nothing_happens(kernel: Kernel, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    code = f"import os, time\nwhile not os.path.exists({str(enough)!r}): time.sleep(0.01)"
    ticks, began = 0, time.monotonic()
    for event in kernel.execute(code, "c", tick=0.05):
        ticks += event is None
        if ticks == 8:
            enough.touch()
    assert ticks >= 8
    assert ticks * 0.05 <= time.monotonic() - began
