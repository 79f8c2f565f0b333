"""Environments in the cache: whole or not there, made once, left alone while somebody uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from quire.environments.environment_cache import (
    Base,
    Environments,
    base_of,
    digest_of,
    held,
    identity,
)
from quire.environments.uv import Uv, binary, plain
from quire.errors import DependencyError, QuireError, UsageError

BASE = Base(Path(sys.executable), "3.11.0", "/opt/python")


def silent(_: str) -> None:
    pass


@dataclass(frozen=True)
class PretendedUv(Uv):
    """Makes folders that look like an environment."""

    cwd: Path = Path()
    env: Mapping[str, str] = field(default_factory=dict)
    made: list[Path] = field(default_factory=list)
    gate: threading.Event | None = None

    def make(self, venv: Path, python: Path, lock: Path, *, keep: int) -> None:
        os.fstat(keep)
        assert lock.read_text()
        site = venv / "lib" / "python3.11" / "site-packages"
        info = site / "six-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Six\nVersion: 1.0\n")
        self.made.append(venv)
        if self.gate is not None:
            self.gate.wait(30)
        (venv / "bin").mkdir()
        (venv / "bin" / "python").symlink_to(sys.executable)


@pytest.fixture
def store(tmp_path: Path) -> Environments:
    return Environments(tmp_path / "environments")


def test_it_is_made_once_and_known_afterwards(store: Environments) -> None:
    uv, said = PretendedUv(), list[str]()
    made = store.make("six==1.0\n", BASE, uv, said.append)
    assert made.packages == {"six": "1.0"}
    assert made.lock == digest_of("six==1.0\n")
    assert made.python.is_file()
    assert said == ["making an environment with Python 3.11.0 …"]
    assert store.make("six==1.0\n", BASE, uv, said.append) == made
    assert len(uv.made) == len(said) == 1
    store.keep("d1", "six==1.0\n", made)
    assert store.known("d1") == made
    assert store.lock_of("d1") == "six==1.0\n"
    assert store.known("d2") is None
    assert store.lock_of("d2") == ""
    other = store.make("six==1.0\n", Base(BASE.path, "3.12.0", BASE.home), uv, silent)
    assert other.folder != made.folder
    assert store.of_python(str(made.python)) == made
    assert store.of_python(sys.executable) is None


def test_one_that_was_begun_is_not_used_and_made_anew(store: Environments) -> None:
    uv = PretendedUv()
    made = store.make("six==1.0\n", BASE, uv, silent)
    store.keep("d1", "six==1.0\n", made)
    (made.folder / "environment.json").unlink()
    (made.folder / "venv" / "left").touch()
    assert store.known("d1") is None
    again = store.make("six==1.0\n", BASE, uv, silent)
    assert again == made
    assert not (made.folder / "venv" / "left").exists()
    assert store.known("d1") == made


def test_importing_does_not_change_it_and_installing_does(store: Environments) -> None:
    uv = PretendedUv()
    made = store.make("six==1.0\n", BASE, uv, silent)
    (site,) = made.folder.glob("venv/lib/*/site-packages")
    (site / "__pycache__" / "six.pyc").touch()
    assert store.read(made.folder) == made
    (site / "more").mkdir()
    assert store.read(made.folder) is None
    again = store.make("six==1.0\n", BASE, uv, silent)
    assert again.folder != made.folder
    assert again.lock == made.lock
    assert (site / "more").exists(), "kernels may live in the changed one"


def test_of_two_at_once_one_makes_it(store: Environments) -> None:
    gate = threading.Event()
    first, second = PretendedUv(gate=gate), PretendedUv(cancelled=gate.is_set)
    found = []

    def make(uv: Uv) -> None:
        found.append(store.make("six==1.0\n", BASE, uv, silent))

    one = threading.Thread(target=make, args=(first,))
    one.start()
    while not first.made:
        assert one.is_alive()
    with pytest.raises(UsageError, match="called off"):
        store.make("six==1.0\n", BASE, PretendedUv(cancelled=lambda: True), silent)
    waits = PretendedUv()
    two = threading.Thread(target=make, args=(waits,))
    two.start()
    gate.set()
    one.join(30)
    two.join(30)
    assert found[0] == found[1]
    assert second.made == waits.made == []


def test_whoever_dies_leaves_no_lock_but_his_uv_keeps_it(store: Environments) -> None:
    """The lock is held by the process that writes, not only by the one that asked."""
    folder = store.made / "key"
    with held(folder, silent_look) as fd:
        child = subprocess.Popen(["sleep", "600"], pass_fds=[fd])
    try:
        with pytest.raises(Held), held(folder, look):
            pass
    finally:
        child.kill()
        child.wait()
    with held(folder, look):
        pass


class Held(Exception):
    pass


def look() -> None:
    raise Held


def silent_look() -> None:
    pass


def test_those_in_use_stay(store: Environments, tmp_path: Path) -> None:
    uv = PretendedUv()
    made = store.make("six==1.0\n", BASE, uv, silent)
    program = [str(made.python), "-c", "print(flush=True); input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as lives:
        assert lives.stdout is not None
        assert lives.stdout.readline() == b"\n"
        assert store.in_use() == {made.folder}
        assert not store.remove(made.folder)
        assert store.read(made.folder) == made
        lives.communicate(b"\n")
    assert store.in_use() == set()
    with held(made.folder, silent_look):
        assert not store.remove(made.folder)
    assert store.remove(made.folder)
    assert store.folders() == []
    assert store.read(made.folder) is None


def test_what_is_damaged_is_not_there(store: Environments) -> None:
    made = store.make("six==1.0\n", BASE, PretendedUv(), silent)
    stamp = made.folder / "environment.json"
    good = stamp.read_text()
    for text in ("", "[]", "{}", good[:-2], json.dumps({**json.loads(good), "format": 2})):
        stamp.write_text(text)
        assert store.read(made.folder) is None
    stamp.write_text(good)
    assert store.read(made.folder) == made
    made.python.unlink()
    assert store.read(made.folder) is None


def test_the_folder_is_the_callers(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert Environments.of(home).root == tmp_path / ".cache" / "quire" / "environments"
    shared = {**home, "XDG_CACHE_HOME": "/var/cache/ada"}
    assert Environments.of(shared).root == Path("/var/cache/ada/quire/environments")
    assert Environments.of({**home, "XDG_CACHE_HOME": "not/absolute"}) is not None
    own = {**shared, "QUIRE_CACHE": "/srv/cache"}
    assert Environments.of(own).root == Path("/srv/cache/environments")


def test_another_interpreter_in_its_place_is_another(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    before = identity(str(python))
    assert before == identity(sys.executable)
    python.unlink()
    python.write_text("")
    assert identity(str(python)) != before
    assert identity(str(tmp_path / "none")) == str(tmp_path / "none")


def test_an_interpreter_is_asked_for_its_version(tmp_path: Path) -> None:
    told = base_of(sys.executable)
    assert told.version.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    with pytest.raises(QuireError, match="no Python that could be asked"):
        base_of("/bin/true")


def pretended_program(folder: Path, text: str) -> dict[str, str]:
    program = folder / "uv"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)


@pytest.mark.usefixtures("no_wheel")
def test_uv_on_the_path_will_do(tmp_path: Path) -> None:
    env = pretended_program(tmp_path, "exit 0")
    assert binary(env) == str(tmp_path / "uv")
    with pytest.raises(QuireError, match="there is no uv") as caught:
        binary({"PATH": "/nowhere"})
    assert caught.value.hint == "pip install uv"


@pytest.mark.usefixtures("no_wheel")
def test_what_uv_says_is_told_without_secrets_or_colours(tmp_path: Path) -> None:
    said = (
        "printf '\\033[31merror\\033[0m: no\\001 way\\n  cause: https://ada:pw@x.example/y\\n' >&2"
    )
    uv = Uv(tmp_path, pretended_program(tmp_path, f"{said}; exit 1"))
    with pytest.raises(DependencyError) as caught:
        uv.resolve(["six"], Path("python"))
    message = caught.value.message
    assert message == "the dependencies cannot be resolved: no  way; https://x.example/y"
    assert not caught.value.retryable
    assert len(plain("x" * 9000)) < 2100


def test_of_a_build_that_failed_the_reason_is_told_however_long_the_way_to_it() -> None:
    frames = '           File "/cache/build_meta.py", line 1, in f\n             exec(x)\n\n' * 200
    said = (
        "error: Failed to build `brk==1.0`\n  cause: Call to `f` failed (exit status: 1)\n\n"
        f"         [stderr]\n         Traceback (most recent call last):\n{frames}"
        "         RuntimeError: needs libfoo\n\nhint: Is it there?\n"
    )
    assert plain(said) == (
        "Failed to build `brk==1.0`; Call to `f` failed (exit status: 1) [stderr] "
        "RuntimeError: needs libfoo; Is it there?"
    )
    assert plain("error: no\n" + "compiling\n" * 900 + "fatal error: foo.h").endswith("foo.h")


@pytest.mark.usefixtures("no_wheel")
def test_a_network_that_is_not_there_may_be_there_later(tmp_path: Path) -> None:
    text = "echo 'error: error sending request for url' >&2; exit 2"
    uv = Uv(tmp_path, pretended_program(tmp_path, text))
    with pytest.raises(DependencyError) as caught:
        uv.resolve(["six"], Path("python"))
    assert caught.value.retryable
    assert "network" in caught.value.hint


@pytest.mark.usefixtures("no_wheel")
def test_uv_is_ended_when_the_caller_is_called_off(tmp_path: Path) -> None:
    text = f"echo $$ > {tmp_path}/pid; sleep 600 & wait"
    uv = Uv(tmp_path, pretended_program(tmp_path, text), lambda: (tmp_path / "pid").exists())
    with pytest.raises(UsageError, match="called off") as caught:
        uv.resolve(["six"], Path("python"))
    assert caught.value.exit_code == 130
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


@pytest.mark.usefixtures("no_wheel")
def test_uv_is_not_led_astray_by_the_environment(tmp_path: Path) -> None:
    env = pretended_program(tmp_path, f"env > {tmp_path}/seen; exit 0")
    strange = {"UV_OUTPUT_FILE": "x", "VIRTUAL_ENV": "/x", "UV_TARGET": "/x", "PYTHONPATH": "/x"}
    wanted = {"UV_FIND_LINKS": "/wheels", "UV_OFFLINE": "1", "UV_INDEX": "x"}
    assert Uv(tmp_path, {**env, **strange, **wanted}).find(">=3") is None
    seen = (tmp_path / "seen").read_text().splitlines()
    assert {f"{key}={value}" for key, value in wanted.items()} <= set(seen)
    assert not [line for line in seen if line.split("=")[0] in strange]


def test_two_tasks_may_look_for_uv_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """uv asks sysconfig, which fills its table without a lock until Python 3.12: whoever comes
    while it is being filled must not read from it."""
    found: list[object] = []

    def look() -> None:
        try:
            found.append(binary({}))
        except Exception as error:  # noqa: BLE001 - in a thread, where nobody would see it
            found.append(error)

    other = threading.Thread(target=look)
    fill = sysconfig._init_posix  # type: ignore[attr-defined]

    def slowly(table: dict[str, object]) -> None:
        other.start()
        other.join(0.2)  # it fails at once, or waits for us
        fill(table)

    monkeypatch.setattr(sysconfig, "_CONFIG_VARS", None)
    monkeypatch.setattr(sysconfig, "_CONFIG_VARS_INITIALIZED", False, raising=False)
    monkeypatch.setattr(sysconfig, "_init_posix", slowly)
    look()
    other.join()
    assert found[0] == found[1], found
    assert os.access(str(found[0]), os.X_OK)
