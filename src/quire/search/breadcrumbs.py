"""A few lines that a run leaves behind: its summary, and what a run that builds code says of it.

Four results have a form of their own, which the template for building code glues:

    architecture  a mapping: `modules`, a number, and `decisions`, a list of texts
    dependencies  a list of names, or names with versions
    validations   a list of `{"command": …, "ok": …}`
    test_results  a mapping: `passed`, `failed`, `errors`, `skipped`, `status`

A result of such a name that holds something else is a result like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..record.record import Record
from ..record.summary import brief_json, failure, one_line, took
from ..text import plain

LONGEST = 400
# The names by which they are searched, and those of the results.
SECTIONS = {
    "architecture": "architecture",
    "dependencies": "dependencies",
    "validations": "validations",
    "tests": "test_results",
}
COUNTS = ("passed", "failed", "errors", "skipped")
_HEADING = re.compile(r"^#{1,6} +(.+?)#* *$", re.MULTILINE)
_SHOWN = 4
_NAMED = 3  # of a list
_MOST = 200  # of a list are looked at


def summary(record: Record) -> str:
    """Made from the record alone."""
    return _cut(" ".join(_sentences(record)), LONGEST)


def _sentences(record: Record) -> Iterator[str]:
    yield _outcome(record)
    given = ", ".join(_pair(n, v) for n, v in list(record.parameters.items())[:_SHOWN])
    if given:
        yield f"With {given}{_more(len(record.parameters))}."
    values = {n: r.value for n, r in record.results.items() if r.kind == "json"}
    built = build_summary(values)
    for name, text in built.items():
        yield f"{name.replace('_', ' ').capitalize()}: {text}."
    rest = [(n, value) for n, value in values.items() if n not in built]
    if rest:
        results = ", ".join(_pair(name, value) for name, value in rest[:_SHOWN])
        yield f"Results: {results}{_more(len(rest))}."
    for note in record.notes[:2]:
        yield f"Note: {_cut(one_line(note.text), 160)}"
    sections = [heading for heading in _headings(record) if heading != record.title]
    if sections:
        yield f"Sections: {', '.join(_cut(s, 40) for s in sections[:5])}."


def _outcome(record: Record) -> str:
    cell, said = failure(record)
    if not said:
        lasted = f" in {took(record.duration)}" if record.duration is not None else ""
        return f"{record.outcome}{lasted}."
    where = f" at {_cut(one_line(cell.title or cell.id), 40)}" if cell is not None else ""
    return f"{record.outcome.replace('_', ' ')}{where}: {_cut(said, 160)}."


def _headings(record: Record) -> list[str]:
    texts = [c.source[:20_000] for c in record.cells if c.kind == "markdown" and "#" in c.source]
    return [heading for text in texts[:40] for heading in _headings_in(text)]


@lru_cache(1_000)
def _headings_in(text: str) -> tuple[str, ...]:
    """Runs of one task have the same text, and an index is made of many."""
    return tuple(one_line(heading) for heading in _HEADING.findall(text))


def _pair(name: str, value: Any) -> str:
    return f"{one_line(plain(str(name)))} = {_cut(one_line(brief_json(value)), 40)}"


def _more(count: int) -> str:
    return f" and {count - _SHOWN} more" if count > _SHOWN else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


# Code that was built.


def build_summary(results: Mapping[str, Any]) -> dict[str, str]:
    """What each of the four results that are there says, in a few words."""
    ways = {
        "validations": _validations,
        "test_results": _tests,
        "dependencies": _dependencies,
        "architecture": _architecture,
    }
    said = ((name, way(results[name])) for name, way in ways.items() if name in results)
    return {name: text for name, text in said if text}


def build_facts(results: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Numbers to be compared that do not stand there as such."""
    checks = _checks(results.get("validations"))
    if checks:
        failed = sum(not ok for _, ok in checks)
        yield "validations.passed", len(checks) - failed
        yield "validations.failed", failed
    needed = _names(results.get("dependencies"))
    if needed is not None:
        yield "dependencies.count", len(needed)


def searched_results(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results as their text is searched: `tests:failed` must not find `"failed": 0`."""
    tests = results.get("test_results")
    if not isinstance(tests, Mapping):
        return dict(results)
    kept = {name: n for name, n in tests.items() if n or name not in COUNTS}
    return {**results, "test_results": kept}


def _validations(value: Any) -> str:
    checks = _checks(value)
    failed = [name for name, ok in checks if not ok]
    bad = f", {len(failed)} failed ({_some(failed)})" if failed else ""
    return f"{len(checks) - len(failed)} passed{bad}" if checks else ""


def _checks(value: Any) -> list[tuple[str, bool]]:
    return [
        (str(one.get("command") or one.get("name") or "?"), one["ok"])
        for one in (value[:_MOST] if isinstance(value, list) else ())
        if isinstance(one, Mapping) and isinstance(one.get("ok"), bool)
    ]


def _tests(value: Any) -> str:
    if not isinstance(value, Mapping):
        return ""
    counts = {name: value[name] for name in COUNTS if _is_count(value.get(name))}
    words = {"errors": "failed with errors"}  # a search for what failed means those too
    said = [f"{n:,} {words.get(name, name)}" for name, n in counts.items() if n]
    status = value.get("status")
    if not said and (counts or _is_count(status)):
        # A runner that finds no tests says so with 5.
        well = {"0": "none found" if counts else "passed", "5": "none found"}
        return well.get(str(status if _is_count(status) else 0), f"failed with status {status}")
    return ", ".join(said)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9


def _dependencies(value: Any) -> str:
    names = _names(value)
    return "" if names is None else _some(names) or "none"


def _names(value: Any) -> list[str] | None:
    if isinstance(value, Mapping):
        return [str(name) for name in list(value)[:_MOST]]
    if isinstance(value, list) and all(isinstance(name, str) for name in value[:_MOST]):
        return value[:_MOST]
    return None


def _architecture(value: Any) -> str:
    if not isinstance(value, Mapping):
        return ""
    modules, decisions = value.get("modules"), value.get("decisions")
    said = [f"{modules:,} modules"] if _is_count(modules) else []
    if isinstance(decisions, list) and decisions:
        said.append(f"decided: {_some([str(one) for one in decisions[:_MOST]])}")
    return "; ".join(said)


def _some(names: list[str]) -> str:
    shown = ", ".join(_cut(one_line(name), 60) for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
