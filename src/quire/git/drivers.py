"""What git itself calls, without the command line around it: each add and checkout pays for it.

`quire.cli.client` asks here first. What is asked in another way than git asks goes to click, which
explains itself (`cli/git_commands.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def answer(argv: Sequence[str]) -> int | None:
    """Do what git wants, and return the exit code; None if these are not git's own words."""
    if any(word in ("-h", "--help") for word in argv[:2]):
        return None
    match list(argv):
        case ["clean"] | ["clean", _]:
            return clean(argv[1] if len(argv) > 1 else "standard input")
        case ["process"]:
            return process()
        case ["process", "--to", number] if number.isdecimal():
            return process(int(number))
        case ["diff", "--external", *words] if words:
            return compare(words)
        case ["diff", path] if not path.startswith("-"):
            return textconv(path)
        case ["merge", base, ours, theirs, path]:
            return merge(base, ours, theirs, path)
        case ["hook", name, *args] if not name.startswith("-"):
            return hook(name, args)
    return None


def clean(name: str) -> int:
    from .filters import strip

    data, warning = strip(sys.stdin.buffer.read())
    if warning:
        say(f"{name}: {warning}")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    return 0


def process(to: int | None = None) -> int:
    """With `to`, a file descriptor, git is there, and stdout is told that the filter has begun."""
    from .filters import serve

    def ready() -> None:
        print("ready", flush=True)

    try:
        if to is None:
            serve(sys.stdin.buffer, sys.stdout.buffer, say)
        else:
            with open(to, "wb") as out:
                serve(sys.stdin.buffer, out, say, ready)
    except (EOFError, BrokenPipeError):
        pass  # git left, or was stopped
    except ValueError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"file descriptor {to}: {error.strerror}")
        return 2
    return 0


def textconv(path: str) -> int:
    from .diff_driver import readable

    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        say(f"cannot read {path}: {error.strerror}")
        return 2
    # Git names a file of the working tree by its path there, and anything else by a whole one. What
    # is in the working tree has its outputs to itself: they are stripped on their way into git.
    return _print(readable(data, outputs=path.startswith("/")))


def compare(words: Sequence[str]) -> int:
    from .diff_driver import compared

    return _print(compared(words))


def _print(text: str) -> int:
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # A reader that left (`| head`) is no failure; nothing more is to be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def merge(base: str, ours: str, theirs: str, path: str) -> int:
    """The result goes where OURS was, as git wants it. 3 where a person has to look."""
    from pathlib import Path

    from . import merge_driver
    from .hooks import told_repository

    repository = told_repository(Path.cwd(), os.environ)
    if repository is None:
        say(f"{path}: not merged: there is no repository here")
        return 129
    sides = [Path(name).read_bytes() for name in (base, ours, theirs)]
    merged = merge_driver.merge(repository, sides[0], sides[1], sides[2], path)
    Path(ours).write_bytes(merged.data)
    if merged.told:
        say(merged.told)
    return merge_driver.CONFLICT if merged.conflict else 0


def hook(name: str, args: Sequence[str]) -> int:
    """Always 0: the exit status of a hook can be that of the checkout."""
    from pathlib import Path

    from . import hooks

    if name in hooks.HOOKS:
        for line in hooks.hook(name, args, Path.cwd(), os.environ):
            say(line)
    return 0


def say(text: str) -> None:
    """A line for the user of git, who may see it among git's own."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    sys.stderr.write(f"quire: {shown}\n")
    sys.stderr.flush()
