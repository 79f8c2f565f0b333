"""Where an error came from, in plain lines, where IPython's own traceback does not say it.

IPython leaves groups of errors to Python, which prints them among the task's output; of SystemExit
it says how to ask for a traceback; and of what came before an error, in cells, it names the line at
which a function stands by now instead of the one that raised. An output shows an error as IPython
does, to the letter. What is kept of it besides is this, in the same form.
"""

from __future__ import annotations

import builtins
import contextlib
import linecache
import os
import traceback
from collections.abc import Callable, Iterator
from typing import Any

FRAMES = 60  # of one error; what is left out is in the middle
PARTS = 16  # errors of a group
DEEP = 8  # errors that came of each other, or groups in groups

Cell = Callable[[str], Any]  # a file's name to its number as a cell, None if it is none


class Interrupted(KeyboardInterrupt):
    """A cell that awaits hears of it as of a cancellation, and is told of as any other."""


_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())


def instead(error: BaseException | None, shell: Any) -> dict[str, Any]:
    """What to keep of the error, where it is something else than was shown."""
    cells = getattr(shell.compile, "_filename_map", {})
    with contextlib.suppress(Exception):  # an error may be as broken as anything
        if isinstance(error, Interrupted):
            frames = [*_frames(error, cells.get), KeyboardInterrupt.__name__]
            return {"ename": KeyboardInterrupt.__name__, "evalue": "", "traceback": frames}
        if error is not None and is_untold(error):
            return {"traceback": list(told(error, cells.get))}
    return {}


def at_least(error: BaseException, shell: Any) -> tuple[type, str, list[str]]:
    """Kind, text and traceback of an error that IPython could not show."""
    lines = list(told(error, getattr(shell.compile, "_filename_map", {}).get))
    return type(error), _said(error).partition(": ")[2], lines


def is_untold(error: BaseException | None) -> bool:
    return isinstance(error, (SystemExit, _GROUP)) or _came_of(error) is not None


def told(error: BaseException, cell: Cell, deep: int = DEEP) -> Iterator[str]:
    """As IPython begins the lines: what was raised first comes first."""
    before = _came_of(error) if deep else None
    if before is not None:
        yield from told(before, cell, deep - 1)
        how = (
            "The above exception was the direct cause of the following exception:"
            if before is error.__cause__
            else "During handling of the above exception, another exception occurred:"
        )
        yield from ("", how, "")
    yield from _frames(error, cell)
    yield _said(error)
    notes = getattr(error, "__notes__", ())
    yield from map(str, notes if isinstance(notes, (list, tuple)) else ())
    held = error.exceptions if isinstance(error, _GROUP) and deep else ()
    for number, one in enumerate(held[:PARTS], 1):
        yield from ("", f"Error {number} of {len(held)} in the group: {_said(one)}")
        yield from told(one, cell, deep - 1)
    if len(held) > PARTS:
        yield from ("", f"and {len(held) - PARTS} more errors in the group")


def _came_of(error: BaseException | None) -> BaseException | None:
    if error is None or error.__cause__ is not None:
        return error.__cause__ if error is not None else None
    return None if error.__suppress_context__ else error.__context__


def _said(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")[0]


def _frames(error: BaseException, cell: Cell) -> Iterator[str]:
    steps = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if "/IPython/core/" not in frame.f_code.co_filename
    ]
    half = FRAMES // 2
    for at, (frame, line) in enumerate(steps):
        if len(steps) > FRAMES and half <= at < len(steps) - half:
            if at == half:
                yield f"[quire: {len(steps) - FRAMES:,} frames are left out]"
            continue
        code = frame.f_code
        number = cell(code.co_filename)
        place = f"File {_short(code.co_filename)}:{line}"
        if number is not None:
            place = f"Cell In[{number}], line {line}"
        yield f"{place}{_where(code)}"
        text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
        if text:
            yield f"----> {line} {text}"


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}{os.sep}") else path


def _where(code: Any) -> str:
    if code.co_name == "<module>":
        return ""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return f", in {getattr(code, 'co_qualname', code.co_name)}({', '.join(names)})"
