"""jupyter-mcp-server with the JupyterLab it needs, in an environment of their own."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.measure import CannotMeasure
from bench.peers import build, clean_environment, requirements, versions

SERVER = "jupyter-mcp-server"
WANTED = (f"{SERVER}==2.2.4", "jupyterlab", "jupyter-collaboration", "ipykernel")
START = 60.0  # seconds
NOTEBOOK = {
    "cells": [],
    "metadata": {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
    },
    "nbformat": 4,
    "nbformat_minor": 5,
}


@dataclass(frozen=True, slots=True)
class AgentPeer:
    root: Path
    versions: dict[str, str]

    def environment(self, url: str = "", token: str = "") -> dict[str, str]:
        own = self.root / "jupyter"
        return clean_environment() | {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "JUPYTER_CONFIG_DIR": str(own / "config"),
            "JUPYTER_DATA_DIR": str(own / "data"),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "JUPYTER_URL": url,
            "JUPYTER_TOKEN": token,
        }

    @property
    def command(self) -> str:
        return str(self.root / "bin" / SERVER)


def lease(folder: Path) -> AgentPeer:
    root = folder.resolve() / "agent-peers"
    # The libraries that the cells use are the same as ours.
    ours = [one for one in requirements()[1:] if one.startswith(("pandas", "matplotlib", "numpy"))]
    wanted = [requirements()[0], *WANTED, *ours]
    stamp = root / "requirements.json"
    if not stamp.exists() or json.loads(stamp.read_text()) != wanted:
        build(root, wanted)
        stamp.write_text(json.dumps(wanted))
    return AgentPeer(root, versions(root, (SERVER, "jupyterlab")))


@contextmanager
def lab(peer: AgentPeer, folder: Path) -> Iterator[dict[str, str]]:
    """A JupyterLab on that folder; gives the environment in which the MCP server finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "n.ipynb").write_text(json.dumps(NOTEBOOK))
    token, port = secrets.token_hex(16), free_port()
    url = f"http://127.0.0.1:{port}"
    argv = [str(peer.root / "bin" / "jupyter"), "lab", "--no-browser", "--ip=127.0.0.1"]
    argv += [f"--port={port}", f"--ServerApp.root_dir={folder}", "--allow-root"]
    environment = peer.environment(url, token)
    with open(folder / "lab.log", "wb") as log:
        process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            wait_for(port, process, folder / "lab.log")
            yield environment
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = log.read_text(errors="replace")[-1500:]
                raise CannotMeasure(f"JupyterLab did not come up:\n{tail}") from None
            time.sleep(0.1)


if __name__ == "__main__":
    print(lease(Path(sys.argv[1])))
