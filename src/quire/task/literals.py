"""The source text of a value, so that running it gives the value back."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from ..errors import ParameterError

_DATETIME = '__import__("datetime")'


def literal(value: Any, language: str = "python") -> str:
    """Source text of a value. Python code depends on no name a task could have shadowed.

    `float` and `set` are the exceptions: nan, infinity and the empty set have no other spelling.
    """
    name = language.lower()
    if name != "python" and name not in _STYLES:
        raise ParameterError(
            f"parameters cannot be written in {language}",
            hint=f"languages with parameters: {', '.join(sorted(('python', *_STYLES)))}",
        )
    try:
        return _python(value) if name == "python" else _foreign(value, _STYLES[name])
    except RecursionError as error:
        raise ParameterError(
            "the value is nested too deeply, or contains itself",
            hint="pass the name of a file and read it in the task",
        ) from error


def _refuse(value: Any, language: str) -> ParameterError:
    return ParameterError(
        f"a value of type {type(value).__name__} cannot be written in {language}",
        hint="use text, numbers, true/false, none, lists and mappings",
    )


def _python(value: Any) -> str:
    # Subclasses (enums, numpy scalars, path flavours) are written as the plain type they extend.
    for kind, writer in _PYTHON.items():
        if isinstance(value, kind):
            return writer(value)
    raise _refuse(value, "Python")


def _integer(value: int) -> str:
    value = int(value)
    # Beyond the limit Python refuses decimal text, in source too; hexadecimal has no limit.
    limit = sys.get_int_max_str_digits() or 4300
    return repr(value) if value.bit_length() < min(limit, 4300) * 3 else hex(value)


def _python_float(value: float) -> str:
    value = float(value)
    if math.isfinite(value):
        return repr(value)
    # The sign bit of a nan is kept too.
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f'float("{sign}{"nan" if math.isnan(value) else "inf"}")'


def _python_text(value: str) -> str:
    # ascii() spells out lone surrogates; repr() keeps what people can read.
    text = repr(str(value))
    try:
        text.encode()
    except UnicodeEncodeError:
        return ascii(str(value))
    return text


def _listed(values: Any) -> str:
    return ", ".join(_python(item) for item in values)


def _python_set(value: set[Any] | frozenset[Any]) -> str:
    # Sorted, so that the same set always gives the same source.
    text = ", ".join(sorted(_python(item) for item in value))
    if isinstance(value, frozenset):
        return f"frozenset({{{text}}})" if text else "frozenset()"
    return f"{{{text}}}" if text else "set()"


def _python_zone(zone: tzinfo | None) -> str:
    key = getattr(zone, "key", None)
    if isinstance(key, str):
        return f'__import__("zoneinfo").ZoneInfo({_python_text(key)})'
    offset = zone.utcoffset(None) if zone is not None else None
    if offset is None:
        raise _refuse(zone, "Python")
    if offset == timedelta(0):
        return f"{_DATETIME}.timezone.utc"
    return f"{_DATETIME}.timezone({_python_delta(offset)})"


def _python_delta(value: timedelta) -> str:
    return f"{_DATETIME}.timedelta({value.days}, {value.seconds}, {value.microseconds})"


def _python_clock(value: datetime | time) -> str:
    parts = [value.hour, value.minute, value.second, value.microsecond]
    if isinstance(value, datetime):
        parts = [value.year, value.month, value.day, *parts]
    text = ", ".join(map(str, parts))
    if value.tzinfo is not None:
        text += f", tzinfo={_python_zone(value.tzinfo)}"
    if value.fold:
        text += ", fold=1"
    return f"{_DATETIME}.{'datetime' if isinstance(value, datetime) else 'time'}({text})"


# The first type that a value is an instance of: bool before int, datetime before date.
_PYTHON: dict[type[Any], Callable[[Any], str]] = {
    type(None): repr,
    bool: repr,
    str: _python_text,
    int: _integer,
    float: _python_float,
    list: lambda value: f"[{_listed(value)}]",
    tuple: lambda value: f"({_listed(value)}{',' if len(value) == 1 else ''})",
    dict: lambda value: f"{{{', '.join(f'{_python(k)}: {_python(v)}' for k, v in value.items())}}}",
    set: _python_set,
    frozenset: _python_set,
    bytes: lambda value: repr(bytes(value)),
    datetime: _python_clock,
    date: lambda value: f"{_DATETIME}.date({value.year}, {value.month}, {value.day})",
    time: _python_clock,
    timedelta: _python_delta,
    timezone: _python_zone,
    Decimal: lambda value: f'__import__("decimal").Decimal("{value}")',
    complex: lambda value: f"complex({_python_float(value.real)}, {_python_float(value.imag)})",
    PurePath: lambda value: f'__import__("pathlib").Path({_python_text(str(value))})',
}

# Other languages


@dataclass(frozen=True, slots=True)
class _Style:
    """How a language writes values; `pairs` is empty where it has no mappings."""

    name: str
    words: tuple[str, str, str]  # none, true, false
    floats: tuple[str, str]  # nan, infinity
    integer: Callable[[int], str]
    quote: Callable[[str], str]
    items: tuple[str, str, str]  # around and between the items of a list
    pairs: tuple[str, str, str] | None = None


def _foreign(value: Any, style: _Style) -> str:
    match value:
        case None | bool():
            return style.words[0 if value is None else 1 if value else 2]
        case int():
            return style.integer(value)
        case float() if math.isnan(value):
            return style.floats[0]
        case float() if math.isinf(value):
            return f"{'-' if value < 0 else ''}{style.floats[1]}"
        case float():
            return repr(float(value)).replace("e+", "e")
        case str() | date() | time() | Decimal() | PurePath():
            return style.quote(_text(value, style))
        case list() | tuple() if style.pairs or not any(isinstance(one, _NESTED) for one in value):
            before, between, after = style.items
            return f"{before}{between.join(_foreign(item, style) for item in value)}{after}"
        case dict() if style.pairs and all(isinstance(key, str) for key in value):
            before, between, after = style.pairs
            texts = [f"{_foreign(k, style)}{between}{_foreign(v, style)}" for k, v in value.items()]
            return f"{before}{', '.join(texts)}{after}"
    raise _refuse(value, style.name)


_NESTED = (list, tuple, dict)


def _text(value: Any, style: _Style) -> str:
    """Strings, and what other languages get as one: dates and paths."""
    text = value.isoformat() if isinstance(value, date | time) else str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _refuse(value, style.name) from error
    if "\0" in text:
        raise ParameterError(
            f"text with a NUL character cannot be written in {style.name}",
            hint="pass the name of a file instead",
        )
    return text


def _escaped(text: str) -> str:
    """A double-quoted string with escapes that R and Julia share."""
    text = re.sub(r'["\\]', r"\\\g<0>", text)
    text = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    text = re.sub("[\x01-\x1f\x7f\x85\u2028\u2029]", lambda c: f"\\u{ord(c[0]):04x}", text)
    return f'"{text}"'


def _r_integer(value: int) -> str:
    # R's integers have 32 bits; beyond 2^53 a double would not hold the value.
    if abs(value) >= 2**53:
        raise _refuse(value, "R")
    return f"{value}L" if abs(value) < 2**31 else str(value)


_STYLES = {
    "bash": _Style(
        "bash", ("''", "true", "false"), ("nan", "inf"), _integer,
        lambda text: "'" + text.replace("'", "'\\''") + "'", ("(", " ", ")"),
    ),
    "r": _Style(
        "R", ("NULL", "TRUE", "FALSE"), ("NaN", "Inf"), _r_integer, _escaped,
        ("list(", ", ", ")"), ("list(", " = ", ")"),
    ),
    "julia": _Style(
        "Julia", ("nothing", "true", "false"), ("NaN", "Inf"),
        lambda value: str(value) if abs(value) < 2**127 else f'big"{_integer(value)}"',
        lambda text: _escaped(text).replace("$", "\\$"), ("[", ", ", "]"), ("Dict(", " => ", ")"),
    ),
}  # fmt: skip
