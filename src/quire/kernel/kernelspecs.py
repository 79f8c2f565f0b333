"""Which Jupyter kernels are installed, and what one is started with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from ..errors import KernelError, KernelNotFound

# sun_path of a Unix socket is 108 bytes, the last of them a NUL; "/k-5" follows the directory.
LONGEST_DIRECTORY = 107 - len("/k-5")


def installed(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Every installed kernel: its name and what it calls itself. Reads a few small files."""
    found: dict[str, str] = {}
    for folder in _kernel_folders(os.environ if env is None else env):
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(folder)):
                with contextlib.suppress(OSError, ValueError):
                    resource = json.loads((folder / name / "kernel.json").read_bytes())
                    found.setdefault(name.lower(), str(resource.get("display_name", name)))
    return found


def find(name: str, env: Mapping[str, str]) -> tuple[Path, Mapping[str, Any]]:
    """The directory and kernel.json of a kernel."""
    for folder in _kernel_folders(env):
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder):
                file = folder / entry / "kernel.json"
                if entry.lower() == name.lower() and file.is_file():
                    return folder / entry, _resource(name, file)
    raise _not_found(name, installed(env))


def _resource(name: str, file: Path) -> Mapping[str, Any]:
    try:
        resource = json.loads(file.read_bytes())
        if resource["argv"] and all(isinstance(word, str) for word in resource["argv"]):
            return dict(resource)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise KernelError(
        f"the kernel description of {name!r} is broken: {file}",
        hint="install the kernel again, or remove its directory",
    )


def _not_found(name: str, known: Mapping[str, str]) -> KernelNotFound:
    import difflib

    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    listed = ", ".join(known) or "none"
    return KernelNotFound(
        f"there is no Jupyter kernel {name!r}; installed: {listed}",
        hint=(f"did you mean {near[0]!r}? " if near else "")
        + "for a Python notebook of another machine give --kernel python3 or --python PATH;"
        " otherwise install the kernel with its own tool, or add its directory to JUPYTER_PATH",
    )


def _kernel_folders(env: Mapping[str, str]) -> list[Path]:
    """Where Jupyter looks, in its order, by the caller's environment instead of ours."""
    roots = [Path(p) for p in env.get("JUPYTER_PATH", "").split(os.pathsep) if p]
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    data = env.get("JUPYTER_DATA_DIR") or os.path.join(
        env.get("XDG_DATA_HOME") or home / ".local" / "share", "jupyter"
    )
    shared = [Path(sys.prefix) / "share" / "jupyter", Path(data)]
    # Jupyter prefers the virtual environment's kernels to the user's, and the user's otherwise.
    roots += shared if sys.prefix != sys.base_prefix else shared[::-1]
    roots += [Path("/usr/local/share/jupyter"), Path("/usr/share/jupyter")]
    return [root / "kernels" for root in roots]


# What a kernel is started with


def private_directory() -> str:
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) + len("/quire-12345678") > LONGEST_DIRECTORY:
        base = "/tmp"  # mkdtemp makes a 0700 directory in it
    return tempfile.mkdtemp(prefix="quire-", dir=base)


def write_connection_file(path: str, name: str) -> Mapping[str, Any]:
    """Written here rather than by jupyter_client, so that the kernel starts during its import."""
    channels = ("shell", "iopub", "stdin", "control", "hb")
    content: dict[str, Any] = {f"{c}_port": number for number, c in enumerate(channels, 1)}
    content |= {"transport": "ipc", "ip": f"{os.path.dirname(path)}/k", "kernel_name": name}
    content |= {"key": secrets.token_hex(32), "signature_scheme": "hmac-sha256"}
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(content, file)
    return content


def command(
    resource: Mapping[str, Any], directory: Path, connection_file: str, python: str = ""
) -> list[str]:
    """`python`: the interpreter of the task's environment, where it has one."""
    argv = list(resource["argv"])
    if re.fullmatch(r"python(3(\.\d+)?)?", argv[0]) or argv[0] == sys.executable:
        # Jupyter's rule: a bare python means the one Quire runs in, whatever PATH says.
        argv[0] = python or sys.executable
    known = {"connection_file": connection_file, "prefix": sys.prefix}
    known["resource_dir"] = str(directory)
    argv = [re.sub(r"\{(\w+)\}", lambda m: known.get(m[1], m[0]), word) for word in argv]
    if any(word in ("ipykernel_launcher", "ipykernel") for word in argv):
        # A task is not part of a person's interactive history.
        argv.append("--HistoryManager.hist_file=:memory:")
    return argv


def environment(env: Mapping[str, str], resource: Mapping[str, Any]) -> dict[str, str]:
    added = {
        key: Template(str(value)).safe_substitute(env)
        for key, value in (resource.get("env") or {}).items()
    }
    return {**env, **added}
