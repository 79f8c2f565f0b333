"""uv, which finds out versions and installs them.

Nothing from outside stands on its command line but paths that we chose, and versions of Python and
dates that were checked: requirements go through files. Where packages come from is said by the
caller's environment and by the `uv.toml` or `pyproject.toml` of the workspace.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import DependencyError, QuireError, UsageError

TICK = 0.1
SAID = 2_000
# A traceback but for its last line: all that is indented by more than its first one.
_WAY = re.compile(
    r"^([ \t]*)Traceback \(most recent call last\):\n(?:\1[ \t]+\S.*\n|[ \t]*\n)*", re.M
)
_NETWORK = re.compile(
    r"error sending request|Failed to fetch|network was disabled|dns error|tcp connect error"
    r"|Request failed after|timed out|Could not connect",
    re.IGNORECASE,
)
# What would have uv do something else than it is asked for.
_FOREIGN = re.compile(
    r"UV_(OUTPUT_FILE|REQUIREMENT|CONSTRAINT|OVERRIDE|PYTHON|SYSTEM_PYTHON|PROJECT|WORKING_DIR(ECTORY)?"
    r"|BREAK_SYSTEM_PACKAGES|VENV_.*|TARGET|PREFIX|PROJECT_ENVIRONMENT|COMPILE_BYTECODE|LOG_CONTEXT)"
    r"|VIRTUAL_ENV|CONDA_PREFIX|PYTHONHOME|PYTHONPATH"
)


@dataclass(frozen=True, slots=True)
class Uv:
    """`cancelled` is asked while uv is at work."""

    cwd: Path
    env: Mapping[str, str]
    cancelled: Callable[[], bool] = lambda: False

    def resolve(
        self,
        requirements: Sequence[str],
        python: Path,
        *,
        newest: str = "",
        known: str = "",
        universal: bool = False,
    ) -> str:
        """The text of a lock. Versions that are `known` stay as they are where they fit."""
        with tempfile.TemporaryDirectory(prefix="quire-lock-") as folder:
            asked, lock = Path(folder) / "requirements.in", Path(folder) / "lock.txt"
            asked.write_text("".join(f"{one}\n" for one in requirements), "utf-8")
            if known:
                lock.write_text(known, "utf-8")
            more = [f"--exclude-newer={newest}"] if newest else []
            more += ["--universal"] if universal else []
            self._call(
                [
                    *("pip", "compile", "--no-header", "--no-annotate", "--no-strip-extras"),
                    *("--generate-hashes", "--python", str(python), "--output-file", str(lock)),
                    *more,
                    *("--", str(asked)),
                ],
                "the dependencies cannot be resolved",
            )
            return lock.read_text("utf-8")

    def make(self, venv: Path, python: Path, lock: Path, *, keep: int) -> None:
        """An environment with what the lock names. uv holds `keep` open as long as it works."""
        what = "the environment cannot be made"
        self._call(
            ["venv", "--no-project", "--allow-existing", "--python", str(python), "--", str(venv)],
            what,
            keep,
        )
        inside = str(venv / "bin" / "python")
        self._call(["pip", "sync", "--python", inside, "--", str(lock)], what, keep)

    def find(self, versions: str) -> Path | None:
        """A Python of this machine that has one of these versions."""
        said = self._run(
            ["python", "find", "--system", "--no-python-downloads", "--no-project", "--", versions]
        )
        path = Path(said[1].strip())
        return path if said[0] == 0 and path.is_file() else None

    def look(self) -> None:
        """Raises when the caller has been called off."""
        if self.cancelled():
            error = UsageError("it was called off before the run began", hint="nothing has run")
            error.exit_code = 130
            raise error

    def _call(self, arguments: Sequence[str], what: str, keep: int = -1) -> str:
        code, out, err = self._run(arguments, keep)
        if code == 0:
            return out
        said = plain(err) or f"uv ended with status {code}"
        if _NETWORK.search(err):
            failed = DependencyError(
                f"{what}: {said}",
                hint="is the network there? A run whose environment is already made needs none",
            )
            failed.retryable = True
            raise failed
        raise DependencyError(
            f"{what}: {said}", hint="correct the dependencies that the task declares"
        )

    def _run(self, arguments: Sequence[str], keep: int = -1) -> tuple[int, str, str]:
        env = {key: value for key, value in self.env.items() if not _FOREIGN.fullmatch(key)}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    [binary(self.env), "--quiet", "--no-progress", "--color=never", *arguments],
                    cwd=self.cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    pass_fds=[keep] if keep >= 0 else [],
                    start_new_session=True,  # it asks nobody for a password, and ends as a group
                )
            except OSError as error:
                raise QuireError(
                    f"uv could not be started: {error.strerror}", hint="pip install --upgrade uv"
                ) from error
            self._wait(process)
            out.seek(0)
            err.seek(0)
            said = out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace")
        return process.returncode, *said

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(TICK)
                    return
                self.look()
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


# It asks sysconfig, which until Python 3.12 answers a second thread with what a first one has only
# begun to gather.
_looking = threading.Lock()


def binary(env: Mapping[str, str]) -> str:
    """uv as it was installed with us, otherwise the one on the caller's path."""
    with suppress(ImportError, FileNotFoundError), _looking:
        import uv

        return uv.find_uv_bin()
    found = shutil.which("uv", path=env.get("PATH"))
    if found is None:
        raise QuireError(
            "the task declares dependencies, and there is no uv to install them",
            hint="pip install uv",
        )
    return found


def plain(said: str) -> str:
    """What uv says, fit for one message: no colours, no credentials, not too long. Of a build that
    failed the way through its own code is left out: what is wrong stands at its end."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", said)
    text = _WAY.sub("", text)
    text = re.sub(r"(?<=://)[^/\s@]*@", "", text)
    told = ""
    for line in filter(None, map(str.strip, text.split("\n"))):
        clause = re.match(
            r"(?:(?:error|warning|cause|hint):|[\u00d7\u2570\u251c])[\u2500\u25b6>\s]*", line
        )
        # Without one of these it is the rest of a line that was too long.
        said_here = line[clause.end() :] if clause else line
        told = f"{told.rstrip('.: ')}; {said_here}" if told and clause else f"{told} {said_here}"
    told = told.strip().rstrip(".:")
    told = "".join(char if char.isprintable() else " " for char in told)
    half = SAID // 2
    return told if len(told) <= SAID else f"{told[:half]} … {told[-half:]}"
