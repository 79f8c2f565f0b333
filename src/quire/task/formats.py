"""From the suffix of a file to the format of its text."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from ..errors import DocumentError
from . import ipynb, logbook, percent, percent_header
from .document import Document

_FORMATS: dict[str, tuple[Callable[[str], Document], Callable[[Document], str]]] = {
    ".py": (percent.loads, percent.dumps),
    ".ipynb": (ipynb.loads, ipynb.dumps),
}
# A notebook and its text are two halves of one task; a logbook stands by itself.
SUFFIXES = tuple(_FORMATS)
LOGBOOK = ".md"
_FORMATS[LOGBOOK] = (logbook.loads, logbook.dumps)


def loads(text: str, suffix: str, kernels: frozenset[str] = frozenset()) -> Document:
    """`kernels`: the installed ones, which a logbook may name as the language of a step."""
    if suffix.lower() == LOGBOOK:
        return logbook.loads(text, kernels)
    return _format(suffix)[0](text)


def dumps(doc: Document, suffix: str) -> str:
    return _format(suffix)[1](doc)


def _format(suffix: str) -> tuple[Callable[[str], Document], Callable[[Document], str]]:
    found = _FORMATS.get(suffix.lower())
    if found:
        return found
    named = f"a file with the suffix {suffix!r}" if suffix else "a file without a suffix"
    raise DocumentError(
        f"{named} is not a task",
        hint="a task is a .py file with `# %%` cells, an .ipynb notebook or an .md logbook",
    )


def decode(data: bytes, name: str) -> str:
    """The text of a file. `name` is for the message and, by its suffix, for the encoding line."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DocumentError(
            f"{name} is UTF-16 text", hint="save the file as UTF-8: a task is UTF-8 text"
        )
    if b"\0" in data:
        raise DocumentError(
            f"{name} is not text: byte {data.index(0)} is NUL",
            hint="a task is a UTF-8 text file: .py, .ipynb or .md",
        )
    encoding = _declared_encoding(data) if name.lower().endswith(".py") else "utf-8"
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError as error:
        raise DocumentError(
            f"{name} says its encoding is {encoding!r}, which does not exist",
            hint="correct the `coding:` line at the top, or save the file as UTF-8",
        ) from error
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        line = data.count(b"\n", 0, start) + 1
        raise DocumentError(
            f"{name} is not {encoding} text: byte {data[start]:#04x} on line {line}",
            hint="save the file as UTF-8, or name its encoding on line 1: # coding: latin-1",
        ) from error


def _declared_encoding(data: bytes) -> str:
    """What Python's encoding line says; it counts on the first two lines only."""
    for line in data.split(b"\n", 2)[:2]:
        found = percent_header.CODING.match(line.decode("latin-1").removeprefix("ï»¿"))
        if found:
            return found[1]
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
    return "utf-8"
