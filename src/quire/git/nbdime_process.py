"""nbdime, in a process and an environment of its own.

What nbdime needs makes `import nbformat` take 1.6 seconds for everything in the same environment.
So it is looked for, in this order:

QUIRE_NBDIME_PYTHON   an interpreter that has it
$XDG_DATA_HOME/quire/nbdime   the environment that `install` makes, for all workspaces of a user
the interpreter Quire runs in   where somebody installed the extra `nbdime` after all
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import QuireError, StorageError, UsageError
from ..files import disk
from ..workspace import Workspace
from .hardened_git import search_path

VARIABLE = "QUIRE_NBDIME_PYTHON"
REQUIREMENT = "nbdime>=4"
TIMEOUT = 120.0
INSTALL_TIMEOUT = 600.0
# Blocked: a grammar of links that nobody here needs and that takes longer than all the rest.
_BOOT = """\
import sys
sys.modules["rfc3987_syntax"] = None
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
# What could make another Python, Jupyter or git of the one that is called.
_FOREIGN = re.compile(r"^(PYTHON|JUPYTER|IPYTHON|GIT_|VIRTUAL_ENV$|__PYVENV)")


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str
    written: bytes | None  # what it wrote to the file it was given


def find(workspace: Workspace) -> Path | None:
    """The interpreter that has nbdime, or None."""
    given = workspace.env.get(VARIABLE)
    if given:
        found = shutil.which(given, path=workspace.env.get("PATH"))
        if found is None:
            raise UsageError(
                f"{VARIABLE} names no interpreter: {given}",
                hint=f"point it at the Python of an environment with nbdime, or unset {VARIABLE}",
            )
        return Path(found)
    own = place(workspace.env) / "bin" / "python"
    if own.is_file():
        return own
    return Path(sys.executable) if importlib.util.find_spec("nbdime") else None


def need(workspace: Workspace) -> Path:
    found = find(workspace)
    if found is None:
        raise UsageError(
            "comparing and merging notebooks needs nbdime, which is not installed",
            hint="quire diff --install-nbdime puts it into an environment of its own; "
            f"or name a Python that has it in {VARIABLE}",
        )
    return found


def place(env: Mapping[str, str]) -> Path:
    data = env.get("XDG_DATA_HOME", "")
    home = Path(env.get("HOME") or Path.home())
    # A relative one is to be ignored, says the specification.
    base = Path(data) if data.startswith("/") else home / ".local" / "share"
    return base / "quire" / "nbdime"


def call(
    workspace: Workspace, module: str, files: Mapping[str, bytes], *args: str, out: str = ""
) -> Answer:
    """Run a module of nbdime on files that it finds in its working folder, and nothing else."""
    python = need(workspace)
    with tempfile.TemporaryDirectory(prefix="quire-nbdime-") as name:
        folder = Path(name)
        with disk(name):
            for file, data in files.items():
                (folder / file).write_bytes(data)
        given = ["--out", out] if out else []
        done = _run([str(python), "-c", _BOOT, module, *given, *args], folder, workspace.env)
        written = None
        if out:
            with contextlib.suppress(FileNotFoundError):
                written = (folder / out).read_bytes()
    if "No module named 'nbdime'" in done.err or "No module named nbdime" in done.err:
        raise UsageError(
            f"{python} has no nbdime", hint=f"install it there: {python} -m pip install nbdime"
        )
    return Answer(done.code, done.out, done.err, written)


def _run(argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> Answer:
    world = {key: value for key, value in env.items() if not _FOREIGN.match(key)} | {
        "PYTHONIOENCODING": "utf-8:replace",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Neither the settings a person has for nbdime nor those for git: the same everywhere.
        "JUPYTER_NO_CONFIG": "1",
        "JUPYTER_CONFIG_DIR": str(folder),
        "JUPYTER_PLATFORM_DIRS": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        # nbdime calls git to compare texts: no repository is to be found above this folder.
        "GIT_CEILING_DIRECTORIES": os.path.realpath(folder.parent),
        "PATH": search_path(env, None),
    }
    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            env=world,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise QuireError(
            f"nbdime did not finish within {TIMEOUT:g} s",
            hint="the notebooks may be too large; compare them without their outputs",
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot start {argv[0]}: {error.strerror}", hint=f"check {VARIABLE}"
        ) from error
    out, err = (part.decode("utf-8", "replace") for part in (done.stdout, done.stderr))
    return Answer(done.returncode, out, err, None)


def broke(answer: Answer, what: str) -> QuireError:
    last = answer.err.strip().splitlines()[-1:] or [f"exit status {answer.code}"]
    return QuireError(f"nbdime could not {what}: {last[0]}"[:500], hint="is it nbdime 4 or newer?")


def install(workspace: Workspace) -> Path:
    """Make the environment; the folder. There at once as a whole, or not at all."""
    target = place(workspace.env)
    with disk(str(target)):
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=".nbdime-"))
    try:
        _build(work, workspace.env)
        with disk(str(target)):
            if target.exists():
                target.rename(work / "replaced")
            (work / "env").rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _build(work: Path, env: Mapping[str, str]) -> None:
    """With uv where there is one: it takes a second where pip takes twenty."""
    base = getattr(sys, "_base_executable", sys.executable)
    beside = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    uv = shutil.which("uv", path=beside)
    python = str(work / "env" / "bin" / "python")
    if uv is not None:
        _step([uv, "venv", "--quiet", "--python", base, str(work / "env")], env)
        _step([uv, "pip", "install", "--quiet", "--python", python, REQUIREMENT], env)
    else:
        _step([base, "-m", "venv", str(work / "env")], env)
        _step([python, "-m", "pip", "install", "--quiet", REQUIREMENT], env)
    _step([python, "-c", "import nbdime"], env)


def _step(argv: list[str], env: Mapping[str, str]) -> None:
    world = {key: value for key, value in env.items() if not _FOREIGN.match(key)}
    try:
        done = subprocess.run(
            argv,
            env=world,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StorageError(f"cannot install nbdime: {error}", hint="try it again") from error
    if done.returncode:
        said = " ".join(done.stderr.split())[-400:]
        raise StorageError(
            f"cannot install nbdime: {Path(argv[0]).name}: {said}",
            hint=f"check the network; or install it yourself and set {VARIABLE}",
        )
