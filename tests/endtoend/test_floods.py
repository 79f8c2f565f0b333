"""The sizes of "when things go wrong" in full: run by `make torture`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scratch import Scratch, stdout_of

pytestmark = pytest.mark.torture

FLOODS = {
    "200 MB of lines": ("for n in range(2_000_000): print('%099d' % n)", 200_000_000),
    "a line of 100 MB": ("print('x' * 100_000_000)", 100_000_001),
    "200 MB on fd 1": (
        "import os\nfor n in range(2_000): os.write(1, b'y' * 100_000)",
        200_000_000,
    ),
}


def memory(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)


def warm_host(scratch: Scratch) -> int:
    scratch.write("warm.py", "# %%\n1\n")
    scratch.run("warm.py")
    return int(json.loads(scratch.quire("host", "status", "--json").stdout)["pid"])


@pytest.mark.parametrize(("code", "size"), FLOODS.values(), ids=FLOODS.keys())
def test_text(scratch: Scratch, code: str, size: int) -> None:
    host = warm_host(scratch)
    before = memory(host, "VmRSS")
    scratch.write("t.py", f"# %%\n{code}\n")
    exit_code, told = scratch.run("t.py")
    assert (exit_code, told["outcome"]) == (0, "ok")
    assert memory(host, "VmHWM") - before < 100_000_000
    folder = Path(told["notebook"]).parent
    kept = sum(p.stat().st_size for p in folder.iterdir() if p.is_file())
    assert kept < 10_000_000
    (spilled,) = (folder / "spill").iterdir()
    assert spilled.stat().st_size == size
    assert str(spilled) in stdout_of(scratch.notebook(told))


def test_displays(scratch: Scratch) -> None:
    host = warm_host(scratch)
    before = memory(host, "VmRSS")
    scratch.write("t.py", "# %%\nfor n in range(100_000): display(n)\n")
    exit_code, told = scratch.run("t.py")
    assert (exit_code, told["outcome"]) == (0, "ok")
    assert memory(host, "VmHWM") - before < 100_000_000
    outputs = scratch.notebook(told)["cells"][0]["outputs"]
    assert len(outputs) == 2_001
    assert "98,000 more outputs were cut" in outputs[-1]["data"]["text/plain"]
    (spilled,) = (Path(told["notebook"]).parent / "spill").iterdir()
    assert len(spilled.read_text().splitlines()) == 98_000
