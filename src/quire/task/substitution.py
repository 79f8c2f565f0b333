"""Put the values of parameters in the place of `{name}` in a logbook.

Only declared names, and every other brace stays as it is: `{{name}}` (Jinja, and how a brace is
written in an f-string), `${name}` in code (a shell's own), `{other}`.

In prose the value stands as text. In code the same, except that it cannot end the string it stands
in: inside quotes of Python, SQL and a shell what would end them is escaped, and outside of quotes a
shell gets a value with spaces or signs as one word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ..errors import DocumentError
from . import code_quoting
from .code_regions import Place
from .document import Cell, Document, identified
from .logbook import KEPT

_BRACED = re.compile(r"\{([^\W\d]\w*)\}")
_WORD = re.compile(r"[^\W\d]\w*")
_NEAR = 0.84


def substituted(doc: Document, values: Mapping[str, Any]) -> Document:
    """The document with the values in their places."""
    _look_alikes(doc, values)
    return replace(doc, cells=identified(_cell(cell, values) for cell in doc.cells))


def _cell(cell: Cell, values: Mapping[str, Any]) -> Cell:
    if cell.kind == "raw":
        return cell
    if cell.kind == "markdown":
        text = _replaced(cell.source, lambda name, at: as_text(values[name]), values)
        metadata = {key: value for key, value in cell.metadata.items() if key != KEPT}
        kept = {k: v for k, v in cell.metadata.get(KEPT, {}).items() if k != "text"}
        return replace(cell, source=text, metadata={**metadata, **({KEPT: kept} if kept else {})})
    title = _replaced(cell.title, lambda name, at: as_text(values[name]), values)
    return replace(cell, source=_code(cell, values), title=title)


def in_step(cell: Cell, values: Mapping[str, Any]) -> Cell:
    """A step that somebody wrote for this run only."""
    return replace(cell, source=_code(cell, values))


def _code(cell: Cell, values: Mapping[str, Any]) -> str:
    source = cell.source
    if "{" not in source:
        return source
    places: list[Place] | None = None

    def put(name: str, at: int) -> str:
        nonlocal places
        if places is None:
            places = code_quoting.places(source, code_quoting.language_of(source, cell.metadata))
        try:
            return code_quoting.fitted(as_code(values[name]), places[at])
        except code_quoting.Unfit as unfit:
            line = source.count("\n", 0, at) + 1
            raise DocumentError(
                f"the value of {name} cannot be put into {unfit}. It stands on line {line} of "
                f"{_named(cell)}: {_shown(source, line)}",
                hint=f"use the variable {name} there, or other quotes",
            ) from unfit

    return _replaced(source, put, values, code=True)


def _replaced(
    text: str, put: Callable[[str, int], str], values: Mapping[str, Any], *, code: bool = False
) -> str:
    if "{" not in text:
        return text
    out, done = [], 0
    for name, start, end in braced(text, code=code):
        if name in values:
            out += [text[done:start], put(name, start)]
            done = end
    return "".join(out) + text[done:]


def braced(text: str, *, code: bool = False) -> Iterator[tuple[str, int, int]]:
    """Every `{name}` that may stand for a parameter."""
    for found in _BRACED.finditer(text):
        before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
        if (before == "{" and after == "}") or (code and before == "$"):
            continue
        yield found[1], found.start(), found.end()


def as_text(value: Any) -> str:
    """A value as a person writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(as_text, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def as_code(value: Any) -> str:
    """A value as Python writes it, where it is not text."""
    if isinstance(value, bool | None | list | tuple | dict | set):
        return repr(value)
    return str(value)


def _look_alikes(doc: Document, values: Mapping[str, Any]) -> None:
    """A `{nmae}` that is meant to be `{name}` would go unnoticed until somebody reads the result.

    A word that the code uses in its own right is not one.
    """
    own: set[str] | None = None
    for cell in doc.cells:
        for name, start, _ in braced(cell.source, code=cell.kind == "code"):
            if cell.kind == "raw" or name in values:
                continue
            near = _meant(name, values)
            if near is None:
                continue
            own = _own_words(doc) if own is None else own
            if name in own:
                continue
            at = cell.source.count("\n", 0, start) + 1
            raise DocumentError(
                f"{{{name}}} is no parameter; is {{{near}}} meant? It stands on line {at} of "
                f"{_named(cell)}: {_shown(cell.source, at)}",
                hint=f"write {{{near}}}, declare {name}, or write {{{{{name}}}}} if it stays",
            )


def _meant(name: str, values: Mapping[str, Any]) -> str | None:
    for other in values:
        if other.lower() == name.lower():
            return other
    if len(name) < 3:
        return None
    for other in values:
        if sorted(other) == sorted(name):  # letters in another order
            return other
    near = get_close_matches(name, values, n=1, cutoff=_NEAR)
    return near[0] if near else None


def _own_words(doc: Document) -> set[str]:
    """Names that the code uses outside of braces."""
    return {
        word
        for cell in doc.cells
        if cell.kind == "code"
        for word in _WORD.findall(_BRACED.sub(" ", cell.source))
    }


def _named(cell: Cell) -> str:
    if cell.kind == "code":
        return f"the step {cell.title!r}" if cell.title else f"the step {cell.id}"
    return "the text that begins " + repr(cell.source[:30])


def _shown(source: str, line: int) -> str:
    text = source.split("\n")[line - 1].strip()
    return text if len(text) <= 80 else f"{text[:79]}…"
