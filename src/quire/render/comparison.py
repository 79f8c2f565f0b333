"""A comparison of two runs as lines of text. All text of the runs in them is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..record.compare import MISSING, CellChange, Change, Comparison
from ..record.plan import jsonable
from ..record.record import CellRecord
from ..record.record_files import POINTER
from ..task.text_diff import unified
from ..text import one_line, plain, visible

Look = Literal["", "head", "added", "removed", "hunk", "note"]
SHORT = 60  # characters of a value that still fits on one line beside the other
FEW = 7  # lines: a text that a reader sees at once
DIFF_LINES = 40  # of one diff, unless all is asked for
LONGEST = 400  # characters of one line
TOO_LONG = 20_000  # lines of a text above which no diff is made


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    look: Look = ""


def lines(comparison: Comparison, *, everything: bool = False) -> Iterator[Line]:
    """Nothing for runs that are equal. `everything`: no diff is cut short."""
    limit = None if everything else DIFF_LINES
    for change in comparison.run:
        yield from _value(change, limit)
    yield from _section("parameters", comparison.parameters, limit)
    yield from _section("results", comparison.results, limit)
    for cell in comparison.cells:
        yield Line("")
        yield from _cell(cell, limit)
    if comparison.environment and not everything:
        yield Line("")
        yield Line(_environment(comparison.environment), "note")
    elif everything:
        yield from _section("environment", comparison.environment, limit)
        yield from _section("ids, counts and timings", comparison.noise, limit)


def environment_lines(changes: tuple[Change, ...]) -> Iterator[Line]:
    """One line for each difference."""
    for change in changes:
        yield from _value(change, DIFF_LINES, "  ")


def _section(title: str, changes: tuple[Change, ...], limit: int | None) -> Iterator[Line]:
    if not changes:
        return
    yield Line("")
    yield Line(title, "head")
    for change in changes:
        yield from _value(change, limit, "  ")


def _environment(changes: tuple[Change, ...]) -> str:
    named = ", ".join(_name(change) for change in changes[:5])
    more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
    return f"the environments differ: {named}{more} (--all shows how)"


def _name(change: Change) -> str:
    name = one_line(change.name)
    return f"{change.kind} {name}" if change.kind.startswith(("cell", "interp")) else name


def _value(change: Change, limit: int | None, indent: str = "") -> Iterator[Line]:
    """`name: old -> new` where that fits on a line, else a diff."""
    name = f"{indent}{_name(change)}"
    volatile = " (volatile)" if change.volatile else ""
    table = _as_table(change)
    sides = table or (_texts(change.old), _texts(change.new))
    if table is None and all(len(side) <= 1 and len("".join(side)) <= SHORT for side in sides):
        old, new = ("".join(side) or "(none)" for side in sides)
        yield Line(f"{name}: {_clipped(old)} -> {_clipped(new)}{volatile}")
        return
    yield Line(f"{name}{volatile}:")
    yield from _diff(*sides, limit, f"{indent}  ")


def _texts(value: Any) -> list[str]:
    """The lines of a value. A short one has one line, however it is nested."""
    if value is MISSING:
        return []
    if isinstance(value, str):
        return [json.dumps(value, ensure_ascii=False)]
    short = json.dumps(jsonable(value), ensure_ascii=False)
    if len(short) <= SHORT:
        return [short]
    return json.dumps(jsonable(value), ensure_ascii=False, indent=1).split("\n")


def _as_table(change: Change) -> tuple[list[str], list[str]] | None:
    """Tables are compared row by row."""
    if change.kind != "table":
        return None
    sides = [_rows(change.old), _rows(change.new)]
    if sides[0] is None or sides[1] is None:
        return None
    return sides[0], sides[1]


def _rows(value: Any) -> list[str] | None:
    if value is MISSING:
        return []
    if not isinstance(value, Mapping) or not isinstance(value.get("rows"), list):
        return None
    rows = [value.get("columns", []), *value["rows"]]
    cut = value.get("total") != value.get("kept")
    end = [f"{value.get('total')} rows in all"] if cut else []
    return [json.dumps(jsonable(row), ensure_ascii=False) for row in rows] + end


def _cell(change: CellChange, limit: int | None) -> Iterator[Line]:
    yield Line(_heading(change), "head")
    if change.what != "changed":
        side = _split(change.cell.source)
        sides = ([], side) if change.what == "added" else (side, [])
        yield from _diff(*sides, limit, "  ")
        return
    for about in change.about:
        if about.name == "source":
            yield from _diff(_split(str(about.old)), _split(str(about.new)), limit, "  ")
        else:
            yield from _value(about, limit, "  ")
    for output in change.outputs:
        yield from _output(output, limit)


def _heading(change: CellChange) -> str:
    at = change.new_at if change.new_at is not None else change.old_at
    moved = (
        change.old_at is not None and change.new_at is not None and change.old_at != change.new_at
    )
    was = f" (was {change.old_at})" if moved else ""
    what = "" if change.what == "changed" else f" {change.what}"
    volatile = " (volatile: its outputs may differ)" if change.volatile else ""
    return f"cell {at}{_titled(change.cell)}{was}{what}{volatile}"


def _titled(cell: CellRecord) -> str:
    title = one_line(cell.title)
    return f' "{title[:SHORT]}"' if title else ""


def _output(change: Change, limit: int | None) -> Iterator[Line]:
    name, mime = one_line(change.name), one_line(change.kind)
    if name.startswith("result ") and mime.endswith("+json"):
        yield Line(f"  {name} differs")
        return  # shown with the results
    if change.kind == POINTER:
        yield from _elsewhere(change)
        return
    kind = "" if mime == "text/plain" else f" {mime}"
    yield Line(f"  {name}{kind}:")
    old, new = ([] if side is MISSING else _split(str(side)) for side in (change.old, change.new))
    yield from _diff(old, new, limit, "    ")


def _elsewhere(change: Change) -> Iterator[Line]:
    """An output that is known by its digest only."""
    name = one_line(change.name)
    if not change.compared:
        yield Line(f"  {name}: not compared, since not all of it is at hand", "note")
    else:
        yield Line(f"  {name}, which is not at hand:")
    sides: tuple[tuple[Any, str, Look], ...] = (
        (change.old, "-", "removed"),
        (change.new, "+", "added"),
    )
    for side, sign, look in sides:
        if side is not MISSING:
            yield Line(f"    {sign}{_clipped(str(side))}", look if change.compared else "")


def _split(text: str) -> list[str]:
    """Its lines. A carriage return is no end of one: a progress bar is drawn with it."""
    return text.removesuffix("\n").split("\n") if text else []


def _diff(old: list[str], new: list[str], limit: int | None, indent: str) -> Iterator[Line]:
    """The lines that differ, with a few around them."""
    if max(len(old), len(new)) > TOO_LONG:
        first = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
        counts = f"{len(old):,} lines before, {len(new):,} now"
        yield Line(f"{indent}{counts}; the first that differs is line {first + 1:,}", "note")
        return
    shown = _made_harmless(old, new)
    text = unified([f"{row}\n" for row in shown[0]], [f"{row}\n" for row in shown[1]], "x")
    rows = text.splitlines()[2:]
    if max(len(old), len(new)) <= FEW or not old or not new:
        rows = [row for row in rows if not row.startswith("@@")]  # where it is, is plain to see
    for row in rows[:limit]:
        yield Line(f"{indent}{_clipped(row)}", _look(row))
    if limit is not None and len(rows) > limit:
        yield Line(f"{indent}… {len(rows) - limit:,} more lines (--all shows them)", "note")
    if not rows:
        yield Line(f"{indent}only the ends of lines differ", "note")


def _made_harmless(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Without what a terminal would obey; named where nothing else differs."""
    quiet = [plain(row) for row in old], [plain(row) for row in new]
    if quiet[0] != quiet[1] or old == new:
        return quiet
    return [visible(row) for row in old], [visible(row) for row in new]


def _clipped(text: str) -> str:
    text = plain(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _look(row: str) -> Look:
    looks: dict[str, Look] = {"+": "added", "-": "removed", "@": "hunk"}
    return looks.get(row[:1], "")
