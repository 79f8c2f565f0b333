"""MCP over standard input and output: for a client that starts the server itself."""

from __future__ import annotations

import secrets

import anyio
from mcp.server.stdio import stdio_server

from .mcp_server import Client, Context, Tools, said_name


def serve(root: str) -> None:
    key = f"stdio-{secrets.token_hex(8)}"  # one client for each process

    def who(ctx: Context) -> Client:
        return Client(said_name(ctx), key)

    async def main() -> None:
        server = Tools(root, who).server()
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(main)
