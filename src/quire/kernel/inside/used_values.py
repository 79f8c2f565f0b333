"""What a cell that failed was working with: name, type, size and a short look at each value.

Nobody asked for this, so it must not do anything: only values of known types are looked at, and no
method that a task has written is called.
"""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Iterator
from typing import Any

MOST = 30  # variables
LOOK = 400  # characters of a value; whoever shows it cuts it further, after masking
STRING = 2_000  # of a text: a secret must leave whole, or what masks it would not know it
ITEMS = 20  # of a container
DEEP = 2

_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
_PLAIN = (bool, int, float, complex, type(None))
# Their repr is short and their own.
_SPOKEN = {
    "datetime": ("datetime", "date", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "pathlib": ("PosixPath", "PurePosixPath"),
    "uuid": ("UUID",),
    "numpy": ("float64", "float32", "int64", "int32", "bool_", "bool", "datetime64", "str_"),
    "pandas": ("Timestamp", "Timedelta"),
}
_SHAPED = ("numpy", "pandas", "polars", "torch", "tensorflow", "jax", "jaxlib", "scipy", "xarray")
_CODE = (types.FunctionType, types.BuiltinFunctionType, type)


def used(code: str, namespace: dict[str, Any], error: BaseException | None) -> list[dict[str, Any]]:
    """The cell's own names that are there, then those of the innermost function of the task."""
    found: list[dict[str, Any]] = []
    for name, only_called in _names(code).items():
        if name.startswith("_") or name == "get_ipython" or name not in namespace:
            continue
        value = namespace[name]
        if _is(value, types.ModuleType) or (only_called and _is(value, _CODE)):
            continue
        found.append(_described(name, value, ""))
    scope, values = _innermost(error, namespace)
    for name, value in values.items():
        if not _is(value, types.ModuleType) and not name.startswith("_"):
            found.append(_described(name, value, scope))
    return found if len(found) <= MOST else [*found[: MOST - 10], *found[-10:]]


def _is(value: Any, kinds: Any) -> bool:
    """`isinstance` would ask the value itself."""
    return issubclass(type(value), kinds)


def _names(code: str) -> dict[str, bool]:
    """Each name of it in order, and whether all that is done with it is to call it."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    names: dict[str, bool] = {}
    called = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called.add(id(node.func))
        if isinstance(node, ast.Name):
            names[node.id] = names.get(node.id, True) and id(node) in called
    return names


def _innermost(
    error: BaseException | None, namespace: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The function of the task in which it happened, and what it knew."""
    last: Any = None
    step = error.__traceback__ if error is not None else None
    while step is not None:
        if step.tb_frame.f_globals is namespace:
            last = step.tb_frame
        step = step.tb_next
    if last is None or last.f_code.co_name == "<module>":
        return "", {}
    return last.f_code.co_name, dict(last.f_locals)


def _described(name: str, value: Any, scope: str) -> dict[str, Any]:
    kind = type(value)
    module = str(type.__getattribute__(kind, "__module__"))
    outer = "" if module in ("builtins", "__main__") else f"{module}."
    told = {"name": name[:100], "type": f"{outer}{type.__getattribute__(kind, '__qualname__')}"}
    told["type"] = told["type"][:100]
    if scope:
        told["scope"] = scope[:100]
    root = module.partition(".")[0]
    # Even of known types a broken value may raise; then it just says less.
    with contextlib.suppress(Exception):
        told |= _sized(value, root)
    return told


def _sized(value: Any, root: str) -> dict[str, str]:
    kind = type(value)
    told = {}
    if kind in _SIZED:
        told["size"] = str(len(value))
    elif root in _SHAPED:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            told["size"] = " x ".join(map(str, shape))
        if kind.__name__ == "DataFrame":
            columns = list(value.columns[:ITEMS])
            if all(type(one) in (str, int) for one in columns):
                told["value"] = "columns " + ", ".join(map(str, columns))
        elif "size" in told and kind.__name__ in ("ndarray", "Series"):
            told["value"] = f"dtype {value.dtype}"
    if "value" not in told and (text := "".join(_look(value, 0))):
        told["value"] = text
    return told


def _look(value: Any, depth: int) -> Iterator[str]:
    """Its repr, as far as that is not a stranger's."""
    kind = type(value)
    if kind in (str, bytes):
        yield repr(value[:STRING])
    elif kind in _PLAIN or kind.__name__ in _SPOKEN.get(kind.__module__.partition(".")[0], ()):
        yield repr(value)
    elif kind in (list, tuple, set, frozenset):
        start, end = "[]" if kind is list else "()" if kind is tuple else "{}"
        yield start
        yield from _items(value, depth)
        yield f",{end}" if kind is tuple and len(value) == 1 else end
    elif kind is dict:
        yield "{"
        yield from _items(value, depth, value)
        yield "}"
    elif depth:
        yield f"<{kind.__qualname__}>"


def _items(values: Any, depth: int, mapping: Any = None) -> Iterator[str]:
    room = LOOK
    for at, one in enumerate(values):
        if at == ITEMS or room < 0 or depth == DEEP:
            yield "…"
            return
        text = ", " if at else ""
        text += "".join(_look(one, depth + 1))
        if mapping is not None:
            text += ": " + "".join(_look(mapping[one], depth + 1))
        room -= len(text)
        yield text
