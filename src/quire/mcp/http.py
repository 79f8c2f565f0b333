"""MCP over streamable HTTP: for agents on other machines, and for several at once."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette

from ..agent.tokens import tokens
from ..cli.main import App
from ..errors import UsageError
from .access import Guard
from .mcp_server import Client, Context, Tools

if TYPE_CHECKING:
    from ..workspace import Workspace

BODY = 4 << 20  # bytes of one request
IDLE = 1800.0  # seconds after which an unused session ends
ALL_SESSIONS = 1024
PATH = "/mcp"


def listen(
    app: App, ws: Workspace, address: str, hosts: Sequence[str], origins: Sequence[str]
) -> None:
    """Until it is told to stop."""
    host, port = _parsed(address)
    known = tokens(ws)
    if not known.all():
        raise UsageError(
            "there is no token yet, and nobody may come in without one",
            hint="quire token create --agent NAME --scope run --scope write",
        )
    sock = _bound(host, port)
    port = sock.getsockname()[1]
    names = _names(host, port, hosts)
    guard = Guard(_app(str(ws.root.resolve())), known.check, names, _origins(names, origins))
    shown = f"[{host}]" if ":" in host else host
    app.terminal.err(f"listening on http://{shown}:{port}{PATH}")
    if not _is_loopback(host):
        app.terminal.err("warning: this is plain HTTP on the network; put TLS in front of it")
    server = uvicorn.Server(
        uvicorn.Config(
            guard,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=64 << 10,
        )
    )
    asyncio.run(server.serve(sockets=[sock]))


def _app(root: str) -> Starlette:
    server = Tools(root, _who).server()
    # Host and Origin are the guard's, which knows the port and stands before everything.
    return server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=BODY,
        session_idle_timeout=IDLE,
        max_sessions=ALL_SESSIONS,
        host="",
    )


def _who(ctx: Context) -> Client:
    """The token says who it is; what the client calls itself does not count."""
    assert ctx.request is not None
    token = ctx.request.scope["quire.token"]
    session = ctx.request.headers.get("mcp-session-id", "")
    return Client(token.agent, f"http-{token.id}-{session}", token.scopes)


def _parsed(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{address!r} is no address", hint="such as --http 127.0.0.1:8787")
    return host, int(port)


def _bound(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, proto, _, where = found[0]
        sock = socket.socket(family, kind, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(128)  # so that it is true when we say so
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint="choose another port, or an address of this machine",
        ) from error
    return sock


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names(host: str, port: int, more: Sequence[str]) -> list[str]:
    """The Host headers that are right, with the port as a client writes it."""
    own = [f"[{host}]" if ":" in host else host]
    if _is_loopback(host):
        own += ["127.0.0.1", "localhost", "[::1]"]
    names = [f"{name}:{port}" for name in own]
    if port == 80:
        names += own
    for name in more:
        # Behind a proxy the port is another one, or none.
        names += [name] if name.rpartition(":")[2].isdigit() else [name, f"{name}:{port}"]
    return [name.lower() for name in dict.fromkeys(names)]


def _origins(names: Sequence[str], more: Sequence[str]) -> list[str]:
    own = [f"http://{name}" for name in names]
    return [origin.lower().rstrip("/") for origin in (*own, *more)]
