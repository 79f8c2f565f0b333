"""`make demo`: the story it tells, without the installing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from doc_pages import ROOT


def test_the_demo_tells_the_whole_story(tmp_path: Path) -> None:
    recipe = re.search(r"^demo: setup\n\t(.*)\n", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    assert recipe[1].endswith("demo/story.sh")
    env = {**os.environ, "TMPDIR": str(tmp_path), "NO_COLOR": "1"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    done = subprocess.run(
        [ROOT / "demo" / "story.sh"],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout
    for line in (
        "opened: proposal 1, sum-up-the-orders-of-a-region into main",
        "verified: 2 runs of git branch reports",
        "approved proposal 1",
        "merged: proposal 1 into main",
        "NOT verified",
        "output 0: changed after it was signed",
    ):
        assert line in told, told
    # Nothing is left behind: no folder, and so no host that has its socket in one.
    assert list(tmp_path.iterdir()) == []
