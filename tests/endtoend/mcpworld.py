"""Real MCP clients on a scratch workspace: the SDK's own, over stdio and over HTTP."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from scratch import QUIRE, Scratch


@dataclass
class Told:
    text: str
    failed: bool
    images: list[types.ImageContent] = field(default_factory=list)

    def run_id(self) -> str:
        found = re.search(r"run (\d{4}-\d\d-\d\d-\d{6}-[a-z0-9-]+)", self.text)
        assert found, self.text
        return found[1]

    def cell(self, number: int) -> str:
        """The id of a cell of a notebook that was read."""
        found = re.search(rf"^\[{number}\] \w+ ([0-9a-f]{{10}}\S*)", self.text, re.MULTILINE)
        assert found, self.text
        return found[1]


class Agent:
    """A connected client; each call gives what its model would read."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.progress: list[tuple[float, float | None, str | None]] = []

    async def call(self, tool: str, /, **arguments: Any) -> Told:
        result = await self.client.call_tool(
            tool, {k.rstrip("_"): v for k, v in arguments.items()}, progress_callback=self._step
        )
        assert isinstance(result, types.CallToolResult)
        texts = [one.text for one in result.content if isinstance(one, types.TextContent)]
        images = [one for one in result.content if isinstance(one, types.ImageContent)]
        return Told("\n".join(texts), bool(result.is_error), images)

    async def ok(self, tool: str, /, **arguments: Any) -> Told:
        told = await self.call(tool, **arguments)
        assert not told.failed, told.text
        return told

    async def fails(self, tool: str, /, **arguments: Any) -> Told:
        told = await self.call(tool, **arguments)
        assert told.failed, told.text
        return told

    async def _step(self, done: float, total: float | None, message: str | None) -> None:
        self.progress.append((done, total, message))


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", **(extra or {})}


@asynccontextmanager
async def stdio(
    scratch: Scratch, name: str = "tester", *, env: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[Agent]:
    server = StdioServerParameters(
        command=sys.executable, args=[*QUIRE[1:], "mcp"], cwd=scratch.root, env=environment(env)
    )
    info = types.Implementation(name=name, version="1")
    async with Client(stdio_client(server), client_info=info, **options) as client:
        yield Agent(client)


@dataclass
class Served:
    url: str
    process: subprocess.Popen[str]

    @asynccontextmanager
    async def agent(self, token: str, **options: Any) -> AsyncIterator[Agent]:
        http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, timeout=httpx2.Timeout(60)
        )
        async with http, Client(streamable_http_client(self.url, http_client=http), **options) as c:
            yield Agent(c)


@contextmanager
def http(scratch: Scratch, *options: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [*QUIRE, "mcp", "--http", "127.0.0.1:0", *options],
        cwd=scratch.root,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("listening on "), line + process.stderr.read()
        yield Served(line.removeprefix("listening on ").strip(), process)
    finally:
        process.terminate()
        process.communicate(timeout=20)


def token(scratch: Scratch, agent: str, *scopes: str) -> str:
    options = [part for scope in scopes for part in ("--scope", scope)]
    done = scratch.quire("token", "create", "--agent", agent, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
