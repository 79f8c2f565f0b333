"""Named results as an agent reads them: values by name, tables by their first rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..record import summary
from ..record.plan import jsonable
from ..record.record import CellRecord, Result
from ..text import inline, pretty
from .agent_outputs import Limits, Text, pieces
from .agent_page import Excerpt, Page

VALUES = 4_000  # characters of all short results together
TABLE = 3_000
WIDTH = 60  # characters of one value in a table
COLUMNS = 30
MOST_TABLES = 5
MOST_NAMED = 4

Asking = Callable[..., str]


def tell_results(
    page: Page, results: Mapping[str, Result], asking: Asking | None, limits: Limits
) -> None:
    """All of them, each in short."""
    if not results:
        return
    page.say(f"results ({len(results):,}):")
    tables = [one for one in results.values() if summary.is_table(one)]
    lines = {one.name: _line(one) for one in results.values() if not summary.is_table(one)}
    if lines:
        page.quote("\n".join(lines.values()), VALUES, _fewer(asking))
        if asking and (cut := [name for name in lines if _is_cut(results[name])]):
            page.say(_in_full(asking, cut))
    for one in tables[:MOST_TABLES]:
        _table(page, one, asking, limits)
    for one in tables[MOST_TABLES:]:
        page.say(f"table {inline(one.name, 100)}: {summary.row_count(one.value, 0)}")


def tell_result(page: Page, result: Result, asking: Asking, limits: Limits) -> None:
    """One, with all the room there is. What does not fit can be read by its lines."""

    def notice(cut: Excerpt) -> str:
        return f"… {cut.omitted} omitted; read them: {asking(lines=cut.following())}"

    if not summary.is_table(result):
        page.quote(f"{_named(result)} = {value_text(result)}", limits.whole, notice)
        return
    rows = result.value["rows"]
    total = result.value.get("total", len(rows))
    more = f"; {len(rows):,} are kept" if total > len(rows) else ""
    short = "\n".join(_rows(result, rows, COLUMNS, WIDTH))
    if short != value_text(result):
        more += f"; values are cut short, in full: {asking(lines='1-')}"
    page.say(f"table {inline(result.name, 100)}: {len(rows):,} of {total:,} rows{more}")
    page.quote(short, limits.whole, notice)


def value_text(result: Result) -> str:
    """All of a value; line for line as `tell_result` tells it."""
    shown = as_shown(result)
    if shown is not None:
        return "\n".join(one.text for one in pieces(shown) if isinstance(one, Text))
    if summary.is_table(result):
        return "\n".join(_rows(result, result.value["rows"]))
    return pretty(jsonable(result.value))


def as_shown(result: Result) -> CellRecord | None:
    """What shows something is told as the output that it was."""
    if result.kind != "display" or not isinstance(result.value, Mapping):
        return None
    output = {"output_type": "display_data", "data": result.value, "metadata": {}}
    return CellRecord(result.cell, "code", "", outputs=(output,))


def _fewer(asking: Asking | None) -> Callable[[Excerpt], str]:
    def notice(cut: Excerpt) -> str:
        more = f"; read one: {asking(result='NAME')}" if asking else ""
        return f"… {cut.omitted} omitted{more}"

    return notice


def _in_full(asking: Asking, cut: Sequence[str]) -> str:
    others = [inline(name, 60) for name in cut[1 : 1 + MOST_NAMED]]
    also = f"; so with {', '.join(others)}" if others else ""
    rest = len(cut) - 1 - len(others)
    more = f" and {rest:,} more" if rest else ""
    return f"in full: {asking(result=cut[0])}{also}{more}"


def _named(result: Result) -> str:
    return " ".join(result.name.split())


def _is_cut(result: Result) -> bool:
    return as_shown(result) is None and len(summary.brief_json(result.value)) > summary.VALUE_LIMIT


def _line(result: Result) -> str:
    if (shown := as_shown(result)) is not None:
        return f"{_named(result)}: a display ({', '.join(map(str, shown.outputs[0]['data']))})"
    return f"{_named(result)} = {summary.brief_json(result.value)}"


def _table(page: Page, result: Result, asking: Asking | None, limits: Limits) -> None:
    value = result.value
    rows = value["rows"][: limits.rows]
    total = value.get("total", len(value["rows"]))
    kept = len(value["rows"])
    more = ""
    if asking and kept > len(rows):
        more = f"; {kept:,} are kept: {asking(result=result.name)}"
    elif total > kept:
        more = f"; {kept:,} are kept"
    page.say(f"table {inline(result.name, 100)}: {len(rows):,} of {total:,} rows{more}")
    page.quote("\n".join(_rows(result, rows, COLUMNS, WIDTH)), TABLE)


def _rows(
    result: Result, rows: Sequence[Any], most: int | None = None, width: int | None = None
) -> list[str]:
    """The names of the columns, then each row, on a line each; so many columns, so wide."""
    columns = result.value["columns"]
    wide = len(columns) - len(columns[:most])
    head = " | ".join(_value(column, width) for column in columns[:most])
    head += f" | … {wide} more columns" if wide else ""
    return [head, *(" | ".join(_value(one, width) for one in row[:most]) for row in rows)]


def _value(value: Any, width: int | None) -> str:
    text = value if isinstance(value, str) else _json(value, width)
    text = " ".join(text.split())
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"


def _json(value: Any, width: int | None) -> str:
    if width is not None:
        return summary.brief_json(value)
    return json.dumps(jsonable(value), ensure_ascii=False)
