"""`quire mcp`: the server that agents talk to."""

from __future__ import annotations

import os

import click

from ..errors import UsageError
from .main import App


@click.command(
    epilog="""Examples:

\b
  claude mcp add quire -- quire mcp
  quire mcp --http 127.0.0.1:8787
  quire mcp --http 0.0.0.0:8787 --allow-host notebooks.example.org
"""
)
@click.option("--http", "address", metavar="HOST:PORT", help="Listen here instead of on stdin.")
@click.option("--workspace", metavar="DIR", help="The folder to work in; else the current one.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Also answer to this Host."
)
@click.option(
    "--allow-origin", "origins", multiple=True, metavar="URL", help="Let pages from here ask."
)
@click.pass_obj
def mcp(
    app: App,
    address: str | None,
    workspace: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> int:
    """Serve agents over MCP: on stdin and stdout, or with --http over the network.

    Over HTTP every request needs a token: see `quire token create`.
    """
    if workspace is not None:
        folder = app.cwd / workspace
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}", hint="give --workspace one that is")
        os.chdir(folder)
        app.cwd = folder
    ws = app.workspace()
    _ = ws.config  # what is wrong with it is said now, not to an agent
    if address is None:
        if hosts or origins:
            raise UsageError("--allow-host and --allow-origin need --http", hint="add --http")
        from ..mcp.stdio import serve

        serve(str(ws.root.resolve()))
        return 0
    from ..mcp.http import listen

    listen(app, ws, address, hosts, origins)
    return 0
