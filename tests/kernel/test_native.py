"""What only the native kernel has: a warm parent, an interpreter of choice, preloaded modules."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import made_environments as environments
from quire.errors import KernelError, KernelNotFound, QuireError
from quire.kernel.native import NativeKernel, NativeKernels
from quire.kernel.protocol import KernelSpec
from quire.record.events import CellFinished, KernelDied, OutputAdded


@pytest.fixture(scope="module")
def kernels() -> Iterator[NativeKernels]:
    with NativeKernels() as kernels:
        yield kernels


def spec(cwd: Path, **more: Any) -> KernelSpec:
    return KernelSpec(cwd=cwd, env=more.pop("env", dict(os.environ)), **more)


def out(kernel: NativeKernel, code: str) -> str:
    """What a cell printed; it must end well."""
    parts = []
    for event in kernel.execute(code, "c"):
        if isinstance(event, OutputAdded):
            parts.append(event.output.get("text") or str(event.output))
        elif isinstance(event, CellFinished):
            assert event.status == "ok", event.error
        assert not isinstance(event, KernelDied), event
    return "".join(parts)


def test_an_end_that_the_server_does_not_report_is_not_blamed_on_it(
    kernels: NativeKernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = kernels.start(spec(tmp_path))
    monkeypatch.setattr(kernel.zygote, "exit_of", lambda pid, timeout: None)
    died = list(kernel.execute("import os; os._exit(3)", "c"))[-1]
    assert isinstance(died, KernelDied)
    assert died.reason == "the kernel is gone and its exit status is not known"
    kernel.close()


def test_every_kernel_starts_clean(kernels: NativeKernels, tmp_path: Path) -> None:
    first = kernels.start(spec(tmp_path))
    before = set(out(first, "import sys; print(*sys.modules)").split())
    out(first, "import turtledemo as t; x = 1; import os; os.environ['LEFT'] = '1'")
    out(first, "import builtins; builtins.left = 1; sys.path.append('/left')")
    left = set(out(first, "print(*sys.modules)").split()) - before
    assert "turtledemo" in left
    first.close()
    second = kernels.start(spec(tmp_path))
    # The server may have warmed up in between, and then it has loaded more; but not this.
    assert not left & set(out(second, "import sys; print(*sys.modules)").split())
    assert out(second, "import os; print('x' in globals(), 'LEFT' in os.environ)") == (
        "False False\n"
    )
    assert out(second, "print('left' in dir(__builtins__), '/left' in sys.path)") == (
        "False False\n"
    )
    second.close()


def test_a_thousand_frames_do_not_cost_a_thousand_looks(
    kernels: NativeKernels, tmp_path: Path
) -> None:
    """Neither where the error is shown nor where IPython keeps it."""
    kernel = kernels.start(spec(tmp_path))
    out(
        kernel,
        "import inspect\n"
        "asked, look = [], inspect.getsourcefile\n"
        "def counted(one):\n    asked.append(one)\n    return look(one)\n"
        "inspect.getsourcefile = counted\n"
        "def deeper(n):\n    return deeper(n + 1)",
    )
    *_, end = kernel.execute("deeper(0)", "c")
    assert isinstance(end, CellFinished)
    assert end.error is not None
    assert len([frame for frame in end.error.traceback if "deeper" in frame]) > 900
    frames = "sum(inspect.isframe(one) or inspect.iscode(one) for one in asked)"
    assert 0 < int(out(kernel, f"print({frames})")) < 50
    kernel.close()


def test_every_kernel_has_random_numbers_of_its_own(kernels: NativeKernels, tmp_path: Path) -> None:
    code = """
import random, numpy, uuid, os, tempfile
print(random.random(), numpy.random.rand(), numpy.random.default_rng().random(), uuid.uuid4())
print(os.path.basename(tempfile.mktemp()))
"""
    told = []
    for preload in ((), ("numpy", "uuid", "tempfile"), ("numpy", "uuid", "tempfile")):
        kernel = kernels.start(spec(tmp_path, preload=preload))
        told.append(out(kernel, code).split())
        kernel.close()
    for values in zip(*told, strict=True):
        assert len(set(values)) == 3, values


def test_hashes_of_text_do_not_differ_between_kernels_more_than_python_lets_them(
    kernels: NativeKernels, tmp_path: Path
) -> None:
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    kernel = kernels.start(spec(tmp_path, env=env))
    import subprocess
    import sys

    expected = subprocess.check_output([sys.executable, "-c", "print(hash('a'))"], env=env)
    assert out(kernel, "print(hash('a'))") == expected.decode()
    kernel.close()


def test_preloaded_modules_are_there_at_once(kernels: NativeKernels, tmp_path: Path) -> None:
    code = "import sys; print('colorsys' in sys.modules, 'colorsys' in globals())"
    kernel = kernels.start(spec(tmp_path, preload=("colorsys",)))
    assert out(kernel, code) == "True False\n"
    kernel.close()
    plain = kernels.start(spec(tmp_path))
    assert out(plain, code) == "False False\n"
    plain.close()


@pytest.mark.parametrize("broken", ["no_such_module", "exits", "raises"])
def test_a_preload_that_fails_does_not_break_runs(tmp_path: Path, broken: str) -> None:
    (tmp_path / "exits.py").write_text("import sys; sys.exit('no')")
    (tmp_path / "raises.py").write_text("1 / 0")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with NativeKernels() as own:
        kernel = own.start(spec(tmp_path, env=env, preload=(broken, "colorsys")))
        assert out(kernel, "import sys; print('colorsys' in sys.modules)") == "True\n"
        assert broken in kernel.zygote.info["preload_failed"]


def test_the_callers_path_of_modules_reaches_the_kernel(
    kernels: NativeKernels, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "only_here.py").write_text("x = 41 + 1")
    kernel = kernels.start(spec(tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "lib")}))
    assert out(kernel, "import only_here; print(only_here.x)") == "42\n"
    kernel.close()


def test_one_parent_for_equal_worlds(kernels: NativeKernels, tmp_path: Path) -> None:
    same = [kernels.zygote(spec(tmp_path, env={**os.environ, "X": str(n)})) for n in range(3)]
    assert len({id(zygote) for zygote in same}) == 1
    other = kernels.zygote(spec(tmp_path, env={**os.environ, "PYTHONOPTIMIZE": "1"}))
    assert other is not same[0]


def test_a_parent_that_died_is_replaced(tmp_path: Path) -> None:
    with NativeKernels() as own:
        kernel = own.start(spec(tmp_path))
        first = kernel.zygote
        first.process.kill()
        events = list(kernel.execute("import time; time.sleep(100)", "c"))
        assert isinstance(events[-1], KernelDied)
        kernel.close()
        deadline = time.monotonic() + 5
        while first.alive and time.monotonic() < deadline:
            time.sleep(0.01)
        again = own.start(spec(tmp_path))
        assert out(again, "print(1)") == "1\n"
        assert again.zygote is not first


def test_a_spare_is_ready_and_is_not_used_twice(tmp_path: Path) -> None:
    with NativeKernels(spare=True) as own:
        pids = []
        for _ in range(4):
            kernel = own.start(spec(tmp_path))
            pids.append(int(out(kernel, "import os; print(os.getpid())")))
            kernel.close()
        assert len(set(pids)) == 4


def test_a_spare_starts_in_the_callers_world(tmp_path: Path) -> None:
    with NativeKernels(spare=True) as own:
        for n in range(3):
            folder = tmp_path / str(n)
            folder.mkdir()
            kernel = own.start(spec(folder, env={**os.environ, "N": str(n)}))
            assert out(kernel, "import os; print(os.getcwd(), os.environ['N'])") == (
                f"{folder} {n}\n"
            )
            kernel.close()


def test_several_threads_at_once(kernels: NativeKernels, tmp_path: Path) -> None:
    told: dict[int, str] = {}

    def one(n: int) -> None:
        kernel = kernels.start(spec(tmp_path, env={**os.environ, "N": str(n)}))
        told[n] = out(kernel, "import os; print(os.environ['N'])")
        kernel.close()

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert told == {n: f"{n}\n" for n in range(8)}


def test_no_descriptor_is_left_behind(kernels: NativeKernels, tmp_path: Path) -> None:
    def cycle() -> None:
        kernel = kernels.start(spec(tmp_path))
        out(kernel, "print(1)")
        kernel.close()

    cycle()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        cycle()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture(scope="session")
def plain_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with IPython and nothing of ours."""
    return str(environments.make(tmp_path_factory.mktemp("plain") / "venv", "ipython"))


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(environments.make(tmp_path_factory.mktemp("bare") / "venv"))


@pytest.fixture
def plain(kernels: NativeKernels, tmp_path: Path, plain_python: str) -> Iterator[NativeKernel]:
    kernel = kernels.start(spec(tmp_path, python=plain_python))
    yield kernel
    kernel.close()


def test_any_interpreter_that_has_ipython(plain: NativeKernel, plain_python: str) -> None:
    assert out(plain, "import sys; print(sys.executable)") == f"{plain_python}\n"
    for missing in ("ipykernel", "zmq", "pandas"):
        assert "ModuleNotFoundError" in out(
            plain,
            f"try:\n    import {missing}\nexcept ImportError as e:\n    print(type(e).__name__)",
        )


def test_cells_behave_there_too(plain: NativeKernel) -> None:
    events = list(plain.execute("print('a'); display('b'); 1 + 1", "c"))
    kinds = [e.output["output_type"] for e in events if isinstance(e, OutputAdded)]
    assert kinds == ["stream", "display_data", "execute_result"]
    result = events[-2]
    assert isinstance(result, OutputAdded)
    assert result.output["data"]["text/plain"] == "2"
    events = list(plain.execute("1 / 0", "c"))
    done = events[-1]
    assert isinstance(done, CellFinished)
    assert done.error is not None
    assert (done.status, done.error.name) == ("failed", "ZeroDivisionError")
    assert out(plain, "!echo from a shell").strip() == "from a shell"
    assert out(plain, "import asyncio; await asyncio.sleep(0); print('done')") == "done\n"
    done = list(plain.execute("import sys; sys.exit(0)", "c"))[-1]
    assert isinstance(done, CellFinished)
    assert (done.status, done.stop) == ("ok", True)


def test_the_runtime_is_there_where_quire_is_not_installed(plain: NativeKernel) -> None:
    """`import quire.runtime` works; the rest of Quire is not promised."""
    events = list(plain.execute("from quire.runtime import glue\nglue('x', [1])", "c"))
    shown = [e for e in events if isinstance(e, OutputAdded)]
    payload = shown[0].output["data"]["application/scrapbook.scrap.json+json"]
    assert (payload["name"], payload["data"]) == ("x", [1])


def test_an_interpreter_without_ipython_is_a_clear_error(
    kernels: NativeKernels, tmp_path: Path, bare_python: str
) -> None:
    with pytest.raises(KernelNotFound, match="has no IPython") as caught:
        kernels.start(spec(tmp_path, python=bare_python))
    assert f"{bare_python} -m pip install ipykernel" in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("what", ["missing", "not executable", "no python", "broken"])
def test_what_is_no_interpreter(kernels: NativeKernels, tmp_path: Path, what: str) -> None:
    path = tmp_path / "python"
    if what != "missing":
        path.write_text("#!/bin/sh\necho strange >&2; exit 3\n" if what == "broken" else "text")
    if what in ("broken", "no python"):
        path.chmod(0o755)
    with pytest.raises(QuireError) as caught:
        kernels.start(spec(tmp_path, python=str(path)))
    assert isinstance(caught.value, KernelNotFound | KernelError)
    assert str(path) in caught.value.message
    assert caught.value.hint
    if what == "broken":
        assert "strange" in caught.value.message


def test_a_folder_that_went_away(kernels: NativeKernels, tmp_path: Path) -> None:
    """The caller's folder was removed between the check and the start."""
    kernel = kernels.start(spec(tmp_path / "gone"))
    last = list(kernel.execute("print(1)", "c"))[-1]
    assert isinstance(last, KernelDied)
    kernel.close()
