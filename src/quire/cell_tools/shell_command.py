"""Commands for a cell: which may run, and running one so that no process outlives the call."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ..errors import Refused, ToolError
from ..kernel.exit_status import Exit
from ..kernel.kept_process import Keeper

TICK = 0.05
LONGEST = 100_000  # characters of a command
# Where patterns decide, there is no shell: what needs one outside of quotes is refused, and in
# double quotes `$` and the backtick, before which their match ends.
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\$`]|\\.)*(?:"|(?=[$`])|\Z)|\\.""", re.DOTALL)
_SHELL = re.compile(r"[;&|<>()$`\n\r*?\[]|(?:^|\s)[~#]")
KEEPER_GONE = "the process that kept it was ended, and it with that"
# The words of the command are arguments: this shell only redirects stderr.
_TOGETHER = 'exec "$@" 2>&1'


def words_of(command: object, allowed: Sequence[str], refused: Sequence[str]) -> list[str]:
    """The arguments to start. Where patterns decide, these are words, without a shell."""
    if not isinstance(command, str) or not command.strip():
        raise ToolError("a command is a text that is not empty", hint="terminal('ls -l')")
    if "\0" in command:
        raise Refused("the command has a NUL in it")
    if len(command) > LONGEST:
        raise Refused(f"the command has more than {LONGEST:,} characters")
    try:
        command.encode()
    except UnicodeEncodeError:
        raise Refused("the command holds half of a character") from None
    if not allowed and not refused:
        return ["/bin/sh", "-c", command]
    words = _parsed(command)
    for pattern in refused:
        if _has(words, pattern):
            raise Refused(
                f"the command fits {pattern!r}, which is refused",
                hint="refuse_commands under [tools] says what never runs",
            )
    if allowed and not any(_fits(words, pattern) for pattern in allowed):
        raise Refused(
            f"the command {words[0]!r} fits no pattern that is allowed",
            hint=f"allowed: {', '.join(allowed[:10])}; see commands under [tools]",
        )
    return words


def _parsed(command: str) -> list[str]:
    if found := _SHELL.search(_QUOTED.sub("x", command)):
        raise Refused(
            f"the command has {found[0][-1]!r} in it, which needs a shell",
            hint="where patterns say which commands run, each is run without a shell: one at a"
            " time, with what is special in single quotes",
        )
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"the command cannot be read: {error}", hint="close its quotes") from None
    if not words or not words[0]:
        raise ToolError("the command is empty", hint="terminal('ls -l')")
    return words


def _fits(words: Sequence[str], pattern: str) -> bool:
    """Word by word; `*` as the last word of a pattern stands for any number of words."""
    try:
        wanted = shlex.split(pattern)
    except ValueError:
        return False
    if wanted and wanted[-1] == "*":
        wanted.pop()
        if len(words) < len(wanted):
            return False
        words = words[: len(wanted)]
    return len(words) == len(wanted) and all(map(fnmatchcase, words, wanted))


def _has(words: Sequence[str], pattern: str) -> bool:
    """Whether the words of a pattern stand in a command in this order, whatever is between them."""
    try:
        program, *wanted = shlex.split(pattern)
    except ValueError:
        return False
    rest = iter(words[1:])
    return fnmatchcase(words[0], program) and all(
        any(fnmatchcase(word, one) for word in rest) for one in wanted if one != "*"
    )


def run_command(
    argv: Sequence[str],
    folder: str,
    env: Mapping[str, str],
    seconds: float,
    limit: int,
    called_off: Callable[[], bool],
    *,
    together: bool = True,
) -> dict[str, Any]:
    """What it printed and how it ended. It and all it started are gone when this returns.
    Not `together`: the end of stderr is by itself, under `stderr`."""
    read, write = os.pipe()
    scratch = tempfile.mkdtemp(prefix="quire-command-")
    try:
        command = ["/bin/sh", "-c", _TOGETHER, "sh", *argv] if together else [*argv]
        keeper = Keeper(command, scratch, Path(folder), env, stdout=write)
    except (OSError, ValueError) as error:
        os.close(read)
        with contextlib.suppress(OSError):
            os.rmdir(scratch)
        reason = getattr(error, "strerror", None) or str(error)
        raise ToolError(f"the command could not be started: {reason}", hint="check it") from error
    finally:
        os.close(write)
    kept = Kept(limit)
    began = time.monotonic()
    why = ""
    try:
        while (end := keeper.look()) is None:
            if called_off():
                why = "called off"
            elif time.monotonic() - began > seconds:
                why = "timed out"
            if why:
                break
            if _ready(read, keeper.fileno()):
                kept.read(read)
        keeper.end()
        kept.read(read)
        if not why and end == Exit():
            why = KEEPER_GONE
    finally:
        keeper.close()
        os.close(read)
    code = (
        -1 if why or end is None else end.status if end.status is not None else -(end.signal or 1)
    )
    return {
        "output": kept.text(),
        "exit_code": code,
        "timed_out": why == "timed out",
        "truncated": kept.omitted > 0,
        "duration": round(time.monotonic() - began, 3),
        **({"error": _ended(why, seconds)} if why else {}),
        **({} if together or end is None else {"stderr": end.stderr}),
    }


def _ready(*fds: int) -> bool:
    waiting = select.poll()  # select() knows no descriptor beyond 1,023
    for fd in fds:
        waiting.register(fd, select.POLLIN)
    return bool(waiting.poll(TICK * 1000))


def _ended(why: str, seconds: float) -> str:
    return f"it took longer than {seconds:g} s and was ended" if why == "timed out" else why


class Kept:
    """Head and tail of what a command prints; the middle is counted."""

    def __init__(self, limit: int) -> None:
        self.half = max(1, limit // 2)
        self.head, self.tail = bytearray(), bytearray()
        self.omitted = 0

    def read(self, fd: int) -> None:
        """What is there now."""
        os.set_blocking(fd, False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):  # then look at the clock again
                data = os.read(fd, 1 << 16)
                if not data:
                    return
                room = self.half - len(self.head)
                self.head += data[:room]
                self.tail += data[room:]
                self._cut(self.half + (1 << 20))  # not for each piece: the rest is moved

    def _cut(self, most: int) -> None:
        if len(self.tail) > most:
            cut = len(self.tail) - self.half
            self.omitted += cut
            del self.tail[:cut]

    def text(self) -> str:
        self._cut(self.half)
        if not self.omitted:
            return (self.head + self.tail).decode("utf-8", "replace")
        head, end = (part.decode("utf-8", "replace") for part in (self.head, self.tail))
        return f"{head}\n[quire: {self.omitted:,} bytes were cut here]\n{end}"
