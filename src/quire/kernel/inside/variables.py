"""What a notebook's user has defined: name, type, size and a short look at the value."""

from __future__ import annotations

import itertools
import reprlib
import types
from typing import Any

# Characters of a value that leave the kernel. Whoever shows it cuts it to a few, after masking: of
# a secret that was cut before nobody could tell any more that it is one.
REPR = 2_000
MOST = 500  # variables

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = REPR
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = 6


def listing(namespace: dict[str, Any], hidden: Any = ()) -> list[dict[str, Any]]:
    names = (
        name
        for name, value in list(namespace.items())
        if not name.startswith("_")
        and name not in hidden
        and not isinstance(value, types.ModuleType)
    )
    return [_describe(name, namespace[name]) for name in itertools.islice(names, MOST)]


def _describe(name: str, value: Any) -> dict[str, Any]:
    kind = type(value)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    size: Any = None
    # A stranger's object may raise from anything; then it just says less.
    try:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            size = " x ".join(str(part) for part in shape)
        elif isinstance(value, (str, bytes, list, tuple, dict, set, frozenset)):
            size = str(len(value))
    except Exception:  # noqa: BLE001 - `shape` and `__len__` are the value's own code
        size = None
    try:
        large = size is not None and hasattr(value, "shape")
        text = "" if large else _short.repr(value)
        if large:
            text = repr(value) if getattr(value, "size", 1_000) <= 100 else ""
    except Exception as error:  # noqa: BLE001 - so is `__repr__`
        text = f"<repr failed: {type(error).__name__}>"
    text = " ".join(text.split())
    return {
        "name": name,
        "type": f"{module}{kind.__qualname__}",
        "size": size,
        "value": text if len(text) <= REPR else f"{text[: REPR - 1]}…",
    }
