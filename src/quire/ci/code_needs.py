"""What a piece of code names of the world around it: modules it imports, paths it may open.

Read from the text, without running it. A name that only comes to be while the code runs is not
found; whatever is a string in the code counts as a path it may open, so that rather too much is
found than too little.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..task.document import Document
from ..task.plain_python import parsed

LONGEST = 300  # characters of a string that may still be a path
_TOKEN = re.compile(r"[^\s'\"`<>|&;(){}=,]+")
_RUN = re.compile(r"^\s*%run\s+(?:-\w+\s+)*['\"]?([^\s'\"]+)", re.MULTILINE)
_IMPORTERS = frozenset({"import_module", "__import__"})


@dataclass(frozen=True, slots=True)
class Import:
    """`from ..a.b import c` is level 2, module `a.b`, names `c`."""

    module: str
    names: tuple[str, ...] = ()
    level: int = 0


@dataclass(frozen=True, slots=True)
class Needs:
    imports: frozenset[Import] = frozenset()
    paths: frozenset[str] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        return Needs(self.imports | other.imports, self.paths | other.paths)


def of_document(doc: Document) -> Needs:
    sources = [cell.source for cell in doc.cells if cell.kind == "code"]
    if doc.language == "python":
        return _united(map(_cell, sources))
    return _united(map(_words, sources))


def of_module(text: str) -> Needs:
    """Of a `.py` file that is no task."""
    found = parsed(text)
    return _words(text) if found.tree is None else _tree(found.tree)


def _united(parts: Iterable[Needs]) -> Needs:
    out = Needs()
    for part in parts:
        out |= part
    return out


def _cell(source: str) -> Needs:
    found = parsed(source)
    if found.tree is None:
        return _words(source)
    needs = _tree(found.tree)
    if found.text == source:
        return needs
    # Magics, shell lines and other languages have no strings of Python: every word may be a path.
    kept = set(found.text.split("\n"))
    return needs | _words("\n".join(line for line in source.split("\n") if line not in kept))


def _words(text: str) -> Needs:
    words = {word for word in _TOKEN.findall(text) if len(word) <= LONGEST}
    words |= {f"{name}.py" for name in _RUN.findall(text)}  # %run adds it by itself
    return Needs(paths=frozenset(words))


def _tree(tree: ast.AST) -> Needs:
    imports: set[Import] = set()
    paths: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {Import(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            imports.add(Import(node.module or "", names, node.level))
        elif isinstance(node, ast.Call):
            imports |= _imported_by_call(node)
        elif isinstance(node, ast.Constant) and _may_be_path(node.value):
            paths.add(str(node.value))
    return Needs(frozenset(imports), frozenset(paths))


def _may_be_path(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST and "\n" not in value


def _imported_by_call(node: ast.Call) -> set[Import]:
    """`importlib.import_module("a.b")`, as far as the name stands there."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else None
    called = node.func.id if isinstance(node.func, ast.Name) else called
    first = node.args[0] if node.args else None
    if called not in _IMPORTERS or not isinstance(first, ast.Constant):
        return set()
    name = first.value if isinstance(first.value, str) else ""
    bare = name.lstrip(".")
    if not all(part.isidentifier() for part in bare.split(".")):
        return set()
    return {Import(bare, level=len(name) - len(bare))}
