"""A cell as plain Python: magics and shell lines out of the way, no line moved."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass
from functools import lru_cache

from . import magics

# Magics whose text is Python of this kernel.
_PYTHON_MAGICS = frozenset({"time", "timeit", "capture", "prun", "memit"})
# After these any name may be there.
_STAR_MAGICS = frozenset({"run", "pylab", "store", "load_ext", "sql"})
_STAR = "from _ import *"
_MAGIC = re.compile(r"(\s*)%(\w+)\s*(.*)$")
_SHELL_OR_HELP = re.compile(r"\s*(?:!|\?)|\s*[\w.*%]+\?{1,2}\s*$")
_ASSIGNED = re.compile(r"(\s*[\w.,*\s\[\]()\"']+?=\s*)(?:%\w|!)")
# What IPython takes for a magic without its mark.
COMMAND = re.compile(
    r"\s*(?:pip|conda|mamba|cd|ls|ll|cat|cp|mv|rm|mkdir|rmdir|echo|pwd|who|whos|clear)"
    r"(?:\s*$|\s+[^=\s.,(\[:])"
)
_OPTION = re.compile(r"-[a-zA-Z](?:\s*\d+)?\s+")
_OUT = re.compile(r"(?:--out|--err|-o)[ =]([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)")
_IN = re.compile(r"(?:-i|--input)[ =]([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)")
_NAMED = re.compile(r"(?:\{\s*|\$\{?)([A-Za-z_]\w*)")
_STRINGS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|#.*")


@dataclass(frozen=True, slots=True)
class Parsed:
    """`tree` is None where `error` says why. A cell of another language is an empty tree."""

    tree: ast.Module | None
    text: str
    error: SyntaxError | None = None
    # Names that shell lines and magics take in: `!ls {folder}`, `%%R -i df`.
    reads: frozenset[str] = frozenset()


@lru_cache(maxsize=4096)
def parsed(source: str) -> Parsed:
    """The tree is shared: do not change it."""
    source = _dedented(source)
    if source.lstrip("\n").startswith("%%"):
        lines = source.split("\n")
        at = next(i for i, line in enumerate(lines) if line.startswith("%%"))
        magic, _, arguments = lines[at][2:].partition(" ")
        if magic in _PYTHON_MAGICS:
            name = arguments.split()[-1:] if magic == "capture" else []
            lines[at] = f"{name[0]} = None" if name and name[0].isidentifier() else ""
            return _cleaned(lines, frozenset())
        return _other_language(lines, at, magic, arguments)
    tree, error = _tree(source)
    if tree is not None or not re.search(r"[%!?]|^\s*[a-z]+ ", source, re.MULTILINE):
        return Parsed(tree, source, error)
    found = _cleaned(source.split("\n"), frozenset())
    # The error of the cell as it was written, unless a magic is all that was wrong.
    return found if found.tree is not None or found.text != source else Parsed(None, source, error)


def _dedented(source: str) -> str:
    """IPython takes off the indent of the first line."""
    opening = source.lstrip("\n")
    indent = opening[: len(opening) - len(opening.lstrip(" \t"))]
    if not indent:
        return source
    return "\n".join(line.removeprefix(indent) for line in source.split("\n"))


def _tree(text: str) -> tuple[ast.Module | None, SyntaxError | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text), None
    except SyntaxError as error:
        return None, error
    except (ValueError, RecursionError, MemoryError) as error:
        return None, SyntaxError(str(error) or "too deeply nested")


def _other_language(lines: list[str], at: int, magic: str, arguments: str) -> Parsed:
    given = [name for found in _OUT.findall(arguments) for name in found.split(",")]
    first = " = ".join([*given, "None"]) if given else ""
    if not first and magic in _STAR_MAGICS:
        first = _STAR
    text = "\n".join([""] * at + [first] + [""] * (len(lines) - at - 1))
    reads = {name for found in _IN.findall(arguments) for name in found.split(",")}
    tree, error = _tree(text)
    return Parsed(tree, text, error, frozenset(reads))


def _cleaned(lines: list[str], reads: frozenset[str]) -> Parsed:
    out, found = [], set(reads)
    depth, continued = 0, False
    for line, free in zip(lines, magics.unquoted(lines), strict=True):
        new = line
        if continued:
            new = ""
            continued = line.rstrip().endswith("\\")
        elif free and depth <= 0:
            new = _plain(line)
            if new != line:
                found.update(_NAMED.findall(line))
                continued = line.rstrip().endswith("\\") and not new.endswith("\\")
        if free and new:
            bare = _STRINGS.sub("", new)
            depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
        out.append(new)
    text = "\n".join(out)
    tree, error = _tree(text)
    return Parsed(tree, text, error, frozenset(found))


def _plain(line: str) -> str:
    """One line as Python: the statement of `%time`, a stand-in for other magics."""
    assigned = _ASSIGNED.match(line)
    if assigned:
        return f"{assigned[1]}None"
    magic = _MAGIC.match(line)
    if magic:
        indent, name, rest = magic.groups()
        if name in _PYTHON_MAGICS:
            while (option := _OPTION.match(rest)) is not None:
                rest = rest[option.end() :]
            if rest.strip() == "\\":
                rest = "pass; \\"  # the statement is on the next line
            return f"{indent}{rest.rstrip() or 'pass'}"
        return indent + (_STAR if name in _STAR_MAGICS and not indent else "pass")
    if _SHELL_OR_HELP.match(line) or COMMAND.match(line):
        return f"{line[: len(line) - len(line.lstrip())]}pass"
    return line
