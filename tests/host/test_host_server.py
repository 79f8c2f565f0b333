"""The process that keeps kernels warm, as its clients meet it."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire import __version__
from quire.host import host_socket
from quire.host.host_server import Host, Request, status
from scratch import Scratch

TASK = "# %%\nimport os\nprint(os.getppid())\n"


def wait_for(done: Any, timeout: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(done())


def told(scratch: Scratch) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(scratch.quire("host", "status", "--json").stdout)
    return answer


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_its_life(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    assert told(scratch) == {"alive": False, "pid": None}
    assert "no host" in scratch.quire("host", "status").stdout
    assert scratch.quire("host", "stop").stdout == "no host to stop\n"
    assert scratch.run("t.py")[0] == 0
    first = told(scratch)
    assert first["alive"]
    assert first["version"] == __version__
    assert scratch.run("t.py")[0] == 0
    second = told(scratch)
    assert second["pid"] == first["pid"]
    assert [z["pid"] for z in second["zygotes"]] == [z["pid"] for z in first["zygotes"]]
    assert f"host {first['pid']}, up" in scratch.quire("host", "status").stdout
    path = Path(first["socket"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert scratch.quire("host", "stop").stdout == "stopped\n"
    assert not path.exists()
    assert wait_for(lambda: gone(first["pid"]))
    assert all(wait_for(lambda p=z["pid"]: gone(p)) for z in first["zygotes"])
    assert not told(scratch)["alive"]


def test_without_one(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    code, ran = scratch.run("t.py", env={"QUIRE_NO_HOST": "1"})
    assert (code, ran["outcome"]) == (0, "ok")
    assert not told(scratch)["alive"]
    assert scratch.run("t.py", "--no-host")[0] == 0
    assert not told(scratch)["alive"]
    assert list((scratch.root / ".quire").glob("host*")) == []


def test_clients_that_come_at_the_same_time_share_one(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    for _ in range(5):
        clients = [scratch.start("run", "t.py", "--json") for _ in range(3)]
        answers = [client.communicate(timeout=60) for client in clients]
        assert [client.returncode for client in clients] == [0, 0, 0], answers
        for out, _ in answers:
            assert json.loads(out)["outcome"] == "ok"
        assert len(hosts_of(scratch)) == 1
        assert hosts_of(scratch) == [told(scratch)["pid"]]
        scratch.quire("host", "stop")
        assert wait_for(lambda: hosts_of(scratch) == [])


def hosts_of(scratch: Scratch) -> list[int]:
    """Live host processes of this workspace, by their arguments."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            argv = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"quire.cli.host_main" in argv and os.fsencode(scratch.root) in argv:
            found.append(int(name))
    return found


def test_a_very_deep_workspace(tmp_path: Path) -> None:
    root = tmp_path / ("d" * 60) / ("e" * 60)
    root.mkdir(parents=True)
    assert len(str(root)) > 107
    (root / "quire.toml").write_text("")
    scratch = Scratch(root)
    scratch.write("t.py", TASK)
    try:
        assert scratch.run("t.py")[0] == 0
        first = told(scratch)
        assert first["alive"]
        assert len(first["socket"]) < 107
        assert os.stat(os.path.dirname(first["socket"])).st_mode & 0o077 == 0
        assert scratch.run("t.py")[0] == 0
        assert told(scratch)["pid"] == first["pid"]
    finally:
        scratch.quire("host", "stop")


def test_a_socket_left_behind_by_a_killed_host(scratch: Scratch) -> None:
    scratch.write("t.py", TASK)
    assert scratch.run("t.py")[0] == 0
    before = told(scratch)
    os.kill(before["pid"], signal.SIGKILL)
    assert wait_for(lambda: gone(before["pid"]))
    assert Path(before["socket"]).exists()
    assert not told(scratch)["alive"]
    assert scratch.run("t.py")[0] == 0
    after = told(scratch)
    assert after["alive"]
    assert after["pid"] != before["pid"]


def test_a_removed_state_folder_is_no_trouble(scratch: Scratch) -> None:
    import shutil

    scratch.write("t.py", TASK)
    assert scratch.run("t.py")[0] == 0
    old = told(scratch)["pid"]
    shutil.rmtree(scratch.root / ".quire")
    assert scratch.run("t.py")[0] == 0
    assert told(scratch)["alive"]
    assert wait_for(lambda: gone(old))


def test_each_client_has_its_own_folder_and_environment(scratch: Scratch) -> None:
    (scratch.root / "sub").mkdir()
    scratch.write("t.py", "# %%\nimport os\nprint(os.getcwd(), os.environ.get('WHO'))\n")
    from scratch import stdout_of

    _, one = scratch.run("t.py", env={"WHO": "one"})
    _, two = scratch.run("t.py", "--cwd", "sub")
    assert stdout_of(scratch.notebook(one)) == f"{scratch.root} one\n"
    assert stdout_of(scratch.notebook(two)) == f"{scratch.root / 'sub'} None\n"


def test_it_goes_when_nobody_needs_it(scratch: Scratch) -> None:
    (scratch.root / "quire.toml").write_text("host_idle = 0.5\n")
    scratch.write("t.py", TASK)
    assert scratch.run("t.py")[0] == 0
    (pid,) = hosts_of(scratch)
    assert wait_for(lambda: gone(pid))


def test_stopping_it_cancels_what_it_runs(scratch: Scratch) -> None:
    scratch.write(
        "t.py",
        "# %%\nimport pathlib, time\npathlib.Path('on').write_text('x')\ntime.sleep(100)\n",
    )
    client = scratch.start("run", "t.py", "--json")
    assert wait_for((scratch.root / "on").exists)
    assert len(told(scratch)["running"]) == 1
    scratch.quire("host", "stop")
    out, _ = client.communicate(timeout=30)
    assert client.returncode == 130
    assert json.loads(out)["outcome"] == "cancelled"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[Request]]]:
    """A host in this process that notes what it is asked."""
    asked: list[Request] = []

    def serve(request: Request) -> int:
        asked.append(request)
        os.write(request.files[1], b"answered")
        if request.argv == ["wait"]:
            assert request.cancelled.wait(10)
            return 130
        return len(request.argv)

    # Signals are the main thread's; this one serves in another.
    monkeypatch.setattr("quire.host.host_server.signal.signal", lambda *_: None)
    made = Host(str(tmp_path / "h.sock"), serve, idle=60.0)
    assert made.listen()
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    yield made.path, asked
    made._stop()
    thread.join(10)
    os.close(made._lock_fd)


def ask(path: str, argv: list[str], out: int) -> socket.socket:
    sock = host_socket.connect(path)
    assert sock is not None
    request = host_socket.encode(argv, "/", {"A": "1"}, 80)
    host_socket.send(sock, request, (0, out, 2))
    return sock  # type: ignore[return-value]


def test_a_request_brings_its_own_files(host: tuple[str, list[Request]]) -> None:
    path, asked = host
    read, write = os.pipe()
    sock = ask(path, ["a", "b", "c" * 500_000], write)
    assert sock.recv(2) == bytes([0, 3])
    assert os.read(read, 100) == b"answered"
    assert (asked[0].cwd, asked[0].env, asked[0].columns) == ("/", {"A": "1"}, 80)
    for fd in (read, write):
        os.close(fd)


def test_a_client_that_leaves_takes_its_run_with_it(host: tuple[str, list[Request]]) -> None:
    path, asked = host
    null = os.open(os.devnull, os.O_WRONLY)
    sock = ask(path, ["wait"], null)
    assert wait_for(lambda: len(asked) == 1)
    assert not asked[0].cancelled.is_set()
    sock.close()
    assert asked[0].cancelled.wait(10)
    sock = ask(path, ["wait"], null)
    sock.send(b"c")
    assert sock.recv(2) == bytes([0, 130])
    os.close(null)


@pytest.mark.parametrize(
    "data", [b"", b"x", b"\x00\x00\x00\x05hello", b"\xff" * 64, b"statx"], ids=range(5)
)
def test_nonsense_does_it_no_harm(host: tuple[str, list[Request]], data: bytes) -> None:
    path, asked = host
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(path)
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == b""
    assert asked == []
    answer = status(path)
    assert answer is not None
    assert answer["pid"] == os.getpid()


def test_a_second_one_steps_back(host: tuple[str, list[Request]]) -> None:
    path, _ = host
    second = Host(path, lambda _: 0, idle=60.0)
    assert not second.listen()
    assert status(path) is not None


def test_a_stranger_who_answers_is_not_trusted(
    host: tuple[str, list[Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = host
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: 4_321)
        assert host_socket.connect(path) is None
    sock = host_socket.connect(path)
    assert sock is not None
    sock.close()
