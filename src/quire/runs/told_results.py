"""Named results as an agent reads them: values by name, tables by their first rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import summary
from .excerpt import Excerpt
from .page import Page
from .plan import jsonable
from .printed import pretty
from .quoting import inline
from .record import Result
from .teller import Limits

VALUES = 4_000  # characters of all short results together
TABLE = 3_000
WIDTH = 60  # characters of one value in a table
COLUMNS = 30
MOST_TABLES = 5

Asking = Callable[..., str]


def tell_results(
    page: Page,
    results: Mapping[str, Result],
    asking: Asking | None,
    limits: Limits,
    *,
    alone: bool = False,
) -> None:
    if not results:
        return
    if not alone:
        page.say(f"results ({len(results):,}):")
    tables = [one for one in results.values() if summary.is_table(one)]
    lines = [_line(one, alone) for one in results.values() if not summary.is_table(one)]
    if lines:
        page.quote("\n".join(lines), limits.whole if alone else VALUES, _fewer(asking))
    for one in tables[:MOST_TABLES]:
        _table(page, one, asking, limits, alone)
    for one in tables[MOST_TABLES:]:
        page.say(f"table {inline(one.name, 100)}: {summary.row_count(one.value, 0)}")


def _fewer(asking: Asking | None) -> Callable[[Excerpt], str]:
    def notice(cut: Excerpt) -> str:
        more = f"; read one: {asking(result='NAME')}" if asking else ""
        return f"… {cut.omitted} omitted{more}"

    return notice


def _line(result: Result, alone: bool) -> str:
    name = " ".join(result.name.split())
    if result.kind == "display" and isinstance(result.value, Mapping):
        return f"{name}: a display ({', '.join(map(str, result.value))})"
    if alone:
        return f"{name} = {pretty(jsonable(result.value))}"
    return f"{name} = {summary.brief_json(result.value)}"


def _table(page: Page, result: Result, asking: Asking | None, limits: Limits, alone: bool) -> None:
    value = result.value
    most = limits.rows if not alone else len(value["rows"])
    rows = value["rows"][:most]
    total = value.get("total", len(value["rows"]))
    kept = len(value["rows"])
    more = ""
    if asking and not alone and kept > len(rows):
        more = f"; {kept:,} are kept: {asking(result=result.name)}"
    elif total > kept:
        more = f"; {kept:,} are kept"
    page.say(f"table {inline(result.name, 100)}: {len(rows):,} of {total:,} rows{more}")
    head = [_value(column) for column in value["columns"][:COLUMNS]]
    wide = len(value["columns"]) - COLUMNS
    lines = [" | ".join(head) + (f" | … {wide} more columns" if wide > 0 else "")]
    lines += [" | ".join(map(_value, row[:COLUMNS])) for row in rows]
    page.quote("\n".join(lines), limits.whole if alone else TABLE)


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else summary.brief_json(value)
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
