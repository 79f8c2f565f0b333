"""`quire tools`: the agent's tools without MCP."""

from __future__ import annotations

import json
import sys

import click

from ..errors import UsageError
from .main import App, emit_json


@click.group(
    invoke_without_command=True,
    epilog="Examples: quire tools --format openai · quire tools call run_find '{}'",
)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["openai", "anthropic", "hermes"]),
    help="Print the tools as this model's function schemas.",
)
@click.pass_context
def tools(ctx: click.Context, shape: str | None) -> None:
    """The tools an agent gets over MCP: as function schemas, or called one by one."""
    from ..agent.tool_definitions import TOOLS
    from ..agent.tool_schemas import schemas

    if ctx.invoked_subcommand is not None:
        return
    app: App = ctx.obj
    if shape is not None:
        emit_json(app, schemas(shape))
        return
    width = max(len(tool.name) for tool in TOOLS)
    for tool in TOOLS:
        app.terminal.out(f"{tool.name:<{width}}  {tool.about.split('. ')[0].split(': ')[0]}")


@tools.command(
    epilog="""Example: quire tools call notebook_read '{"path": "notebooks/report.py"}'"""
)
@click.argument("name")
@click.argument("arguments", default="{}", metavar="[JSON]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def call(app: App, name: str, arguments: str, as_json: bool) -> int:
    """Call one tool and print what an agent would read.

    JSON is an object with its arguments; `-` reads it from stdin. Exit code: 1 if the answer is an
    error.
    """
    from ..agent.call_client import ToolCall

    app.json_asked = as_json
    text = sys.stdin.read() if arguments == "-" else arguments
    try:
        given = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the arguments are no JSON: {error}", hint="such as '{}'") from error
    if not isinstance(given, dict):
        raise UsageError("the arguments must be a JSON object", hint="such as '{}'")
    root = str(app.workspace().root.resolve())
    told = ToolCall(root, name, given, app.env, _caller(app)).run()
    if as_json:
        images = [{"mime": mime, "data": data} for mime, data in told.images]
        emit_json(app, {"text": told.text, "images": images, "failed": told.failed})
    else:
        app.terminal.out(told.text)
        if told.images:
            app.terminal.err(f"{len(told.images)} images; --json has them")
    return 1 if told.failed else 0


def _caller(app: App) -> str:
    """Calls of one agent belong together where it says who it is."""
    actor = app.env.get("QUIRE_ACTOR", "")
    return f"command-{actor}" if actor else ""
