"""What a cell starts does not approve, trust or sign up for anybody, whatever it says of itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quire.agent.call_server import FarAsker
from quire.host.host_calls import Call
from quire.kernel import descent
from quire.kernel.native import NativeKernels
from quire.kernel.protocol import KernelSpec
from quire.record.events import OutputAdded
from quire.record.questions import Question
from scratch import QUIRE, Scratch, stdout_of

SEND = "# Send\n\n```python approve: true\nopen('sent.txt', 'w').close()\n```\n"
# Runs commands in turn and prints their statuses, each in a process without parents of its own.
ORPHANED = """# %%
import os, subprocess, sys, time

def call(argv):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.2)  # until the one in between has gone
            done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            os.write(write, f"{done.returncode} {'cell' in done.stderr}".encode())
        os._exit(0)
    os.close(write)
    return os.read(read, 100).decode()

for argv in COMMANDS:
    print(call(argv))
"""


def paused(scratch: Scratch, *options: str) -> str:
    scratch.write("send.md", SEND)
    code, told = scratch.run("send.md", *options)
    assert (code, told["outcome"]) == (3, "paused")
    return str(told["run_id"])


def resume(run: str, *options: str) -> list[str]:
    actor = "import os, sys; os.environ['QUIRE_ACTOR'] = 'ada'; os.execv(sys.executable, "
    words = [*QUIRE, "resume", run, "--approve", *options]
    return [sys.executable, "-c", f"{actor}{words!r})"]


@pytest.mark.parametrize("options", [(), ("--no-host",), ("--kernel", "python3")])
def test_a_cell_decides_nothing(scratch: Scratch, options: tuple[str, ...]) -> None:
    run = paused(scratch)
    in_process = (
        "from quire.engine.resume import prepare; from quire.workspace import Workspace\n"
        "from quire.errors import Refused\n"
        f"try: prepare(Workspace(), {run!r}, decision='run')\n"
        "except Refused as error: print(error, file=sys.stderr); sys.exit(2)\n"
    )
    commands = [
        resume(run),
        resume(run, "--no-host"),
        [*QUIRE, "resume", run, "--skip"],
        [*QUIRE, "key", "rotate"],
        [*QUIRE, "key", "trust", "--name", "me"],
        [*QUIRE, "token", "create", "--agent", "me", "--scope", "review"],
        [sys.executable, "-c", f"import sys\n{in_process}"],
    ]
    key = scratch.quire("key", "show").stdout
    scratch.write("cell.py", ORPHANED.replace("COMMANDS", repr(commands)))
    code, told = scratch.run("cell.py", *options)
    assert code == 0, told
    assert stdout_of(scratch.notebook(told)).splitlines() == ["2 True"] * len(commands)
    assert not (scratch.root / "sent.txt").exists()
    assert scratch.quire("key", "show").stdout == key
    assert not (scratch.root / ".quire-keys").exists()
    assert json.loads(scratch.quire("token", "list", "--json").stdout) == []
    assert "paused" in scratch.quire("show", run).stdout
    # A person still can.
    assert scratch.quire("resume", run, "--approve").returncode == 0


def test_a_cell_with_a_terminal_is_nobody_to_ask(scratch: Scratch) -> None:
    run = paused(scratch)
    scratch.write(
        "cell.py",
        "# %%\nimport os, pty\npid, fd = pty.fork()\nif pid == 0:\n"
        f"    os.execv({sys.executable!r}, {[*QUIRE, 'resume', run]!r})\n"
        "os.write(fd, b'run\\n')\n"
        "try:\n    while os.read(fd, 1000):\n        pass\nexcept OSError:\n    pass\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n",
    )
    code, told = scratch.run("cell.py")
    assert code == 0, told
    assert stdout_of(scratch.notebook(told)) == "3\n"  # it waits as before
    assert not (scratch.root / "sent.txt").exists()


def test_a_cell_reviews_and_merges_nothing(repo: Scratch) -> None:
    repo.git("switch", "--quiet", "--create", "work")
    repo.write("notebooks/sum.py", (repo.root / "notebooks/sum.py").read_text() + "\n# more\n")
    repo.git("commit", "--quiet", "--all", "-m", "More")
    assert repo.quire("propose", "--title", "More", "--base", "main").returncode == 0
    commands = [
        [*QUIRE, "review", "1", "--approve"],
        [*QUIRE, "review", "1", "--request-changes", "no"],
        [*QUIRE, "merge-proposal", "1", "--force"],
        [*QUIRE, "close-proposal", "1"],
    ]
    repo.write("cell.py", ORPHANED.replace("COMMANDS", repr(commands)))
    code, told = repo.run("cell.py", "--no-archive")
    assert code == 0, told
    assert stdout_of(repo.notebook(told)).splitlines() == ["2 True"] * len(commands)
    (still,) = json.loads(repo.quire("proposals", "--json").stdout)
    assert still["state"] == "open"


def test_who_descends_from_a_kernel() -> None:
    """Also an orphan of an orphan; not one that stands beside it."""
    with NativeKernels() as kernels:
        kernel = kernels.start(KernelSpec(Path.cwd(), dict(os.environ)))
        code = (
            "import os, time\nread, write = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n"
            "    if os.fork() == 0:\n        os.write(write, str(os.getpid()).encode())\n"
            "        time.sleep(60)\n    os._exit(0)\nos.wait()\nprint(os.read(read, 99).decode())"
        )
        shown = [e for e in kernel.execute(code, "a") if isinstance(e, OutputAdded)]
        orphan = int(shown[0].output["text"])
        assert descent.objection(kernel.pid) == descent.BELOW
        assert descent.objection(orphan) == descent.BELOW
        assert descent.objection(os.getpid()) == ""
        assert descent.objection(os.getppid()) == ""
        # Nor is it asked over the line that agents use.
        near, far = socket.socketpair()
        with near, far:
            call = Call("run_wait", {}, "/", {}, {}, near, pid=orphan)
            assert FarAsker(call).ask([Question("Run it?")]) is None
            far.setblocking(False)
            with pytest.raises(BlockingIOError):
                far.recv(1)
        kernel.close()
    deadline = time.monotonic() + 20
    while descent.objection(orphan) != descent.UNSEEN:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_editor_that_shows_our_files_is_no_kernel() -> None:
    script = "/x/kernel/inside/zygote.py"
    code = "import sys; print(flush=True); sys.stdin.readline()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, script, "-m", "quire.cli.host_main"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        # It is below us, which a host's own children are not to be: asked of itself it may speak.
        assert not descent._is_ours(process.pid)
    finally:
        process.communicate(b"\n")
