"""What a cell can find out about whoever else its host works for, and what becomes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quire.host import host_socket
from quire.workspace import Engine, Workspace
from scratch import Scratch, stdout_of

SECRET = "s3cr3t-of-another-caller-7781"
FIRST = "# %%\nprint('first')\n"
# Its own block, and that of everything above it, as psutil would read them.
LOOK = """# %%
import os

def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])

pid = os.getpid()
while pid > 1:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read()
    ours = b"zygote.py" in words or b"quire.cli.host_main" in words
    if ours:
        with open(f"/proc/{pid}/environ", "rb") as file:
            block = file.read()
        print("block", len(block) > 0, len(block.strip(b"\\0")), b"of-another-caller" in block)
    pid = parent(pid)
"""


def test_no_block_of_a_host_its_fork_server_or_a_kernel_tells_of_a_caller(scratch: Scratch) -> None:
    """Also where the system does not keep the cell out of them: root may read them all."""
    scratch.write("first.py", FIRST)
    scratch.write("look.py", LOOK)
    assert scratch.run("first.py", env={"PAYROLL_TOKEN": SECRET, "PYTHON_TOKEN": SECRET})[0] == 0
    code, told = scratch.run("look.py")
    shown = stdout_of(scratch.notebook(told)).splitlines()
    if os.getuid() == 0:
        assert code == 0, told
        # The kernel is a fork of its server; the server and the host are above it.
        assert shown == ["block True 0 False"] * 3
    else:
        assert "PermissionError" in json.dumps(told["error"])  # the host's


def test_what_is_overwritten_is_still_there_for_libraries(scratch: Scratch) -> None:
    scratch.write(
        "get.py",
        "# %%\nimport ctypes\nget = ctypes.CDLL(None).getenv\nget.restype = ctypes.c_char_p\n"
        'print(get(b"HOME"), get(b"MINE"), open("/proc/self/environ", "rb").read().strip(b"\\0"))\n'
        "import subprocess\n"
        'print(subprocess.check_output(["sh", "-c", "echo $MINE"], text=True))\n',
    )
    code, told = scratch.run("get.py", env={"MINE": "yes", "HOME": "/tmp"})
    assert code == 0, told
    assert stdout_of(scratch.notebook(told)).split() == ["b'/tmp'", "b'yes'", "b''", "yes"]


def test_a_secret_of_another_caller_is_masked_wherever_it_turns_up(scratch: Scratch) -> None:
    scratch.write("first.py", FIRST)
    scratch.write("found.py", f"# %%\nprint('-'.join({SECRET.split('-')!r}))\n")
    assert scratch.run("first.py", env={"PAYROLL_TOKEN": SECRET})[0] == 0
    _, told = scratch.run("found.py")
    assert stdout_of(scratch.notebook(told)) == "[masked:PAYROLL_TOKEN]\n"


def test_a_session_that_was_there_first_hides_it_too(scratch: Scratch) -> None:
    scratch.write("first.py", FIRST)
    assert scratch.quire("session", "open", "first.py", "--name", "s").returncode == 0
    assert scratch.run("first.py", env={"PAYROLL_TOKEN": SECRET})[0] == 0
    code = f"print('-'.join({SECRET.split('-')!r}))"
    shown = scratch.quire("exec", "s", "--code", code)
    assert SECRET not in shown.stdout + shown.stderr
    assert "[masked:PAYROLL_TOKEN]" in shown.stdout


def test_what_only_the_file_env_of_a_run_says_is_hidden_in_others(scratch: Scratch) -> None:
    scratch.write("first.py", FIRST)
    scratch.write("found.py", f"# %%\nprint('-'.join({SECRET.split('-')!r}))\n")
    scratch.write(".env", f"PLAIN={SECRET}\n")
    assert scratch.run("first.py")[0] == 0
    (scratch.root / ".env").unlink()
    _, told = scratch.run("found.py")
    assert stdout_of(scratch.notebook(told)) == "[masked:PLAIN]\n"


def test_without_a_host_the_secrets_of_the_process_itself_are_hidden(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernels were given another environment, and can look up all the same."""
    from quire.engine.run import run

    monkeypatch.setenv("PAYROLL_TOKEN", SECRET)
    path = scratch.write("found.py", f"# %%\nprint('-'.join({SECRET.split('-')!r}))\n")
    engine = Engine()
    try:
        env = {name: value for name, value in os.environ.items() if name != "PAYROLL_TOKEN"}
        ws = Workspace(scratch.root, cwd=scratch.root, env=env, engine=engine)
        (cell,) = run(path, workspace=ws).cells
    finally:
        engine.close()
    assert [output["text"] for output in cell.outputs] == ["[masked:PAYROLL_TOKEN]\n"]


CLOSED = """
import os, sys, ctypes
from quire.kernel import processes as children
from quire.kernel.inside import start_environment as startenv
children.alone()
print(startenv.is_closed_to_others(), flush=True)
sys.stdin.readline()
"""


def test_who_holds_keys_is_closed_to_others() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CLOSED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "True\n"
        # Root may read it all the same; of everybody else the system makes strangers.
        assert os.stat(f"/proc/{process.pid}/environ").st_uid == 0
        if os.getuid() != 0:
            with pytest.raises(PermissionError):
                Path(f"/proc/{process.pid}/environ").read_bytes()
    finally:
        process.communicate("\n")


@pytest.mark.skipif(os.getuid() != 0, reason="anybody else cannot open the host's anyway")
def test_a_host_works_where_it_may_not_read_itself(scratch: Scratch) -> None:
    """Without the privileges of root: its own /proc is closed to whoever it does not start."""
    scratch.write("look.py", LOOK + "\n# %%\nprint('end')\n")
    drop = "import ctypes, os, sys\nlibc = ctypes.CDLL(None)\n"
    drop += "[libc.prctl(24, n, 0, 0, 0) for n in range(64)]\n"  # PR_CAPBSET_DROP
    drop += "os.execv(sys.executable, [sys.executable, '-m', 'quire', *sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-c", drop, "run", "look.py", "--json"],
        cwd=scratch.root,
        env=scratch.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    assert told["error"]["name"] == "PermissionError", told
    assert stdout_of(scratch.notebook(told)).splitlines() == ["block True 0 False"] * 2


def test_the_start_variables_tell_no_secret() -> None:
    env = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "PYTHONPATH": "/x",
        "XDG_CACHE_HOME": "/c",
        "PYTHON_API_TOKEN": "a",
        "LANGSMITH_API_KEY": "b",
        "HTTPS_PROXY": "http://me:pw@proxy:1",
        "HTTP_PROXY": "http://proxy:1",
        "DATABASE_URL": "postgres://u:p@h/d",
    }
    found = host_socket.start_variables(env)
    assert set(found) == {"PATH", "LC_ALL", "PYTHONPATH", "XDG_CACHE_HOME", "HTTP_PROXY"}


def test_the_host_is_started_with_these_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []

    def spawn(path: str, argv: list[str], env: dict[str, str], **_: object) -> int:
        seen.append(dict(env))
        os.write(int(argv[-1]), b"1")
        return 0

    monkeypatch.setattr(os, "posix_spawn", spawn)
    monkeypatch.setenv("PAYROLL_TOKEN", SECRET)
    assert host_socket.start(str(tmp_path))
    assert seen == [host_socket.start_variables(os.environ)]


def test_overwriting_twice_does_no_harm() -> None:
    code = (
        "import os; from quire.kernel.inside import start_environment as startenv; "
        "startenv.overwrite(); "
        "startenv.overwrite(); print(os.environ['MINE'], len(os.environ) > 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MINE": "yes"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "yes True\n"
