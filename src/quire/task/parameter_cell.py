"""What the cell tagged `parameters` declares: names, types, defaults and help."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .document import Cell, Document

TAG = "parameters"
INJECTED_TAG = "injected-parameters"


@dataclass(frozen=True, slots=True)
class Parameter:
    """`type` is display text such as `int` or `list[str]`, empty when nothing tells it.

    `default` is only known when it is a literal or simple arithmetic; `default_source` always is.
    """

    name: str
    type: str = ""
    default: Any = None
    has_default: bool = False
    default_source: str = ""
    help: str = ""
    required: bool = False
    choices: tuple[Any, ...] = ()

    def __str__(self) -> str:
        text = f"{self.name}: {self.type}" if self.type else self.name
        if self.default_source:
            text += f" = {self.default_source}"
        if self.required:
            text += " (required)"
        return f"{text}  # {self.help}" if self.help else text

    def as_dict(self) -> dict[str, Any]:
        """For JSON, once the default can be written in it."""
        return {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "default": self.default,
            "choices": list(self.choices) or None,
            "help": self.help,
        }


def parameters_cell(doc: Document) -> int | None:
    """The position of the code cell that declares the parameters."""
    for at, cell in enumerate(doc.cells):
        if cell.kind == "code" and TAG in cell.tags:
            return at
    return None


def in_cell(doc: Document) -> tuple[Parameter, ...]:
    """What the cell tagged `parameters` declares."""
    at = parameters_cell(doc)
    if at is None:
        return ()
    cell = doc.cells[at]
    found = _python(cell) if doc.language == "python" else _by_line(cell, doc.language)
    # A name set twice keeps its place and its last value, as the code does.
    return tuple({parameter.name: parameter for parameter in found}.values())


def _python(cell: Cell) -> list[Parameter]:
    lines = [_without_magic(line) for line in cell.source.split("\n")]
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        # The kernel will say what is wrong with the cell; what can be read of it still helps.
        return list(_by_line(cell, "python"))
    comments = _comments(lines)
    return [
        parameter
        for statement in tree.body
        for parameter in _assigned(statement, "\n".join(lines), comments)
    ]


def _without_magic(line: str) -> str:
    """Magics and shell lines are not Python: their place stays, so that line numbers hold."""
    return "" if line.lstrip()[:1] in ("%", "!", "?") and line[:1] in ("%", "!", "?") else line


def _assigned(
    statement: ast.stmt, source: str, comments: dict[int, tuple[str, bool]]
) -> Iterator[Parameter]:
    annotation = ""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        names, value = [statement.target.id], statement.value
        annotation = _annotation(statement.annotation)
    elif isinstance(statement, ast.Assign):
        names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        value = statement.value
        for part in _unpacked(statement):
            yield from _assigned(part, source, comments)
    else:
        return
    missing = value is None or (isinstance(value, ast.Constant) and value.value is ...)
    text = "" if missing or value is None else ast.get_source_segment(source, value) or ""
    known, default = (False, None) if missing or value is None else _folded(value)
    for name in names:
        yield Parameter(
            name,
            type=annotation or (_type_name(default) if known else ""),
            default=default,
            has_default=not missing,
            default_source=text,
            help=_help(statement, comments),
            required=missing,
            choices=_choices(annotation),
        )


def _unpacked(statement: ast.Assign) -> Iterator[ast.Assign]:
    """`a, b = 1, 2` as two assignments; without known parts each name gets the whole."""
    for target in statement.targets:
        if not isinstance(target, ast.Tuple | ast.List):
            continue
        value = statement.value
        parts: list[ast.expr] = [value] * len(target.elts)
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            parts = value.elts
        for name, part in zip(target.elts, parts, strict=True):
            yield ast.copy_location(ast.Assign([name], part), statement)


def _annotation(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.strip()
    return ast.unparse(node)


def _type_name(value: Any) -> str:
    return "" if value is None else type(value).__name__


def _choices(annotation: str) -> tuple[Any, ...]:
    """The values of a Literal, also inside `Optional[…]` or `… | None`."""
    if "Literal" not in annotation:
        return ()
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse(annotation, mode="eval")):
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
                inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                return tuple(value for known, value in map(_folded, inner) if known)
    return ()


_MOST = 10_000
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _folded(node: ast.expr) -> tuple[bool, Any]:
    """Whether the value is plain from the source, and the value."""
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return True, _arithmetic(node)
    except (ValueError, ArithmeticError, TypeError, RecursionError):
        return False, None


def _arithmetic(node: ast.expr) -> Any:
    """`60 * 5`, `2 ** 10`, `"a" + "b"`: bounded, and only where evaluating cannot do anything."""
    match node:
        case ast.Constant(bool()):
            pass
        case ast.Constant(int() | float()):
            return node.value
        case ast.UnaryOp(ast.USub(), operand):
            return -_arithmetic(operand)
        case ast.BinOp(ast.Constant(str(left)), ast.Add(), ast.Constant(str(right))):
            return left + right
        case ast.BinOp(first, op, second):
            left, right = _arithmetic(first), _arithmetic(second)
            power = isinstance(op, ast.Pow) and abs(left) <= _MOST and abs(right) <= 1000
            small = abs(left) < 2**_MOST and abs(right) < 2**_MOST
            if small and (power or type(op) in _OPERATORS):
                return left**right if power else _OPERATORS[type(op)](left, right)
    raise ValueError("not simple arithmetic")


def _comments(lines: list[str]) -> dict[int, tuple[str, bool]]:
    """Line number to (comment, whether it stands alone on the line)."""
    import io
    import tokenize

    found: dict[int, tuple[str, bool]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            if token.type == tokenize.COMMENT:
                alone = not token.line[: token.start[1]].strip()
                found[token.start[0]] = (token.string.lstrip("#").strip(), alone)
    except (tokenize.TokenError, SyntaxError):
        pass  # what was found before it still holds
    return found


def _help(statement: ast.stmt, comments: dict[int, tuple[str, bool]]) -> str:
    """The comment at the end of the statement, else the one directly above it."""
    for line in dict.fromkeys((statement.end_lineno or statement.lineno, statement.lineno)):
        text, alone = comments.get(line, ("", True))
        if text and not alone:
            return text
    above: list[str] = []
    line = statement.lineno - 1
    while line in comments and comments[line][1]:
        above.insert(0, comments[line][0])
        line -= 1
    return " ".join(part for part in above if part)


_LINES = {
    "r": re.compile(r"\s*([A-Za-z.][\w.]*)\s*(?:<-|=)\s*(.*)$"),
    "bash": re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$"),
}
_ANY_LINE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*)$")
# A value, which may hold quoted text, and the comment behind it.
_COMMENTED = re.compile(
    r"""((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|(?<=\S)\#|[^#])*)\#*(.*)$"""
)
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None, "nothing": None}


def _by_line(cell: Cell, language: str) -> Iterator[Parameter]:
    """`name = value  # help`, one to a line, for languages Quire has no parser of."""
    for line in cell.source.split("\n"):
        match = _LINES.get(language, _ANY_LINE).match(line)
        split = _COMMENTED.match(match[2]) if match else None
        if not match or not split:
            continue
        value = split[1].strip().removesuffix(";").strip()
        known, default = _plain_value(value, language)
        yield Parameter(
            match[1],
            type=_type_name(default) if known else "",
            default=default,
            has_default=True,
            default_source=value,
            help=split[2].strip(),
        )


def _plain_value(text: str, language: str) -> tuple[bool, Any]:
    """Whether the default is a value that all languages write alike, and the value."""
    if text.lower() in _CONSTANTS:
        return True, _CONSTANTS[text.lower()]
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return True, ast.literal_eval(re.sub(r"^([-+]?\d+)L$", r"\1", text))
    # In a shell, bare words are text.
    plain = language == "bash" and not any(char in text for char in "$`()\"'\\")
    return plain, text if plain else None
