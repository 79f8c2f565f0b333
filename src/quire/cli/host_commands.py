"""`quire host`: the process that keeps kernels warm."""

from __future__ import annotations

import click

from .. import __version__
from ..host.host_socket import address
from ..record.summary import took
from .main import App, emit_json


@click.group(epilog="Example: quire host status")
def host() -> None:
    """Look at or stop the process that keeps kernels warm."""


@host.command(epilog="Example: quire host status --json")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on stdout.")
@click.pass_obj
def status(app: App, as_json: bool) -> None:
    """Say whether a host is there, and what it does."""
    from ..host.host_server import status as ask

    told = ask(address(str(app.workspace().root), __version__))
    if as_json:
        emit_json(app, {"alive": told is not None, **(told or {"pid": None})})
    elif told is None:
        app.terminal.out("no host; the next `quire run` starts one")
    else:
        runs = len(told["runs"])
        app.terminal.out(
            f"host {told['pid']}, up {took(told['uptime'])}, "
            f"{runs} run{'s' * (runs != 1)} under way"
        )
        for zygote in told["zygotes"]:
            version = zygote.get("python", "…")
            app.terminal.out(f"  Python {version} at {zygote['interpreter']}")


@host.command(epilog="Example: quire host stop")
@click.pass_obj
def stop(app: App) -> None:
    """Stop it. Runs under way are cancelled and keep their records."""
    from ..host.host_server import stop as end

    gone = end(address(str(app.workspace().root), __version__))
    app.terminal.out("stopped" if gone else "no host to stop")
