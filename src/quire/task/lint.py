"""What a linter says about a task: code that does not parse, names that nothing defines.

The cells are checked as one module, so that each knows the names of those above it.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import DocumentError
from . import frontmatter
from .document import Cell, Document
from .plain_python import COMMAND, Parsed, parsed

Kind = Literal["syntax", "undefined"]

# What IPython puts beside Python's builtins.
_SHELL_NAMES = """
    In Out _ __ ___ _i _ii _iii _ih _oh _dh _exit_code display get_ipython exit quit
"""
_KNOWN = frozenset(_SHELL_NAMES.split())
_NUMBERED = re.compile(r"_i?[0-9]+$")
# After these, names may be there that no cell spells out.
_HIDDEN = re.compile(r"\bexec\(|\bglobals\(\)|\.run_cell|\.run_line_magic|\.user_ns|\bvars\(\)\[")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Finding:
    """`line` and `column` count from 1 within the cell's source."""

    cell_id: str
    index: int
    line: int
    column: int
    message: str
    kind: Kind


def lint(document: Document) -> list[Finding]:
    """In the order of the cells. Only Python is checked."""
    if document.language != "python":
        return []
    code = [(at, cell) for at, cell in enumerate(document.cells) if _is_python(cell)]
    readings = [parsed(cell.source) for _, cell in code]
    found: list[Finding] = []
    broken: set[int] = set()
    for n, ((at, cell), reading) in enumerate(zip(code, readings, strict=True)):
        error = _syntax_error(reading)
        if error is not None:
            broken.add(n)
            line, column = error.lineno or 1, max(error.offset or 1, 1)
            found.append(Finding(cell.id, at, line, column, error.msg, "syntax"))
    found += _undefined(code, readings, broken, _taken(document))
    return _once(sorted(found, key=lambda item: (item.index, item.line, item.column)))


def _is_python(cell: Cell) -> bool:
    """A step of a logbook may say that it is for another kernel: its language is not known."""
    return cell.kind == "code" and cell.metadata.get("kernel", "python") in ("python", "python3")


def _once(found: Sequence[Finding]) -> list[Finding]:
    """A line that uses a name twice lacks it once: one mends both."""
    said = {(item.index, item.line, item.message): item for item in reversed(found)}
    return list(reversed(said.values()))


def _taken(document: Document) -> frozenset[str]:
    """What the front matter declares: a run gives it before the first step."""
    try:
        return frozenset(parameter.name for parameter in frontmatter.of(document).parameters)
    except DocumentError:
        # Nobody knows what it would declare: whatever it mentions may be there.
        return frozenset(_WORD.findall(document.cells[0].source))


def _syntax_error(reading: Parsed) -> SyntaxError | None:
    if reading.tree is None:
        return reading.error or SyntaxError("invalid syntax")
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(reading.tree, "<cell>", "exec", flags=flags, dont_inherit=True)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or "too deeply nested")
    return None


def _undefined(
    code: Sequence[tuple[int, Cell]],
    readings: Sequence[Parsed],
    broken: set[int],
    taken: frozenset[str],
) -> Iterator[Finding]:
    from pyflakes import checker, messages  # type: ignore[import-untyped]

    known = {*_KNOWN, *taken}
    texts: list[str] = []
    starts: list[int] = []
    line = 1
    for n, ((_, cell), reading) in enumerate(zip(code, readings, strict=True)):
        starts.append(line)
        text = reading.text
        if n in broken:
            # Nobody knows what it would define: whatever it mentions may be there.
            known.update(_WORD.findall(cell.source))
            text = "\n" * text.count("\n")
        elif "parameters" in cell.tags:
            known.update(_declared(reading))
        texts.append(text)
        line += text.count("\n") + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse("\n".join(texts))
    hidden = next((n for n, text in enumerate(texts) if _HIDDEN.search(text)), len(texts))
    said = checker.Checker(tree, filename="task", builtins=known, withDoctest=False).messages
    for message in said:
        if not isinstance(message, messages.UndefinedName | messages.UndefinedLocal):
            continue
        n = bisect_right(starts, message.lineno) - 1
        if n >= hidden:
            continue
        at, cell = code[n]
        within = message.lineno - starts[n]
        name = str(message.message_args[0])
        if _NUMBERED.match(name) or COMMAND.match(cell.source.split("\n")[within]):
            continue
        text = f"{name} is not defined above"
        yield Finding(cell.id, at, within + 1, message.col + 1, text, "undefined")


def _declared(reading: Parsed) -> Iterator[str]:
    """Parameters that must be given: an annotation without a value."""
    for node in reading.tree.body if reading.tree is not None else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
