"""What a run that builds code says of it, in the results that the template for it has. Pure.

    architecture  a mapping: `modules`, a number, and `decisions`, a list of texts
    dependencies  a list of names, or names with versions
    validations   a list of `{"command": …, "ok": …}`
    test_results  a mapping: `passed`, `failed`, `errors`, `skipped`, `status`

A result of such a name that holds something else is a result like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..record.summary import one_line

# The names by which they are searched for, and those of the results.
SECTIONS = {
    "architecture": "architecture",
    "dependencies": "dependencies",
    "validations": "validations",
    "tests": "test_results",
}
COUNTS = ("passed", "failed", "errors", "skipped")
_SHOWN = 3
_MOST = 200  # of a list


def told(results: Mapping[str, Any]) -> dict[str, str]:
    """What each of the results that are there says, in a few words."""
    ways = {
        "validations": _validations,
        "test_results": _tests,
        "dependencies": _dependencies,
        "architecture": _architecture,
    }
    said = ((name, way(results[name])) for name, way in ways.items() if name in results)
    return {name: text for name, text in said if text}


def facts(results: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Numbers to be compared that do not stand there as such."""
    checks = _checks(results.get("validations"))
    if checks:
        failed = sum(not ok for _, ok in checks)
        yield "validations.passed", len(checks) - failed
        yield "validations.failed", failed
    needed = _names(results.get("dependencies"))
    if needed is not None:
        yield "dependencies.count", len(needed)


def _validations(value: Any) -> str:
    checks = _checks(value)
    failed = [name for name, ok in checks if not ok]
    if not checks:
        return ""
    bad = f", {len(failed)} failed ({_some(failed)})" if failed else ""
    return f"{len(checks) - len(failed)} passed{bad}"


def _checks(value: Any) -> list[tuple[str, bool]]:
    found = []
    for one in value[:_MOST] if isinstance(value, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("ok"), bool):
            found.append((str(one.get("command") or one.get("name") or "?"), one["ok"]))
    return found


def _tests(value: Any) -> str:
    if not isinstance(value, Mapping):
        return ""
    counts = {name: value[name] for name in COUNTS if _is_count(value.get(name))}
    words = {"errors": "failed with errors"}  # who looks for what failed means those too
    said = [f"{n:,} {words.get(name, name)}" for name, n in counts.items() if n]
    status = value.get("status")
    if not said and (counts or _is_count(status)):
        # A runner that finds no tests says so with 5.
        well = {"0": "none found" if counts else "passed", "5": "none found"}
        return well.get(str(status if _is_count(status) else 0), f"failed with status {status}")
    return ", ".join(said)


def searched(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results as their text is searched: `"failed": 0` must not be found by `tests:failed`."""
    tests = results.get("test_results")
    if not isinstance(tests, Mapping):
        return dict(results)
    told = {name: n for name, n in tests.items() if n or name not in COUNTS}
    return {**results, "test_results": told}


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
    shown = ", ".join(_cut(one_line(name)) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
