"""`quire token`: who may come in over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..record.summary import one_line
from .main import App, emit_json

if TYPE_CHECKING:
    from ..agent.token_file import Token


@click.group(epilog="Example: quire token create --agent reviewer --scope read --scope review")
def token() -> None:
    """Tokens for agents that come in over HTTP."""


@token.command(epilog="Example: quire token create --agent nightly --scope run --json")
@click.option("--agent", required=True, metavar="NAME", help="Who it is for; records name them.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["read", "run", "write", "review"]),
    help="What they may do; may be given several times. All may read.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def create(app: App, agent: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Make a token and print it. It cannot be shown again."""
    from ..agent.tokens import create as make

    app.json_asked = as_json
    made, text = make(app.workspace(), agent, scopes)
    if as_json:
        emit_json(app, {**_data(made), "token": text})
    else:
        app.terminal.out(text)
        app.terminal.err(
            f"for {made.agent}, who may {', '.join(made.scopes)}. It is shown only this once."
        )


@token.command("list", epilog="Example: quire token list --json")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def list_(app: App, as_json: bool) -> None:
    """List tokens: whose they are and what they allow."""
    from ..agent.tokens import tokens

    app.json_asked = as_json
    found = tokens(app.workspace()).all()
    if as_json:
        emit_json(app, [_data(one) for one in found])
        return
    if not found:
        app.terminal.err("There are no tokens.")
    for one in found:
        agent, scopes = one_line(one.agent), ", ".join(one.scopes)
        app.terminal.out(f"{one.id}  {agent:<20}  {scopes:<24}  {one.created}")


@token.command(epilog="Example: quire token revoke 3f2a9c01")
@click.argument("token_id", metavar="ID")
@click.pass_obj
def revoke(app: App, token_id: str) -> None:
    """Take a token back. Its next request is refused."""
    from ..agent.tokens import revoke as take_back

    gone = take_back(app.workspace(), token_id)
    app.terminal.out(f"revoked {gone.id} of {one_line(gone.agent)}")


def _data(one: Token) -> dict[str, Any]:
    return {
        "id": one.id,
        "agent": one.agent,
        "scopes": list(one.scopes),
        "created": one.created,
    }
