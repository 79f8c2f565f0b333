"""The Jupyter kernel beyond the contract: other languages, missing kernels, no orphans."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quire.errors import KernelError, KernelNotFound
from quire.kernel.jupyter import PREPARE_IPYKERNEL, JupyterKernel
from quire.kernel.kernelspecs import find, installed
from quire.kernel.protocol import KernelSpec
from quire.record.events import CellFinished, OutputAdded

SOURCE = Path(__file__).parent.parent.parent / "src"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment of its own, in which kernels written by a test are installed."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "JUPYTER_PATH": str(tmp_path / "jupyter"),
    }


def install(world: dict[str, str], name: str, argv: list[str], **more: Any) -> None:
    folder = Path(world["JUPYTER_PATH"]) / "kernels" / name
    folder.mkdir(parents=True)
    description = {"argv": argv, "display_name": name.title(), "language": name, **more}
    (folder / "kernel.json").write_text(json.dumps(description))


@pytest.fixture
def bash(env: dict[str, str], tmp_path: Path) -> Iterator[JupyterKernel]:
    argv = [sys.executable, "-m", "bash_kernel", "-f", "{connection_file}"]
    install(env, "bash", argv, env={"PS1": "$", "GREETING": "hi from ${HOME}"})
    with JupyterKernel.start(KernelSpec(tmp_path, env, name="bash")) as kernel:
        yield kernel


def play(kernel: JupyterKernel, code: str) -> tuple[str, CellFinished]:
    events = [e for e in kernel.execute(code, "c") if e is not None]
    end = events[-1]
    assert isinstance(end, CellFinished)
    texts = [e.output.get("text", "") for e in events if isinstance(e, OutputAdded)]
    return "".join(texts), end


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(file: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists():
        assert time.monotonic() < deadline, f"{file.name} never came"
        time.sleep(0.005)


def test_bash_keeps_state_between_cells(bash: JupyterKernel, tmp_path: Path) -> None:
    assert bash.language == "bash"
    play(bash, "word=quire; cd /")
    text, end = play(bash, 'echo "$word in $PWD"')
    assert text == "quire in /\n"
    assert end.status == "ok"
    assert play(bash, "echo $GREETING")[0] == f"hi from {tmp_path}\n"


def test_bash_error_is_data(bash: JupyterKernel) -> None:
    text, end = play(bash, "echo before; (exit 3)")
    assert "before\n" in text
    assert end.status == "failed"
    assert end.error is not None
    assert "3" in end.error.value
    assert play(bash, "echo alive")[0] == "alive\n"


def test_bash_is_described(bash: JupyterKernel) -> None:
    said = bash.describe()
    assert (said["kind"], said["kernel"], said["language"]) == ("jupyter", "bash", "bash")
    assert said["implementation"] == "bash_kernel"
    assert alive(said["pid"])


def test_bash_can_be_interrupted(bash: JupyterKernel) -> None:
    began = time.monotonic()
    events = []
    for event in bash.execute("sh -c 'echo ready; exec sleep 60'", "c"):
        events.append(event)
        if isinstance(event, OutputAdded) and "ready" in event.output.get("text", ""):
            bash.interrupt()
    assert isinstance(events[-1], CellFinished)
    assert events[-1].status == "failed"
    assert time.monotonic() - began < 10


def test_installed_names_what_can_be_started(env: dict[str, str]) -> None:
    install(env, "other", ["other"])
    known = installed(env)
    assert known["other"] == "Other"
    assert "python3" in known
    assert find("OTHER", env)[1]["argv"] == ["other"]


def test_a_missing_kernel_names_the_nearest(env: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(KernelNotFound, match="python3") as caught:
        JupyterKernel.start(KernelSpec(tmp_path, env, name="pyhton3"))
    assert "did you mean 'python3'" in caught.value.hint
    assert "install" in caught.value.hint


def test_a_broken_description_is_an_error(env: dict[str, str], tmp_path: Path) -> None:
    install(env, "odd", [])
    with pytest.raises(KernelError, match=r"kernel\.json"):
        JupyterKernel.start(KernelSpec(tmp_path, env, name="odd"))


def test_a_kernel_that_dies_at_start_shows_its_stderr(env: dict[str, str], tmp_path: Path) -> None:
    install(env, "broken", [sys.executable, "-c", "import sys; sys.exit('no such module: zmq')"])
    with pytest.raises(KernelError, match="status 1") as caught:
        JupyterKernel.start(KernelSpec(tmp_path, env, name="broken"))
    assert "no such module: zmq" in caught.value.message


def test_a_program_that_is_not_there(env: dict[str, str], tmp_path: Path) -> None:
    install(env, "absent", ["no-such-program", "{connection_file}"])
    with pytest.raises(KernelError, match="no-such-program: No such file"):
        JupyterKernel.start(KernelSpec(tmp_path, env, name="absent"))


def test_a_kernel_that_never_answers_is_ended(env: dict[str, str], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    # A shell: it has to have begun before the time is over.
    install(env, "mute", ["/bin/sh", "-c", f"echo $$ > {note}; exec sleep 600"])
    with pytest.raises(KernelError, match="did not answer in time"):
        JupyterKernel.start(KernelSpec(tmp_path, env, name="mute"), timeout=2)
    assert not alive(int(note.read_text()))


def test_a_missing_directory_is_an_error(env: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="nowhere"):
        JupyterKernel.start(KernelSpec(tmp_path / "nowhere", env))


def test_connection_file_is_private_and_goes_away(env: dict[str, str], tmp_path: Path) -> None:
    with JupyterKernel.start(KernelSpec(tmp_path, env)) as kernel:
        file = Path(kernel.connection_file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) & 0o777 == 0o700
        assert json.loads(file.read_text())["transport"] == "ipc"
    assert not file.parent.exists()


def test_nothing_is_left_when_the_owner_is_killed(env: dict[str, str], tmp_path: Path) -> None:
    """SIGKILL of the process that owns the kernel: the keeper ends all of it."""
    script = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from quire.kernel.jupyter import JupyterKernel
        from quire.kernel.protocol import KernelSpec

        env = dict(PATH=sys.argv[1], HOME=sys.argv[2])
        kernel = JupyterKernel.start(KernelSpec(Path.cwd(), env))
        code = '''
        import os, subprocess
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        os.system("setsid sleep 600 > /dev/null 2>&1 & echo $! > orphan")
        print(os.getpid(), os.getppid(), child.pid, open("orphan").read())
        '''
        import textwrap
        for event in kernel.execute(textwrap.dedent(code), "c"):
            if event and hasattr(event, "output"):
                print(*event.output["text"].split(), kernel.connection_file, flush=True)
        time.sleep(600)
    """)
    owner = subprocess.Popen(
        [sys.executable, "-c", script, env["PATH"], env["HOME"]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    with owner.stdout:
        words = owner.stdout.readline().split()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    pids, connection_file = [int(word) for word in words[:4]], Path(words[4])
    assert len(pids) == 4
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and (
        any(alive(pid) for pid in pids) or connection_file.parent.exists()
    ):
        time.sleep(0.02)
    assert [pid for pid in pids if alive(pid)] == []
    assert not connection_file.parent.exists()


def test_a_reader_that_stands_still_loses_nothing(env: dict[str, str], tmp_path: Path) -> None:
    """The reader is stopped while the kernel prints far more than sockets hold."""
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from quire.kernel.jupyter import JupyterKernel
        from quire.kernel.protocol import KernelSpec

        env = dict(PATH=sys.argv[1], HOME=sys.argv[2])
        with JupyterKernel.start(KernelSpec(Path.cwd(), env)) as kernel:
            code = "open('began', 'w').close()\\n"
            code += "done = [print(str(i) * 200, flush=True) for i in range(5000)]\\n"
            code += "open('all-printed', 'w').close()"
            text = ""
            for event in kernel.execute(code, "c"):
                text += getattr(event, "output", {}).get("text", "")
            assert text.split() == [str(i) * 200 for i in range(5000)], len(text.split())
    """)
    reader = subprocess.Popen(
        [sys.executable, "-c", script, env["PATH"], env["HOME"]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(tmp_path / "began")
    reader.send_signal(signal.SIGSTOP)
    wait_for(tmp_path / "all-printed")
    reader.send_signal(signal.SIGCONT)
    _, complaint = reader.communicate(timeout=30)
    assert reader.returncode == 0, complaint


class Copied:
    """What ipykernel has for stdout, with a thread that reads the end of a cell in one go."""

    def __init__(self) -> None:
        self._fid, self._original_stdstream_fd = os.pipe()
        self.watch_fd_thread = threading.Thread(target=self.copy, daemon=True)
        self.over = threading.Event()
        self.said: list[tuple[str, bool]] = []
        self.end_of_cell: Any = None

    def _flush_buffers(self) -> list[Any]:
        return []

    def copy(self) -> None:
        said = ""
        while said.count("\0") < 2:  # the marker has one at either end
            said += os.read(self._fid, 100).decode()
        self.write(said)  # type: ignore[attr-defined]

    def published(self, text: str) -> None:
        self.said.append((text, self.over.wait(0.3)))

    def register(self, _: str, end_of_cell: Any) -> None:
        self.end_of_cell = end_of_cell


def test_a_cell_is_not_over_before_what_its_child_said_last_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = Copied()
    stream.write = stream.published  # type: ignore[attr-defined]
    publisher = SimpleNamespace(schedule=lambda _: None)
    shell = SimpleNamespace(events=stream, kernel=SimpleNamespace(iopub_thread=publisher))
    names: dict[str, Any] = {"get_ipython": lambda: shell}
    exec(PREPARE_IPYKERNEL, names)

    async def prepare() -> None:
        names["prepare"]("\0marker\0")

    with monkeypatch.context() as patched, warnings.catch_warnings():
        patched.setattr(sys, "stdout", stream)
        patched.setattr(sys, "stderr", None)
        asyncio.run(prepare())
    os.write(stream._original_stdstream_fd, b"last")
    stream.watch_fd_thread.start()
    stream.end_of_cell()
    stream.over.set()
    stream.watch_fd_thread.join()
    assert stream.said == [("last", False)]


def test_a_kernel_that_forgets_to_publish_is_reminded(env: dict[str, str], tmp_path: Path) -> None:
    """Its publishing thread sleeps on, as it now and then does on a busy machine."""
    forgetful = textwrap.dedent("""
        kernel = get_ipython().kernel
        publish, thread = kernel._publish_status, kernel.iopub_thread
        def forget(status, *args, **options):
            if status != "idle":
                return publish(status, *args, **options)
            kernel._publish_status = publish
            schedule, thread.schedule = thread.schedule, thread._events.append  # nobody is woken
            try:
                publish(status, *args, **options)
            finally:
                thread.schedule = schedule
        kernel._publish_status = forget
        print("said")
    """)
    with JupyterKernel.start(KernelSpec(tmp_path, env)) as kernel:
        for _ in range(2):
            events = [event for event in kernel.execute(forgetful, "c") if event is not None]
            assert [type(event) for event in events] == [OutputAdded, CellFinished]
            assert play(kernel, "print('here')")[0] == "here\n"
