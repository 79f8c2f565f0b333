"""Many sessions at once, and a host that is killed under them."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from live import Live, shown, statuses
from processes import marked, wait_until_none

from quire.sessions import session
from quire.workspace import Engine
from scratch import Scratch

MANY = 20
MOST = 15 << 20  # bytes of an idle session beside the fork server, as proportional set size


def answer(scratch: Scratch, *args: str, **options: Any) -> Any:
    return json.loads(scratch.quire(*args, "--json", **options).stdout)


def printed(gave: Any) -> str:
    return "".join(out.get("text", "") for cell in gave["cells"] for out in cell["outputs"])


# The host is killed

BUSY = """# %%
state = ['{name}']
# %%
import os, pathlib, subprocess, time
state.append(2)
subprocess.Popen(['setsid', 'sleep', '300'])
if os.fork() == 0:
    os.setsid()
    time.sleep(300)
pathlib.Path('{name}.running').touch()
time.sleep(300)
"""


def test_a_host_is_killed_while_three_sessions_work(scratch: Scratch) -> None:
    mark = uuid.uuid4().hex
    env = {"QUIRE_TEST_MARK": mark}
    names = ["one", "two", "three"]
    for name in names:
        scratch.write(f"{name}.py", BUSY.format(name=name))
        assert scratch.quire("session", "open", f"{name}.py", env=env).returncode == 0
        assert scratch.quire("exec", name, "0", env=env).returncode == 0
        code = f"state.append('code of {name}')"
        assert scratch.quire("exec", name, "--code", code, env=env).returncode == 0
    clients = [scratch.start("exec", name, "1", env=env) for name in names]
    deadline = time.monotonic() + 20
    while not all((scratch.root / f"{name}.running").exists() for name in names):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    # Host, fork server, and for each session: client, kernel, snapshots, the cell's children.
    assert len(marked(mark, scratch.root)) >= 2 + 3 * (1 + 1 + 3 + 2)
    host = answer(scratch, "host", "status")["pid"]
    os.kill(host, signal.SIGKILL)
    began = time.monotonic()
    for client in clients:
        _, err = client.communicate(timeout=5)
        assert client.returncode != 0
        assert "the host" in err
        assert "Traceback" not in err
    assert wait_until_none(mark, 5.0 - (time.monotonic() - began), scratch.root) == []
    _says_that_the_state_is_gone(scratch, names)


def _says_that_the_state_is_gone(scratch: Scratch, names: list[str]) -> None:
    gone = "the host that held its kernel ended"
    listed = answer(scratch, "session", "list")
    assert {(one["session"], one["state"], one["lost"]) for one in listed} == {
        (name, "gone", gone) for name in names
    }
    # Whatever comes next says so first, with a higher epoch.
    done = scratch.quire("exec", "one", "--code", "print('after')")
    assert done.stderr.splitlines()[0] == f"the kernel's state is gone: {gone} (epoch 2)"
    assert done.stdout == "after\n"
    gave = answer(scratch, "exec", "two.py", "--code", "print('state' in globals())")
    assert gave["replaced"] == {"epoch": 2, "reason": gone}
    assert (gave["epoch"], printed(gave)) == (2, "False\n")
    done = scratch.quire("rewind", "three", "0")
    assert done.returncode == 2
    assert f"the kernel's state is gone: {gone} (epoch 2)" in done.stderr
    assert "quire session restore three" in done.stderr
    first, *_ = scratch.quire("session", "vars", "three").stdout.splitlines()
    assert first == f"the kernel's state is gone: {gone} (epoch 2)"


def test_restore_brings_back_what_a_killed_host_had(scratch: Scratch) -> None:
    mark = uuid.uuid4().hex
    env = {"QUIRE_TEST_MARK": mark}
    scratch.write("t.py", BUSY.format(name="t"))
    scratch.quire("session", "open", "t.py", env=env)
    scratch.quire("exec", "t", "0", env=env)
    scratch.quire("exec", "t", "--code", "state.append('loose')", env=env)
    for epoch in (3, 5):
        client = scratch.start("exec", "t", "1", env=env)
        while not (scratch.root / "t.running").exists():
            time.sleep(0.02)
        (scratch.root / "t.running").unlink()
        os.kill(answer(scratch, "host", "status")["pid"], signal.SIGKILL)
        client.communicate(timeout=10)
        assert wait_until_none(mark, root=scratch.root) == []
        # The cell that was cut short is not run again; what it had done is not there.
        gave = answer(scratch, "session", "restore", "t", env=env)
        assert gave["replaced"]["reason"] == "the host that held its kernel ended"
        assert [(c["index"], c["status"]) for c in gave["cells"]] == [(0, "ok"), (None, "ok")]
        assert gave["epoch"] == epoch
        gave = answer(scratch, "exec", "t", "--code", "print(state)", env=env)
        assert (printed(gave), gave["replaced"]) == ("['t', 'loose']\n", None)
        answer(scratch, "rewind", "t", "#3", env=env)
    scratch.quire("host", "stop")
    assert wait_until_none(mark, root=scratch.root) == []


def test_a_lost_session_is_revived_once(live: Live) -> None:
    """Two calls at the same time after a host was lost: one kernel, not two."""
    name = live.open("n = 1")
    live.ran(name, "0")
    lost = live.engine.sessions.pop(name)
    lost.session.close()
    lost.journal.close()
    before = live.engine.kernels.native.status()[0]["kernels"]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: session.find(live.workspace, name), range(6)))
    assert len({id(one) for one in found}) == 1
    assert found[0].session.epoch == 2
    # Its kernel, and the one that is kept ready for whoever comes next.
    assert live.engine.kernels.native.status()[0]["kernels"] <= before + 2


def test_a_stopped_host_leaves_nothing_and_loses_nothing(scratch: Scratch) -> None:
    mark = uuid.uuid4().hex
    env = {"QUIRE_TEST_MARK": mark}
    scratch.write("t.py", "# %%\nn = 1\n# %%\nn = 2\n")
    scratch.quire("session", "open", "t.py", env=env)
    scratch.quire("exec", "t", "all", env=env)
    assert scratch.quire("host", "stop").returncode == 0
    assert wait_until_none(mark, root=scratch.root) == []
    gave = answer(scratch, "session", "restore", "t", env=env)
    assert [cell["status"] for cell in gave["cells"]] == ["ok", "ok"]
    assert scratch.quire("session", "close", "t", env=env).returncode == 0
    assert not list((scratch.root / ".quire" / "sessions").iterdir())


# Many at once


@pytest.fixture(scope="module")
def alone() -> Iterator[Engine]:
    """An engine that nobody else uses: its processes are those of the test."""
    engine = Engine(outlives=True)
    yield engine
    engine.close()


@pytest.fixture
def crowd(tmp_path: Path, alone: Engine, kernel_env: dict[str, str]) -> Iterator[Live]:
    (tmp_path / "quire.toml").write_text("")
    live = Live(tmp_path, kernel_env, alone)
    yield live
    live.close()


def test_twenty_sessions_do_not_hear_each_other(crowd: Live) -> None:
    crowd.write(
        "import os, random\nseen = []",
        "seen.append(me)\nos.environ['ME'] = str(me)\nos.chdir(me_folder)\nrandom.seed(me)",
        "print(me, seen, os.environ['ME'], os.getcwd() == me_folder, random.random())",
    )
    names = [crowd.open(name=f"s{n}") for n in range(MANY)]
    barrier = threading.Barrier(MANY, timeout=60)

    def work(n: int) -> list[str]:
        name, folder = names[n], crowd.root / f"folder{n}"
        folder.mkdir()
        barrier.wait()
        crowd.ran(name, "0")
        crowd.exec(name, code=f"me, me_folder = {n}, {str(folder)!r}")
        out = []
        for _ in range(3):
            crowd.ran(name, "1")
            out.append(shown(crowd.exec(name, "2")))
            crowd.rewind(name, "1")
        return out

    with ThreadPoolExecutor(MANY) as pool:
        said = list(pool.map(work, range(MANY)))
    for n, lines in enumerate(said):
        assert len(set(lines)) == 1
        assert re.fullmatch(rf"{n} \[{n}\] {n} True 0\.\d+\n", lines[0])
    assert len({lines[0].split()[-1] for lines in said}) == MANY
    assert {crowd.inner(name).epoch for name in names} == {1}


def pss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def test_memory_of_an_idle_session(crowd: Live, record_property: Any) -> None:
    """Every process of a session counts: the kernel, and what it has set aside."""
    names = [crowd.open("n = 1\nprint(n)", name=f"m{n}") for n in range(MANY)]
    for name in names:
        crowd.ran(name, "0")
    (server,) = crowd.engine.kernels.native.status()
    taken = []
    for name in names:
        inner = crowd.inner(name)
        pids = {inner.kernel.pid, *(m.snapshot.pid for m in inner.marks if m.snapshot)}
        pids |= set(_children(inner.kernel.pid))  # also what is set aside for the next cell
        assert len(pids) == 3
        taken.append(sum(map(pss, pids)))
    average = sum(taken) / MANY
    record_property("pss_of_an_idle_session", average)
    print(f"idle session: {average / 2**20:.1f} MB, largest {max(taken) / 2**20:.1f} MB")
    print(f"fork server: {pss(server['pid']) / 2**20:.1f} MB")
    assert max(taken) <= MOST


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_sessions_that_die_do_not_disturb_the_others(crowd: Live) -> None:
    names = [crowd.open("n = 1", "import os\nos._exit(1)", name=f"d{n}") for n in range(6)]
    for name in names:
        crowd.ran(name, "0")
    with ThreadPoolExecutor(6) as pool:
        ends = list(pool.map(lambda n: statuses(crowd.exec(names[n], str(n % 2))), range(6)))
    assert ends == [["ok"], ["died"]] * 3
    for n, name in enumerate(names):
        if n % 2:
            crowd.rewind(name, "1")
        assert crowd.variables(name) == {"n": "1"}
