"""From a description to a proposal, call by call, as an agent lives it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcpworld
import pytest
from mcpworld import Told

from scratch import QUIRE, Scratch

PATH = "notebooks/squares.py"
BROKEN = "squares = [n * n for n in range(1, limit)]\nlargest = max(squared)"
MENDED = "squares = [n * n for n in range(1, limit)]\nlargest = max(squares)"
Call = Callable[..., Awaitable[Told]]


async def story(call: Call) -> str:
    """`call` is one of any client; the run's id comes back."""

    async def ok(tool: str, **arguments: Any) -> Told:
        told = await call(tool, **arguments)
        assert not told.failed, told.text
        return told

    created = await ok("notebook_create", task_description="Report the squares", path=PATH)
    assert created.text.startswith(f"created {PATH}")
    assert "waits for you: cell" in created.text
    await empty(ok)
    await ok("notebook_edit", path=PATH, cell_index=0, new_source="# Report the squares")
    await ok(
        "notebook_edit", path=PATH, cell=0, insert="after", new_source="Squares.", kind="markdown"
    )
    parameters = "limit: int = 5  # below which"
    await ok(
        "notebook_edit",
        path=PATH, cell=1, insert="after", new_source=parameters, tags=["parameters"],
    )  # fmt: skip
    await ok("notebook_edit", path=PATH, cell=2, insert="after", new_source=BROKEN, title="work")
    report = 'from quire.runtime import glue\n\nglue("largest", largest)'
    edited = await ok("notebook_edit", path=PATH, cell="work", insert="after", new_source=report)
    assert re.search(r"cell 4 is now [0-9a-f]{10}", edited.text)
    assert "squared is not defined above" in edited.text

    failed = await call("notebook_execute", path=PATH, parameters={"limit": 7})
    assert failed.failed
    assert failed.text.startswith("failed")
    assert "NameError" in failed.text
    assert re.search(r"\| > 2  largest = max\(squared\)", failed.text)
    step = re.search(r'notebook_execute\(path=.*resume="([^"]+)"\)', failed.text)
    assert step, failed.text

    read = await ok("notebook_read", path=PATH)
    stale = read.cell(3)
    mended = await ok(
        "notebook_edit", path=PATH, cell=stale, find="max(squared)", replace="max(squares)"
    )
    assert "| +largest = max(squares)" in mended.text
    refused = await call("notebook_edit", path=PATH, cell=stale, new_source="pass")
    assert refused.failed
    resumed = await ok("notebook_execute", path=PATH, resume=step[1])
    assert "resumed: goes on with" in resumed.text
    assert "largest" in resumed.text
    assert "36" in resumed.text

    opened = await ok("notebook_session", action="open", path=PATH, parameters={"limit": 6})
    assert "session squares is open" in opened.text
    ran = await ok("notebook_session", action="exec", session="squares", cells="all")
    assert ran.text.startswith("ok")
    seen = await ok("notebook_session", action="vars", session="squares")
    assert "| largest: int" in seen.text
    again = await ok("notebook_session", action="rewind", session="squares", cell="work")
    assert "is as it was before" in again.text
    await ok("notebook_session", action="exec", session="squares", cells="3-")
    promoted = await ok("notebook_session", action="promote", session="squares")
    assert f"written: {PATH}" in promoted.text
    run_id = re.search(r"clean run (\S+)", promoted.text)
    assert run_id
    await ok("notebook_session", action="close", session="squares")

    committed = await ok("notebook_commit", path=PATH, message="Report the squares")
    assert "on report-the-squares (new)" in committed.text
    proposed = await ok(
        "notebook_pr",
        branch="report-the-squares", title="Report the squares", description="For the report.",
    )  # fmt: skip
    assert "opened proposal 1: report-the-squares into main" in proposed.text
    assert re.search(rf"{PATH}: ok, ", proposed.text)
    found = await ok("run_find", path=PATH, outcome="failed")
    assert step[1] in found.text
    assert run_id[1] not in found.text
    shown = await ok("run_show", run=run_id[1])
    assert "25" in shown.text
    waited = await ok("run_wait", run=run_id[1])
    assert waited.text.startswith("ok")
    return run_id[1]


async def empty(ok: Call) -> None:
    """Take out what was drafted, but for the title: this story writes its own cells."""
    while True:
        cells = (await ok("notebook_read", path=PATH)).text.count("\n[")
        if cells <= 1:
            return
        await ok("notebook_edit", path=PATH, cell_index=1, delete=True)


def asked_by(repo: Scratch, run_id: str) -> str:
    record = json.loads(repo.quire("show", run_id, "--json").stdout)
    by: str = record["origin"]["asked"]["by"]
    return by


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_stdio(repo: Scratch, mode: str) -> None:
    async def live() -> str:
        async with mcpworld.stdio(repo, "squarer", mode=mode) as agent:
            return await story(agent.call)

    assert asked_by(repo, asyncio.run(live())) == "squarer"


def test_over_http(repo: Scratch) -> None:
    secret = mcpworld.token(repo, "nightly", "run", "write", "review")

    async def live(served: mcpworld.Served) -> str:
        async with served.agent(secret, mode="legacy") as agent:
            return await story(agent.call)

    with mcpworld.http(repo) as served:
        assert asked_by(repo, asyncio.run(live(served))) == "nightly"


def test_through_the_command(repo: Scratch) -> None:
    """An agent without MCP gets the same texts."""

    async def call(tool: str, **arguments: Any) -> Told:
        done = repo.quire(
            "tools", "call", tool, json.dumps(arguments), env={"QUIRE_ACTOR": "shell"}
        )
        assert done.returncode in (0, 1), done.stderr
        return Told(done.stdout, done.returncode == 1)

    assert asked_by(repo, asyncio.run(story(call))) == "shell"


def inspector() -> str:
    """The inspector's command, where it is installed or npm can get it."""
    found = os.environ.get("QUIRE_INSPECTOR") or shutil.which("mcp-inspector")
    if found:
        return found
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not here, so @modelcontextprotocol/inspector cannot be had")
    folder = Path("/tmp") / f"quire-inspector-{os.getuid()}"
    command = folder / "node_modules" / ".bin" / "mcp-inspector"
    if not command.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "@modelcontextprotocol/inspector"],
            cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if done.returncode or not command.exists():
            pytest.skip(f"npm could not install the inspector: {done.stderr[-300:]}")
    return str(command)


@pytest.mark.torture
def test_through_the_inspector(repo: Scratch) -> None:
    command = inspector()

    def ask(*args: str) -> Any:
        done = subprocess.run(
            [command, "--cli", *QUIRE, "mcp", *args],
            cwd=repo.root, env=mcpworld.environment(), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    async def call(tool: str, **arguments: Any) -> Told:
        given: list[str] = []
        for name, value in arguments.items():
            text = value if isinstance(value, str) else json.dumps(value)
            given += ["--tool-arg", f"{name}={text}"]
        told = ask("--method", "tools/call", "--tool-name", tool, *given)
        text = "".join(one["text"] for one in told["content"] if one["type"] == "text")
        return Told(text, bool(told.get("isError")))

    listed = ask("--method", "tools/list")
    assert len(listed["tools"]) == 11
    assert asyncio.run(story(call))
