"""`quire skill`."""

from __future__ import annotations

import click

from .main import App, emit_json
from .record_commands import relative


@click.group(epilog="Examples: quire skill install · quire skill show")
def skill() -> None:
    """What teaches agents to work with Quire."""


@skill.command(
    epilog="Examples: quire skill install · quire skill install --to ~/.hermes/skills · "
    "quire skill install --to .agents/skills --force"
)
@click.option(
    "--to",
    metavar="DIR",
    multiple=True,
    help="The folder with the skills of an agent. Repeat for more.",
)
@click.option("--force", is_flag=True, help="Also over a copy that was edited.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def install(app: App, to: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Put the skill where agents look for skills.

    Without --to that is .claude/skills and .agents/skills, where the workspace has .claude or
    .agents; otherwise .claude/skills. A second call changes nothing.
    """
    from ..agent.skill import install as put

    app.json_asked = as_json
    done = put(app.workspace(), to=to, force=force)
    if as_json:
        emit_json(app, [each.as_dict() for each in done])
        return
    for each in done:
        files = f"{len(each.written)} file{'s' if len(each.written) > 1 else ''}"
        note = f"{files} written" if each.written else "is up to date"
        app.terminal.out(f"{relative(each.folder, app.cwd)}: {note}")


@skill.command(epilog="Examples: quire skill show · quire skill show agents")
@click.argument("part", required=False, default="")
@click.pass_obj
def show(app: App, part: str) -> None:
    """Print the skill, or one part of it.

    PART is writing, commands, mcp or logbooks; or agents: a section for your AGENTS.md.
    """
    from ..agent.skill import show as text

    app.terminal.out(text(part).rstrip("\n"))
