"""The source text of a value, so that running it gives the value back."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
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
    writer = _WRITERS.get(language.lower())
    if writer is None:
        raise ParameterError(
            f"parameters cannot be written in {language}",
            hint=f"languages with parameters: {', '.join(sorted(set(_WRITERS)))}",
        )
    try:
        return writer(value)
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
    kind = type(value)
    if value is None or kind is bool:
        return repr(value)
    found = _PYTHON.get(kind)
    if found:
        return found(value)
    # Subclasses (enums, numpy scalars, path flavours) are written as the plain type they extend.
    for base, writer in _PYTHON.items():
        if isinstance(value, base):
            return writer(value)
    raise _refuse(value, "Python")


def _python_int(value: int) -> str:
    value = int(value)
    # Beyond the limit Python refuses decimal text, in source too; hexadecimal has no limit.
    limit = sys.get_int_max_str_digits() or 4300
    if value.bit_length() < min(limit, 4300) * 3:
        return repr(value)
    return hex(value)


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


def _python_tuple(value: tuple[Any, ...]) -> str:
    items = [_python(item) for item in value]
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _python_set(value: set[Any] | frozenset[Any]) -> str:
    # Sorted, so that the same set always gives the same source.
    text = ", ".join(sorted(_python(item) for item in value))
    if isinstance(value, frozenset):
        return f"frozenset({{{text}}})" if text else "frozenset()"
    return f"{{{text}}}" if text else "set()"


def _python_dict(value: dict[Any, Any]) -> str:
    pairs = (f"{_python(key)}: {_python(item)}" for key, item in value.items())
    return f"{{{', '.join(pairs)}}}"


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


_PYTHON: dict[type[Any], Callable[[Any], str]] = {
    str: _python_text,
    bool: lambda value: repr(bool(value)),
    int: _python_int,
    float: _python_float,
    list: lambda value: f"[{', '.join(_python(item) for item in value)}]",
    tuple: _python_tuple,
    dict: _python_dict,
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


def _text(value: Any, language: str) -> str:
    """Strings, and what other languages get as one: dates and paths."""
    if isinstance(value, date | time):
        value = value.isoformat()
    text = str(value)
    if "\0" in text or not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _refuse(value, language) from error
        if "\0" in text:
            raise ParameterError(
                f"text with a NUL character cannot be written in {language}",
                hint="pass the name of a file instead",
            )
    return text


def _bash(value: Any) -> str:
    if value is None:
        return "''"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _python_int(value) if abs(value) < 10**1000 else hex(value)
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str | date | time | Decimal | PurePath):
        text = _text(value, "bash")
        return "'" + text.replace("'", "'\\''") + "'"
    if isinstance(value, list | tuple):
        items = list(value)
        if not any(isinstance(item, list | tuple | dict) for item in items):
            return f"({' '.join(_bash(item) for item in items)})"
    raise _refuse(value, "bash")


def _quoted(value: Any, language: str, dollar: bool = False) -> str:
    """A double-quoted string with escapes that R, Julia and JavaScript share."""
    out = ['"']
    for char in _text(value, language):
        if char in '"\\' or (dollar and char == "$"):
            out.append("\\" + char)
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        elif ord(char) < 32 or char in "\x7f\x85\u2028\u2029":
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(char)
    return "".join([*out, '"'])


def _r(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        # R's integers have 32 bits; beyond 2^53 a double would not hold the value.
        if abs(value) >= 2**53:
            raise _refuse(value, "R")
        return f"{value}L" if abs(value) < 2**31 else str(value)
    if isinstance(value, float):
        return _float(value, "NaN", "Inf")
    if isinstance(value, str | date | time | Decimal | PurePath):
        return _quoted(value, "R")
    if isinstance(value, list | tuple):
        return f"list({', '.join(_r(item) for item in value)})"
    if isinstance(value, dict):
        pairs = (f"{_quoted(k, 'R')} = {_r(v)}" for k, v in _named(value, "R"))
        return f"list({', '.join(pairs)})"
    raise _refuse(value, "R")


def _julia(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 2**127 else f'big"{value}"'
    if isinstance(value, float):
        return _float(value, "NaN", "Inf")
    if isinstance(value, str | date | time | Decimal | PurePath):
        return _quoted(value, "Julia", dollar=True)
    if isinstance(value, list):
        return f"[{', '.join(_julia(item) for item in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_julia(item) for item in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        pairs = (
            f"{_quoted(k, 'Julia', dollar=True)} => {_julia(v)}" for k, v in _named(value, "Julia")
        )
        return f"Dict({', '.join(pairs)})"
    raise _refuse(value, "Julia")


def _javascript(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 2**53 else f"{value}n"
    if isinstance(value, float):
        return _float(value, "NaN", "Infinity")
    if isinstance(value, str):
        # JSON escapes everything, lone surrogates and NUL included.
        return json.dumps(value)
    if isinstance(value, date | time | Decimal | PurePath):
        return _quoted(value, "JavaScript")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_javascript(item) for item in value)}]"
    if isinstance(value, dict):
        pairs = (f"{json.dumps(k)}: {_javascript(v)}" for k, v in _named(value, "JavaScript"))
        return f"{{{', '.join(pairs)}}}"
    raise _refuse(value, "JavaScript")


def _float(value: float, nan: str, infinity: str) -> str:
    if math.isnan(value):
        return nan
    if math.isinf(value):
        return infinity if value > 0 else f"-{infinity}"
    return re.sub(r"e\+?", "e", repr(float(value)))


def _named(value: dict[Any, Any], language: str) -> list[tuple[str, Any]]:
    for key in value:
        if not isinstance(key, str):
            raise _refuse(key, language)
    return list(value.items())


_WRITERS: dict[str, Callable[[Any], str]] = {
    "python": _python,
    "bash": _bash,
    "r": _r,
    "julia": _julia,
    "javascript": _javascript,
}
