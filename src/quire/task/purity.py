"""Whether running a cell again changes nothing that could be noticed. In doubt it does."""

from __future__ import annotations

import ast
import builtins
from functools import lru_cache

_LONGEST = 4000
_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef)
_VALUES = (
    ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple,
    ast.List, ast.Set, ast.Dict,
)  # fmt: skip
# Not among them: `in`, which may iterate, `**` and shifts, which may take for ever.
_OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitOr, ast.unaryop, ast.boolop,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.Load,
)  # fmt: skip
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
        if not all(_is_statement(node) for node in body):
            return False
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    # The last expression of a cell is displayed and remembered as `_`.
    if body and isinstance(body[-1], ast.Expr) and not isinstance(body[-1].value, ast.Call):
        return False
    bound = [_bound(node) for node in body]
    unset: set[str] = set().union(*bound)
    if unset & {"print", "range"} or any(name.startswith("_") for name in unset):
        return False
    for node, own in zip(body, bound, strict=True):
        if unset & _read(node):
            return False
        unset -= own
    return True


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (*_DEFINITION, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Expr):
        return set()
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    return {part.id for part in names if isinstance(part.ctx, ast.Store)}


def _read(node: ast.stmt) -> set[str]:
    """Names read when the statement runs; what a function's body will read does not count."""
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.ClassDef):
        inner = [name for part in node.body for name in _read(part)]
        return {*inner, *(base.id for base in node.bases if isinstance(base, ast.Name))}
    if isinstance(node, _DEFINITION):
        parts = [node.args, *([node.returns] if node.returns is not None else [])]
    names = [part for one in parts for part in ast.walk(one) if isinstance(part, ast.Name)]
    found = {part.id for part in names if isinstance(part.ctx, ast.Load)}
    return found - _bound(node) if isinstance(node, ast.For) else found


def _is_statement(node: ast.stmt, *, in_class: bool = False) -> bool:
    """In a class body an object may learn that it was put there: only constants are."""
    is_value = _is_constant if in_class else _is_value
    match node:
        case ast.Assign(targets, value):
            plain = all(isinstance(one, ast.Name) for one in targets) or _unpacks(node)
            return plain and (is_value(value) or (not in_class and _is_lambda(value)))
        case ast.AnnAssign(ast.Name(), annotation, value):
            return (value is None or is_value(value)) and _is_value(annotation)
        case ast.Expr(value):
            return isinstance(value, ast.Constant) or (not in_class and _is_print(value))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return not node.decorator_list and _is_signature(node.args, node.returns)
        case ast.ClassDef(decorator_list=[], keywords=[]):
            plain = all(isinstance(base, ast.Name) and base.id in _BASES for base in node.bases)
            return plain and all(_is_statement(part, in_class=True) for part in node.body)
        case ast.For(ast.Name(), ast.Call(ast.Name("range"), numbers, []), body, []):
            # What it does is known before it runs.
            known = all(isinstance(n, ast.Constant) and type(n.value) is int for n in numbers)
            prints = all(isinstance(one, ast.Expr) and _is_print(one.value) for one in body)
            return known and prints and not in_class
    return isinstance(node, ast.Pass)


def _unpacks(node: ast.Assign) -> bool:
    """`a, b = 1, 2`: anything else would iterate over an object."""
    match node:
        case ast.Assign([ast.Tuple(names)], ast.Tuple(values)):
            return len(names) == len(values) and all(isinstance(n, ast.Name) for n in names)
    return False


def _is_value(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant | ast.Name):
        return True
    match node:
        case ast.JoinedStr(pieces):
            return all(map(_is_piece, pieces))
        # A method of a string that is written out, such as `f"{n}".ljust(80, ".")`.
        case ast.Call(ast.Attribute(text, method), args, []):
            written = isinstance(text, ast.JoinedStr) or (
                isinstance(text, ast.Constant) and isinstance(text.value, str)
            )
            return written and method in _TEXT_METHODS and all(map(_is_value, (text, *args)))
        case ast.Dict(keys) if None in keys:  # {**other}
            return False
    return isinstance(node, _VALUES) and all(
        isinstance(part, _OPERATORS) or _is_value(part) for part in ast.iter_child_nodes(node)
    )


def _is_constant(node: ast.AST) -> bool:
    """A value without names."""
    return _is_value(node) and not any(isinstance(part, ast.Name) for part in ast.walk(node))


def _is_piece(node: ast.expr) -> bool:
    """A part of an f-string."""
    match node:
        case ast.FormattedValue(ast.Name() | ast.Constant(), _, spec):
            return spec is None or _is_constant(spec)
    return isinstance(node, ast.Constant)


def _is_print(node: ast.expr) -> bool:
    match node:
        case ast.Call(ast.Name("print"), args, options):
            known = all(k.arg in _PRINT_OPTIONS and _is_constant(k.value) for k in options)
            return known and all(map(_is_value, args))
    return False


def _is_lambda(node: ast.expr) -> bool:
    return isinstance(node, ast.Lambda) and _is_signature(node.args, None)


def _is_signature(args: ast.arguments, returns: ast.expr | None) -> bool:
    """Defaults and annotations are evaluated when the function is made."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    found = [*args.defaults, *args.kw_defaults, returns]
    found += [arg.annotation for arg in every if arg is not None]
    return all(node is None or _is_value(node) for node in found)
