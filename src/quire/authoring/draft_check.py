"""Check a drafted text against the rules of a new task. Nothing of it is run."""

from __future__ import annotations

import ast
import contextlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..environments import requirements
from ..errors import DocumentError
from ..task import formats
from ..task.document import Document
from ..task.lint import lint
from ..task.parameter_cell import TAG, Parameter, parameters_cell
from ..task.params import declared
from ..task.waiting_cells import MARK, waiting
from .draft import SECTIONS, TITLE, Draft, without_ids

MOST_CELLS = 60
_FENCED = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_MAGIC = re.compile(r"^[ \t]*[!%]|\bget_ipython\b", re.MULTILINE)
# What some models say before they answer.
_THOUGHT = re.compile(r"\A\s*<(think|thinking)>.*?</\1>", re.DOTALL)
# What a default may be besides a literal.
_MADE = ("date", "datetime", "time", "timedelta", "Path", "Decimal")
_LITERAL = (
    ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp
)  # fmt: skip
_OPEN = re.compile(r"\bTODO\b|^\s*\.\.\.\s*$", re.MULTILINE)


def cleaned(text: str) -> str:
    """Without the fence around it and without characters that are not seen."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")
    text = _THOUGHT.sub("", text)
    # Where there is something around the task, the longest block is meant.
    blocks = [] if re.match(r"\s*# ?%%", text) else _FENCED.findall(text)
    return max(blocks, key=len).strip("\n") + "\n" if blocks else text.strip("\n") + "\n"


def vet(text: str, given: Sequence[Parameter] = ()) -> tuple[Draft | None, list[str]]:
    """The draft, or what is wrong with it, each in a sentence. It keeps the `given` parameters."""
    try:
        document = formats.loads(cleaned(text), ".py")
    except DocumentError as error:
        return None, [error.message]
    if document.metadata:
        return None, ["it has a header above the cells: leave it out"]
    if len(document.cells) > MOST_CELLS:
        return None, [f"it has more than {MOST_CELLS} cells"]
    problems = [*_of_cells(document), *_of_parameters(document, given), *_of_sections(document)]
    problems += [
        f"cell {found.index}, line {found.line}: {found.message}"
        for found in lint(document)
        # What a cell that waits will define is not known.
        if found.kind == "syntax" or not waiting(document)
    ]
    if problems:
        return None, problems
    # Written again, without the metadata that its markers may hold.
    text = formats.dumps(without_ids(document), ".py")
    document = formats.loads(text, ".py")
    return Draft(document, document.title[:TITLE]), []


def _of_cells(document: Document) -> Iterator[str]:
    first = document.cells[0] if document.cells else None
    if first is None or first.kind != "markdown" or not first.source.lstrip().startswith("# "):
        yield "the first cell has to be Markdown that begins with a title: `# Title`"
    for at, cell in enumerate(document.cells):
        if cell.kind == "raw":
            yield f"cell {at} is raw: use only code and Markdown"
        elif cell.kind == "code" and (_MAGIC.search(cell.source) or not _is_python(cell.source)):
            yield f"cell {at} has a magic or a shell line, or is no Python: write plain Python"
        elif cell.kind == "code" and _OPEN.search(cell.source):
            yield f'cell {at} is not written: let it `raise {MARK}("what belongs there")`'
        if set(cell.tags) - {TAG}:
            yield f"cell {at} has the tags {', '.join(cell.tags)}: only parameters may be tagged"


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def _only_declares(source: str) -> bool:
    """Imports, and names with a literal each: looking at the parameters must not compute."""
    if not _is_python(source):
        return False
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        if not isinstance(statement, ast.AnnAssign | ast.Expr):
            return False
        if statement.value is not None and not _is_literal(statement.value):
            return False
    return True


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        made = ast.unparse(node.func).rpartition(".")[2] in _MADE
        return made and not node.keywords and all(map(_is_literal, node.args))
    inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    return isinstance(node, _LITERAL) and all(map(_is_literal, inner))


def _of_parameters(document: Document, given: Sequence[Parameter]) -> Iterator[str]:
    tagged = [cell for cell in document.cells if TAG in cell.tags]
    if len(tagged) != 1 or parameters_cell(document) is None:
        yield 'there has to be one code cell with the marker `# %% parameters tags=["parameters"]`'
        return
    if not _only_declares(tagged[0].source):
        yield "the parameters cell computes: `name: type = literal  # help`, and imports for types"
    parameters = declared(document)
    if not parameters:
        yield "the parameters cell declares none: `name: type = default  # help`"
    known = {item.name: item for item in parameters}
    for item in given:
        there = known.pop(item.name, None)
        if there is None or (there.type, there.default_source) != (item.type, item.default_source):
            yield f"keep the parameter `{replace(item, required=False)}` as it is"
    for item in known.values():
        if not item.type or not item.help or item.required:
            yield f"parameter {item.name} needs a type, a default and a comment"


def _of_sections(document: Document) -> Iterator[str]:
    with contextlib.suppress(DocumentError):  # which lint says
        if requirements.declared(document) is not None:
            yield "it names packages to be installed: leave that to a person"
    titles = {cell.title.strip().lower() for cell in document.cells if cell.kind == "code"}
    for name in SECTIONS:
        if name not in titles:
            yield f"there is no code cell with the title {name}: `# %% {name}`"
    if waiting(document):
        return  # what is missing may be in the cells that are not written
    code = "\n".join(cell.source for cell in document.cells if cell.kind == "code")
    if not re.search(r"^\s*glue\(", code, re.MULTILINE):
        yield 'no result has a name: `from quire.runtime import glue`, `glue("status", status)`'
    if not re.search(r"^\s*assert\b", code, re.MULTILINE):
        yield "the check cell asserts nothing about the results"
