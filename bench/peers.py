"""The peers, in an environment of their own, so that nothing Quire needs slows them down."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.measure import CannotMeasure, Command

PEERS = ("papermill", "nbclient", "ipykernel")
# Both sides must import the same libraries, or the import itself would be what P5 compares.
SAME_VERSION_AS_OURS = ("pandas", "matplotlib", "numpy")


@dataclass(frozen=True, slots=True)
class Peers:
    root: Path
    versions: dict[str, str]

    @property
    def python(self) -> Path:
        return self.root / "bin" / "python"

    def papermill(self, notebook: Path, output: Path) -> Command:
        argv = (self.root / "bin" / "papermill", "--no-progress-bar", notebook, output)
        return Command(tuple(map(str, argv)), cwd=notebook.parent, env=self.environment())

    def nbclient(self, notebook: Path, output: Path) -> Command:
        argv = (self.root / "bin" / "jupyter-execute", f"--output={output}", notebook)
        return Command(tuple(map(str, argv)), cwd=notebook.parent, env=self.environment())

    def script(self, *argv: str, cwd: Path) -> Command:
        return Command((str(self.python), *argv), cwd=cwd, env=self.environment())

    def environment(self) -> dict[str, str]:
        """The caller's, without kernels and settings that a person may have in the home folder."""
        own = self.root / "jupyter"
        return clean_environment() | {
            "PATH": f"{self.root / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "VIRTUAL_ENV": str(self.root),
            "JUPYTER_CONFIG_DIR": str(own / "config"),
            "JUPYTER_DATA_DIR": str(own / "data"),
            "JUPYTER_PREFER_ENV_PATH": "1",
        }


def clean_environment() -> dict[str, str]:
    """What both sides start from: no settings that change how Python or matplotlib start."""
    dropped = ("PYTHON", "JUPYTER", "IPYTHON", "MPL", "VIRTUAL_ENV", "QUIRE_", "COV")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


def lease(folder: Path) -> Peers:
    """The environment in `folder`: made on first use and whenever what it must hold has changed."""
    root = folder.resolve() / "peers"
    wanted = requirements()
    stamp = root / "requirements.json"
    if not stamp.exists() or json.loads(stamp.read_text()) != wanted:
        build(root, wanted)
        stamp.write_text(json.dumps(wanted))
    return Peers(root, versions(root, (*PEERS, *SAME_VERSION_AS_OURS)))


def requirements() -> list[str]:
    pinned = []
    for name in SAME_VERSION_AS_OURS:
        try:
            pinned.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            pinned.append(name)
    return [f"python{sys.version_info.major}.{sys.version_info.minor}", *PEERS, *pinned]


def build(root: Path, wanted: list[str]) -> None:
    uv = find_uv()
    print(f"making the peers' environment in {root} …", file=sys.stderr)
    interpreter = getattr(sys, "_base_executable", sys.executable)
    call([*uv, "venv", "--quiet", "--clear", "--python", interpreter, str(root)])
    python = str(root / "bin" / "python")
    # Compiled now, or the first measured run would pay for it.
    options = ["--quiet", "--compile-bytecode", "--python", python]
    call([*uv, "pip", "install", *options, *wanted[1:]])


def find_uv() -> list[str]:
    if beside := shutil.which("uv", path=str(Path(sys.executable).parent)):
        return [beside]
    if on_path := shutil.which("uv"):
        return [on_path]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise CannotMeasure("uv is not installed: `python -m pip install uv`, then try again")


def call(argv: list[str]) -> None:
    # VIRTUAL_ENV would make uv warn about, or choose, the environment of the caller.
    done = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotMeasure(f"{' '.join(argv[:3])} failed:\n{done.stderr.strip()}")


def versions(root: Path, names: tuple[str, ...]) -> dict[str, str]:
    code = (
        "import importlib.metadata as m, json, sys;"
        "print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    )
    python = str(root / "bin" / "python")
    done = subprocess.run([python, "-c", code, *names], capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotMeasure(
            f"the peers' environment in {root} is broken, delete it and try again:\n"
            f"{done.stderr.strip()}"
        )
    found: dict[str, str] = json.loads(done.stdout)
    return found
