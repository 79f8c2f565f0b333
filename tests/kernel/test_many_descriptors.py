"""In a process that has more than a thousand files open, which select() knows nothing of."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, resource, sys
from pathlib import Path

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (2_000, hard))
kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]

from quire.kernel.jupyter import JupyterKernel
from quire.kernel.native import NativeKernels
from quire.kernel.protocol import KernelSpec
from quire.cell_tools.shell_command import run_command

print(run_command(["echo", "hi"], ".", dict(os.environ), 20, 100, lambda: False)["output"])
spec = KernelSpec(cwd=Path.cwd(), env=dict(os.environ))
with NativeKernels() as kernels:
    for kernel in (kernels.start(spec), JupyterKernel.start(spec)):
        print([event.status for event in kernel.execute("1", "c") if hasattr(event, "status")])
        kernel.close()
"""


def test_everything_works_there(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 2_000:
        pytest.skip(f"this system allows {hard} descriptors")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stdout.split("\n") == ["hi", "", "['ok']", "['ok']", ""], done.stderr
