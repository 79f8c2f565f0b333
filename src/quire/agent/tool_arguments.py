"""Check a call against the definition of its tool: all that is wrong with it, at once."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from .tool_definitions import BY_NAME, Tool

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}

# Where an empty text says something: a cell without source or title, nothing in the place of what
# was found, no words. Elsewhere it would pass for an argument that was not given.
_MAY_BE_EMPTY = frozenset(("new_source", "replace", "title", "description", "query", "request"))


def tool(name: str) -> Tool:
    if name in BY_NAME:
        return BY_NAME[name]
    near = difflib.get_close_matches(name, BY_NAME, 1)
    raise UsageError(
        f"there is no tool {name!r}",
        hint=f"did you mean {near[0]}?" if near else f"there are: {', '.join(BY_NAME)}",
    )


def checked(asked: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by their own names, without those that are null."""
    values = {
        name: _whole(value, asked.arguments.get(name, {}))
        for name, value in given.items()
        if value is not None
    }
    problems = [_unknown(asked, name) for name in values if name not in asked.arguments]
    problems += [f"{name} is required" for name in asked.required if name not in values]
    for names in asked.needs_one_of:
        if not any(name in values for name in names):
            problems.append(f"{names[0]} is required")
    for name, value in values.items():
        if name in asked.arguments:
            problems += _misfit(name, value, asked.arguments[name]) or _empty(asked, name, value)
    for alias, name in asked.aliases.items():
        if alias in values and name in values and values[alias] != values[name]:
            problems.append(f"{alias} and {name} name different things: give one")
    if problems:
        raise UsageError(
            f"{asked.name}: {'; '.join(problems)}",
            hint=f"it takes {_listed(asked)}",
        )
    return {asked.aliases.get(name, name): value for name, value in values.items()}


def _listed(asked: Tool) -> str:
    must = {*asked.required, *(names[0] for names in asked.needs_one_of)}
    return ", ".join(name + (" (required)" if name in must else "") for name in asked.arguments)


def _unknown(asked: Tool, name: str) -> str:
    near = difflib.get_close_matches(name, asked.arguments, 1)
    return f"there is no argument {name!r}" + (f", did you mean {near[0]}?" if near else "")


def _whole(value: Any, schema: Mapping[str, Any]) -> Any:
    """3.0 is an integer to JSON, and for clients that know no other numbers."""
    if isinstance(value, float) and value.is_integer() and "integer" in _kinds(schema):
        return int(value)
    return value


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]


def _misfit(name: str, value: Any, schema: Mapping[str, Any]) -> list[str]:
    kinds = _kinds(schema)
    if not kinds:  # any value
        return []
    fits = any(
        isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
        for kind in kinds
    )
    if not fits:
        return [f"{name} must be {' or '.join(map(_said, kinds))}, not {type(value).__name__}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{name} must be one of {', '.join(schema['enum'])}, not {value[:80]!r}"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _beyond(name, value, schema)
    if isinstance(value, str) and "\0" in value:
        return [f"{name} holds a NUL"]
    if isinstance(value, list):
        return _unlike(name, value, schema["items"])
    return []


def _empty(asked: Tool, name: str, value: Any) -> list[str]:
    if not isinstance(value, str) or name in _MAY_BE_EMPTY:
        return []
    if value.strip() or (value and name == "find"):  # spaces can be looked for
        return []
    may_lack = name not in asked.required and not any(name in one for one in asked.needs_one_of)
    return [f"{name} is empty: give it a value{' or leave it out' if may_lack else ''}"]


def _unlike(name: str, value: list[Any], items: Mapping[str, Any]) -> list[str]:
    """What is wrong with the items of a list: texts, or objects."""
    if items["type"] == "string":
        fits = all(isinstance(item, str) for item in value)
        return [] if fits else [f"{name} must be a list of strings"]
    known, must = items["properties"], items["required"]
    rest = [key for key in known if key not in must]
    takes = f"{name} must be a list of objects with {', '.join(must)} (and {', '.join(rest)})"
    problems: list[str] = []
    for at, item in enumerate(value):
        if not isinstance(item, dict):
            return [takes]
        one = f"{name}[{at}]"
        problems += [f"{one} has no {key}" for key in must if key not in item]
        problems += [f"{one} has {key!r}: {takes}" for key in item if key not in known]
        for key in known:
            if key in item:
                problems += _misfit(f"{one}.{key}", item[key], known[key])
    return problems


def _beyond(name: str, value: float, schema: Mapping[str, Any]) -> list[str]:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if math.isfinite(value) and least <= value <= most:
        return []
    if "maximum" in schema:
        return [f"{name} must be from {least} to {most}"]
    return [f"{name} must be a number" + (f" of at least {least}" if "minimum" in schema else "")]


def _said(kind: str) -> str:
    return {"object": "an object", "integer": "an integer", "array": "a list"}.get(
        kind, f"a {kind}"
    )
