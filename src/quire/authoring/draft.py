"""A task begun from its description. It invents nothing: what only its author knows, waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..task import formats
from ..task.document import Cell, Document
from ..task.parameter_cell import Parameter
from ..task.waiting_cells import MARK, Waiting, waiting
from .declared_inputs import imports
from .described_inputs import described

_WANTED = {
    "gather": "get what the task is about",
    "decide": "the rule by which items count, and a status",
    "report": "name the results: glue(name, value) of quire.runtime",
    "check": "an assert for each promise of the task",
}
SECTIONS = tuple(_WANTED)
TITLE = 120
_MARKS = re.compile(r"\A(?:#{1,6}\s+|[-*+>]\s+)+")  # of a heading, or a list, in Markdown
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NO_INPUTS = "# One line for each input: name: type = default  # what it means"
_WHY = "**Why.** Say who needs the result, and what they do with it. A reviewer reads this first."


@dataclass(frozen=True, slots=True)
class Draft:
    document: Document
    title: str

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        return waiting(self.document)

    @property
    def text(self) -> str:
        return formats.dumps(self.document, ".py")


def titled(lines: Sequence[str]) -> tuple[str, str]:
    """The title of a description, and all that the title does not say."""
    first = _MARKS.sub("", lines[0]) or lines[0]
    rest = "\n".join(lines[1:]).strip()
    title = _SENTENCE.split(first)[0]
    if len(title) > TITLE:
        cut = title[:TITLE]
        title = (cut.rsplit(" ", 1)[0] if " " in cut[20:] else cut) + " …"
    more = rest if title == first else f"{first}\n\n{rest}".strip()
    return title.rstrip(".") or title, more


def draft(lines: Sequence[str], declared: Sequence[Parameter] = ()) -> Draft:
    """From the lines of a description, of which the first has something in it.

    Its parameters are the declared ones, else those that the description states.
    """
    title, more = titled(lines)
    inputs = declared or described("\n".join(lines), frozenset({"date"}))
    names = ", ".join(f"`{item.name}`" for item in inputs)
    does = f"It takes {names}." if names else "Say what the task does."
    cells = (
        Cell("markdown", f"# {title}\n\n**What.** {more or does}\n\n{_WHY}"),
        Cell("code", _parameters(inputs), title="parameters", tags=("parameters",)),
        *(Cell("code", f'raise {MARK}("{what}")', title=name) for name, what in _WANTED.items()),
    )
    # Read back, for the ids that the cells have in the file.
    return Draft(formats.loads(formats.dumps(Document(cells), ".py"), ".py"), title)


def _parameters(inputs: Sequence[Parameter]) -> str:
    lines = [str(replace(item, required=False)) for item in inputs]
    above = imports(inputs)
    return "\n".join([*above, *([""] if above else []), *lines]) or _NO_INPUTS


def without_ids(document: Document) -> Document:
    """Only what a reader sees of the cells, in the words of the format."""
    cells = (
        Cell(cell.kind, cell.source, title=cell.title, tags=cell.tags) for cell in document.cells
    )
    return replace(document, cells=tuple(cells), metadata={})
