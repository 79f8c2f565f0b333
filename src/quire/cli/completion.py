"""`quire completion`."""

from __future__ import annotations

import click

from .main import App, cli


@click.command(epilog='Example: eval "$(quire completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def completion(app: App, shell: str) -> None:
    """Print a completion script for your shell."""
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None
    app.terminal.out(maker(cli, {}, "quire", "_QUIRE_COMPLETE").source())
