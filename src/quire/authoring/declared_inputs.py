"""Parameters that the caller declares for a new task."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from ..errors import ParameterError
from ..task.literals import literal
from ..task.parameter_cell import Parameter
from ..task.parameter_types import Given, Misfit, convert, guess
from ..task.params import checked_name

_LINE = re.compile(
    r"""\s*(?P<name>[^\s:=#]+)\s*(?::\s*(?P<type>[^=#]*?[^=#\s]))?
    \s*(?:=\s*(?P<default>"[^"]*"|'[^']*'|(?!\#\s).*?))?(?:\s+\#\s+(?P<help>.*))?\s*""",
    re.VERBOSE,
)
_PLAIN = {"str", "int", "float", "bool", "bytes", "list", "dict", "tuple", "set", "frozenset"}
_MODULES = {
    **dict.fromkeys(("date", "datetime", "time"), "datetime"),
    "Decimal": "decimal",
    "Path": "pathlib",
    **dict.fromkeys(("Any", "Literal", "Optional", "Union"), "typing"),
}
_KEYS = ("name", "type", "default", "help")
_HINT = "declare NAME: TYPE = DEFAULT  # HELP, such as: days: int = 7  # how far back"


def declared_inputs(given: Iterable[str | Mapping[str, Any]]) -> tuple[Parameter, ...]:
    """Each as a line `NAME: TYPE = DEFAULT  # HELP`, or as a mapping with these keys."""
    found: dict[str, Parameter] = {}
    for one in given:
        made = _of_line(one) if isinstance(one, str) else _of_fields(one)
        if made.name in found:
            raise ParameterError(f"{made.name} is declared twice", hint="keep one of them")
        found[made.name] = made
    for name in found.keys() & {name for one in found.values() for name in _imported(one.type)}:
        raise ParameterError(
            f"{name} cannot be a parameter beside a parameter of the type {name}",
            hint="name it otherwise",
        )
    return tuple(found.values())


def imports(parameters: Iterable[Parameter]) -> list[str]:
    """The import lines that the types and defaults of these need."""
    names = {name for one in parameters for name in _imported(one.type)}
    modules = sorted({_MODULES[name] for name in names})
    return [
        f"from {module} import {', '.join(sorted(n for n in names if _MODULES[n] == module))}"
        for module in modules
    ]


def text_source(value: str) -> str:
    """With double quotes where that needs no escape."""
    plain = literal(value)
    return f'"{value}"' if plain == f"'{value}'" and '"' not in value else plain


def _of_line(line: str) -> Parameter:
    match = _LINE.fullmatch(line)
    if match is None or "\n" in line:
        raise ParameterError(f"{line!r} declares no parameter", hint=_HINT)
    name, type_, default, help_ = (match[key] for key in _KEYS)
    given = None if default is None else Given(default, "text")
    if default and default[0] in "\"'" and len(default) > 1 and default[-1] == default[0]:
        given, type_ = Given(default[1:-1], "text"), type_ or "str"
    return _made(name, type_ or "", given, help_ or "")


def _of_fields(fields: Mapping[str, Any]) -> Parameter:
    odd = [key for key in fields if key not in _KEYS]
    texts = [fields.get(key) or "" for key in ("name", "type", "help")]
    if odd or not all(isinstance(text, str) for text in texts):
        said = f"there is no {odd[0]!r}" if odd else "name, type and help are text"
        raise ParameterError(f"a parameter has {', '.join(_KEYS)}: {said}", hint=_HINT)
    name, type_, help_ = texts
    return _made(name, type_, Given(fields["default"]) if "default" in fields else None, help_)


def _made(name: str, type_: str, given: Given | None, help_: str) -> Parameter:
    name, help_ = checked_name(name), " ".join(help_.split())
    if given is None:
        return Parameter(name, _checked_type(name, type_ or "str"), help=help_, required=True)
    if not type_:
        given = Given(_guessed(given.value) if given.kind == "text" else given.value)
        if given.value is None:
            raise ParameterError(f"{name} needs a type beside the default none", hint=_HINT)
        type_ = type(given.value).__name__
    type_ = _checked_type(name, type_)
    try:
        value = convert(given, type_)
    except Misfit as why:
        said = f"{name} expects {type_}, not the default {given.value!r}"
        raise ParameterError(f"{said}: {why}" if str(why) else said, hint=_HINT) from why
    return Parameter(name, type_, value, True, _source(value), help_)


def _guessed(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return guess(text)


def _imported(type_: str) -> set[str]:
    nodes = ast.walk(ast.parse(type_, mode="eval"))
    return {node.id for node in nodes if isinstance(node, ast.Name)} & _MODULES.keys()


def _checked_type(name: str, type_: str) -> str:
    """A type that values are checked against and that a draft knows how to import."""
    try:
        tree = ast.parse(type_, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        tree = ast.Name("")
    for node in ast.walk(tree):
        known = isinstance(node, ast.Constant | ast.Subscript | ast.Tuple | ast.List | ast.Load)
        known = known or isinstance(node, ast.BinOp | ast.BitOr | ast.UnaryOp | ast.USub)
        if not known and not (
            isinstance(node, ast.Name) and (node.id in _PLAIN or node.id in _MODULES)
        ):
            raise ParameterError(
                f"{type_!r} is no type for the parameter {name}",
                hint=f"known are {', '.join(sorted(_PLAIN | _MODULES.keys()))}, such as list[int]",
            )
    return ast.unparse(tree)


def _source(value: Any) -> str:
    """As a person would write it below the imports; where that is not plain, as `literal` does."""
    if isinstance(value, str):
        return text_source(value)
    if type(value) is list:
        return f"[{', '.join(map(_source, value))}]"
    if isinstance(value, PurePath | Decimal):
        return f"{'Decimal' if isinstance(value, Decimal) else 'Path'}({text_source(str(value))})"
    if isinstance(value, date | time) and getattr(value, "tzinfo", None) is None:
        return repr(value).removeprefix("datetime.")
    return literal(value)
