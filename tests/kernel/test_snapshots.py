"""States of a kernel that are set aside and woken again, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.errors import KernelError
from quire.kernel import native
from quire.kernel.native import NativeKernel, NativeKernels, wake
from quire.kernel.protocol import KernelSpec
from quire.kernel.snapshots import Snapshot
from quire.record.events import CellFinished, KernelDied, OutputAdded


@pytest.fixture(scope="module")
def kernels() -> Iterator[NativeKernels]:
    with NativeKernels() as kernels:
        yield kernels


@pytest.fixture
def kernel(kernels: NativeKernels, tmp_path: Path) -> Iterator[NativeKernel]:
    kernel = kernels.start(KernelSpec(tmp_path, dict(os.environ)))
    yield kernel
    kernel.close()


def out(kernel: NativeKernel, code: str, **options: bool) -> str:
    parts = []
    for event in kernel.execute(code, "c", **options):
        if isinstance(event, OutputAdded):
            parts.append(event.output.get("text") or str(event.output))
        elif isinstance(event, CellFinished):
            assert event.status == "ok", event.error
        assert not isinstance(event, KernelDied), event
    return "".join(parts)


def taken(kernel: NativeKernel) -> Snapshot:
    made = kernel.snapshot()
    assert isinstance(made, Snapshot), made
    return made


def ended(pid: int, timeout: float = 5.0) -> bool:
    """Gone, or only its entry is left for a parent at rest to see."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True
        if stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_a_script_leaves_nothing_that_would_be_in_the_way(kernel: NativeKernel) -> None:
    """IPython runs `%%bash` in a thread that it keeps."""
    for script in ("%%bash\necho one", "%%sh\necho two", "%%bash --no-raise-error\nfalse"):
        out(kernel, script, aside=True)
        taken(kernel).drop()
    assert out(kernel, "%%bash --out found\necho three") == ""
    assert out(kernel, "print(found)") == "three\n\n"
    # One in the background is still read from.
    out(kernel, "%%bash --bg --out later --proc p\necho four")
    assert "threads are still running" in str(kernel.snapshot())
    assert out(kernel, "print(await later.read(), await p.wait())") == "b'four\\n' 0\n"


def test_back_and_forth(kernel: NativeKernel) -> None:
    out(kernel, "n = 1")
    one = taken(kernel)
    out(kernel, "n = 2")
    two = taken(kernel)
    out(kernel, "n = 3")
    for snapshot, n in ((two, 2), (one, 1), (two, 2), (one, 1)):
        kernel.rewind(snapshot)
        assert out(kernel, "print(n)") == f"{n}\n"
    one.drop()
    two.drop()


def test_a_dropped_state_is_gone(kernel: NativeKernel) -> None:
    out(kernel, "n = 1")
    made = taken(kernel)
    pid = made.pid
    assert made.alive
    assert 0 < made.memory() <= made.resident()
    made.drop()
    assert ended(pid)
    assert not made.alive
    with pytest.raises(KernelError, match="that state is gone"):
        kernel.rewind(made)
    # The kernel is as it was, and can go on setting states aside.
    assert out(kernel, "print(n)") == "1\n"
    taken(kernel).drop()


def test_a_state_that_was_killed_from_outside(kernel: NativeKernel) -> None:
    out(kernel, "n = 1")
    made = taken(kernel)
    os.kill(made.pid, signal.SIGKILL)
    assert ended(made.pid)
    assert not made.alive
    assert made.memory() == 0
    with pytest.raises(KernelError, match="that state is gone"):
        kernel.rewind(made)
    assert out(kernel, "print(n)") == "1\n"
    made.drop()


def test_a_shared_state_stays_until_both_let_go(kernel: NativeKernel) -> None:
    out(kernel, "n = 1")
    made = taken(kernel)
    other = made.share()
    made.drop()
    assert other.alive
    out(kernel, "n = 2")
    kernel.rewind(other)
    assert out(kernel, "print(n)") == "1\n"
    other.drop()
    assert ended(made.pid)


def test_a_state_outlives_its_kernel(kernels: NativeKernels, tmp_path: Path) -> None:
    kernel = kernels.start(KernelSpec(tmp_path, dict(os.environ)))
    out(kernel, "n = 1")
    made = taken(kernel)
    died = list(kernel.execute("import os; os._exit(4)", "c"))
    assert isinstance(died[-1], KernelDied)
    assert died[-1].status == 4
    assert made.alive
    kernel.rewind(made)
    assert kernel.alive
    assert out(kernel, "print(n)") == "1\n"
    pid = kernel.pid
    kernel.close()
    assert ended(pid)
    # Somebody else can have it, too.
    other = wake(kernel.zygote, made, {})
    assert out(other, "print(n)") == "1\n"
    other.close()
    made.drop()
    assert ended(made.pid)


def test_several_live_copies_of_one_state(kernel: NativeKernel) -> None:
    out(kernel, "import random\nxs = [1]")
    made = taken(kernel)
    copies = [wake(kernel.zygote, made, {}) for _ in range(3)]
    for n, copy in enumerate(copies):
        out(copy, f"xs.append({n})")
    assert [out(copy, "print(xs)") for copy in copies] == [f"[1, {n}]\n" for n in range(3)]
    assert len({out(copy, "print(random.random())") for copy in copies}) == 1
    assert out(kernel, "print(xs)") == "[1]\n"
    for copy in copies:
        copy.close()
    assert all(ended(copy.pid) for copy in copies)
    made.drop()


def test_a_state_made_ahead_is_the_one_after_the_cell(kernel: NativeKernel) -> None:
    out(kernel, "n = 1", aside=True)
    made = taken(kernel)
    out(kernel, "n = 2", aside=True)
    kernel.rewind(made)
    assert out(kernel, "print(n)") == "1\n"
    made.drop()


def test_a_state_made_ahead_that_nobody_asks_for_is_dropped(kernel: NativeKernel) -> None:
    def copies() -> int:
        children = Path(f"/proc/{kernel.pid}/task/{kernel.pid}/children").read_text().split()
        return sum(not ended(int(pid), 0.01) for pid in children)

    for n in range(5):
        out(kernel, f"n = {n}", aside=True)
    deadline = time.monotonic() + 30
    while (left := copies()) != 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == 1


def test_the_wire_stays_in_step(kernel: NativeKernel) -> None:
    """Requests, answers and late text of children do not get mixed up."""
    out(kernel, "import subprocess, sys")
    for n in range(10):
        out(kernel, f"child = subprocess.Popen(['sh', '-c', 'echo late {n}']); child.wait();")
        names = {one["name"]: one["value"] for one in kernel.variables()}
        assert "child" in names
        made = taken(kernel)
        assert out(kernel, f"print({n})").endswith(f"{n}\n")
        if n % 3 == 0:
            kernel.rewind(made)
        made.drop()
    assert out(kernel, "print('end')") == "end\n"


def test_an_interrupt_reaches_a_woken_copy(kernel: NativeKernel) -> None:
    out(kernel, "import time")
    made = taken(kernel)
    kernel.rewind(made)
    events = kernel.execute("print('in it', flush=True)\ntime.sleep(60)", "c")
    assert isinstance(next(event for event in events if event is not None), OutputAdded)
    kernel.interrupt()
    (end,) = [event for event in events if isinstance(event, CellFinished)]
    assert end.error is not None
    assert end.error.name == "KeyboardInterrupt"
    assert out(kernel, "print(1)") == "1\n"
    made.drop()


def test_large_memory_is_shared(kernel: NativeKernel) -> None:
    out(kernel, "data = bytearray(b'x') * (64 << 20)")
    states = [taken(kernel) for _ in range(4)]
    # Each holds it all; together they hold it once.
    assert all(one.resident() > 64 << 20 for one in states)
    assert sum(one.memory() for one in states) < 80 << 20
    out(kernel, "data[:] = b'y' * len(data)")
    kernel.rewind(states[0])
    assert out(kernel, "print(data[:1], len(data) >> 20)") == "bytearray(b'x') 64\n"
    for one in states:
        one.drop()


def test_everything_goes_with_the_fork_server(tmp_path: Path) -> None:
    kernels = NativeKernels()
    kernel = kernels.start(KernelSpec(tmp_path, dict(os.environ)))
    out(kernel, "n = 1")
    made = [taken(kernel) for _ in range(3)]
    kernel.rewind(made[0])
    out(kernel, "n = 2")
    pids = [kernel.pid, *(one.pid for one in made)]
    os.kill(kernel.zygote.process.pid, signal.SIGKILL)
    assert ended(kernel.pid)
    for one in made:
        one.drop()
    kernel.close()
    kernels.close()
    assert all(ended(pid) for pid in pids)


def test_a_number_that_is_used_again_is_another_process(kernel: NativeKernel) -> None:
    """Process numbers come round. What is known of the last one with a number is void."""
    out(kernel, "n = 1")
    made = taken(kernel)
    server = kernel.zygote
    gone: list[int] = []
    server.adopt(999_999, kernel=True)
    server.watch(999_999, lambda: gone.append(1))
    server._exited({"exited": 999_999, "signal": 9, "status": None, "max_rss": 0})
    assert gone == [1]
    server.adopt(999_999, kernel=True)
    server.watch(999_999, lambda: gone.append(2))
    assert gone == [1]
    server.forget(999_999)
    server._exited({"exited": 999_999, "signal": 9, "status": None, "max_rss": 0})
    assert gone == [1]
    kernel.rewind(made)
    assert kernel.alive
    made.drop()


BYSTANDER = """
import socket, sys
from quire.kernel.inside.zygote import Zygote

ours, theirs = socket.socketpair()
server, pid = Zygote(ours, None), int(sys.argv[1])
server.adopt(pid)
server.kernels[pid] -= 1  # that one was started before: the number has come round
for order in ("interrupt", "kill"):
    server.obey({"do": order, "pid": pid}, [])
server.end_all()
"""


def test_a_stranger_with_the_number_of_a_dropped_state_is_left_alone() -> None:
    """The fork server does not hear of the end of every state that it knows."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        try:
            command = [sys.executable, "-c", BYSTANDER, str(stranger.pid)]
            subprocess.run(command, check=True, timeout=30)
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_state_survives_when_its_kernel_dies_before_the_replaced_one_is_ended(
    kernel: NativeKernel,
) -> None:
    """It then becomes a child of the replaced kernel, whose children are being ended."""
    out(kernel, "x = 1")
    first = taken(kernel)
    server = kernel.zygote.process.pid
    os.kill(server, signal.SIGSTOP)
    try:
        kernel.rewind(first)
        second = taken(kernel)
        os.kill(kernel.pid, signal.SIGKILL)
        assert ended(kernel.pid)
    finally:
        os.kill(server, signal.SIGCONT)
    assert isinstance(list(kernel.execute("x", "c"))[-1], KernelDied)
    kernel.rewind(second)
    assert out(kernel, "print(x)") == "1\n"
    first.drop()
    second.drop()


LONG_AGO = """
import os, signal, socket, types
from quire.kernel.inside import reaper, snapshot, zygote

hours = 0
zygote.time = types.SimpleNamespace(monotonic=lambda: 3600.0 * hours)
ours, theirs = socket.socketpair()
server = zygote.Zygote(ours, None)
told, tell = os.pipe()

kernel = os.fork()
if kernel == 0:
    reaper.adopt_orphans()
    middle = os.fork()
    if middle == 0:
        for announced in (True, False):
            copy = os.fork()
            if copy == 0:
                signal.alarm(20)
                signal.pause()
            if announced:
                snapshot.announce(server.announced, copy)
            os.write(tell, b"%d\\n" % copy)
        os._exit(0)
    os.waitpid(middle, 0)  # both are children of the kernel now
    os.write(tell, b"0\\n")
    signal.alarm(20)
    signal.pause()

said = b""
while not said.endswith(b"\\n0\\n"):
    said += os.read(told, 100)
copy, stray, _ = map(int, said.split())
server.adopt(kernel)  # hears of the copy, which nobody asks for
hours += 1
server.obey({"do": "kill", "pid": kernel}, [])
assert reaper.start_time(copy) is not None, "ended with its kernel"
os.waitpid(kernel, 0)
lives = lambda pid: pid in [process[0] for process in reaper.children(os.getpid())]
assert lives(copy) and not lives(stray)
server.end_strays()
assert lives(copy), "ended at once"
hours += 1
server.end_strays()
assert os.waitpid(copy, 0)[1] == signal.SIGKILL
"""


def test_a_copy_is_spared_however_long_ago_it_was_announced() -> None:
    """A kernel may have been at rest for long when it dies; then its last state is asked for."""
    done = subprocess.run(
        [sys.executable, "-c", LONG_AGO], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr


def test_a_rewind_that_the_server_cannot_hear_of_changes_nothing(
    kernel: NativeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    out(kernel, "n = 1")
    made = taken(kernel)
    out(kernel, "n = 2")
    woken: list[int] = []

    def deaf(pid: int, **_: bool) -> None:
        woken.append(pid)
        raise KernelError("the kernel server has gone")

    before = kernel.pid
    with monkeypatch.context() as patched:
        patched.setattr(kernel.zygote, "adopt", deaf)
        with pytest.raises(KernelError, match="the kernel server has gone"):
            kernel.rewind(made)
    assert kernel.pid == before
    assert out(kernel, "print(n)") == "2\n"
    # The copy that nobody has goes by itself.
    assert all(ended(pid) for pid in woken)
    kernel.rewind(made)
    assert out(kernel, "print(n)") == "1\n"
    made.drop()


def test_a_fork_server_stays_as_long_as_there_are_states_of_its_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "MOST_SERVERS", 1)

    def world(number: int) -> KernelSpec:
        return KernelSpec(tmp_path, {**os.environ, "PYTHON_WORLD": str(number)})

    with NativeKernels() as kernels:
        kernel = kernels.start(world(1))
        out(kernel, "n = 1")
        made = taken(kernel)
        shared = made.share()
        assert isinstance(list(kernel.execute("import os; os._exit(3)", "c"))[-1], KernelDied)
        kernels.start(world(2)).close()
        made.drop()
        kernels.start(world(3)).close()
        kernel.rewind(shared)
        assert out(kernel, "print(n)") == "1\n"
        kernel.close()
        shared.drop()
        kernels.start(world(4)).close()
        assert not kernel.zygote.alive
