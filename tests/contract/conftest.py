from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kernel_cells import clean_environment

from quire.kernel.protocol import Kernel, KernelSpec

Start = Callable[..., Kernel]

KINDS = ("jupyter", "native")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return clean_environment(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def starters(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Iterator[dict[str, Start]]:
    """How to start a kernel of each kind. All that were started are closed at the end."""
    with ExitStack() as stack:
        native: list[Any] = []

        def start(kind: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Kernel:
            where = cwd or tmp_path_factory.mktemp("cwd")
            spec = KernelSpec(cwd=where, env=environment if env is None else env)
            if kind == "native":
                from quire.kernel.native import NativeKernels

                if not native:
                    native.append(stack.enter_context(NativeKernels()))
                kernel: Kernel = native[0].start(spec)
            else:
                from quire.kernel.jupyter import JupyterKernel

                kernel = JupyterKernel.start(spec)
            stack.callback(kernel.close)
            return kernel

        def starter(kind: str) -> Start:
            return lambda **world: start(kind, **world)

        yield {kind: starter(kind) for kind in KINDS}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start(kind: str, starters: dict[str, Start]) -> Start:
    """Start a kernel of this kind: `start(cwd=…, env=…)`."""
    return starters[kind]


@pytest.fixture(scope="module")
def kernel(kind: str, starters: dict[str, Start]) -> Kernel:
    """One kernel for all the cases that leave it as they found it."""
    return starters[kind]()


@pytest.fixture
def own(start: Start) -> Iterator[Kernel]:
    """A kernel of the test's own, to be ended by it."""
    kernel = start()
    yield kernel
    kernel.close()
