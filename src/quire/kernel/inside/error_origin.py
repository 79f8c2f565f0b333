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
from itertools import islice
from typing import Any

FRAMES = 60  # of one error; what is left out is in the middle
PARTS = 16  # errors of a group
MOST = 400  # frames and texts in all
DEEP = 8  # errors that came of each other, or groups in groups

Cell = Callable[[str], Any]  # a file's name to its number as a cell, None if it is none


class Interrupted(KeyboardInterrupt):
    """A cell that awaits hears of it as of a cancellation, and is told of as any other."""


_DIRECT = "The above exception was the direct cause of the following exception:"
_DURING = "During handling of the above exception, another exception occurred:"
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())


def instead(error: BaseException | None, shell: Any) -> dict[str, Any]:
    """What to keep of the error, where it is something else than was shown."""
    cells = getattr(shell.compile, "_filename_map", {})
    with contextlib.suppress(Exception):  # an error may be as broken as anything
        if isinstance(error, Interrupted):
            *lines, _ = told(error, cells.get)
            lines.append(KeyboardInterrupt.__name__)
            return {"ename": KeyboardInterrupt.__name__, "evalue": "", "traceback": lines}
        if error is not None and is_untold(error):
            return {"traceback": list(told(error, cells.get))}
    return {}


def of_shell(error: BaseException | None, shell: Any) -> list[dict[str, Any]]:
    """The frames of an error, for whoever tells of it in other words."""
    cells = getattr(shell.compile, "_filename_map", {})
    with contextlib.suppress(Exception):  # an error may be as broken as anything
        if error is not None:
            return list(islice(frames(error, cells.get), MOST))
    return []


def at_least(error: BaseException, shell: Any) -> tuple[type, str, list[str]]:
    """Kind, text and traceback of an error that IPython could not show."""
    lines = list(told(error, getattr(shell.compile, "_filename_map", {}).get))
    return type(error), _said(error).partition(": ")[2], lines


def is_untold(error: BaseException | None) -> bool:
    return isinstance(error, (SystemExit, _GROUP)) or _came_of(error) is not None


def told(error: BaseException, cell: Cell) -> Iterator[str]:
    """As IPython begins the lines: what was raised first comes first."""
    for one in frames(error, cell):
        how, text = one.get("how"), str(one.get("text"))
        if how is None:
            place = f"File {one['file']}:{one['line']}"
            if one["count"] is not None:
                place = f"Cell In[{one['count']}], line {one['line']}"
            yield place + (f", in {one['where']}" if one["where"] else "")
            if one["code"]:
                yield f"----> {one['line']} {one['code']}"
        elif how == "chain":
            yield from ("", text, "")
        elif how == "part":
            yield from ("", text)
        else:
            yield text


def frames(
    error: BaseException, cell: Cell, deep: int = DEEP, how: str = "error"
) -> Iterator[dict[str, Any]]:
    """Frames (where, line, count, file, code), and between them texts with `how` they stand there:
    "cause" is an error that another came of, "chain" says so, "part" begins an error of a group,
    "cut" says that frames are missing, "error" and "note" are of the error itself."""
    before = _came_of(error) if deep else None
    if before is not None:
        yield from frames(before, cell, deep - 1, "cause")
        direct = before is error.__cause__
        yield {"how": "chain", "text": _DIRECT if direct else _DURING}
    yield from _frames(error, cell)
    yield {"how": how, "text": _said(error)}
    notes = getattr(error, "__notes__", ())
    for note in notes if isinstance(notes, (list, tuple)) else ():
        yield {"how": "note" if how == "error" else "said", "text": str(note)}
    held = error.exceptions if isinstance(error, _GROUP) and deep else ()
    for number, one in enumerate(held[:PARTS], 1):
        text = f"Error {number} of {len(held)} in the group: {_said(one)}"
        yield {"how": "part", "text": text}
        yield from frames(one, cell, deep - 1, "said")
    if len(held) > PARTS:
        yield {"how": "part", "text": f"and {len(held) - PARTS} more errors in the group"}


def _came_of(error: BaseException | None) -> BaseException | None:
    if error is None or error.__cause__ is not None:
        return error.__cause__ if error is not None else None
    return None if error.__suppress_context__ else error.__context__


def _said(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")[0]


def _frames(error: BaseException, cell: Cell) -> Iterator[dict[str, Any]]:
    steps = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if "/IPython/core/" not in frame.f_code.co_filename
    ]
    half = FRAMES // 2
    for at, (frame, line) in enumerate(steps):
        if len(steps) > FRAMES and half <= at < len(steps) - half:
            if at == half:
                text = f"[quire: {len(steps) - FRAMES:,} frames are left out]"
                yield {"how": "cut", "text": text}
            continue
        code = frame.f_code
        text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
        yield _frame(code.co_filename, line, text, cell, _where(code))
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        yield _frame(error.filename, error.lineno, str(error.text or "").strip(), cell)


def _frame(file: str, line: int, code: str, cell: Cell, where: str = "") -> dict[str, Any]:
    return {
        "where": where,
        "line": line,
        "count": cell(file),
        "file": _short(file),
        "code": code,
    }


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path.startswith(f"{home}{os.sep}") else path


def _where(code: Any) -> str:
    if code.co_name == "<module>":
        return ""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return f"{getattr(code, 'co_qualname', code.co_name)}({', '.join(names)})"
