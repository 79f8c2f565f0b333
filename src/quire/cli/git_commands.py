"""`quire git`: what git calls by itself once `quire init` has told it to."""

from __future__ import annotations

import click


@click.group(epilog="Example: quire git clean < executed.ipynb > stripped.ipynb")
def git() -> None:
    """What git itself calls: filters, drivers and hooks.

    `quire init` writes these calls into the configuration of a clone. There is no need to say them
    by hand, but it does no harm.
    """


@git.command(epilog="Example: quire git clean < executed.ipynb > stripped.ipynb")
@click.argument("path", default="standard input")
def clean(path: str) -> int:
    """Strip a notebook, from stdin to stdout.

    Outputs, execution counts and the traces of runs go; every other byte stays. PATH is only for
    messages.
    """
    from ..git.drivers import clean as strip

    return strip(path)


@git.command(epilog="Example: git config filter.quire.process 'quire git process'")
@click.option(
    "--to",
    type=click.IntRange(min=0),
    help="Answer git on this file descriptor, and print `ready` before that.",
)
def process(to: int | None) -> int:
    """Strip many notebooks: git's protocol for filters that stay."""
    from ..git.drivers import process as serve

    return serve(to)


@git.command(
    epilog="Example: quire git diff notebooks/report.ipynb",
    context_settings={"ignore_unknown_options": True},
)
@click.option(
    "--external", is_flag=True, help="Git gives path, and file, id and mode of two sides."
)
@click.argument("words", nargs=-1, required=True)
def diff(external: bool, words: tuple[str, ...]) -> int:
    """Print a notebook as the text of its cells: git compares that."""
    from ..git.drivers import compare, textconv

    return compare(words) if external else textconv(words[0])


@git.command(
    epilog="Example: git config merge.quire.driver 'quire git merge %O %A %B %P'",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
@click.argument("path")
def merge(base: str, ours: str, theirs: str, path: str) -> int:
    """Merge BASE, OURS and THEIRS into OURS; PATH is the notebook's name. Exit 3: conflicts."""
    from ..git.drivers import merge as merged

    return merged(base, ours, theirs, path)


@git.command(
    epilog="Example: quire git hook post-merge 0",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("name")
@click.argument("args", nargs=-1)
def hook(name: str, args: tuple[str, ...]) -> int:
    """Regenerate the .ipynb of tasks after post-checkout, post-merge or post-rewrite."""
    from ..git.drivers import hook as follow

    return follow(name, args)
