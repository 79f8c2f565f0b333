"""A module of ours in a process of its own: what it does may take for ever, and can be ended.

The module has a function `answer` that takes and gives a JSON object. The request goes over stdin:
as an argument it could be too long, and everybody could see it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import Refused, ToolError

TICK = 0.05
DAY = 86_400.0
# The alarm ends it by itself, in case nobody is left to do so.
_START = """
import importlib, json, signal, sys
module, sys.path[:], seconds = json.loads(sys.argv[1])
signal.setitimer(signal.ITIMER_REAL, seconds)
json.dump(importlib.import_module(module).answer(json.load(sys.stdin)), sys.stdout)
"""
_NEEDED = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")


def ask(
    module: str,
    request: Mapping[str, Any],
    seconds: float,
    called_off: Callable[[], bool],
    fds: tuple[int, ...] = (),
) -> dict[str, Any] | None:
    """What the module answers; None where it took too long. An `error` it tells of is raised."""
    deadline = time.monotonic() + seconds
    paths = [path for path in sys.path if os.path.isabs(path)]
    start = json.dumps([module, paths, min(seconds, DAY)])
    with open(os.memfd_create("request"), "w+b") as asked:  # a pipe would have to be filled
        asked.write(json.dumps(request).encode())
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _START, start],
            env={name: os.environ[name] for name in _NEEDED if name in os.environ},
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=fds,
            start_new_session=True,
        )
    said = None
    with process:
        while said is None:
            try:
                said, _ = process.communicate(timeout=TICK)
            except subprocess.TimeoutExpired:
                if called_off() or time.monotonic() > deadline:
                    process.kill()
                    break
    if called_off():
        raise ToolError("called off")
    if said is None or process.returncode < 0:
        return None
    try:
        told: dict[str, Any] = json.loads(said)
    except ValueError:
        raise ToolError(f"{module} ended without an answer", hint="try something simpler") from None
    if "error" in told:
        kind = Refused if told.get("refused") else ToolError
        raise kind(told["error"], hint=told.get("hint", ""))
    return told
