"""nbdime for the tests, in an environment that is made once and kept in the repository's folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from quire.git import nbdime_process
from quire.workspace import Workspace

ROOT = Path(__file__).parent.parent
DATA = ROOT / ".venvs" / "data"


def python() -> Path:
    """Made by Quire's own `install`. Several test processes may ask for it at once."""
    DATA.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "XDG_DATA_HOME": str(DATA)}
    made = nbdime_process.place(env) / "bin" / "python"
    with open(DATA / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            nbdime_process.install(Workspace(ROOT, cwd=ROOT, env=env))
    return made
