"""Convert a given value to the declared type. Annotations are read, never evaluated."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, Literal

_DATES: dict[str, Callable[..., Any]] = {"date": date, "datetime": datetime, "time": time}


@dataclass(frozen=True, slots=True)
class Given:
    """A value and how it was given: `text` is converted, `raw` stays text, `typed` must fit."""

    value: Any
    kind: Literal["text", "raw", "typed"] = "typed"


class Misfit(ValueError):
    """The value does not fit; the message says why, for the caller's list of problems."""


def convert(given: Given, annotation: str) -> Any:
    """The value as the declared type has it. An unknown annotation accepts anything."""
    node = _parsed(annotation)
    if given.kind == "text":
        return _fit(node, str(given.value), text=True)
    if given.kind == "typed":
        return _fit(node, given.value)
    for member in [None] if node is None else _members(node):
        with suppress(Misfit):
            if isinstance(_fit(member, given.value), str):
                return given.value
    raise Misfit("a raw value is always text")


def is_known(annotation: str) -> bool:
    """Whether values are checked against it."""

    def known(node: ast.expr | None) -> bool:
        name, arguments = _shape(node)
        inner = [one for one in arguments if not isinstance(one, ast.Constant)]
        return name == "Literal" or (name in _ALL and all(map(known, inner)))

    return known(_parsed(annotation))


def guess(text: str) -> Any:
    """What text means where no type is declared."""
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in _NONE[:-1]:
        return None
    for reader in (_read_int, float):
        with suppress(ValueError):
            return reader(text)
    return text


# Annotations


def _parsed(annotation: str) -> ast.expr | None:
    try:
        node = ast.parse(annotation, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _parsed(node.value)
    return node


def _shape(node: ast.expr | None) -> tuple[str, list[ast.expr]]:
    """The name of a type and its arguments, without the module it comes from."""
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return "Union", [*_members(left), *_members(right)]
        case ast.Constant(None):
            return "None", []
        case ast.Subscript(value, inner):
            name, _ = _shape(value)
            arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if name == "Optional":
                return "Union", [*arguments, ast.Constant(None)]
            if name in ("Annotated", "Final", "ClassVar", "Required"):
                return _shape(arguments[0])
            return name, arguments
        case ast.Attribute(_, name) | ast.Name(name):
            return _ALIASES.get(name, name), []
    return "", []


def _members(node: ast.expr) -> list[ast.expr]:
    name, arguments = _shape(node)
    return arguments if name == "Union" else [node]


_ALIASES = {
    "NoneType": "None",
    **dict.fromkeys(("List", "Sequence", "MutableSequence", "Iterable", "Collection"), "list"),
    **dict.fromkeys(("Dict", "Mapping", "MutableMapping"), "dict"),
    **dict.fromkeys(("PurePath", "PosixPath", "PurePosixPath"), "Path"),
    "Tuple": "tuple",
    "Set": "set",
    "FrozenSet": "frozenset",
}

# Values


def _fit(node: ast.expr | None, value: Any, text: bool = False) -> Any:
    """The value as the type has it; `text` is converted, anything else has to fit."""
    name, arguments = _shape(node)
    match name:
        case "Union":
            return _member(arguments, value, text)
        case "Literal":
            return _choice(arguments, value, text)
        case "None":
            if value is None or (text and value.strip().lower() in _NONE):
                return None
            raise Misfit("only none fits")
        case "dict":
            value = _structure(value) if text else value
            if not isinstance(value, Mapping):
                raise Misfit("")
            key, item = arguments if len(arguments) == 2 else (None, None)
            return {_fit(key, one): _fit(item, other) for one, other in value.items()}
    if name in _CONTAINERS:
        return _items(name, arguments, value, text)
    if name not in _READERS:
        return guess(value) if text else value
    try:
        return _scalar(name, value, text)
    except Misfit:
        raise
    except (ValueError, ArithmeticError) as error:
        raise Misfit("") from error


def _member(members: list[ast.expr], value: Any, text: bool) -> Any:
    exact = [] if text else [one for one in members if _shape(one)[0] == type(value).__name__]
    # Text fits everything, so it comes last; none comes first, or `null` would be a word.
    order = {"None": 0, "bool": 2, "str": 8, "Path": 7}
    for member in exact or sorted(members, key=lambda one: order.get(_shape(one)[0], 1)):
        with suppress(Misfit):
            return _fit(member, value, text)
    raise Misfit("")


def _choice(arguments: list[ast.expr], value: Any, text: bool) -> Any:
    choices: list[Any] = []
    for argument in arguments:
        with suppress(ValueError, TypeError):
            choices.append(_constant(argument))
    for meant in (value, guess(value)) if text else (value,):
        for choice in choices:
            if type(choice) is type(meant) and choice == meant:
                return choice
    # `2` is 2.0 among numbers, and a date may be given as text.
    for choice in choices:
        with suppress(Misfit):
            if _fit(ast.Name(type(choice).__name__), value, text) == choice:
                return choice
    raise Misfit("")


def _constant(node: ast.expr) -> Any:
    """A literal, or a date as front matter has it among its choices."""
    if isinstance(node, ast.Call) and not node.keywords:
        kind = _DATES.get(ast.unparse(node.func).removeprefix("datetime."))
        return ast.literal_eval(node) if kind is None else kind(*map(ast.literal_eval, node.args))
    return ast.literal_eval(node)


def _items(name: str, arguments: list[ast.expr], value: Any, text: bool) -> Any:
    if text and value.strip()[:1] in ("[", "(", "{"):
        value, text = _structure(value.strip()), False
    elif text:
        value = [part.strip() for part in value.split(",")] if value.strip() else []
    if not isinstance(value, list | tuple | set | frozenset):
        raise Misfit("")
    kinds: list[ast.expr | None] = [arguments[0] if arguments else None] * len(value)
    if name == "tuple" and arguments and ast.unparse(arguments[-1]) != "...":
        if len(arguments) != len(value):
            raise Misfit(f"it needs {len(arguments)} items, not {len(value)}")
        kinds = list(arguments)
    items = [_fit(kind, item, text) for kind, item in zip(kinds, value, strict=True)]
    try:
        return _CONTAINERS[name](items)
    except TypeError as error:
        raise Misfit("a set cannot hold lists or mappings") from error


def _structure(text: str) -> Any:
    """A list or mapping written as JSON, as a Python literal or as YAML."""
    for reader in (json.loads, ast.literal_eval):
        with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return reader(text.strip())
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Misfit("it is neither JSON, a Python literal nor YAML") from error


def _scalar(name: str, value: Any, text: bool) -> Any:
    if text or (isinstance(value, str) and name in _ALSO_TEXT):
        return _READERS[name](value)
    if type(value) is _DATES.get(name) or (name == "Path" and isinstance(value, PurePath)):
        return value
    match name, value:
        case ("bool", bool()) | ("str", str()) | ("Decimal", Decimal()) | ("bytes", bytes()):
            return value
        case "int" | "float" | "Decimal", bool():
            raise Misfit("")
        case "int", int():
            return int(value)
        case "float", int() | float():
            return float(value)
        case "Decimal", int() | float():
            return Decimal(str(value))  # through text, so that 0.1 is one tenth
        case "datetime", date():
            return datetime(value.year, value.month, value.day)
    if name == "str" and type(value) is date:  # as YAML reads an unquoted 2024-01-31
        return value.isoformat()
    raise Misfit("")


def _read_int(text: str) -> int:
    text = text.strip()
    if len(text) > 4000 and text.lstrip("+-").replace("_", "").isdecimal():
        return int(Decimal(text))  # int() refuses very long decimal text
    try:
        return int(text)
    except ValueError:
        return int(text, 0)


def _read_bool(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("true", "yes", "on", "1", "t", "y"):
        return True
    if lowered in ("false", "no", "off", "0", "f", "n"):
        return False
    raise Misfit("write true or false")


_NONE = ("none", "null", "~", "")
_CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_READERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": _read_int,
    "float": float,
    "bool": _read_bool,
    "date": lambda text: date.fromisoformat(text.strip()),
    "datetime": lambda text: datetime.fromisoformat(text.strip()),
    "time": lambda text: time.fromisoformat(text.strip()),
    "Decimal": lambda text: Decimal(text.strip()),
    "Path": Path,
    "bytes": lambda text: text.encode("utf-8", "surrogateescape"),
}
# These are written as text in JSON and YAML.
_ALSO_TEXT = frozenset(("date", "datetime", "time", "Decimal", "Path"))
# What a person may call a type.
NAMES = (*_READERS, "list", "dict", "tuple", "set")
_ALL = frozenset({*NAMES, "frozenset", "Union", "None", "Any", "object"})
