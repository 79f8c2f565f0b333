"""From a given value to the declared type. Annotations are read, never evaluated."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
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
    """The value as the declared type has it. An annotation nobody knows accepts anything."""
    node = _parsed(annotation)
    if given.kind == "text":
        return _from_text(node, str(given.value))
    if given.kind == "raw":
        if not _takes_text(node, given.value):
            raise Misfit("a raw value is always text")
        return given.value
    return _fit(node, given.value)


def is_known(annotation: str) -> bool:
    """Whether values are checked against it, and not let through."""

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
    if lowered in ("none", "null", "~"):
        return None
    for reader in (_read_int, float):
        try:
            return reader(text)
        except ValueError:
            continue
    return text


def _parsed(annotation: str) -> ast.expr | None:
    try:
        node = ast.parse(annotation, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    while isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _parsed(node.value)
    return node


def _shape(node: ast.expr | None) -> tuple[str, list[ast.expr]]:
    """The name of a type and its arguments, without the module it comes from."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return "Union", [*_members(node.left), *_members(node.right)]
    if isinstance(node, ast.Constant) and node.value is None:
        return "None", []
    if isinstance(node, ast.Subscript):
        name, _ = _shape(node.value)
        arguments = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Optional":
            return "Union", [*arguments, ast.Constant(None)]
        if name in ("Annotated", "Final", "ClassVar", "Required"):
            return _shape(arguments[0])
        return _ALIASES.get(name, name), arguments
    if isinstance(node, ast.Attribute):
        return _ALIASES.get(node.attr, node.attr), []
    if isinstance(node, ast.Name):
        return _ALIASES.get(node.id, node.id), []
    return "", []


def _members(node: ast.expr) -> list[ast.expr]:
    name, arguments = _shape(node)
    return arguments if name == "Union" else [node]


_ALIASES = {
    "List": "list",
    "Sequence": "list",
    "MutableSequence": "list",
    "Iterable": "list",
    "Collection": "list",
    "Dict": "dict",
    "Mapping": "dict",
    "MutableMapping": "dict",
    "Tuple": "tuple",
    "Set": "set",
    "FrozenSet": "frozenset",
    "NoneType": "None",
    "PurePath": "Path",
    "PosixPath": "Path",
    "PurePosixPath": "Path",
}


def _from_text(node: ast.expr | None, text: str) -> Any:
    name, arguments = _shape(node)
    if name == "Union":
        return _any_of(arguments, lambda member: _from_text(member, text))
    if name == "Literal":
        return _literal_from_text(arguments, text)
    if name == "None":
        if text.strip().lower() in ("none", "null", "~", ""):
            return None
        raise Misfit("only none fits")
    if name in ("list", "set", "frozenset", "tuple"):
        return _items_from_text(node, name, arguments, text)
    if name == "dict":
        return _fit(node, _structure(text))
    reader = _READERS.get(name)
    if reader is None:
        return guess(text)
    try:
        return reader(text)
    except Misfit:
        raise
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise Misfit("") from error


def _any_of(members: list[ast.expr], attempt: Callable[[ast.expr], Any]) -> Any:
    # Text fits everything, so it comes last; none comes first, or `null` would be a word.
    order = {"None": 0, "bool": 2, "str": 8, "Path": 7}
    for member in sorted(members, key=lambda member: order.get(_shape(member)[0], 1)):
        try:
            return attempt(member)
        except Misfit:
            continue
    raise Misfit("")


def _literal_from_text(arguments: list[ast.expr], text: str) -> Any:
    choices = _literal_values(arguments)
    for choice in choices:
        if isinstance(choice, str) and choice == text:
            return choice
    meant = guess(text)
    for choice in choices:
        if type(choice) is type(meant) and choice == meant:
            return choice
    return _like_one_of(choices, lambda kind: _from_text(kind, text))


def _like_one_of(choices: list[Any], read: Callable[[ast.expr], Any]) -> Any:
    """The choice that is meant: `2` is 2.0 among numbers, and a date may be a text."""
    for choice in choices:
        with suppress(Misfit):
            if read(ast.Name(type(choice).__name__)) == choice:
                return choice
    raise Misfit("")


def _literal_values(arguments: list[ast.expr]) -> list[Any]:
    out = []
    for argument in arguments:
        with suppress(ValueError, TypeError):
            out.append(_constant(argument))
    return out


def _constant(node: ast.expr) -> Any:
    """A literal, or a date as front matter has it among its choices."""
    if isinstance(node, ast.Call) and not node.keywords:
        kind = _DATES.get(ast.unparse(node.func).removeprefix("datetime."))
        return ast.literal_eval(node) if kind is None else kind(*map(ast.literal_eval, node.args))
    return ast.literal_eval(node)


def _items_from_text(node: ast.expr | None, name: str, arguments: list[ast.expr], text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] in ("[", "(", "{"):
        return _fit(node, _structure(stripped))
    parts = [part.strip() for part in stripped.split(",")] if stripped else []
    if name == "tuple":
        kinds = _tuple_kinds(arguments, len(parts))
        return tuple(_from_text(kind, part) for kind, part in zip(kinds, parts, strict=True))
    kind = arguments[0] if arguments else None
    items = [_from_text(kind, part) for part in parts]
    return items if name == "list" else _hashable(name, items)


def _structure(text: str) -> Any:
    """A list or mapping written as JSON, as a Python literal or as YAML."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Misfit("it is neither JSON, a Python literal nor YAML") from error


def _read_int(text: str) -> int:
    text = text.strip()
    digits = text.lstrip("+-").replace("_", "")
    if len(digits) > 4000 and digits.isdecimal():
        # Python refuses to read very long decimal text in one piece.
        value = 0
        for at in range(0, len(digits), 4000):
            part = digits[at : at + 4000]
            value = value * 10 ** len(part) + int(part)
        return -value if text.startswith("-") else value
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


_READERS: dict[str, Callable[[str], Any]] = {
    "str": lambda text: text,
    "int": _read_int,
    "float": lambda text: float(text.strip()),
    "bool": _read_bool,
    "date": lambda text: date.fromisoformat(text.strip()),
    "datetime": lambda text: datetime.fromisoformat(text.strip()),
    "time": lambda text: time.fromisoformat(text.strip()),
    "Decimal": lambda text: Decimal(text.strip()),
    "Path": Path,
    "bytes": lambda text: text.encode("utf-8", "surrogateescape"),
}


def _takes_text(node: ast.expr | None, value: Any) -> bool:
    name, arguments = _shape(node)
    if name == "Union":
        return any(_takes_text(member, value) for member in arguments)
    if name == "Literal":
        return value in [v for v in _literal_values(arguments) if isinstance(v, str)]
    known = {"None", "list", "tuple", "set", "frozenset", "dict", *_READERS} - {"str"}
    return name not in known


def _fit(node: ast.expr | None, value: Any) -> Any:
    name, arguments = _shape(node)
    match name:
        case "Union":
            exact = [m for m in arguments if _shape(m)[0] == type(value).__name__]
            return _any_of(exact or arguments, lambda member: _fit(member, value))
        case "Literal":
            for choice in _literal_values(arguments):
                if type(choice) is type(value) and choice == value:
                    return choice
            return _like_one_of(_literal_values(arguments), lambda kind: _fit(kind, value))
        case "None":
            if value is None:
                return None
            raise Misfit("only none fits")
        case "list" | "set" | "frozenset" | "tuple":
            return _fit_items(name, arguments, value)
        case "dict":
            return _fit_mapping(arguments, value)
    check = _CHECKS.get(name)
    if check is None:
        return value
    try:
        return check(value)
    except Misfit:
        raise
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise Misfit("") from error


def _fit_items(name: str, arguments: list[ast.expr], value: Any) -> Any:
    if not isinstance(value, list | tuple | set | frozenset):
        raise Misfit("")
    if name == "tuple":
        kinds = _tuple_kinds(arguments, len(value))
        return tuple(_fit(kind, item) for kind, item in zip(kinds, value, strict=True))
    kind = arguments[0] if arguments else None
    items = [_fit(kind, item) for item in value]
    return items if name == "list" else _hashable(name, items)


def _hashable(name: str, items: list[Any]) -> Any:
    try:
        return set(items) if name == "set" else frozenset(items)
    except TypeError as error:
        raise Misfit("a set cannot hold lists or mappings") from error


def _tuple_kinds(arguments: list[ast.expr], count: int) -> list[ast.expr | None]:
    if not arguments:
        return [None] * count
    last = arguments[-1]
    if len(arguments) == 2 and isinstance(last, ast.Constant) and last.value is ...:
        return [arguments[0]] * count
    if len(arguments) != count:
        raise Misfit(f"it needs {len(arguments)} items, not {count}")
    return list(arguments)


def _fit_mapping(arguments: list[ast.expr], value: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise Misfit("")
    if len(arguments) != 2:
        return dict(value)
    key_kind, value_kind = arguments
    return {_fit(key_kind, key): _fit(value_kind, item) for key, item in value.items()}


def _is(value: Any, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _check_str(value: Any) -> str:
    if isinstance(value, str):
        return value
    # YAML reads an unquoted 2024-01-31 as a date.
    if type(value) is date:
        return value.isoformat()
    raise Misfit("")


def _check_int(value: Any) -> int:
    if _is(value, int):
        return int(value)
    raise Misfit("")


def _check_float(value: Any) -> float:
    if _is(value, int, float):
        return float(value)
    raise Misfit("")


def _check_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Misfit("")


def _check_date(value: Any) -> date:
    if type(value) is date:
        return value
    if isinstance(value, str):
        return date.fromisoformat(value)
    raise Misfit("")


def _check_datetime(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    raise Misfit("")


def _check_time(value: Any) -> time:
    if isinstance(value, time):
        return value
    if isinstance(value, str):
        return time.fromisoformat(value)
    raise Misfit("")


def _check_decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str) or _is(value, int, float):
        # Through text, so that 0.1 is one tenth.
        return Decimal(str(value))
    raise Misfit("")


def _check_path(value: Any) -> PurePath:
    if isinstance(value, PurePath):
        return value
    if isinstance(value, str):
        return Path(value)
    raise Misfit("")


def _check_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    raise Misfit("")


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "str": _check_str,
    "int": _check_int,
    "float": _check_float,
    "bool": _check_bool,
    "date": _check_date,
    "datetime": _check_datetime,
    "time": _check_time,
    "Decimal": _check_decimal,
    "Path": _check_path,
    "bytes": _check_bytes,
}
# What a person may call a type.
NAMES = (*_CHECKS, "list", "dict", "tuple", "set")
_ALL = frozenset({*NAMES, "frozenset", "Union", "None", "Any", "object"})
