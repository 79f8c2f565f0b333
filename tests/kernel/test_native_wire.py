"""What a cell can do to its host over the socket of its kernel: end that kernel, and no more."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.kernel.inside import message_limits
from quire.kernel.native import NativeKernel, NativeKernels
from quire.kernel.native_messages import NO_MESSAGE, NoMessage, event, read
from quire.kernel.native_wire import Wire
from quire.kernel.protocol import KernelEvent, KernelSpec
from quire.kernel.snapshots import Snapshot
from quire.record.events import CellFinished, KernelDied, OutputAdded

REACH = "import os, socket, time\nwire = get_ipython().quire_wire.channel.sock\n"
DONE = {"m": "done", "status": "ok", "stop": False, "count": 1}
FAILED = {**DONE, "status": "failed", "ename": "E", "evalue": "e", "traceback": ["t"]}


@pytest.fixture(scope="module")
def kernels() -> Iterator[NativeKernels]:
    with NativeKernels() as kernels:
        yield kernels


@pytest.fixture
def kernel(kernels: NativeKernels, tmp_path: Path) -> Iterator[NativeKernel]:
    kernel = kernels.start(KernelSpec(cwd=tmp_path, env=dict(os.environ)))
    yield kernel
    kernel.close()


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}").exists()


def last(kernel: NativeKernel, code: str) -> KernelEvent:
    found = [one for one in kernel.execute(code, "c") if one is not None]
    return found[-1]


def shown(kernel: NativeKernel, code: str) -> list[dict[str, Any]]:
    found = list(kernel.execute(code, "c"))
    assert isinstance(found[-1], CellFinished)
    return [dict(one.output) for one in found if isinstance(one, OutputAdded)]


@pytest.mark.parametrize(
    "sent",
    [
        "not json",
        "",
        "[]",
        "5",
        "{}",
        '{"m": 5}',
        '{"m": "stream"}',
        '{"m": "stream", "name": "stdout", "text": 7}',
        '{"m": "stream", "name": "stdout", "text": "a", "parts": [5]}',
        '{"m": "stream", "name": "other", "text": "a"}',
        '{"m": "stream", "name": "stdout", "text": "a", "area": []}',
        '{"m": "display_data"}',
        '{"m": "display_data", "content": 5}',
        '{"m": "display_data", "content": {"data": []}}',
        '{"m": "execute_result", "content": {"data": {}, "metadata": 5}}',
        '{"m": "error", "content": {"ename": 5}}',
        json.dumps({**DONE, "status": "fine"}),
        json.dumps({**DONE, "count": "1"}),
        json.dumps({**FAILED, "traceback": 5}),
        json.dumps({**FAILED, "variables": [{"name": "x", "type": 5}]}),
        '{"m": "variables", "found": {}}',
        '{"m": "snapshot", "pid": %s}' % ("9" * 4_000),
        '{"m": "awake"}',
        "[" * 200_000,
    ],
)
def test_what_is_no_message(sent: str) -> None:
    with pytest.raises(NoMessage, match=NO_MESSAGE):
        read(sent.encode())


def test_what_is_too_large_or_too_deep() -> None:
    content = '{"m": "display_data", "content": {"data": {"a": %s}}}'
    with pytest.raises(NoMessage, match="too deep"):
        read((content % ("[" * 200 + "]" * 200)).encode())
    with pytest.raises(NoMessage, match="too large"):
        read((content % ("[" + "0," * message_limits.MANY + "0]")).encode())
    read((content % ("[" * 80 + "]" * 80)).encode())


@pytest.mark.parametrize("message", [DONE, FAILED])
def test_what_is_one(message: dict[str, Any]) -> None:
    assert read(json.dumps(message).encode()) == message


def test_an_odd_name_of_a_display_is_a_text() -> None:
    content = {"data": {}, "transient": {"display_id": 5}, "execution_count": "x"}
    said = event({"m": "execute_result", "content": content}, "c")
    assert isinstance(said, OutputAdded)
    assert (said.display_id, said.output["execution_count"]) == ("5", None)


def test_who_sends_no_message_dies_of_it(kernel: NativeKernel) -> None:
    pid = kernel.pid
    died = last(
        kernel, f"{REACH}print('before', flush=True)\nwire.sendall(b'no\\n')\ntime.sleep(600)"
    )
    assert isinstance(died, KernelDied)
    assert died.reason == NO_MESSAGE
    assert gone(pid)
    assert isinstance(last(kernel, "1"), KernelDied)


def test_who_sends_no_message_between_cells_dies_in_the_next(kernel: NativeKernel) -> None:
    shown(kernel, f"{REACH}import threading\n"
          "threading.Timer(0.1, lambda: wire.sendall(b'[]\\n')).start()")  # fmt: skip
    while not isinstance(last(kernel, "time.sleep(0.02)"), KernelDied):
        pass
    assert gone(kernel.pid)


def test_a_line_without_end(kernel: NativeKernel) -> None:
    code = f"{REACH}part = b'x' * 1_000_000\nwhile True: wire.sendall(part)"
    died = last(kernel, code)
    assert isinstance(died, KernelDied)
    assert died.reason == f"the kernel sent a message of more than {message_limits.LONGEST:,} bytes"
    assert gone(kernel.pid)


def test_descriptors_are_not_taken(kernel: NativeKernel) -> None:
    before = len(os.listdir("/proc/self/fd"))
    code = "wire.setblocking(True)\nfd = os.open('/dev/null', 0)\n" + (
        'for _ in range(300): socket.send_fds(wire, [b\'{"m": "x"}\\n\'], [fd] * 4)'
    )
    assert isinstance(last(kernel, REACH + code), CellFinished)
    assert len(os.listdir("/proc/self/fd")) == before


def test_where_one_is_awaited_one_is_taken(kernel: NativeKernel) -> None:
    before = len(os.listdir("/proc/self/fd"))
    code = f"{REACH}ours, theirs = socket.socketpair()\n" + (
        'for _ in range(300): socket.send_fds(wire, [b\'{"m": "x"}\\n\'], [theirs.fileno()] * 4)'
    )
    for _ in kernel.execute(code, "c", aside=True):
        assert len(os.listdir("/proc/self/fd")) <= before + 1
    made = kernel.snapshot()  # a socket is open, so there is none
    assert isinstance(made, str)
    assert len(os.listdir("/proc/self/fd")) == before
    shown(kernel, "del ours, theirs, wire; import gc; gc.collect(); os.close")
    kept = kernel.snapshot()
    assert isinstance(kept, Snapshot), kept
    kept.drop()


def test_what_is_no_socket_is_no_state(kernel: NativeKernel) -> None:
    before = len(os.listdir("/proc/self/fd"))
    said = b'{"m": "snapshot", "pid": 1}\\n'.decode()
    code = f"socket.send_fds(wire, [b'{said}'], [os.open('/dev/null', 0)])"
    for _ in kernel.execute(REACH + code, "c", aside=True):
        pass
    # It was said while the cell ran, where nobody asked; what was asked for has the descriptor.
    assert isinstance(kernel.snapshot(), str)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_flood_while_something_is_asked_for_has_an_end() -> None:
    ours, theirs = socket.socketpair()
    pipes = [os.pipe(), os.pipe()]
    wire = Wire(ours, pipes[0][0], pipes[1][0])
    line = json.dumps({"m": "x", "text": "y" * 60_000}).encode() + b"\n"

    def flood() -> None:
        try:
            while True:
                theirs.sendall(line)
        except OSError:
            theirs.close()

    sender = threading.Thread(target=flood, daemon=True)
    sender.start()
    with pytest.raises(ConnectionError):
        wire.expect("variables", 600)
    wire.close()
    sender.join()
    assert "while no cell was running" in wire.broken
    for _, write in pipes:
        os.close(write)


def test_a_display_that_is_too_large_is_cut_and_says_so(kernel: NativeKernel) -> None:
    outputs = shown(
        kernel,
        "display({'text/plain': 'x' * 80_000_000, 'text/html': '<b>h</b>'}, raw=True)\nprint('on')",
    )
    data = outputs[0]["data"]
    assert data["text/html"] == "<b>h</b>"
    assert len(data["text/plain"]) < 2 * message_limits.TEXT
    assert "[quire: a display of 80,000," in data["text/plain"]
    assert outputs[1]["text"] == "on\n"


@pytest.mark.parametrize(
    "value",
    ["deep", "[0] * 5_000_000"],
)
def test_a_display_of_too_many_values_is_cut_too(kernel: NativeKernel, value: str) -> None:
    code = "deep = 5\nfor _ in range(300): deep = [deep]\n"
    show = f"display({{'application/json': {value}, 'text/plain': 'short'}}, raw=True)"
    (output,) = shown(kernel, code + show)
    assert list(output["data"]) == ["text/plain"]
    assert output["data"]["text/plain"].startswith("short\n[quire: a display of ")


def test_an_error_that_is_too_large_is_cut(kernel: NativeKernel) -> None:
    done = last(kernel, "raise ValueError('y' * 70_000_000)")
    assert isinstance(done, CellFinished)
    assert done.error is not None
    assert done.error.value.endswith("characters were cut here]")
    assert len(done.error.value) < 2 * message_limits.TEXT
    assert isinstance(last(kernel, "1"), CellFinished)
