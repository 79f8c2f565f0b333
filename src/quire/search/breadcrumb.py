"""A few lines that a run leaves behind, from its own headings, results, notes and errors.

No model has a part in it: it says only what is in the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ..record.record import Record
from ..record.summary import brief_json, failure, one_line, took
from ..text import plain
from .build_results import told

LONGEST = 400
_HEADING = re.compile(r"^#{1,6} +(.+?)#* *$", re.MULTILINE)
_SHOWN = 4


def summary(record: Record) -> str:
    text = " ".join(_sentences(record))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


def _sentences(record: Record) -> Iterator[str]:
    yield _outcome(record)
    given = ", ".join(_pair(n, v) for n, v in list(record.parameters.items())[:_SHOWN])
    if given:
        yield f"With {given}{_more(len(record.parameters))}."
    values = {n: r.value for n, r in record.results.items() if r.kind == "json"}
    built = told(values)
    for name, text in built.items():
        yield f"{name.replace('_', ' ').capitalize()}: {text}."
    plain_results = [(n, value) for n, value in values.items() if n not in built]
    results = ", ".join(_pair(name, value) for name, value in plain_results[:_SHOWN])
    if results:
        yield f"Results: {results}{_more(len(plain_results))}."
    for note in record.notes[:2]:
        yield f"Note: {_cut(one_line(note.text), 160)}"
    sections = [heading for heading in headings(record) if heading != record.title]
    if sections:
        yield f"Sections: {', '.join(_cut(s, 40) for s in sections[:5])}."


def _outcome(record: Record) -> str:
    cell, said = failure(record)
    if not said:
        lasted = f" in {took(record.duration)}" if record.duration is not None else ""
        return f"{record.outcome}{lasted}."
    where = f" at {_cut(one_line(cell.title or cell.id), 40)}" if cell is not None else ""
    return f"{record.outcome.replace('_', ' ')}{where}: {_cut(said, 160)}."


def headings(record: Record) -> list[str]:
    """Of the text between the cells, in order."""
    found: list[str] = []
    for cell in record.cells:
        if cell.kind == "markdown" and "#" in cell.source:
            found += _headings_in(cell.source[:20_000])
    return found[:40]


@lru_cache(1_000)
def _headings_in(text: str) -> tuple[str, ...]:
    """Runs of one task have the same text, and an index is made of many."""
    return tuple(one_line(heading) for heading in _HEADING.findall(text))


def _pair(name: str, value: Any) -> str:
    return f"{one_line(plain(str(name)))} = {_cut(one_line(brief_json(value)), 40)}"


def _more(count: int) -> str:
    return f" and {count - _SHOWN} more" if count > _SHOWN else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
