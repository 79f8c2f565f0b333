"""JSON that means one thing only. What other readers let pass, each in its own way, is refused."""

from __future__ import annotations

import json
import math
from typing import Any


def loads(data: bytes) -> Any:
    """Raises ValueError, with a reason in plain words, for what is not strict JSON in UTF-8."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"it is not UTF-8 text: byte {error.start} is {data[error.start]:#04x}"
        ) from None
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float
        )
    except json.JSONDecodeError as error:
        raise ValueError(
            f"it is not JSON: {error.msg} on line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise ValueError("its lists and objects are nested too deeply") from None
    except _Refused:
        raise
    except ValueError:  # Python's own limit on the digits of a number
        raise ValueError("a number in it has too many digits") from None


class _Refused(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(f"the key {brief(key)} stands twice in one object")
            seen.add(key)
    return found


def _constant(name: str) -> Any:
    raise _Refused(f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused(f"the number {brief(text)} is too large")
    return value


def brief(value: Any, limit: int = 60) -> str:
    """A value in few words, for a message. Never raises, whatever it is given."""
    if isinstance(value, dict | list) and value:
        kind = "an object" if isinstance(value, dict) else "a list"
        return f"{kind} of {len(value)}"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
