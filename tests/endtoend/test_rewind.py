"""A rewind is right, or refused with its reason. It never hangs and never corrupts a file."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from live import Live, shown, statuses

from quire.errors import UsageError
from scratch import Scratch

NO_CHILDREN = """
import os
for wait in (
    os.wait,
    lambda: os.waitpid(-1, 0),
    lambda: os.waitpid(-1, os.WNOHANG),
    lambda: os.wait3(0),
    lambda: os.wait4(-1, 0),
    lambda: os.waitid(os.P_ALL, 0, os.WEXITED),
):
    try:
        print(wait())
    except ChildProcessError:
        print('none')
"""


def gone(pid: int, timeout: float = 5.0) -> bool:
    """Whether the process ends within that time, or has been waited for already."""
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


def snapshot_pids(live: Live, name: str) -> dict[int, int]:
    marks = live.inner(name).marks
    return {mark.order: mark.snapshot.pid for mark in marks if mark.snapshot is not None}


# What comes back


def test_variables_modules_folder_environment_and_randomness_come_back(live: Live) -> None:
    name = live.open(
        "import os, random, sys\nimport numpy as np\nxs = [1]\nrandom.seed(1)\nnp.random.seed(2)",
        "xs.append(2)\ndel random\nimport wave\nos.chdir('..')\nos.environ['COLOUR'] = 'red'\n"
        "sys.path.insert(0, 'x'); np.random.random()\nimport random; random.random()",
        f"here = os.path.samefile('.', {str(live.root)!r})\n"
        "print(xs, 'wave' in sys.modules, here, os.environ.get('COLOUR'),"
        " sys.path[0] == 'x', random.random(), np.random.random())",
    )
    live.ran(name, "0")
    before = shown(live.exec(name, "2"))
    assert before.startswith("[1] False True None False ")
    live.rewind(name, "2")
    live.ran(name, "1")
    assert shown(live.exec(name, "2")).startswith("[1, 2] True False red True ")
    live.rewind(name, "1")
    assert shown(live.exec(name, "2")) == before


def test_the_same_state_can_be_returned_to_again_and_again(live: Live) -> None:
    name = live.open("n = 0", "n += 1\nprint(n)")
    live.ran(name, "0")
    for _ in range(5):
        assert shown(live.exec(name, "1")) == "1\n"
        assert live.rewind(name, "1") == 2
    assert live.variables(name) == {"n": "0"}


def test_one_can_rewind_from_a_rewound_state(live: Live) -> None:
    name = live.open(*(f"n = {i}" for i in range(6)))
    live.ran(name, "0-")
    for order in (5, 4, 2):
        assert live.rewind(name, f"#{order}") == order
        assert live.variables(name) == {"n": str(order - 2)}
    live.ran(name, "5")
    assert live.variables(name) == {"n": "5"}
    assert [e.order for e in live.inner(name).executions] == [1, 2]


def test_cells_are_counted_as_they_were(live: Live) -> None:
    name = live.open("1", "2", "3")
    live.ran(name, "0-2")
    live.rewind(name, "1")
    events = live.exec(name, "2")
    assert [e.execution_count for e in events if hasattr(e, "execution_count")] == [2]
    assert live.said(name, "print(Out, _)") == "{1: 1, 2: 3} 3"


def test_pandas_and_matplotlib(live: Live) -> None:
    name = live.open(
        "import pandas as pd\nimport matplotlib.pyplot as plt\n"
        "df = pd.DataFrame({'a': range(1000)})\nfig, ax = plt.subplots()\nplt.close(fig)",
        "df['b'] = df.a * 2\ndf.drop(index=df.index[10:], inplace=True)\n"
        "ax.plot(df.a)\nplt.figure()",
        "print(df.shape, len(ax.lines), plt.get_fignums())",
        "fig",
    )
    live.ran(name, "0", "1")
    live.rewind(name, "1")
    assert shown(live.exec(name, "2")) == "(1000, 1) 0 []\n"
    live.ran(name, "1")
    assert shown(live.exec(name, "2")).startswith("(10, 2) 1 ")
    live.rewind(name, "1")
    events = live.exec(name, "3")
    pictures = [e.output["data"] for e in events if "data" in getattr(e, "output", {})]
    assert ["image/png" in data for data in pictures] == [True]


def test_a_file_that_is_being_read_goes_on_where_it_was(live: Live) -> None:
    (live.root / "lines.txt").write_text("".join(f"{n}\n" for n in range(20_000)))
    name = live.open(
        "file = open('lines.txt')\nraw = open('lines.txt', 'rb', buffering=0)\nraw.read(2)",
        "print([file.readline().strip() for _ in range(5000)][-1], raw.read(4))",
    )
    live.ran(name, "0")
    first = shown(live.exec(name, "1"))
    assert first == "4999 b'1\\n2\\n'\n"
    second = shown(live.exec(name, "1"))
    assert second.startswith("9999 ")
    live.rewind(name, "#3")
    assert shown(live.exec(name, "1")) == second
    live.rewind(name, "#2")
    # The state that was set aside has its own place in the file, whatever the live one read.
    assert shown(live.exec(name, "1")) == first
    assert shown(live.exec(name, "1")) == second


def test_a_waiting_task_goes_on_from_where_it_was(live: Live) -> None:
    name = live.open(
        "import asyncio\nseen = []\nasync def count():\n    for n in range(1000):\n"
        "        seen.append(n)\n        await gate.wait(); gate.clear()\n"
        "gate = asyncio.Event()\ntask = asyncio.create_task(count())\nawait asyncio.sleep(0)",
        "gate.set()\nawait asyncio.sleep(0.01)\nprint(seen)",
    )
    live.ran(name, "0")
    assert shown(live.exec(name, "1")) == "[0, 1]\n"
    assert shown(live.exec(name, "1")) == "[0, 1, 2]\n"
    live.rewind(name, "#3")
    assert shown(live.exec(name, "1")) == "[0, 1, 2]\n"
    live.rewind(name, "#2")
    assert shown(live.exec(name, "1")) == "[0, 1]\n"


def test_a_progress_bar_leaves_no_thread_that_matters(live: Live) -> None:
    name = live.open(
        "from tqdm import tqdm\nimport threading\nbar = iter(tqdm(range(100)))\nnext(bar)",
        "print(next(bar), [t.name for t in threading.enumerate()])",
        "print(sum(tqdm(range(10), desc='new')))",
    )
    live.ran(name, "0", "1")
    live.rewind(name, "1")
    assert "1 ['MainThread']\n" in shown(live.exec(name, "1"))
    assert "45\n" in shown(live.exec(name, "2"))
    live.rewind(name, "2")
    live.ran(name, "2")


def test_what_the_cell_left_on_disk_stays(live: Live) -> None:
    """Also what would be tidied up when a process ends: another branch may need it."""
    name = live.open(
        "import tempfile, os\nfolder = tempfile.TemporaryDirectory()",
        "open('log.txt', 'a').write('x')\nopen(os.path.join(folder.name, 'f'), 'w').close()",
    )
    live.ran(name, "0", "1")
    live.rewind(name, "1")
    assert live.said(name, "print(os.listdir(folder.name))") == "['f']"
    live.ran(name, "1")
    assert (live.root / "log.txt").read_text() == "xx"


def test_after_an_error_an_interrupt_and_a_death(live: Live) -> None:
    name = live.open(
        "n = 1", "n = 2\n1 / 0", "n = 3\nraise KeyboardInterrupt", "import os\nos._exit(7)"
    )
    live.ran(name, "0")
    for index, status in ((1, "failed"), (2, "failed"), (3, "died")):
        assert statuses(live.exec(name, str(index))) == [status]
        live.rewind(name, str(index))
        assert live.variables(name) == {"n": "1"}
        assert live.inner(name).alive
    assert live.inner(name).epoch == 2
    live.ran(name, "0")


def test_back_after_a_death_right_after_a_rewind(live: Live) -> None:
    """What the dead kernel had set aside belongs to the one it replaced, which is then ended."""
    name = live.open("n = 1", "import os\nos._exit(3)")
    live.ran(name, "0", "0")
    session = live.inner(name)
    server = session.kernel.zygote.process.pid
    os.kill(server, signal.SIGSTOP)  # it is busy: it hears of all this only at the end
    try:
        live.rewind(name, "#2")
        pid = session.kernel.pid

        def go_on() -> None:
            gone(pid, 60)
            os.kill(server, signal.SIGCONT)

        waiter = threading.Thread(target=go_on)
        waiter.start()
        assert statuses(live.exec(name, "1")) == ["died"]
        waiter.join()
    finally:
        os.kill(server, signal.SIGCONT)
    assert session.lost.startswith("the kernel exited with status 3")
    assert live.rewind(name, "#2") == 2
    assert live.variables(name) == {"n": "1"}


def test_a_state_that_was_ended_from_outside(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nn = 1\n# %%\nn = 2\n# %%\nprint(n)\n")
    scratch.quire("session", "open", "t.py")
    scratch.quire("exec", "t", "0-1")
    (listed,) = json.loads(scratch.quire("session", "list", "--json").stdout)
    pid = listed["kernel"]["pid"]
    copies = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for copy in map(int, copies):
        os.kill(copy, signal.SIGKILL)
        assert gone(copy)
    why = "the copy that was set aside was ended from outside"
    for _ in range(2):
        refused = scratch.quire("rewind", "t", "1")
        assert refused.returncode == 2
        assert f"no way back to before execution 2: {why}" in refused.stderr
        assert "restart the session" in refused.stderr
        states = json.loads(scratch.quire("session", "tree", "t", "--json").stdout)["states"]
        assert [(s["rewindable"], s["reason"], s["memory"]) for s in states] == [
            (False, why, 0)
        ] * 2
    # The session goes on, and is set aside again.
    assert scratch.quire("exec", "t", "2").stdout.endswith("2\n")
    states = json.loads(scratch.quire("session", "tree", "t", "--json").stdout)["states"]
    assert [s["order"] for s in states] == [1, 2, 3]
    scratch.quire("exec", "t", "1")
    assert scratch.quire("rewind", "t", "1").returncode == 0


# How one says where to


def test_by_index_id_title_and_order(live: Live) -> None:
    path = live.root / "t.py"
    path.write_text("# %% first\nn = 0\n# %% second\nn = 1\n# %% third\nn = 2\n")
    name = live.open()
    for target in ("1", "second", live.inner(name) and "#2", "id"):
        live.ran(name, "all")
        chosen = live.inner(name).executions[1].cell.id if target == "id" else target
        assert live.rewind(name, chosen) == 2
        assert live.variables(name) == {"n": "0"}
        live.rewind(name, "0")


def test_an_edited_cell_is_still_the_cell_at_its_place(live: Live) -> None:
    name = live.open("n = 0", "n = 1", "n = 2")
    live.ran(name, "all")
    live.write("n = 0", "n = 10", "n = 2")
    assert live.rewind(name, "1") == 2
    live.ran(name, "1-")
    assert live.variables(name) == {"n": "2"}


def test_a_cell_that_ran_twice_means_the_last_time(live: Live) -> None:
    name = live.open("n = 0", "n += 1")
    live.ran(name, "0", "1", "1", "1")
    assert live.rewind(name, "1") == 4
    assert live.variables(name) == {"n": "2"}


def test_a_cell_that_has_not_run(live: Live) -> None:
    name = live.open("n = 0", "n = 1")
    live.ran(name, "0")
    with pytest.raises(UsageError, match="has not run in this session"):
        live.rewind(name, "1")
    with pytest.raises(UsageError, match="there is no execution #9") as refused:
        live.rewind(name, "#9")
    assert refused.value.hint.startswith("the last that stand: #1 (")


def test_the_answer_says_what_is_not_undone(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nn = 1\n# %%\nopen('f', 'w').close()\n")
    scratch.quire("session", "open", "t.py")
    assert scratch.quire("exec", "t", "all").returncode == 0
    told = json.loads(scratch.quire("rewind", "t", "1", "--json").stdout)
    assert told["note"] == "What was done outside the kernel (files, network) is not undone."
    assert (told["session"], told["epoch"], told["order"], told["ran"]) == ("t", 1, 2, 1)
    assert (scratch.root / "f").exists()
    done = scratch.quire("rewind", "t", "0")
    assert "not undone" in done.stdout
    assert "as it was before #1; 0 ran" in done.stdout


# What is set aside, and for how long


def test_states_of_an_abandoned_branch_are_dropped(live: Live) -> None:
    name = live.open(*(f"n = {i}" for i in range(6)))
    live.ran(name, "all")
    before = snapshot_pids(live, name)
    kernel = live.inner(name).kernel.pid
    assert sorted(before) == [1, 2, 3, 4, 5, 6]
    live.rewind(name, "2")
    assert sorted(snapshot_pids(live, name)) == [1, 2]
    assert all(gone(before[order]) for order in (3, 4, 5, 6))
    assert gone(kernel)
    assert not any(gone(before[order], 0.05) for order in (1, 2))
    live.ran(name, "2-")
    assert sorted(snapshot_pids(live, name)) == [1, 2, 3, 4, 5, 6]
    after = [*snapshot_pids(live, name).values(), live.inner(name).kernel.pid]
    live.close()
    assert all(gone(pid) for pid in after)


def test_only_the_newest_states_are_kept(live: Live) -> None:
    (live.root / "quire.toml").write_text("snapshots = 3\n")
    name = live.open(*(f"n = {i}" for i in range(6)))
    live.ran(name, *map(str, range(6)))
    assert sorted(snapshot_pids(live, name)) == [4, 5, 6]
    with pytest.raises(UsageError, match="only the newest 3 states are kept"):
        live.rewind(name, "0")
    assert live.variables(name) == {"n": "5"}
    live.rewind(name, "3")
    assert live.variables(name) == {"n": "2"}


def test_states_may_take_only_so_much_memory(live: Live) -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    (live.root / "quire.toml").write_text(f"snapshot_memory = {150e6 / total}\n")
    name = live.open("import os\nheap = []", "heap = [os.urandom(1 << 20) for _ in range(50)]")
    live.ran(name, "0", *["1"] * 6)
    held = snapshot_pids(live, name)
    assert 1 <= len(held) < 7
    assert max(held) == 7
    with pytest.raises(UsageError, match="the states together took too much memory"):
        live.rewind(name, "0")
    live.rewind(name, "#7")
    assert live.said(name, "print(len(heap))") == "50"


def test_the_tree_shows_the_states(scratch: Scratch) -> None:
    scratch.write("quire.toml", "snapshots = 1\n")
    scratch.write("t.py", "# %% a\nn = 1\n# %% b\nn = 2\n")
    scratch.quire("session", "open", "t.py")
    scratch.quire("exec", "t", "all")
    told = json.loads(scratch.quire("session", "tree", "t", "--json").stdout)
    assert (told["session"], told["epoch"], told["lost"]) == ("t", 1, "")
    first, second = told["states"]
    assert (first["rewindable"], first["memory"]) == (False, 0)
    assert first["reason"] == "only the newest 1 states are kept"
    assert (second["rewindable"], second["reason"], second["title"]) == (True, "", "b")
    assert 100_000 < second["memory"] < 50_000_000
    lines = scratch.quire("session", "tree", "t").stdout.splitlines()
    assert "no: only the newest 1 states are kept" in lines[0]
    assert " MB" in lines[1]


# What cannot be set aside

OBSTACLES = {
    "a thread pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(2)\npool.submit(int).result()",
        "threads are still running (ThreadPoolExecutor-0_0",
        "pool.shutdown()",
    ),
    "a thread": (
        "import threading\nstop = threading.Event()\n"
        "thread = threading.Thread(target=stop.wait, name='worker')\nthread.start()",
        "threads are still running (worker)",
        "stop.set(); thread.join()",
    ),
    "a file being appended to": (
        "file = open('log.txt', 'a')\nfile.write('one\\n');",
        "log.txt is open for writing",
        "file.close()",
    ),
    "a database": (
        "import sqlite3\ndb = sqlite3.connect('data.db')\n"
        "db.execute('create table t (n)')\ndb.execute('insert into t values (1)');",
        "data.db is open for writing",
        "db.commit(); db.close()",
    ),
    "a child process": (
        "import subprocess\nchild = subprocess.Popen(['sleep', '100'])",
        "a child process is still there",
        "child.kill(); child.wait()",
    ),
    "a child in a session of its own": (
        "import subprocess\nchild = subprocess.Popen(['sleep', '100'], start_new_session=True)",
        "a child process is still there",
        "child.kill(); child.wait()",
    ),
    "a child that was orphaned": (
        "import os, subprocess\npid = int(subprocess.run(\n"
        "    'setsid sleep 100 > /dev/null 2>&1 & echo $!', shell=True, stdout=subprocess.PIPE"
        ").stdout)",
        "a child process is still there",
        "os.kill(pid, 9); os.waitpid(pid, 0)",
    ),
    "a child nobody waited for": (
        "import os\npid = os.fork()\nif pid == 0: os._exit(0)\n"
        "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT);",
        "its end was not waited for",
        "os.waitpid(pid, 0)",
    ),
    "a pool of processes": (
        "import multiprocessing\npool = multiprocessing.get_context('fork').Pool(2)\n"
        "print(pool.map(abs, [-1]))",
        "threads are still running",
        "pool.close(); pool.join(); del pool; import gc; gc.collect();",
    ),
    "a socket": (
        "import socket\nsock = socket.socket()",
        "a network connection or socket is open",
        "sock.close()",
    ),
    "a pipe": ("import os\nr, w = os.pipe()", "a pipe is open", "os.close(r); os.close(w)"),
    "an epoll": (
        "import select\npoll = select.epoll()",
        "a descriptor is open that copies would share ([eventpoll])",
        "poll.close()",
    ),
    "shared memory": (
        "import mmap\nshared = mmap.mmap(-1, 4096)",
        "memory is shared with other processes",
        "shared.close()",
    ),
    "an array on disk": (
        "import numpy as np\narray = np.memmap('array.bin', mode='w+', shape=1000)",
        "array.bin is open for writing",
        "del array",
    ),
    "a subprocess of asyncio": (
        "import asyncio\nchild = await asyncio.create_subprocess_exec('sleep', '100')",
        "threads are still running",
        "child.kill()\nawait child.wait();",
    ),
}


@pytest.mark.parametrize(("code", "reason", "mend"), OBSTACLES.values(), ids=OBSTACLES.keys())
def test_refused_with_its_reason_and_the_session_goes_on(
    live: Live, code: str, reason: str, mend: str
) -> None:
    name = live.open("n = 1", code, "n = 2", mend, "n = 4")
    live.ran(name, "0", "1")
    began = time.monotonic()
    live.ran(name, "2")
    with pytest.raises(UsageError) as refused:
        live.rewind(name, "2")
    assert "there is no way back to before execution 3" in refused.value.message
    assert reason in refused.value.message
    assert refused.value.hint
    assert live.said(name, "print(n)") == "2"
    live.ran(name, "3", "4")
    assert live.rewind(name, "4") == 6
    assert live.variables(name)["n"] == "2"
    # From before it all, too: what was started since is ended.
    assert live.rewind(name, "1") == 2
    assert live.variables(name) == {"n": "1"}
    assert time.monotonic() - began < 10


def test_an_append_file_is_never_written_twice(live: Live) -> None:
    name = live.open(
        "log = open('log.txt', 'a')", "log.write('one\\n');", "log.write('two\\n');", "log.flush()"
    )
    live.ran(name, "0", "1")
    with pytest.raises(UsageError, match="open for writing"):
        live.rewind(name, "1")
    live.ran(name, "2", "3")
    assert (live.root / "log.txt").read_text() == "one\ntwo\n"
    live.rewind(name, "0")
    live.ran(name, "0", "1")
    live.close()
    # The kernel that was closed wrote its own; the one that was left behind added nothing.
    assert (live.root / "log.txt").read_text() == "one\ntwo\none\n"


def test_a_database_is_whole_after_a_rewind(live: Live) -> None:
    name = live.open(
        "import sqlite3\ndef put(n):\n    with sqlite3.connect('d.db') as db:\n"
        "        db.execute('create table if not exists t (n)')\n"
        "        db.execute('insert into t values (?)', (n,))\n    db.close()",
        "put(1)",
        "db = sqlite3.connect('d.db')\ndb.execute('insert into t values (2)');",
        "print(db.execute('select n from t').fetchall())",
    )
    live.ran(name, "0", "1", "2")
    assert shown(live.exec(name, "3")) == "[(1,), (2,)]\n"
    # Back to before the connection: its transaction goes with the process that held it.
    live.rewind(name, "2")
    live.ran(name, "1", "2")
    assert shown(live.exec(name, "3")) == "[(1,), (1,), (2,)]\n"
    assert live.said(name, "print(db.execute('pragma integrity_check').fetchall())") == "[('ok',)]"


# Nobody notices


def test_no_wait_meets_a_state_that_was_set_aside(live: Live) -> None:
    name = live.open("n = 1", NO_CHILDREN, "n = 3")
    live.ran(name, "0")
    assert shown(live.exec(name, "1")) == "none\n" * 6
    live.ran(name, "2")
    live.rewind(name, "2")
    assert shown(live.exec(name, "1")) == "none\n" * 6
    assert len(snapshot_pids(live, name)) == 3


def test_waiting_finds_ones_own_children(live: Live) -> None:
    name = live.open(
        "import os, subprocess\ndef child(code):\n    pid = os.fork()\n    if pid == 0:\n"
        "        os._exit(code)\n    return pid",
        "first, second = child(3), child(4)\n"
        "found = {os.wait(), os.waitpid(-1, 0)}\n"
        "print(found == {(first, 3 << 8), (second, 4 << 8)})\n"
        "third, fourth = child(5), child(6)\n"
        "found = {os.wait3(0)[:2], os.wait4(-1, 0)[:2]}\n"
        "print(found == {(third, 5 << 8), (fourth, 6 << 8)})\n"
        "print(os.waitid(os.P_PID, child(7), os.WEXITED).si_status)\n"
        "print(os.waitid(os.P_ALL, 0, os.WEXITED) if child(8) < 0 else os.wait()[1] >> 8)",
        "slow = subprocess.Popen(['sleep', '0.2'])\n"
        "print(os.waitpid(-1, os.WNOHANG), os.wait()[0] == slow.pid)",
    )
    live.ran(name, "0", "0")
    assert shown(live.exec(name, "1")) == "True\nTrue\n7\n8\n"
    assert shown(live.exec(name, "2")) == "(0, 0) True\n"
    assert len(snapshot_pids(live, name)) == 4


@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "lambda *_: seen.append(os.waitpid(-1, 1))"])
def test_a_cells_own_way_with_ended_children(live: Live, handler: str) -> None:
    name = live.open(
        f"import os, signal\nseen = []\nbefore = signal.signal(signal.SIGCHLD, {handler})",
        "n = 1",
        "n = 2",
        "print(n, signal.getsignal(signal.SIGCHLD) is not signal.SIG_DFL)",
    )
    live.ran(name, "0", "1", "2")
    live.rewind(name, "2")
    assert shown(live.exec(name, "3")) == "1 True\n"
    live.rewind(name, "1")
    live.ran(name, "2")
    live.rewind(name, "2")
    assert "n" not in live.variables(name)


def test_a_child_of_a_cell_is_ended_with_its_branch(live: Live) -> None:
    name = live.open(
        "n = 1",
        "import subprocess\nchild = subprocess.Popen(['setsid', 'sleep', '300'])\nprint(child.pid)",
    )
    live.ran(name, "0")
    pid = int(shown(live.exec(name, "1")))
    live.rewind(name, "1")
    assert gone(pid)


def test_output_of_children_stays_with_the_branch(live: Live) -> None:
    name = live.open("n = 1", "!echo hello", "import os\nos.system('echo again');")
    live.ran(name, "0")
    for _ in range(3):
        assert shown(live.exec(name, "1")).strip() == "hello"
        assert shown(live.exec(name, "2")).strip() == "again"
        live.rewind(name, "1")
