"""The door to the network: tokens, names, sizes, and fifty thousand who only say hello."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import mcpworld
import pytest
from mcp import MCPError
from mcpworld import Served

from scratch import Scratch

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def secret(scratch: Scratch) -> str:
    return mcpworld.token(scratch, "tester", "run", "write")


@pytest.fixture
def served(scratch: Scratch, secret: str) -> Iterator[Served]:
    with mcpworld.http(scratch) as served:
        yield served


def post(served: Served, secret: str | None, body: Any = HELLO, **headers: str) -> httpx2.Response:
    given = {**ACCEPT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if secret is not None:
        given["Authorization"] = f"Bearer {secret}"
    return httpx2.post(served.url, json=body, headers=given, timeout=30)


def test_without_a_token_nothing_is_served(scratch: Scratch) -> None:
    done = scratch.quire("mcp", "--http", "127.0.0.1:0")
    assert done.returncode == 2
    assert "quire token create" in done.stderr


def test_only_a_whole_token_opens(served: Served, secret: str) -> None:
    assert post(served, secret).status_code == 200
    wrong = [
        None, "quire", secret[:-1], secret + "x", secret.upper(), f" {secret} x",
        secret.rpartition("_")[0] + "_" + "A" * 43, "quire_00000000_" + "A" * 43,
    ]  # fmt: skip
    for text in wrong:
        refused = post(served, text)
        assert refused.status_code == 401, text
        assert refused.headers["WWW-Authenticate"] == "Bearer"
        # As a whole: without a scope the command is refused.
        assert "quire token create --agent NAME --scope " in refused.json()["error"]["hint"]
    basic = post(served, None, Authorization=f"Basic {secret}")
    assert basic.status_code == 401


def test_the_names_must_be_right(served: Served, secret: str) -> None:
    port = served.url.split(":")[2].split("/")[0]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port}.x",
                 f"localhost.evil.example:{port}", f"127.0.0.1:{int(port) - 1}"):  # fmt: skip
        assert post(served, secret, Host=host).status_code == 421, host
    assert post(served, secret, Host=f"LOCALHOST:{port}").status_code == 200
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}",
                   f"http://127.0.0.1:{port}.evil.example", "http://127.0.0.1"):  # fmt: skip
        assert post(served, secret, Origin=origin).status_code == 403, origin
    assert post(served, secret, Origin=f"http://127.0.0.1:{port}").status_code == 200


def test_names_can_be_allowed(scratch: Scratch, secret: str) -> None:
    allowed = ("--allow-host", "notebooks.example", "--allow-origin", "https://ide.example")
    with mcpworld.http(scratch, *allowed) as served:
        told = post(served, secret, Host="notebooks.example", Origin="https://ide.example")
        assert told.status_code == 200
        assert post(served, secret, Origin="https://other.example").status_code == 403


def test_too_much_is_refused(served: Served, secret: str) -> None:
    assert post(served, secret, {**HELLO, "x": "y" * (5 << 20)}).status_code == 413
    assert post(served, secret, "not a request").status_code == 400
    assert post(served, secret).status_code == 200


def test_a_session_belongs_to_its_token(scratch: Scratch, served: Served, secret: str) -> None:
    other = mcpworld.token(scratch, "other", "read")
    session = post(served, secret).headers["mcp-session-id"]
    assert post(served, other, LIST, Mcp_Session_Id=session).status_code == 404
    assert post(served, secret, LIST, Mcp_Session_Id=session).status_code == 200
    made_up = post(served, secret, LIST, Mcp_Session_Id="0" * 32)
    assert made_up.status_code == 404


def test_a_token_taken_back_is_refused_at_once(
    scratch: Scratch, served: Served, secret: str
) -> None:
    session = post(served, secret).headers["mcp-session-id"]
    (known,) = json.loads(scratch.quire("token", "list", "--json").stdout)
    assert scratch.quire("token", "revoke", known["id"]).returncode == 0
    assert post(served, secret, LIST, Mcp_Session_Id=session).status_code == 401
    again = scratch.quire("token", "revoke", known["id"])
    assert again.returncode == 2
    assert "quire token list" in again.stderr


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_token_allows_what_its_scopes_say(scratch: Scratch, served: Served, mode: str) -> None:
    scratch.write("a.py", "# %%\nx = 1\n")
    reader = mcpworld.token(scratch, "reader", "read")
    runner = mcpworld.token(scratch, "runner", "run")

    async def live() -> None:
        async with served.agent(reader, mode=mode) as agent:
            names = {tool.name for tool in (await agent.client.list_tools()).tools}
            assert names == {"notebook_read", "run_find", "run_show", "run_wait"}
            await agent.ok("notebook_read", path="a.py")
            for tool in ("notebook_execute", "notebook_edit", "notebook_pr", "notebook_session"):
                refused = await agent.fails(tool, path="a.py")
                assert "error (scope)" in refused.text
        async with served.agent(runner, mode=mode) as agent:
            await agent.ok("notebook_execute", path="a.py")
            await agent.ok("notebook_session", action="exec", path="a.py", cells="all")
            for tool, more in (("notebook_edit", {}), ("notebook_session", {"action": "promote"})):
                refused = await agent.fails(tool, path="a.py", **more)
                assert "lacks the scope write" in refused.text

    asyncio.run(live())
    assert (scratch.root / "a.py").read_text() == "# %%\nx = 1\n"


def test_tokens_are_kept_as_digests_for_the_owner_only(scratch: Scratch) -> None:
    secret = mcpworld.token(scratch, "nightly", "run")
    path = scratch.root / ".quire" / "tokens.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret.rpartition("_")[2] not in path.read_text()
    for args in (("list",), ("list", "--json")):
        told = scratch.quire("token", *args).stdout
        assert "nightly" in told
        assert secret.rpartition("_")[2] not in told
        assert json.loads(path.read_text())[0]["digest"] not in told
    for agent in ("", "a\nb", "x" * 65, "\x1b[31m"):
        done = scratch.quire("token", "create", "--agent", agent, "--scope", "run")
        assert done.returncode == 2, agent


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_questions_reach_the_person_over_http(
    scratch: Scratch, served: Served, secret: str, mode: str
) -> None:
    scratch.write("needs.py", '# %% tags=["parameters"]\nregion: str\n\n# %%\nprint(region)\n')

    async def answer(ctx: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"region": "the north"})

    async def live() -> None:
        async with served.agent(secret, mode=mode, elicitation_callback=answer) as agent:
            told = await agent.ok("notebook_execute", path="needs.py")
            assert "| the north" in told.text

    asyncio.run(live())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("asked", [True, False])
def test_cancelling_over_http(
    scratch: Scratch, served: Served, secret: str, mode: str, *, asked: bool
) -> None:
    scratch.write("slow.py", SLOW)

    async def live() -> None:
        async with served.agent(secret, mode=mode) as agent:
            async with anyio.create_task_group() as tasks:

                async def execute() -> None:
                    await agent.call(
                        "notebook_execute", path="slow.py", wait=60, cancel_with_request=asked
                    )

                tasks.start_soon(execute)
                while not (scratch.root / "begun").exists():
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
            if not asked:
                (scratch.root / "go").touch()
            over = await agent.call("run_wait", run="last", timeout=60)
            assert over.text.startswith("cancelled" if asked else "ok"), over.text

    asyncio.run(live())


SLOW = """# %%
import pathlib, time
pathlib.Path("begun").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.01)
"""


async def greet(served: Served, secret: str, times: int) -> int:
    """Say hello again and again, and never come back."""
    limits = httpx2.Limits(max_connections=8)
    headers = {**ACCEPT, "Authorization": f"Bearer {secret}"}
    good = 0
    async with httpx2.AsyncClient(headers=headers, limits=limits, timeout=60) as client:
        for _ in range(times // 8):
            async with anyio.create_task_group() as tasks:

                async def one() -> None:
                    nonlocal good
                    told = await client.post(served.url, json=HELLO)
                    good += told.status_code == 200

                for _ in range(8):
                    tasks.start_soon(one)
    return good


def memory(served: Served) -> int:
    """Bytes of the server's memory."""
    text = Path(f"/proc/{served.process.pid}/status").read_text()
    line = next(line for line in text.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def check_many_greetings(served: Served, secret: str, times: int, growth: int) -> None:
    asyncio.run(greet(served, secret, 160))  # what a first use loads is loaded
    first = post(served, secret).headers["mcp-session-id"]
    before = memory(served)
    assert asyncio.run(greet(served, secret, times)) == times
    assert memory(served) - before < growth
    # The sessions that were left behind are gone; who comes now is served.
    assert post(served, secret, LIST, Mcp_Session_Id=first).status_code == 404
    session = post(served, secret).headers["mcp-session-id"]
    assert post(served, secret, LIST, Mcp_Session_Id=session).status_code == 200


def test_many_who_only_say_hello(served: Served, secret: str) -> None:
    check_many_greetings(served, secret, 400, 20 << 20)


@pytest.mark.torture
def test_fifty_thousand_who_only_say_hello(served: Served, secret: str) -> None:
    check_many_greetings(served, secret, 50_000, 40 << 20)


def test_a_session_in_use_is_not_the_one_that_goes(scratch: Scratch, served: Served) -> None:
    """While one waits for a run, others of the same token come and go."""
    scratch.write("slow.py", SLOW)
    secret = mcpworld.token(scratch, "busy", "run")

    async def live() -> None:
        async with served.agent(secret, mode="legacy") as agent, anyio.create_task_group() as tasks:

            async def execute() -> None:
                told = await agent.ok("notebook_execute", path="slow.py", wait=60)
                assert told.text.startswith("ok")

            tasks.start_soon(execute)
            while not (scratch.root / "begun").exists():
                await anyio.sleep(0.01)
            await greet(served, secret, 80)
            (scratch.root / "go").touch()

    asyncio.run(live())


def test_a_client_without_a_token_hears_why(served: Served) -> None:
    async def live() -> None:
        async with served.agent("quire_00000000_" + "A" * 43, mode="legacy"):
            pass

    with pytest.raises((MCPError, httpx2.HTTPStatusError, ExceptionGroup)):
        asyncio.run(live())
