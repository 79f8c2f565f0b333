"""Clients that people use, connected with the very lines of docs/mcp.md. None of them needs a model
for that, or a network.

They are taken from PATH, or from the folder that QUIRE_CLIENTS names.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcpworld
import pytest

from scratch import Scratch

pytestmark = pytest.mark.torture

PAGE = Path(__file__).parent.parent.parent / "docs" / "mcp.md"
CLIENTS = ("claude", "codex", "gemini", "opencode")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
PATIENCE = 120  # seconds; some of them start slowly


@dataclass
class Installed:
    """A client with a home of its own."""

    name: str
    home: Path
    root: Path

    def environment(self) -> dict[str, str]:
        quire = Path(sys.executable).parent
        clients = os.environ.get("QUIRE_CLIENTS", "")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "QUIRE_"))}
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": os.pathsep.join(filter(None, (str(quire), clients, os.environ["PATH"]))),
            "NO_COLOR": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        }

    def does(self, line: str, **env: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.root, env={**self.environment(), **env}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        return ANSI.sub("", done.stdout)

    def is_connected(self, **env: str) -> bool:
        """Whether its own check says that it talks with the server."""
        if self.name == "codex":
            return self._codex_has_tools(env)
        told = self.does(f"{self.name} mcp list", **env)
        lines = [line for line in told.split("\n") if re.search(r"\bquire\b", line)]
        assert lines, told
        return re.search(r"[✔✓]", lines[0]) is not None

    def _codex_has_tools(self, env: dict[str, str]) -> bool:
        """Its `mcp list` does not connect; what its editors use does."""
        server = subprocess.Popen(
            ["codex", "app-server"],
            cwd=self.root, env={**self.environment(), **env}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            about = {"name": "quire", "title": "quire", "version": "1"}
            self._asked(server, 1, "initialize", {"clientInfo": about})
            listed = self._asked(server, 2, "mcpServerStatus/list", {})
        finally:
            server.terminate()
            server.communicate(timeout=20)
        (found,) = listed["data"]
        assert found["name"] == "quire"
        return "notebook_read" in found["tools"]

    def _asked(
        self, server: subprocess.Popen[str], number: int, method: str, params: dict[str, Any]
    ) -> Any:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
        server.stdin.flush()
        for line in server.stdout:
            message = json.loads(line)
            if message.get("id") == number and "result" in message:
                return message["result"]
        raise AssertionError("codex said nothing")


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, repo: Scratch, tmp_path: Path) -> Installed:
    home = tmp_path / "home"
    home.mkdir()
    found = Installed(request.param, home, repo.root)
    if shutil.which(found.name, path=found.environment()["PATH"]) is None:
        pytest.skip(f"{found.name} is not installed: neither on PATH nor in QUIRE_CLIENTS")
    return found


def page_says(client: str, kind: str) -> str:
    """What docs/mcp.md shows for it: a command, or the text of its file of settings."""
    page = PAGE.read_text()
    if client == "opencode":
        blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
        (text,) = [one for one in blocks if "opencode" in one and f'"{kind}"' in one]
        return str(text)
    over_http = kind == "remote"
    lines = re.findall(rf"^\$ ({client} mcp add .*)$", page, re.MULTILINE)
    (line,) = [one for one in lines if ("http://" in one) == over_http]
    return str(line)


def set_up(client: Installed, text: str, **env: str) -> None:
    if client.name == "opencode":
        (client.root / "opencode.json").write_text(text)
    else:
        client.does(text, **env)


def test_over_stdio(client: Installed) -> None:
    said = page_says(client.name, "local")
    set_up(client, said.replace("/home/ada/reports", shlex.quote(str(client.root))))
    assert client.is_connected()


def test_over_http(client: Installed, repo: Scratch) -> None:
    secret = mcpworld.token(repo, "them", "run")
    with mcpworld.http(repo) as served:
        said = page_says(client.name, "remote").replace("http://127.0.0.1:8787/mcp", served.url)
        set_up(client, said, QUIRE_TOKEN=secret)
        assert client.is_connected(QUIRE_TOKEN=secret)
        (known,) = json.loads(repo.quire("token", "list", "--json").stdout)
        assert repo.quire("token", "revoke", known["id"]).returncode == 0
        assert not client.is_connected(QUIRE_TOKEN=secret)
