"""Long tracebacks, formatted by IPython at a fraction of the cost, to the letter as it would.

For every frame it looks through all loaded modules, reads the source and colours the lines, also
where that frame's code was there a thousand times before. While one traceback is being formatted
nothing of that changes, so it is done once for each piece of code.

One thing is not as IPython would have it: before Python 3.13 the source of a comprehension or of a
class is looked for from the nearest `def` above it, so another line was shown as the failing one.
"""

from __future__ import annotations

import inspect
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_one = threading.Lock()


@contextmanager
def remembering(formatter: Any) -> Iterator[None]:
    """`formatter` is the shell's. Whoever comes while another thread formats does without."""
    if not _one.acquire(blocking=False):
        yield
        return
    module, lines = inspect.getmodule, inspect.getsourcelines
    own = "format_record" in vars(formatter)
    try:
        inspect.getmodule = _module_of_frames(module)
        inspect.getsourcelines = _lines_of_frames(lines)
        if hasattr(formatter, "format_record") and not own:
            formatter.format_record = _records(formatter, formatter.format_record)
        yield
    finally:
        inspect.getmodule, inspect.getsourcelines = module, lines
        if not own:
            vars(formatter).pop("format_record", None)
        _one.release()


def _module_of_frames(find: Callable[..., Any]) -> Any:
    found: dict[Any, Any] = {}

    def getmodule(object: Any, _filename: Any = None) -> Any:
        if not isinstance(object, types.FrameType):
            return find(object, _filename)
        key = object.f_code.co_filename, _filename
        if key not in found:
            found[key] = find(object, _filename)
        return found[key]

    return getmodule


def _lines_of_frames(find: Callable[..., Any]) -> Any:
    found: dict[Any, Any] = {}

    def getsourcelines(object: Any) -> Any:
        if not isinstance(object, types.FrameType):
            return find(object)
        # Equal code may stand in two files.
        key = object.f_code.co_filename, object.f_code
        if key not in found:
            try:
                found[key] = _from_its_first(object, *find(object))
            except OSError as error:
                found[key] = OSError(*error.args)
        known = found[key]
        if isinstance(known, OSError):
            raise OSError(*known.args)
        return list(known[0]), known[1]

    return getsourcelines


def _from_its_first(frame: types.FrameType, lines: list[str], first: int) -> Any:
    """IPython counts from the line that the code says is its first."""
    code = frame.f_code
    if first in (0, code.co_firstlineno) or code.co_name == "<module>":
        return lines, first
    every, _ = inspect.findsource(frame)
    return inspect.getblock(every[code.co_firstlineno - 1 :]), code.co_firstlineno


def _records(formatter: Any, write: Callable[..., Any]) -> Any:
    found: dict[Any, Any] = {}

    def format_record(record: Any) -> Any:
        key = None if getattr(formatter, "include_vars", True) else _look(record)
        if key is None:
            return write(record)
        if key not in found:
            found[key] = write(record)
        return found[key]

    return format_record


def _look(record: Any) -> Any:
    """All that the text of a frame depends on where values are not shown; None if there is more."""
    frame = getattr(record, "frame", None)
    if getattr(record, "_sd", record) is not None or frame is None:
        return None
    code = frame.f_code
    return code.co_filename, code, record.lineno, record.context, frozenset(frame.f_locals)
