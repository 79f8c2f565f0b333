"""Whether a cell can be run again without anybody noticing. When in doubt it cannot."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import lru_cache

from .function_reads import target_names

_LONGEST = 4000
_OPERATORS = ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod
_COMPARISONS = ast.Eq | ast.NotEq | ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Is | ast.IsNot
# Bases whose subclasses run no code when they are made.
_BASES = frozenset(
    name
    for name, value in vars(builtins).items()
    if value is object or (isinstance(value, type) and issubclass(value, BaseException))
)
_TEXT_METHODS = frozenset({"center", "ljust", "lower", "rjust", "strip", "title", "upper", "zfill"})
_PRINT_OPTIONS = frozenset({"sep", "end", "flush"})


@lru_cache(maxsize=8192)
def is_pure(source: str) -> bool:
    """True only if running the cell does nothing but bind its own names, always alike, and print.

    Constants, arithmetic and containers of constants and names, plain functions and classes, and
    `print` of names, also in a loop over a range of numbers. No import, other call, attribute,
    subscript, other loop, `del` or displayed value; nothing that reads a name which it also sets.
    """
    if len(source) > _LONGEST:
        return False
    try:
        body = ast.parse(source).body
        if not all(_is_statement(node, in_class=False) for node in body):
            return False
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    # The last expression of a cell is displayed and remembered as `_`.
    if body and isinstance(body[-1], ast.Expr) and not isinstance(body[-1].value, ast.Call):
        return False
    bound = {name for node in body for name in _bound(node)}
    if bound & {"print", "range"} or any(name.startswith("_") for name in bound):
        return False
    done: set[str] = set()
    for node in body:
        if any(name in bound and name not in done for name in _read(node)):
            return False
        done.update(_bound(node))
    return True


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from target_names(target)
    elif isinstance(node, ast.AnnAssign | ast.For):
        yield from target_names(node.target)


def _read(node: ast.stmt) -> Iterator[str]:
    """Names read when the statement runs; what a function's body will read does not count."""
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            yield from _read(inner)
        return
    if isinstance(node, ast.For):
        own = set(target_names(node.target))
        yield from (name for inner in node.body for name in _read(inner) if name not in own)
        return
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        parts = [node.args, *([node.returns] if node.returns is not None else [])]
    for part in (inner for outer in parts for inner in ast.walk(outer)):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            yield part.id


def _is_statement(node: ast.stmt, *, in_class: bool) -> bool:
    if isinstance(node, ast.Assign):
        value = node.value
        alone = all(isinstance(target, ast.Name) for target in node.targets)
        if not alone and not _unpacks(node):
            return False
        return _is_constant(value) if in_class else _is_value(value) or _is_lambda(value)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or (not in_class and _is_print(node.value))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return not node.decorator_list and _is_signature(node.args, node.returns)
    if isinstance(node, ast.ClassDef):
        return _is_class(node)
    if isinstance(node, ast.AnnAssign):
        given = node.value is None or (_is_constant if in_class else _is_value)(node.value)
        return isinstance(node.target, ast.Name) and given and _is_value(node.annotation)
    if isinstance(node, ast.For):
        return not in_class and _is_printing_loop(node)
    return isinstance(node, ast.Pass)


def _is_printing_loop(node: ast.For) -> bool:
    """`for n in range(10): print(n)`: what it does is known before it runs."""
    numbers = node.iter
    return (
        isinstance(node.target, ast.Name)
        and not node.orelse
        and isinstance(numbers, ast.Call)
        and isinstance(numbers.func, ast.Name)
        and numbers.func.id == "range"
        and not numbers.keywords
        and all(isinstance(arg, ast.Constant) and type(arg.value) is int for arg in numbers.args)
        and all(isinstance(inner, ast.Expr) and _is_print(inner.value) for inner in node.body)
    )


def _unpacks(node: ast.Assign) -> bool:
    """`a, b = 1, 2`: anything else would iterate over an object."""
    target, value = node.targets[0], node.value
    return (
        len(node.targets) == 1
        and isinstance(target, ast.Tuple)
        and isinstance(value, ast.Tuple)
        and len(target.elts) == len(value.elts)
        and all(isinstance(item, ast.Name) for item in target.elts)
    )


def _is_value(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant | ast.Name):
        return True
    if isinstance(node, ast.BinOp):
        return (
            isinstance(node.op, _OPERATORS | ast.BitOr)
            and _is_value(node.left)
            and _is_value(node.right)
        )
    if isinstance(node, ast.UnaryOp):
        return _is_value(node.operand)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return all(map(_is_value, node.elts))
    if isinstance(node, ast.Dict):
        return all(key is not None and _is_value(key) for key in node.keys) and all(
            map(_is_value, node.values)
        )
    if isinstance(node, ast.BoolOp):
        return all(map(_is_value, node.values))
    if isinstance(node, ast.Compare):
        return all(isinstance(op, _COMPARISONS) for op in node.ops) and all(
            map(_is_value, (node.left, *node.comparators))
        )
    if isinstance(node, ast.IfExp):
        return all(map(_is_value, (node.test, node.body, node.orelse)))
    if isinstance(node, ast.Call):
        return _is_text_method(node)
    return isinstance(node, ast.JoinedStr) and all(map(_is_piece, node.values))


def _is_text_method(node: ast.Call) -> bool:
    """A method of a string that is written out, such as `f"{n}".ljust(80, ".")`."""
    method = node.func
    return (
        isinstance(method, ast.Attribute)
        and method.attr in _TEXT_METHODS
        and (
            isinstance(method.value, ast.JoinedStr)
            or (isinstance(method.value, ast.Constant) and isinstance(method.value.value, str))
        )
        and _is_value(method.value)
        and not node.keywords
        and all(map(_is_value, node.args))
    )


def _is_constant(node: ast.expr) -> bool:
    """A value without names: in a class body an object may learn that it was put there."""
    return _is_value(node) and not any(isinstance(part, ast.Name) for part in ast.walk(node))


def _is_piece(node: ast.expr) -> bool:
    """A part of an f-string."""
    if isinstance(node, ast.FormattedValue):
        plain = isinstance(node.value, ast.Name | ast.Constant)
        return plain and (node.format_spec is None or _is_constant(node.format_spec))
    return isinstance(node, ast.Constant)


def _is_print(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and all(map(_is_value, node.args))
        and all(k.arg in _PRINT_OPTIONS and _is_constant(k.value) for k in node.keywords)
    )


def _is_lambda(node: ast.expr) -> bool:
    return isinstance(node, ast.Lambda) and _is_signature(node.args, None)


def _is_signature(args: ast.arguments, returns: ast.expr | None) -> bool:
    """Defaults and annotations are worked out when the function is made."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    found = [*args.defaults, *args.kw_defaults, returns]
    found += [arg.annotation for arg in every if arg is not None]
    return all(node is None or _is_value(node) for node in found)


def _is_class(node: ast.ClassDef) -> bool:
    return (
        not node.decorator_list
        and not node.keywords
        and all(isinstance(base, ast.Name) and base.id in _BASES for base in node.bases)
        and all(_is_statement(part, in_class=True) for part in node.body)
    )
