"""A scratch workspace, and the command run in it as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUIRE = (sys.executable, "-m", "quire")


@dataclass
class Scratch:
    """A workspace in a temporary folder."""

    root: Path

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, *args: str, check: bool = True) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.root, capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    def environment(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**os.environ, "NO_COLOR": "1", **(env or {})}

    def start(self, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*QUIRE, *args],
            cwd=self.root,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def quire(
        self, *args: str, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*QUIRE, *args],
            cwd=self.root,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        """`quire run … --json`: the exit code and the object."""
        done = self.quire("run", *args, "--json", env=env)
        assert done.stdout.count("\n") == 1, f"not one object on stdout: {done.stdout!r}"
        return done.returncode, json.loads(done.stdout)

    def notebook(self, told: Mapping[str, Any]) -> dict[str, Any]:
        nb: dict[str, Any] = json.loads(Path(told["notebook"]).read_text())
        return nb


def stdout_of(nb: Mapping[str, Any], name: str = "stdout") -> str:
    return "".join(
        "".join(output["text"])
        for cell in nb["cells"]
        for output in cell.get("outputs", ())
        if output["output_type"] == "stream" and output["name"] == name
    )
